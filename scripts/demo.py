"""Run a notebook in a kernel, print what its cells say, and leave it and an HTML page to open."""

from __future__ import annotations

import argparse
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter


class _Announcing:
    """Says which code cell begins, called by nbclient."""

    def __init__(self, notebook: nbformat.NotebookNode) -> None:
        self._total = sum(cell.cell_type == "code" for cell in notebook.cells)
        self._count = 0

    def __call__(self, cell: nbformat.NotebookNode, **_: object) -> None:
        self._count += 1
        line = next((line for line in cell.source.splitlines() if line.strip()), "")
        print(f"  cell {self._count} of {self._total}: {line}", flush=True)


def execute(path: Path) -> nbformat.NotebookNode:
    """Return the notebook, executed; a cell that fails raises."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(
        notebook,
        timeout=600,
        record_timing=False,
        coalesce_streams=True,  # where one flush ends and the next begins differs between runs
        resources=resources,
        on_cell_execute=_Announcing(notebook),
    ).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":  # the progress line ends as an output without data
            cell.outputs = [output for output in cell.outputs if output.get("data", True)]
    return notebook


def text_of(output: nbformat.NotebookNode) -> str:
    """Return what a terminal can show of one output."""
    if output.output_type == "stream":
        return output.text
    return output.get("data", {}).get("text/plain", "")


def show(notebook: nbformat.NotebookNode) -> None:
    """Print the code cells of an executed notebook, each with its outputs."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            print(f"\nIn [{cell.execution_count}]:")
            print("\n".join(f"    {line}".rstrip() for line in cell.source.splitlines()))
            for output in cell.outputs:
                print(f"\n{text_of(output).rstrip()}")


def main() -> None:
    """Execute the notebook named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebook", type=Path)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--into", type=Path, metavar="FOLDER", help="where the results are left")
    where.add_argument("--in-place", action="store_true", help="only keep the outputs")
    options = parser.parse_args()

    print(f"Running {options.notebook} in a kernel (torch compiles for real) ...", flush=True)
    notebook = execute(options.notebook)
    if options.in_place:
        nbformat.write(notebook, options.notebook)
        return
    show(notebook)
    options.into.mkdir(parents=True, exist_ok=True)
    executed = options.into / options.notebook.name
    nbformat.write(notebook, executed)
    page = executed.with_suffix(".html")
    page.write_text(HTMLExporter().from_notebook_node(notebook)[0], encoding="utf-8")
    print(f"\nThe executed notebook: {executed}\nThe same as a page:    {page}")
    print(f"Open it in JupyterLab: .venv/bin/jupyter lab {executed}")


if __name__ == "__main__":
    main()
