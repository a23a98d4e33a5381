// Made by scripts/schema.py from the JSON schema of CellRecord. Do not edit.

export type Link = [kind: string, a: Ref, b: Ref];

export type Ref = [compile: string, artifact: string, key: string];

/** One attempt at a compile; all but the last were restarted for `reason`. */
export interface Attempt {
  attempt: number;
  status: string;
  reason: string;
}

/** A call that goes around a compiled object: `line` of the cell, `callee` as it is written. */
export interface Bypass {
  line: number;
  callee: string;
}

/** A frame's instructions before Dynamo, and those that replace them. */
export interface Bytecode {
  before: Instruction[];
  after: Instruction[];
}

/** What one call site of the cell did, over all its runs. */
export interface Call {
  line: number;
  name: string;
  compiles: string[];
  hits: Record<string, number>;
  hits_from: Record<string, number>;
  eager: number;
  reason: string;
  eager_modules: string[];
}

/** The exception that the cell raised. */
export interface CellError {
  type: string;
  message: string;
  line: number | null;
}

/** What torch.compile did to one cell, whole. */
export interface CellRecord {
  schema: number;
  name: string;
  cell: number | null;
  source: string;
  mode: string;
  mode_reason: string;
  options: Record<string, unknown>;
  device: string;
  versions: Versions;
  files: Record<string, string>;
  compiles: Compile[];
  frames: Frame[];
  calls: Call[];
  compiled_objects: CompiledObject[];
  links: Link[];
  findings: Finding[];
  notes: Note[];
  error: CellError | null;
  unparsed: Record<string, number>;
  metrics: Record<string, unknown>;
}

/** All that happened under one compile id. */
export interface Compile {
  compile_id: string;
  generation: number;
  name: string;
  file: string;
  first_line: number;
  resume_of: string;
  status: string;
  reason: string;
  error: CompileError | null;
  attempts: Attempt[];
  call_line: number | null;
  user_stack: StackFrame[];
  cell: number | null;
  seen: string;
  guards: Guard[];
  guard_tree: GuardTree | null;
  shape_guards: ShapeGuard[];
  symbols: Symbol[];
  graph_breaks: GraphBreak[];
  recompile_reasons: RecompileReason[];
  graphs: Graph[];
  kernels: Kernel[];
  output_code: OutputCode[];
  bytecode: Bytecode | null;
  stages: StageTime[];
  cache: Record<string, number>;
  metrics: Record<string, unknown>;
  alias: string;
}

/** The exception that ended a compile. */
export interface CompileError {
  type: string;
  message: string;
  kind: string;
  explanation: string;
  hints: string[];
  frame: StackFrame | null;
  user_stack: StackFrame[];
}

/** A variable that holds something torch.compile returned, and whether it was ever entered. */
export interface CompiledObject {
  name: string;
  callee: string;
  line: number | null;
  entered: number;
  bypasses: Bypass[];
}

/** A plain answer: what happened, where, and what to do about it. */
export interface Finding {
  code: string;
  severity: string;
  message: string;
  advice: string;
  line: number | null;
  lines: number[];
  count: number;
  frame: StackFrame | null;
  refs: Ref[];
}

/** A Python frame that Dynamo looked at: `outcome` is `compiled`, `skipped` or `failed`. */
export interface Frame {
  name: string;
  file: string;
  first_line: number;
  outcome: string;
  reason: string;
  compile_id: string;
  call_line: number | null;
  count: number;
}

/** One FX graph at one stage of the stack. */
export interface Graph {
  name: string;
  stage: string;
  direction: string;
  nodes: Node[];
}

/** One place where Dynamo had to end a graph. */
export interface GraphBreak {
  kind: string;
  reason: string;
  explanation: string;
  hints: string[];
  context: string;
  id: string;
  url: string;
  attempt: number;
  frame: StackFrame | null;
  user_stack: StackFrame[];
}

/** One guard that Dynamo made while it traced a frame. */
export interface Guard {
  kind: string;
  source: string;
  origin: string;
  code: string[];
  frame: StackFrame | null;
  user_stack: StackFrame[];
  value: string;
}

/** The guard manager tree that is run at each call, in the order of its checks. */
export interface GuardTree {
  source: string;
  manager: string;
  accessor: string;
  value_type: string;
  leaf_guards: LeafGuard[];
  children: GuardTree[];
}

/** One bytecode instruction. `argument` is `dis`'s text for its argument. */
export interface Instruction {
  offset: number;
  opname: string;
  argument: string;
  frame: StackFrame | null;
}

/** One generated kernel or extern call. */
export interface Kernel {
  name: string;
  language: string;
  graph: string;
  code: string;
  nodes: string[];
  calls: number;
  code_line: number | null;
}

/** One check at a place of the guard tree. */
export interface LeafGuard {
  kind: string;
  code: string[];
}

/** One FX node. `frames` are its source frames, outermost first. */
export interface Node {
  name: string;
  op: string;
  target: string;
  inputs: string[];
  value: (string | TensorValue | null)[] | string | TensorValue | null;
  frames: StackFrame[];
  module_stack: string[][];
  original_aten: string;
  is_backward: boolean;
  origins: string[];
}

/** Something the report lacks: which hook failed and which panel it costs. */
export interface Note {
  hook: string;
  panel: string;
  message: string;
}

/** The Python module that Inductor wrote for one graph. */
export interface OutputCode {
  graph: string;
  code: string;
}

/** One guard of an existing entry that failed and so led to this compile. */
export interface RecompileReason {
  entry: string;
  source: string;
  kind: string;
  guard: string;
  was: string;
  now: string;
  call_line: number | null;
  frame: StackFrame | null;
  text: string;
  name: string;
}

/** One condition on symbolic sizes, and the user line that asked for it. */
export interface ShapeGuard {
  expr: string;
  frame: StackFrame | null;
  user_stack: StackFrame[];
}

/** One place in source code. */
export interface StackFrame {
  file: string;
  line: number;
  name: string;
  end_line: number | null;
  column: number | null;
  end_column: number | null;
}

/** How long one stage of a compile took, in seconds; `start` counts from the cell's start. */
export interface StageTime {
  name: string;
  start: number;
  seconds: number;
}

/** One symbolic size or scalar: where it comes from, the value seen, its range. */
export interface Symbol {
  name: string;
  sources: string[];
  hint: string;
  range: string;
  frame: StackFrame | null;
}

/** What a graph node holds when it is a tensor. Symbolic sizes are text, e.g. `s77`. */
export interface TensorValue {
  shape: (number | string)[];
  dtype: string;
  device: string;
  stride: (number | string)[] | null;
  requires_grad: boolean;
}

/** Versions of what made the record; empty where absent. */
export interface Versions {
  dynamo_nb: string;
  torch: string;
  python: string;
  triton: string;
}

export const SCHEMA_VERSION = 1;

/** The recorded cell's file name in every StackFrame. */
export const CELL = "<cell>";

/** What JSON leaves out, by struct. */
export const DEFAULTS: Record<string, object> = {
  "Attempt": {
    "reason": ""
  },
  "Bypass": {},
  "Bytecode": {
    "before": [],
    "after": []
  },
  "Call": {
    "name": "",
    "compiles": [],
    "hits": {},
    "hits_from": {},
    "eager": 0,
    "reason": "",
    "eager_modules": []
  },
  "CellError": {
    "message": "",
    "line": null
  },
  "CellRecord": {
    "schema": 1,
    "name": "",
    "cell": null,
    "source": "",
    "mode": "as-is",
    "mode_reason": "",
    "options": {},
    "device": "cpu",
    "versions": {},
    "files": {},
    "compiles": [],
    "frames": [],
    "calls": [],
    "compiled_objects": [],
    "links": [],
    "findings": [],
    "notes": [],
    "error": null,
    "unparsed": {},
    "metrics": {}
  },
  "Compile": {
    "generation": 0,
    "name": "",
    "file": "",
    "first_line": 0,
    "resume_of": "",
    "status": "ok",
    "reason": "",
    "error": null,
    "attempts": [],
    "call_line": null,
    "user_stack": [],
    "cell": null,
    "seen": "whole",
    "guards": [],
    "guard_tree": null,
    "shape_guards": [],
    "symbols": [],
    "graph_breaks": [],
    "recompile_reasons": [],
    "graphs": [],
    "kernels": [],
    "output_code": [],
    "bytecode": null,
    "stages": [],
    "cache": {},
    "metrics": {},
    "alias": ""
  },
  "CompileError": {
    "message": "",
    "kind": "",
    "explanation": "",
    "hints": [],
    "frame": null,
    "user_stack": []
  },
  "CompiledObject": {
    "callee": "",
    "line": null,
    "entered": 0,
    "bypasses": []
  },
  "Finding": {
    "advice": "",
    "line": null,
    "lines": [],
    "count": 1,
    "frame": null,
    "refs": []
  },
  "Frame": {
    "reason": "",
    "compile_id": "",
    "call_line": null,
    "count": 1
  },
  "Graph": {
    "direction": "",
    "nodes": []
  },
  "GraphBreak": {
    "reason": "",
    "explanation": "",
    "hints": [],
    "context": "",
    "id": "",
    "url": "",
    "attempt": 0,
    "frame": null,
    "user_stack": []
  },
  "Guard": {
    "source": "",
    "origin": "",
    "code": [],
    "frame": null,
    "user_stack": [],
    "value": ""
  },
  "GuardTree": {
    "source": "",
    "manager": "",
    "accessor": "",
    "value_type": "",
    "leaf_guards": [],
    "children": []
  },
  "Instruction": {
    "argument": "",
    "frame": null
  },
  "Kernel": {
    "graph": "",
    "code": "",
    "nodes": [],
    "calls": 0,
    "code_line": null
  },
  "LeafGuard": {
    "code": []
  },
  "Node": {
    "inputs": [],
    "value": null,
    "frames": [],
    "module_stack": [],
    "original_aten": "",
    "is_backward": false,
    "origins": []
  },
  "Note": {},
  "OutputCode": {},
  "RecompileReason": {
    "source": "",
    "kind": "",
    "guard": "",
    "was": "",
    "now": "",
    "call_line": null,
    "frame": null,
    "text": "",
    "name": ""
  },
  "ShapeGuard": {
    "frame": null,
    "user_stack": []
  },
  "StackFrame": {
    "name": "",
    "end_line": null,
    "column": null,
    "end_column": null
  },
  "StageTime": {},
  "Symbol": {
    "sources": [],
    "hint": "",
    "range": "",
    "frame": null
  },
  "TensorValue": {
    "device": "cpu",
    "stride": null,
    "requires_grad": false
  },
  "Versions": {
    "dynamo_nb": "",
    "torch": "",
    "python": "",
    "triton": ""
  }
};

/** The fields that hold structs, by struct. */
export const NESTED: Record<string, Record<string, string>> = {
  "Bytecode": {
    "before": "Instruction",
    "after": "Instruction"
  },
  "CellRecord": {
    "versions": "Versions",
    "compiles": "Compile",
    "frames": "Frame",
    "calls": "Call",
    "compiled_objects": "CompiledObject",
    "findings": "Finding",
    "notes": "Note",
    "error": "CellError"
  },
  "Compile": {
    "error": "CompileError",
    "attempts": "Attempt",
    "user_stack": "StackFrame",
    "guards": "Guard",
    "guard_tree": "GuardTree",
    "shape_guards": "ShapeGuard",
    "symbols": "Symbol",
    "graph_breaks": "GraphBreak",
    "recompile_reasons": "RecompileReason",
    "graphs": "Graph",
    "kernels": "Kernel",
    "output_code": "OutputCode",
    "bytecode": "Bytecode",
    "stages": "StageTime"
  },
  "CompileError": {
    "frame": "StackFrame",
    "user_stack": "StackFrame"
  },
  "CompiledObject": {
    "bypasses": "Bypass"
  },
  "Finding": {
    "frame": "StackFrame"
  },
  "Graph": {
    "nodes": "Node"
  },
  "GraphBreak": {
    "frame": "StackFrame",
    "user_stack": "StackFrame"
  },
  "Guard": {
    "frame": "StackFrame",
    "user_stack": "StackFrame"
  },
  "GuardTree": {
    "leaf_guards": "LeafGuard",
    "children": "GuardTree"
  },
  "Instruction": {
    "frame": "StackFrame"
  },
  "Node": {
    "value": "TensorValue",
    "frames": "StackFrame"
  },
  "RecompileReason": {
    "frame": "StackFrame"
  },
  "ShapeGuard": {
    "frame": "StackFrame",
    "user_stack": "StackFrame"
  },
  "Symbol": {
    "frame": "StackFrame"
  }
};
