"""Run a notebook in a kernel, print what its cells say, and leave it and an HTML page to open."""

from __future__ import annotations

import argparse
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter


def text_of(output: nbformat.NotebookNode) -> str:
    """Return what a terminal can show of one output."""
    if output.output_type == "stream":
        return output.text
    if output.output_type == "error":
        return "\n".join(output.traceback)
    return output.get("data", {}).get("text/plain", "")


def show(notebook: nbformat.NotebookNode) -> None:
    """Print the code cells of an executed notebook, each with its outputs."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        print(f"\nIn [{cell.execution_count}]:")
        print("".join(f"    {line}\n" for line in cell.source.splitlines()))
        for output in cell.outputs:
            print(text_of(output).rstrip())


def main() -> None:
    """Execute the notebook named on the command line; a cell that fails makes this fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("folder", type=Path, help="where the results are left")
    options = parser.parse_args()

    notebook = nbformat.read(options.notebook, as_version=4)
    print(f"Running {options.notebook} in a kernel ...", flush=True)
    client = NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(options.notebook.parent)}}
    )
    client.execute()
    show(notebook)

    options.folder.mkdir(parents=True, exist_ok=True)
    executed = options.folder / options.notebook.name
    nbformat.write(notebook, executed)
    page = executed.with_suffix(".html")
    page.write_text(HTMLExporter().from_notebook_node(notebook)[0], encoding="utf-8")
    print(f"\nThe executed notebook: {executed}\nThe same as a page:    {page}")
    print(f"Open it in JupyterLab: .venv/bin/jupyter lab {executed}")


if __name__ == "__main__":
    main()
