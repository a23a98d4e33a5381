"""The shape of the package: who may import whom, read from the source, and how large a room is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "dynamo_nb"
MODULE_LINES = 400
RECORD = "dynamo_nb.record.types"  # the structs: a module for each topic, no logic to get lost in

#: `record.to_dot()` is where a person looks for it, and an answer shows itself: methods that call
#: up, when they are called.
REACHES_UP = {
    "dynamo_nb.record.types.calls": {"dynamo_nb.views.would"},
    "dynamo_nb.record.types.cell": {
        "dynamo_nb.views.brief",
        "dynamo_nb.views.dot",
        "dynamo_nb.views.html",
        "dynamo_nb.views.text",
    },
    "dynamo_nb.record.types.compiles": {"dynamo_nb.views.brief"},
    "dynamo_nb.record.types.guards": {"dynamo_nb.views.costs"},
    "dynamo_nb.record.types.steps": {"dynamo_nb.views.steps"},
    "dynamo_nb.record.difference": {"dynamo_nb.views.diff"},
    "dynamo_nb.record.trials": {"dynamo_nb.views.trials"},
}

#: The floors, lowest first. A part imports its own floor's modules and parts on lower floors;
#: parts that share a floor do not know each other. `""` is the package's face, `__init__`.
FLOORS = [
    {"events"},
    {"record"},
    {"capture", "findings"},
    {"views", "target"},
    {"runner", "options", "session", "progress", "magic", ""},
]
TOP = FLOORS[-1]
FLOOR_OF = {part: height for height, parts in enumerate(FLOORS) for part in parts}

#: What each part must never import, by top-level name.
FOREIGN = {
    "events": {"torch", "IPython"},
    "record": {"torch", "IPython", "ipywidgets", "anywidget", "jinja2"},
    "findings": {"torch", "IPython", "ipywidgets", "anywidget", "jinja2"},
    "views": {"torch", "IPython"},
    "target": {"IPython", "ipywidgets", "anywidget", "jinja2"},
    "capture": {"IPython", "ipywidgets", "anywidget", "jinja2"},
    **{part: {"torch"} for part in TOP},
}


def module_name(path: Path) -> str:
    """Return the dotted name of a module of the package, `dynamo_nb.record.types`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def part_of(module: str) -> str:
    """Return the part a module belongs to: the name below the package."""
    return [*module.split("."), ""][1]


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def walk_code(node: ast.AST):
    """Yield every node that can run: what stands under `if TYPE_CHECKING` is left out."""
    for child in ast.iter_child_nodes(node):
        if is_type_checking(child):
            for other in child.orelse:
                yield other
                yield from walk_code(other)
        else:
            yield child
            yield from walk_code(child)


def imports_of(source: str) -> set[str]:
    """Return the dotted names that a module imports, anywhere in it, functions included."""
    found = set()
    for node in walk_code(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are banned"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else str(node.module))
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith(("import_module", "__import__"))
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            found.add(str(node.args[0].value))
    return found


IMPORTS = {name: imports_of(path.read_text()) for name, path in MODULES.items()}


def own_imports(module: str) -> set[str]:
    """Return the modules of the package that a module imports."""
    found = {name for name in IMPORTS[module] if name in MODULES and name != "dynamo_nb"}
    return found - REACHES_UP.get(module, set())


def reachable(part: str) -> set[str]:
    """Return the parts that a part imports, directly or through other modules."""
    seen: set[str] = set()
    pending = [name for name in MODULES if part_of(name) == part]
    while pending:
        for name in own_imports(pending.pop()) - seen:
            seen.add(name)
            pending.append(name)
    return {part_of(name) for name in seen}


def test_every_module_belongs_to_a_part():
    unknown = {name for name in MODULES if part_of(name) not in FLOOR_OF}
    assert not unknown, "give these a floor in FLOORS"


@pytest.mark.parametrize("module", MODULES)
def test_arrows_go_one_way(module):
    part = part_of(module)
    for name in own_imports(module):
        other = part_of(name)
        same_floor = other == part or (part in TOP and other in TOP)
        assert same_floor or FLOOR_OF[other] < FLOOR_OF[part], f"{module} imports {name}"


@pytest.mark.parametrize("module", MODULES)
def test_foreign_imports_stay_where_they_belong(module):
    foreign = {name.split(".")[0] for name in IMPORTS[module]}
    assert not foreign & FOREIGN.get(part_of(module), set())


@pytest.mark.parametrize("module", MODULES)
def test_nobody_imports_the_package_face(module):
    """`dynamo_nb/__init__` stands on top: importing it from within would close a circle."""
    assert "dynamo_nb" not in IMPORTS[module]


def test_capture_knows_only_the_structs_of_the_record():
    known = set().union(*(own_imports(name) for name in MODULES if part_of(name) == "capture"))
    assert {name for name in known if part_of(name) == "record"} <= {"dynamo_nb.record.types"}


def test_capture_and_views_never_meet():
    assert "views" not in reachable("capture")
    assert "capture" not in reachable("views")


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_a_small_room(module):
    assert len(MODULES[module].read_text().splitlines()) <= MODULE_LINES


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith(RECORD)])
def test_a_data_module_holds_no_logic(module):
    """Structs with a property or a short lookup each, and no function beside them."""
    tree = ast.parse(MODULES[module].read_text())
    assert not [node for node in tree.body if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import dynamo_nb", {"torch", "transformers"}),
        ("import dynamo_nb.record.types", {"torch", "IPython", "jinja2"}),
        ("import dynamo_nb.findings", {"torch", "IPython"}),
        ("import dynamo_nb.views", {"torch", "IPython"}),
        ("import dynamo_nb.target.client", {"torch", "triton", "IPython"}),
        (
            "from IPython.core.interactiveshell import InteractiveShell as Shell\n"
            "result = Shell.instance().run_cell('%load_ext dynamo_nb')\n"
            "assert result.success",
            {"torch"},
        ),
    ],
    ids=["package", "record", "findings", "views", "target", "load_ext"],
)
def test_importing_is_cheap(code, absent, tmp_path):
    """In a fresh process nothing heavy is imported before it is needed."""
    program = f"{code}\nimport sys; print(sorted({absent!r} & set(sys.modules)))"
    environment = {"PATH": "", "HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "[]"


def test_the_walk_sees_imports():
    """The tests above can fail: every form of import is found, typing-only ones are skipped."""
    source = (
        "import torch.fx\n"
        "from dynamo_nb.record import types\n"
        "if TYPE_CHECKING:\n    import IPython\n"
        "def f():\n    import jinja2\n    importlib.import_module('anywidget')\n"
    )
    found = imports_of(source)
    assert found == {"torch.fx", "dynamo_nb.record.types", "jinja2", "anywidget"}
