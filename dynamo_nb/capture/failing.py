"""Which guards of a cache entry fail for given locals, with the values then and now."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from torch._C._dynamo.guards import RelationalGuard

from dynamo_nb.capture.ambient import STATE_KINDS, changed_state
from dynamo_nb.capture.identities import without_addresses
from dynamo_nb.capture.memory import Entry, names, seen
from dynamo_nb.capture.presence import changed_presence
from dynamo_nb.capture.tensor_changes import tensor_changes, told_change
from dynamo_nb.capture.trees import children, managers

__all__ = ["failing_guards"]

_SIZE = re.compile(r"([LG]\[.+?\])\.(size|stride)\(\)\[(\d+)\]")
_CLOSURE = re.compile(r"^(.*)\.__closure__\[(\d+)\]\.cell_contents")
_DICT_LENGTH = re.compile(r"len\((.+)\) != \d+")
#: How torch begins what it says of a tensor that differs, or of what is of another type.
_TENSOR = re.compile(r"(?:tensor|expected type of) '(.*?)' ")
#: A local variable's number in a shape guard, such as an index that became dynamic.
_SCALAR = re.compile(r"L\['\w+'\](?:\[[^\[\]]+\]|\.\w+)*")
#: Of two names that must hold one object.
_SAME = re.compile(r"(\S+) is (\S+)")
#: Types of tensors that are one to a guard, apart from what else it checks.
_SAME_TENSORS = {"Tensor", "Parameter", "Buffer"}
_RELATIONS = (RelationalGuard,)

#: So many failing places are found one by one; then each leaf guard is asked.
_ONE_BY_ONE = 2
_LENGTH_KINDS = ("LENGTH", "LEN")


def failing_guards(
    wrapper: Any, f_locals: dict[str, Any], known: Entry | None
) -> list[dict[str, Any]]:
    """Return every failing guard of one entry, in the order of the checks.

    Each is `{source, name, kind, guard, was, now}`; a tensor has one for each property that differs
    from what its guard holds. `check_verbose` stops at the first failure, so
    failing places are taken out of a clone of the tree and the rest is checked again. Only the
    root has `check_verbose` (2.13). Guards on torch's global state and on relations between
    values can't be taken out: then each leaf guard is asked on its own, and each relation.
    """
    found = list(_Check(wrapper, f_locals, known).failures())
    # A new default device fails two guards.
    return [item for i, item in enumerate(found) if not _is_told(item, found[:i])]


def _is_told(failure: dict[str, Any], before: list[dict[str, Any]]) -> bool:
    same = [other for other in before if other["name"] == failure["name"] != ""]
    return failure["kind"] in STATE_KINDS and bool(same)


class _Check:
    """One check of an entry's guards against the locals of a frame."""

    def __init__(self, wrapper: Any, f_locals: dict[str, Any], known: Entry | None) -> None:
        self._root = wrapper.root
        self._locals = f_locals
        self._known = known
        self._globals = dict(wrapper.global_scope)
        self._scope = {"L": f_locals, "G": wrapper.global_scope["G"], **wrapper.closure_vars}

    @cached_property
    def _places(self) -> dict[str, tuple[str, str, bool]]:
        """Where each guard stands, by its message: source, kind, whether at the root."""
        return {
            part: (
                "" if manager is self._root else manager.get_source(),
                type(guard).__name__,
                manager is self._root,
            )
            for manager in managers(self._root)
            for guard in manager.get_leaf_guards()
            for part in guard.verbose_code_parts()
        }

    @cached_property
    def _sources(self) -> set[str]:
        return {manager.get_source() for manager in managers(self._root)}

    def failures(self) -> Iterator[dict[str, Any]]:
        dropped: set[str] = set()
        unplaced = ""
        rest: list[dict[str, Any]] = []
        root = self._root
        while not (info := root.check_verbose(self._locals)).result:
            text = str(info.verbose_code_parts[0]) if info.verbose_code_parts else ""
            source, kind, at_root = self._told_place(text)
            if not source and not at_root:
                source, kind, at_root = self._places.get(text, ("", "", False))
            is_placed = bool(source) or at_root
            if is_placed:
                yield from self._failures(source, kind, text)
            if not is_placed or at_root or source in dropped:
                unplaced = "" if is_placed else text
                rest = list(self._rest(kind if at_root else "", dropped))
                break
            dropped.add(source)
            if len(dropped) == _ONE_BY_ONE:
                for source, kind, text in list(self._swept(self._root, dropped)):
                    yield from self._failures(source, kind, text)
                    dropped.add(source)
            root = self._root.clone_manager(lambda m: m.get_source() not in dropped)
        rest += self._same_tensors()
        rest += self._epilogue()
        yield from rest
        if unplaced and not rest and not (dropped and self._epilogue_raises()):
            yield from self._failures("", "", unplaced)

    def _rest(self, told: str, dropped: set[str]) -> Iterator[dict[str, Any]]:
        """Yield what fails besides a guard that can't be taken out of the tree.

        `told` is the kind of that guard where it is one of the root's own.
        """
        for guard in self._root.get_leaf_guards():
            kind = type(guard).__name__
            if kind != told and not guard(self._locals):
                yield from self._failures("", kind, _message(guard, self._locals))
        for source, kind, text in list(self._swept(self._root, dropped)):
            yield from self._failures(source, kind, text)

    def _same_tensors(self) -> Iterator[dict[str, Any]]:
        """Yield the pairs that are one tensor now, and were two when the entry was compiled."""
        distinct = {
            manager.get_source(): next(iter(guard.verbose_code_parts()), "")
            for manager in managers(self._root)
            for guard in manager.get_leaf_guards()
            if type(guard).__name__ == "NO_TENSOR_ALIASING"
        }
        first: dict[int, str] = {}
        for source in sorted(distinct):
            value = self._evaluate(source, absent=_ABSENT)
            other = first.setdefault(id(value), source)
            if other != source and value is not _ABSENT:
                text = distinct[source]
                yield self._told(
                    "", f"{other} is {source}", "NO_TENSOR_ALIASING", text, "False", "True"
                )

    def _swept(self, above: Any, dropped: set[str]) -> Iterator[tuple[str, str, str]]:
        """Yield `(source, kind, message)` of the places that fail, each leaf guard asked alone.

        A clone for each failure takes too long where a whole model has changed its mode.
        """
        for manager in children(above):
            source = manager.get_source()
            if source in dropped:
                continue
            failed = self._failing_leaf(manager)
            if failed is None:
                yield from self._swept(manager, dropped)
            else:
                kind = type(failed).__name__
                yield source, kind, str(next(iter(failed.verbose_code_parts()), kind))

    def _failing_leaf(self, manager: Any) -> Any:
        """Return the first leaf guard that fails on its own, None where there is none.

        Relations between values keep a state while they are asked: they are left to the tree.
        """
        value = self._evaluate(manager.get_source(), absent=_ABSENT)
        if value is _ABSENT:
            return None
        leaves = (leaf for leaf in manager.get_leaf_guards() if not isinstance(leaf, _RELATIONS))
        return next((leaf for leaf in leaves if not leaf(value)), None)

    def _told_place(self, text: str) -> tuple[str, str, bool]:
        """Place a message made at check time: of tensors, global state, a dict's length."""
        if text.startswith("GLOBAL_STATE"):
            return "", "GLOBAL_STATE", True
        length = _DICT_LENGTH.match(text)
        if length and length[1] in self._sources:
            return length[1], "DICT_LENGTH", False
        match = _TENSOR.match(text)
        if match and match[1] in self._sources:
            return match[1], "TENSOR_MATCH", False
        return "", "", False

    def _epilogue(self) -> Iterator[dict[str, Any]]:
        """Evaluate the guards run after the tree: shape guards, and what must be one object."""
        for guard in self._root.get_epilogue_lambda_guards():
            for part in guard.verbose_code_parts():
                expression = _code(part)
                if self._evaluate(expression) is not False:
                    continue
                same = _SAME.fullmatch(expression)
                if same:
                    name = " is ".join(sorted(same.groups()))
                    yield self._told("", name, "DUPLICATE_INPUT", part, "True", "False")
                    continue
                match = _SIZE.search(expression) or _SCALAR.search(expression)
                yield from self._failures(match[0] if match else "", "SHAPE_ENV", part)

    def _epilogue_raises(self) -> bool:
        """Say whether a shape guard asks for a size that the tensor has no more."""
        parts = (p for g in self._root.get_epilogue_lambda_guards() for p in g.verbose_code_parts())
        return any(self._evaluate(_code(part), absent=_ABSENT) is _ABSENT for part in parts)

    def _failures(self, source: str, kind: str, text: str) -> Iterator[dict[str, Any]]:
        """Yield what one failing guard says: a tensor's may fail in several properties."""
        asked = changed_presence(_code(text), source, self._name(source) or source)
        changes = [asked] if asked else self._tensor_changes(source)
        for change in changes or [self._change(source, kind, text)]:
            yield self._told(source, change[0], kind, text, *change[1:])

    def _told(
        self, source: str, name: str, kind: str, text: str, was: str, now: str
    ) -> dict[str, Any]:
        name_of = names(self._known.values if self._known is not None else {})
        return {
            "source": without_addresses(source),
            "name": without_addresses(name),
            "kind": kind,
            "guard": without_addresses(_code(text), name_of),
            "was": without_addresses(was),
            "now": now,
            "text": without_addresses(text, name_of),
        }

    def _tensor_changes(self, source: str) -> list[tuple[str, str, str]]:
        """Return what differs between two tensors of one type, nothing where that is not so."""
        was = self._known.values.get(source) if self._known is not None else None
        if was is None or was.tensor is None:
            return []
        current = self._evaluate(source, absent=_ABSENT)
        now = seen(current) if current is not _ABSENT else None
        if now is None or now.tensor is None:
            return []
        if was.type != now.type and not {was.type, now.type} <= _SAME_TENSORS:
            return []
        condition = next(
            (
                part
                for part, (at, kind, _) in self._places.items()
                if at == source and kind == "TENSOR_MATCH"
            ),
            "",
        )
        return tensor_changes(self._name(source) or source, was.tensor, now.tensor, condition)

    def _change(self, source: str, kind: str, text: str) -> tuple[str, str, str]:
        """Return what changed: its name (empty: the source), its value then and now."""
        if kind in STATE_KINDS:
            return changed_state(kind, text, self._known.state if self._known is not None else {})
        if not source:
            return "", "", ""
        size = _SIZE.fullmatch(source)
        if size:
            return self._size_change(size)
        source = source.removesuffix(".__code__")  # a function is guarded by its code
        was = self._known.values.get(source) if self._known is not None else None
        current = self._evaluate(source, absent=_ABSENT)
        if current is _ABSENT:
            return self._name(source), was.text if was else "", "missing"
        now = seen(current)
        if now.tensor is not None and was is None:
            return told_change(self._name(source) or source, text, now)
        if was is not None and was.tensor is not None and now.tensor is not None:
            return f"type({self._name(source) or source})", was.type, now.type
        if any(word in kind for word in _LENGTH_KINDS) and now.length is not None:
            told = _code(text).rpartition(" == ")[2] if was is None else ""
            then = str(was.length) if was is not None and was.length is not None else told
            return f"len({self._name(source) or source})", then, str(now.length)
        if was is not None and (was.type != now.type or "TYPE_MATCH" in kind):
            another = "another " if was.type == now.type else ""
            return f"type({self._name(source) or source})", was.type, another + now.type
        then = was.text if was is not None else _code(text).partition(f"{source} == ")[2]
        another = "another " if then == now.text and "ID" in kind else ""
        return self._name(source), then, another + now.text

    def _size_change(self, size: re.Match[str]) -> tuple[str, str, str]:
        known = self._known.values.get(size[1]) if self._known is not None else None
        then = (
            (known.tensor or {}).get("shape" if size[2] == "size" else "stride") if known else None
        )
        index = int(size[3])
        was = str(then[index]) if then and index < len(then) else ""
        return "", was, str(self._evaluate(size[0], absent=""))

    def _name(self, source: str) -> str:
        """Return a closure variable's own name; other sources name themselves (empty text)."""
        match = _CLOSURE.match(source)
        function = self._evaluate(match[1], absent=None) if match else None
        code = getattr(function, "__code__", None)
        if match is None or code is None:
            return ""
        variable = code.co_freevars[int(match[2])]
        return f"{variable} (closure variable of {code.co_name}){source[match.end() :]}"

    def _evaluate(self, expression: str, absent: Any = None) -> Any:
        try:
            return eval(expression, self._globals, self._scope)
        except Exception:
            return absent


_ABSENT = object()


def _code(text: str) -> str:
    """Return a guard's condition without the comment that names the user line."""
    return text.split("  # ")[0].strip()


def _message(guard: Any, f_locals: dict[str, Any]) -> str:
    """Return what a leaf guard of the root says of its failure; not each has words of its own."""
    parts = (
        guard.check_verbose(f_locals).verbose_code_parts
        if hasattr(guard, "check_verbose")
        else guard.verbose_code_parts()
    )
    return str(next(iter(parts), ""))
