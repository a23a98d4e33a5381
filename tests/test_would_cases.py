"""What `would` says before each call of the casebook agrees with what the call then does."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Any

import pytest
from torch._C._dynamo.eval_frame import set_guard_complete_hook

import dynamo_nb
from dynamo_nb.capture.compiler import is_compiled
from tests.conftest import Shell
from tests.test_cases import CASES, NAMES

HELPER = "__asked_before__"


class Witness:
    """Asks `would` before each compiled call, and listens to the look-up that the call begins."""

    def __init__(self) -> None:
        self.lookups: list[bool] = []
        self.seen: list[tuple[str, bool, bool]] = []
        self.unasked = 0

    def on_lookup(self, hit: bool) -> bool:
        self.lookups.append(hit)
        return hit

    def asked(self, f: Any) -> Any:
        if not is_compiled(f):
            return f

        def call(*args: Any, **kwargs: Any) -> Any:
            answer = self.ask(f, args, kwargs)
            self.lookups.clear()
            try:
                return f(*args, **kwargs)
            finally:
                if answer is not None:
                    hit = bool(self.lookups) and self.lookups[0]
                    self.seen.append((str(answer), answer.outcome == "hit", hit))

        return call

    def ask(self, f: Any, args: Any, kwargs: Any) -> Any:
        try:
            return dynamo_nb.would(f, *args, **kwargs)
        except (ValueError, TypeError):  # never compiled so far, or the call itself will raise
            self.unasked += 1
            return None


class Asking(ast.NodeTransformer):
    """Hands the callee of each top-level call to the witness; runs after the magic's rewrite."""

    def visit_FunctionDef(self, node: ast.AST) -> ast.AST:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        asked = ast.Call(ast.Name(HELPER, ast.Load()), [node.func], [])
        node.func = ast.fix_missing_locations(ast.copy_location(asked, node.func))
        return node


@pytest.fixture
def witness(shell: Shell) -> Iterator[Witness]:
    witness = Witness()
    setattr(builtins, HELPER, witness.asked)
    previous = set_guard_complete_hook(witness.on_lookup)
    shell.ip.ast_transformers.append(Asking())
    yield witness
    set_guard_complete_hook(previous)
    delattr(builtins, HELPER)


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_agrees_with_the_call(name: str, shell: Shell, witness: Witness) -> None:
    source = (CASES / f"{name}.cell").read_text()
    flags = "" if "--backend" in source else " --backend eager"
    shell.run(source.replace("%%dynamo", f"%%dynamo{flags}", 1).replace(" --check", ""))
    assert shell.record is not None
    for answer, predicted, real in witness.seen:
        assert predicted == real, answer


def test_the_casebook_asks_for_hits_and_for_misses(shell: Shell, witness: Witness) -> None:
    """The test above can fail: predictions of both kinds are made and compared."""
    for name in ("dtype_change", "late_hook"):
        shell.run((CASES / f"{name}.cell").read_text().replace("%%dynamo", "%%dynamo --fresh", 1))
    assert {predicted for _, predicted, _ in witness.seen} == {True, False}
