"""The bytecode stepper: each instruction that Dynamo interpreted, and what it knew there."""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from dynamo_nb.capture.compiles import argument_text
from dynamo_nb.capture.plain import place_of_positions
from dynamo_nb.capture.recorder import Hooked
from dynamo_nb.capture.stacks import code_name
from dynamo_nb.capture.trackers import describe, tensor_node

__all__ = ["install_steps"]

#: A compile that interprets more instructions than this (an unrolled loop) is cut there.
STEP_LIMIT = 200_000


class _Frame:
    """One interpreted call: its code, the step that made the call, the locals seen last."""

    def __init__(self, tx: Any, index: int, parent: int | None, code: int) -> None:
        self.tx = tx
        self.index = index
        self.parent = parent
        self.code = code
        self.locals: dict[str, Any] = {}

    def changed_locals(self) -> dict[str, Any]:
        """Return the locals that are not the trackers they were; a deleted one is None."""
        now = self.tx.symbolic_locals
        changed = {
            name: tracker for name, tracker in now.items() if self.locals.get(name) is not tracker
        }
        changed.update({name: None for name in self.locals if name not in now})
        if changed:
            self.locals = dict(now)
        return changed


class _Tape:
    """What one attempt at a compile interpreted."""

    def __init__(self, output_graph: Any) -> None:
        self.output_graph = output_graph
        self.frames: dict[int, _Frame] = {}
        self.codes: dict[CodeType, tuple[int, list[dict[str, Any]]]] = {}
        self.values: dict[Any, int] = {}  # words, or the node of a tensor: it may get another name
        self.steps: list[dict[str, Any]] = []
        self.open: list[int] = []
        self.nodes: list[tuple[Any, int]] = []
        self.guards: list[tuple[str, str, int]] = []
        self.is_cut = False

    @property
    def current(self) -> int:
        """Return the innermost instruction under way; the first where none is yet."""
        return self.open[-1] if self.open else 0

    def begin(self, tx: Any) -> None:
        """Note the state ahead of an instruction."""
        if len(self.steps) >= STEP_LIMIT:
            self.is_cut = True
            self.open.append(len(self.steps) - 1)
            return
        frame = self.frames.get(id(tx)) or self._add_frame(tx)
        self.open.append(len(self.steps))
        self.steps.append(
            {
                "frame": frame.index,
                "instruction": tx.instruction_pointer,
                "stack": [self._value(tracker) for tracker in tx.stack],
                "locals": {
                    name: -1 if tracker is None else self._value(tracker)
                    for name, tracker in frame.changed_locals().items()
                },
                "raised": "",
            }
        )

    def end(self, raised: str = "") -> None:
        """Note how the innermost instruction ended."""
        step = self.open.pop()
        if raised:
            self.steps[step]["raised"] = raised

    def resolve_nodes(self, graph: Any) -> None:
        """Name the nodes as they are called when the graph goes to the backend."""
        made = dict(self.nodes)
        names = [(node.name, made.get(node, self.current)) for node in graph.nodes]
        self.nodes = names

    def data(self) -> dict[str, Any]:
        """Return the tape in the shape of the record's `Steps`, with nodes and guards by step."""
        return {
            "codes": [
                {
                    "name": code_name(code),
                    "file": code.co_filename,
                    "first_line": code.co_firstlineno,
                    "instructions": instructions,
                }
                for code, (_, instructions) in self.codes.items()
            ],
            "frames": [
                {"code": frame.code, "parent": frame.parent} for frame in self.frames.values()
            ],
            "values": [
                value if isinstance(value, str) else f"tensor {value.name}" for value in self.values
            ],
            "steps": self.steps,
            "nodes": [pair for pair in self.nodes if isinstance(pair[0], str)],
            "guards": self.guards,
            "is_cut": self.is_cut,
        }

    def _add_frame(self, tx: Any) -> _Frame:
        if tx.f_code not in self.codes:  # read now: a graph break rewrites the list in place
            self.codes[tx.f_code] = (len(self.codes), _listing(tx.f_code, tx.instructions))
        code, _ = self.codes[tx.f_code]
        parent = self.open[-1] if self.open else None
        frame = _Frame(tx, len(self.frames), parent, code)
        self.frames[id(tx)] = frame
        return frame

    def _value(self, tracker: Any) -> int:
        value = tensor_node(tracker)
        if value is None:
            value = describe(tracker)
        return self.values.setdefault(value, len(self.values))


def _listing(code: CodeType, instructions: list[Any]) -> list[dict[str, Any]]:
    """Return Dynamo's own instructions (`bytecode_transformation.Instruction`, 2.13).

    They have no text for their arguments: that is `dis`'s.
    """
    arguments = {item.offset: argument_text(item) for item in dis.get_instructions(code)}
    return [
        {
            "offset": item.offset if item.offset is not None else -1,
            "opname": item.opname,
            "argument": arguments.get(item.offset, ""),
            "frame": place_of_positions(code, item.positions),
        }
        for item in instructions
    ]


def install_steps(hooked: Hooked) -> None:
    """Watch `InstructionTranslatorBase.step` (`torch/_dynamo/symbolic_convert.py`, 2.13).

    Nodes and guards are attributed to the innermost instruction under way when they are made, so
    those of an inlined call belong to the callee's instructions. Each attempt has an output graph
    of its own; only the last one's tape is kept.
    """
    from torch._dynamo import convert_frame
    from torch._dynamo.output_graph import OutputGraph, SubgraphTracer
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase
    from torch._guards import GuardsSet

    recorder, hook = hooked.recorder, hooked.hook
    compiling: list[_Tape | None] = []

    def tape_of(tx: Any) -> _Tape | None:
        if not compiling:
            return None
        tape = compiling[-1]
        if tape is None or tape.output_graph is not tx.output:
            tape = compiling[-1] = _Tape(tx.output)
        return tape

    original = InstructionTranslatorBase.step

    def step(self: Any) -> bool:
        tape = None
        try:
            if self.instruction_pointer is not None and (tape := tape_of(self)) is not None:
                tape.begin(self)
        except Exception as error:
            recorder.note_failure(hook, error)
            tape = None
            compiling[-1:] = [None]
        if tape is None:
            return original(self)
        raised = ""
        try:
            return original(self)
        except BaseException as error:
            raised = type(error).__name__
            raise
        finally:
            tape.end(raised)

    def begin(*_: Any, **__: Any) -> None:
        compiling.append(None)

    def finish(_result: Any, *_: Any, compile_id: Any = None, **__: Any) -> None:
        tape = compiling.pop()
        if tape is not None:
            recorder.emit("steps", tape.data(), compile_id=str(compile_id), attempt=0)

    def on_proxy(proxy: Any, *_: Any, **__: Any) -> None:
        if compiling and (tape := compiling[-1]) is not None:
            tape.nodes.append((proxy.node, tape.current))

    def on_graph(_self: Any, module: Any, *_: Any, **__: Any) -> None:
        if compiling and (tape := compiling[-1]) is not None:
            tape.resolve_nodes(module.graph)

    def on_guard(_result: Any, _guards: Any, guard: Any, *_: Any, **__: Any) -> None:
        if compiling and (tape := compiling[-1]) is not None:
            tape.guards.append((guard.name, guard.create_fn_name(), tape.current))

    hooked.around(convert_frame, "_compile", before=begin, after=finish, failed=finish)
    hooked.around(SubgraphTracer, "create_proxy", after=on_proxy)
    hooked.around(OutputGraph, "call_user_compiler", before=on_graph)
    hooked.around(GuardsSet, "add", after=on_guard)
    hooked.replace(InstructionTranslatorBase, "step", step)
