"""Which guards of a cache entry fail for given locals, with the values then and now."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from torch._C._dynamo.guards import RelationalGuard

from dynamo_nb.capture.identities import without_addresses
from dynamo_nb.capture.memory import Entry, Seen, global_state, names, seen
from dynamo_nb.capture.trees import children, managers

__all__ = ["failing_guards"]

#: A tensor's properties in the order in which a difference is worth telling.
_TENSOR_PROPERTIES = ("dtype", "device", "requires_grad", "shape", "stride")
_SIZE = re.compile(r"([LG]\[.+?\])\.(size|stride)\(\)\[(\d+)\]")
_CLOSURE = re.compile(r"^(.*)\.__closure__\[(\d+)\]\.cell_contents")
_STATE = re.compile(r"GLOBAL_STATE changed:\s*(.*)")
_DICT_LENGTH = re.compile(r"len\((.+)\) != \d+")
#: What `TensorCheck::check_verbose` says (`torch/csrc/dynamo/guards.cpp`, 2.13) → what changed.
_MISMATCHES = tuple(
    (re.compile(rf"{told} mismatch{at}. expected (.+?), actual (.+?)$"), what)
    for told, at, what in (
        ("size", r" at index (\d+)", "{}.size()[{}]"),
        ("stride", r" at index (\d+)", "{}.stride()[{}]"),
        ("rank", "", "{}.dim()"),
        ("dtype", "", "{}.dtype"),
    )
)
#: `c10::ScalarType`'s own names → torch's.
_DTYPES = {
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Float": "float32",
    "Double": "float64",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Byte": "uint8",
    "Bool": "bool",
}
#: How torch begins what it says of a tensor that differs, or of what is of another type.
_TENSOR = re.compile(r"(?:tensor|expected type of) '(.*?)' ")
#: A local variable's number in a shape guard, such as an index that became dynamic.
_SCALAR = re.compile(r"L\['\w+'\](?:\[[^\[\]]+\]|\.\w+)*")
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

    Each is `{source, name, kind, guard, was, now}`. `check_verbose` stops at the first failure, so
    failing places are taken out of a clone of the tree and the rest is checked again. Only the
    root has `check_verbose` (2.13). Guards on torch's global state and on relations between
    values can't be taken out: what follows them is then not known.
    """
    return list(_Check(wrapper, f_locals, known).failures())


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
            part: (manager.get_source(), type(guard).__name__, manager is self._root)
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
        root = self._root
        while not (info := root.check_verbose(self._locals)).result:
            text = str(info.verbose_code_parts[0]) if info.verbose_code_parts else ""
            source, kind, at_root = self._told_place(text)
            if not source and not at_root:
                source, kind, at_root = self._places.get(text, ("", "", False))
            if not source and not at_root:
                unplaced = text
                break
            yield self._failure(source, kind, text)
            if at_root or source in dropped:
                break
            dropped.add(source)
            if len(dropped) == _ONE_BY_ONE:
                for source, kind, text in list(self._swept(self._root, dropped)):
                    yield self._failure(source, kind, text)
                    dropped.add(source)
            root = self._root.clone_manager(lambda m: m.get_source() not in dropped)
        epilogue = list(self._epilogue())
        yield from epilogue
        if unplaced and not epilogue:
            yield self._failure("", "", unplaced)

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
        if _STATE.search(text):
            return "", "GLOBAL_STATE", True
        length = _DICT_LENGTH.match(text)
        if length and length[1] in self._sources:
            return length[1], "DICT_LENGTH", False
        match = _TENSOR.match(text)
        if match and match[1] in self._sources:
            return match[1], "TENSOR_MATCH", False
        return "", "", False

    def _epilogue(self) -> Iterator[dict[str, Any]]:
        """Evaluate the shape guards, which are Python expressions run after the tree."""
        for guard in self._root.get_epilogue_lambda_guards():
            for part in guard.verbose_code_parts():
                expression = _code(part)
                if self._evaluate(expression) is False:
                    match = _SIZE.search(expression) or _SCALAR.search(expression)
                    yield self._failure(match[0] if match else "", "SHAPE_ENV", part)

    def _failure(self, source: str, kind: str, text: str) -> dict[str, Any]:
        name, was, now = self._change(source, kind, text)
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

    def _change(self, source: str, kind: str, text: str) -> tuple[str, str, str]:
        """Return what changed: its name (empty: the source), its value then and now."""
        state = _STATE.search(text)
        if state:
            return self._state_change(state[1].strip())
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
            return _told_change(self._name(source) or source, text, now)
        if was is not None and was.tensor is not None and now.tensor is not None:
            if was.type == now.type or {was.type, now.type} <= _SAME_TENSORS:
                return self._tensor_change(source, was.tensor, now.tensor)
            return f"type({self._name(source) or source})", was.type, now.type
        if any(word in kind for word in _LENGTH_KINDS) and now.length is not None:
            told = _code(text).rpartition(" == ")[2] if was is None else ""
            then = str(was.length) if was is not None and was.length is not None else told
            return f"len({self._name(source) or source})", then, str(now.length)
        if was is not None and was.type != now.type:
            return f"type({self._name(source) or source})", was.type, now.type
        then = was.text if was is not None else _code(text).partition(f"{source} == ")[2]
        another = "another " if then == now.text and "ID" in kind else ""
        return self._name(source), then, another + now.text

    def _state_change(self, names: str) -> tuple[str, str, str]:
        now = global_state()
        then = self._known.state if self._known is not None else {}
        changed = [name for name in now if name in then and then[name] != now[name]]
        if not changed:
            return names, "", ""
        was, current = then[changed[0]], now[changed[0]]
        if isinstance(was, list) and isinstance(current, list):  # one value for each device
            was, current = next(
                pair for pair in zip(was, current, strict=False) if len({*pair}) > 1
            )
            return names, str(was), str(current)
        return changed[0], str(was), str(current)

    def _size_change(self, size: re.Match[str]) -> tuple[str, str, str]:
        known = self._known.values.get(size[1]) if self._known is not None else None
        then = (
            (known.tensor or {}).get("shape" if size[2] == "size" else "stride") if known else None
        )
        index = int(size[3])
        was = str(then[index]) if then and index < len(then) else ""
        return "", was, str(self._evaluate(size[0], absent=""))

    def _tensor_change(
        self, source: str, was: dict[str, Any], now: dict[str, Any]
    ) -> tuple[str, str, str]:
        name = self._name(source) or source
        for key in _TENSOR_PROPERTIES:
            if was[key] == now[key]:
                continue
            if key in ("shape", "stride") and was[key] and len(was[key]) == len(now[key] or ()):
                index = next(
                    i
                    for i, pair in enumerate(zip(was[key], now[key], strict=True))
                    if pair[0] != pair[1]
                )
                method = "size" if key == "shape" else "stride"
                return f"{name}.{method}()[{index}]", str(was[key][index]), str(now[key][index])
            if key == "shape":
                return f"{name}.dim()", str(len(was[key])), str(len(now[key]))
            return f"{name}.{key}", str(was[key]), str(now[key])
        return f"{name} (tensor type or dispatch keys)", "", ""

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


def _told_change(name: str, text: str, now: Seen) -> tuple[str, str, str]:
    """Return what changed of a tensor whose entry nobody saw: from torch's own message."""
    for pattern, what in _MISMATCHES:
        told = pattern.search(text)
        if told:
            *where, was, current = told.groups()
            return what.format(name, *where), _DTYPES.get(was, was), _DTYPES.get(current, current)
    if "requires_grad mismatch" in text and now.tensor is not None:
        current = now.tensor["requires_grad"]
        return f"{name}.requires_grad", str(not current), str(current)
    return name, "", now.text


def _code(text: str) -> str:
    """Return a guard's condition without the comment that names the user line."""
    return text.split("  # ")[0].strip()
