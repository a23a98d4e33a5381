// Made by scripts/schema.py from the JSON schema of CellRecord. Do not edit.

export type Link = [kind: string, a: Ref, b: Ref];

export type Ref = [compile: string, artifact: string, key: string];

export type Step = [frame: number, instruction: number, stack: number[], locals: Record<string, number>, nodes: string[], guards: number[], raised: string];

/** One attempt at a compile; all but the last were restarted for `reason`. */
export interface Attempt {
  attempt: number;
  status: string;
  reason: string;
}

/** A Triton kernel compiled for a GPU, with what its binary says of it. */
export interface Binary {
  kernel: string;
  graph: string;
  config: Record<string, unknown>;
  candidates: (Record<string, unknown>)[];
  grid: string[];
  threads: number;
  shared: number;
  resources: Record<string, number>;
  occupancy: number | null;
  limited_by: string;
  size: number;
  texts: StageText[];
  source_nodes: Record<string, string[]>;
  error: string;
}

/** A piece of memory that kernels of a graph read or write, under each name that it has. */
export interface Buffer {
  name: string;
  graph: string;
  role: string;
  node: string;
  shape: (number | string)[];
  stride: (number | string)[];
  dtype: string;
  device: string;
  bytes: number;
  reuses: string;
  in_place: boolean;
  saved: boolean;
  mutates: string[];
  views: string[];
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

/** One entry of a code object's cache, as the cell left it. */
export interface CacheEntry {
  entry: string;
  cell: number | null;
  hits: number;
  lines: number[];
  invalidated: string;
}

/** The cache of one code object after the cell: its entries in the order of the next look-up. */
export interface CacheState {
  name: string;
  file: string;
  first_line: number;
  resume_of: string;
  entries: CacheEntry[];
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
  tensor_calls: number;
  unreached: StackFrame | null;
  uncompiled: string;
}

/** The exception that the cell raised. */
export interface CellError {
  type: string;
  message: string;
  line: number | null;
  raised_by: string;
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
  cache: CacheState[];
  checks: Check[];
  timings: Timing[];
  machines: Machine[];
}

/** Compiled calls of one line that were repeated on copies, eagerly and compiled (`--check`). */
export interface Check {
  name: string;
  status: string;
  line: number | null;
  count: number;
  reason: string;
  backend: string;
  stage: string;
  casts: boolean;
  gradients: boolean;
  random: boolean;
  compile: string;
  mismatches: Mismatch[];
  target: string;
  unchecked: string[];
}

/** A candidate of autotuning: its time, None where it could not run. */
export interface Choice {
  name: string;
  detail: string;
  microseconds: number | null;
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
  specializations: Specialization[];
  guard_costs: GuardCost[];
  steps: Steps | null;
  passes: GraphPass[];
  inlined: Frame[];
  targets: Target[];
  buffers: Buffer[];
  folded: Folded[];
  unfused: NotFused[];
  skipped_cudagraphs: SkippedCudagraph[];
  cudagraphs: CudagraphUse[];
  tunings: Tuning[];
  binaries: Binary[];
  eager_operators: Record<string, number>;
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
  calls: number[];
  given_up: string;
}

/** What became of a graph's CUDA graph in this run: how often it was warmed up, .... */
export interface CudagraphUse {
  graph: string;
  warm_ups: number;
  recordings: number;
  replays: number;
  reasons: string[];
}

/** A function that the user wrote, in the code of a Triton kernel. */
export interface Definition {
  name: string;
  file: string;
  line: number;
  code_line: number;
  count: number;
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
  measured: boolean;
}

/** A call node of a post-grad graph that no kernel computes, and why. */
export interface Folded {
  graph: string;
  node: string;
  why: string;
}

/** A Python frame that Dynamo looked at: it was `compiled`, `skipped`, `failed` or `inlined`. */
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

/** What a pass over a graph did to it. */
export interface GraphPass {
  name: string;
  direction: string;
  function: string;
  frame: StackFrame | null;
  rows: PassRow[];
  same: number;
  error: string;
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

/** What checking one source costs at each look-up, measured with warm CPU caches. */
export interface GuardCost {
  source: string;
  microseconds: number;
  managers: number;
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
  reads: Record<string, number>;
  writes: Record<string, number>;
  flops: number | null;
  dtype: string;
  replaces: number;
  definitions: Definition[];
}

/** What a kernel took within one call: how often it ran, and the seconds of all its runs. */
export interface KernelTime {
  name: string;
  calls: number;
  seconds: number;
  compile: string;
  graph: string;
}

/** One check at a place of the guard tree. */
export interface LeafGuard {
  kind: string;
  code: string[];
}

/** What a device does at best: bytes of memory and, by dtype, operations a second. */
export interface Machine {
  device: string;
  name: string;
  bandwidth: number;
  flops: Record<string, number>;
  source: string;
}

/** The time of one call, in seconds: the median, and the distance of the quartiles. */
export interface Measured {
  median: number;
  spread: number;
  runs: number;
}

/** One thing in which a compiled call differs from the eager one. */
export interface Mismatch {
  name: string;
  what: string;
  kind: string;
  eager: string;
  compiled: string;
  error: number | null;
  index: number[];
  count: number;
  of: number;
  closer: string;
  frame: StackFrame | null;
  kernel: string;
  position: number;
  outputs: number;
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
  also: StackFrame[];
}

/** Two groups of operations that stay apart though one reads what the other writes. */
export interface NotFused {
  graph: string;
  writer: string;
  reader: string;
  reason: string;
  buffers: string[];
  bytes: number;
  writer_nodes: string[];
  reader_nodes: string[];
  loops: string[];
}

/** Something the report lacks: which hook failed, if any did, and which panel it costs. */
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

/** A node that a graph pass `added`, `removed` or `changed` (its `kind`). */
export interface PassRow {
  kind: string;
  node: string;
  before: string;
  after: string;
  frame: StackFrame | null;
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

/** A graph of which no CUDA graph will be recorded though it was asked for, and torch's reason. */
export interface SkippedCudagraph {
  graph: string;
  reason: string;
  frame: StackFrame | null;
  user_stack: StackFrame[];
}

/** A symbolic size or scalar that became a constant, and the user line that made it so. */
export interface Specialization {
  symbol: string;
  sources: string[];
  value: string;
  reason: string;
  frame: StackFrame | null;
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

/** What one stage of Triton's compiler made of a kernel: `ttir`, `ttgir`, `llir`, `ptx`, .... */
export interface StageText {
  stage: string;
  text: string;
  lines: number[];
}

/** How long one stage of a compile took, in seconds; `start` counts from the cell's start. */
export interface StageTime {
  name: string;
  start: number;
  seconds: number;
}

/** A code object whose instructions Dynamo interpreted, as Dynamo has them. */
export interface StepCode {
  name: string;
  file: string;
  first_line: number;
  instructions: Instruction[];
}

/** One interpreted call: `code` indexes `Steps.codes`, `parent` is the step that called it. */
export interface StepFrame {
  code: number;
  parent: number | null;
}

/** What Dynamo interpreted in the last attempt at a compile, in order. */
export interface Steps {
  codes: StepCode[];
  frames: StepFrame[];
  values: string[];
  steps: Step[];
  is_cut: boolean;
}

/** One symbolic size or scalar: where it comes from, the value seen, its range. */
export interface Symbol {
  name: string;
  sources: string[];
  hint: string;
  range: string;
  frame: StackFrame | null;
}

/** What a compile would be on a GPU that is not there: predicted, neither run nor autotuned. */
export interface Target {
  spec: string;
  device: string;
  properties: Record<string, unknown>;
  sources: string[];
  graphs: Graph[];
  kernels: Kernel[];
  output_code: OutputCode[];
  buffers: Buffer[];
  folded: Folded[];
  unfused: NotFused[];
  eager_operators: Record<string, number>;
  binaries: Binary[];
  unknown: string[];
  left_behind: string[];
  error: string;
}

/** What a graph node holds when it is a tensor. Symbolic sizes are text, e.g. `s77`. */
export interface TensorValue {
  shape: (number | string)[];
  dtype: string;
  device: string;
  stride: (number | string)[] | null;
  requires_grad: boolean;
}

/** Compiled calls of one line, measured on copies against eager (`--time`). */
export interface Timing {
  name: string;
  status: string;
  line: number | null;
  count: number;
  reason: string;
  device: string;
  gradients: boolean;
  compile: string;
  eager: Measured | null;
  compiled: Measured | null;
  eager_launches: number | null;
  compiled_launches: number | null;
  eager_memory: number | null;
  compiled_memory: number | null;
  kernels: KernelTime[];
}

/** What autotuning measured, the fastest of its `choices` first. */
export interface Tuning {
  graph: string;
  kernel: string;
  operation: string;
  node: string;
  sizes: string[];
  choices: Choice[];
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

/** What JSON leaves out, by struct: the fields of each default, as JSON. */
export const DEFAULTS: Record<string, Record<string, string>> = {
  "Attempt": {
    "\"\"": "reason"
  },
  "Binary": {
    "\"\"": "graph limited_by error",
    "{}": "config resources source_nodes",
    "[]": "candidates grid texts",
    "0": "threads shared size",
    "null": "occupancy"
  },
  "Buffer": {
    "\"\"": "node dtype reuses",
    "[]": "shape stride mutates views",
    "\"cpu\"": "device",
    "0": "bytes",
    "false": "in_place saved"
  },
  "Bytecode": {
    "[]": "before after"
  },
  "CacheEntry": {
    "null": "cell",
    "0": "hits",
    "[]": "lines",
    "\"\"": "invalidated"
  },
  "CacheState": {
    "\"\"": "file resume_of",
    "0": "first_line",
    "[]": "entries"
  },
  "Call": {
    "\"\"": "name reason uncompiled",
    "[]": "compiles eager_modules",
    "{}": "hits hits_from",
    "0": "eager tensor_calls",
    "null": "unreached"
  },
  "CellError": {
    "\"\"": "message raised_by",
    "null": "line"
  },
  "CellRecord": {
    "1": "schema",
    "\"\"": "name source mode_reason",
    "null": "cell error",
    "\"as-is\"": "mode",
    "{}": "options versions files unparsed metrics",
    "\"cpu\"": "device",
    "[]": "compiles frames calls compiled_objects links findings notes cache checks timings machines"
  },
  "Check": {
    "null": "line",
    "1": "count",
    "\"\"": "reason backend stage compile target",
    "false": "casts gradients random",
    "[]": "mismatches unchecked"
  },
  "Choice": {
    "\"\"": "detail",
    "null": "microseconds"
  },
  "Compile": {
    "0": "generation first_line",
    "\"\"": "name file resume_of reason alias",
    "\"ok\"": "status",
    "null": "error call_line cell guard_tree bytecode steps",
    "[]": "attempts user_stack guards shape_guards symbols graph_breaks recompile_reasons graphs kernels output_code stages specializations guard_costs passes inlined targets buffers folded unfused skipped_cudagraphs cudagraphs tunings binaries",
    "\"whole\"": "seen",
    "{}": "cache metrics eager_operators"
  },
  "CompileError": {
    "\"\"": "message kind explanation",
    "[]": "hints user_stack",
    "null": "frame"
  },
  "CompiledObject": {
    "\"\"": "callee given_up",
    "null": "line",
    "0": "entered",
    "[]": "bypasses calls"
  },
  "CudagraphUse": {
    "0": "warm_ups recordings replays",
    "[]": "reasons"
  },
  "Finding": {
    "\"\"": "advice",
    "null": "line frame",
    "[]": "lines refs",
    "1": "count",
    "false": "measured"
  },
  "Folded": {
    "\"\"": "why"
  },
  "Frame": {
    "\"\"": "reason compile_id",
    "null": "call_line",
    "1": "count"
  },
  "Graph": {
    "\"\"": "direction",
    "[]": "nodes"
  },
  "GraphBreak": {
    "\"\"": "reason explanation context id url",
    "[]": "hints user_stack",
    "0": "attempt",
    "null": "frame"
  },
  "GraphPass": {
    "\"\"": "direction function error",
    "null": "frame",
    "[]": "rows",
    "0": "same"
  },
  "Guard": {
    "\"\"": "source origin value",
    "[]": "code user_stack",
    "null": "frame"
  },
  "GuardCost": {
    "1": "managers"
  },
  "GuardTree": {
    "\"\"": "source manager accessor value_type",
    "[]": "leaf_guards children"
  },
  "Instruction": {
    "\"\"": "argument",
    "null": "frame"
  },
  "Kernel": {
    "\"\"": "graph code",
    "[]": "nodes definitions",
    "0": "calls replaces",
    "null": "code_line flops",
    "{}": "reads writes",
    "\"float32\"": "dtype"
  },
  "KernelTime": {
    "\"\"": "compile graph"
  },
  "LeafGuard": {
    "[]": "code"
  },
  "Machine": {
    "\"\"": "name source",
    "0.0": "bandwidth",
    "{}": "flops"
  },
  "Measured": {
    "0.0": "spread",
    "0": "runs"
  },
  "Mismatch": {
    "\"\"": "eager compiled closer kernel",
    "null": "error frame",
    "[]": "index",
    "0": "count of outputs",
    "-1": "position"
  },
  "Node": {
    "[]": "inputs frames module_stack origins also",
    "null": "value",
    "\"\"": "original_aten",
    "false": "is_backward"
  },
  "NotFused": {
    "\"\"": "reason",
    "[]": "buffers writer_nodes reader_nodes loops",
    "0": "bytes"
  },
  "PassRow": {
    "\"\"": "before after",
    "null": "frame"
  },
  "RecompileReason": {
    "\"\"": "source kind guard was now text name",
    "null": "call_line frame"
  },
  "ShapeGuard": {
    "null": "frame",
    "[]": "user_stack"
  },
  "SkippedCudagraph": {
    "null": "frame",
    "[]": "user_stack"
  },
  "Specialization": {
    "[]": "sources",
    "\"\"": "value reason",
    "null": "frame"
  },
  "StackFrame": {
    "\"\"": "name",
    "null": "end_line column end_column"
  },
  "StageText": {
    "[]": "lines"
  },
  "StepCode": {
    "[]": "instructions"
  },
  "StepFrame": {
    "null": "parent"
  },
  "Steps": {
    "[]": "codes frames values steps",
    "false": "is_cut"
  },
  "Symbol": {
    "[]": "sources",
    "\"\"": "hint range",
    "null": "frame"
  },
  "Target": {
    "\"\"": "device error",
    "{}": "properties eager_operators",
    "[]": "sources graphs kernels output_code buffers folded unfused binaries unknown left_behind"
  },
  "TensorValue": {
    "\"cpu\"": "device",
    "null": "stride",
    "false": "requires_grad"
  },
  "Timing": {
    "null": "line eager compiled eager_launches compiled_launches eager_memory compiled_memory",
    "1": "count",
    "\"\"": "reason device compile",
    "false": "gradients",
    "[]": "kernels"
  },
  "Tuning": {
    "\"\"": "kernel operation node",
    "[]": "sizes choices"
  },
  "Versions": {
    "\"\"": "dynamo_nb torch python triton"
  }
};

/** The fields that hold structs, by struct. */
export const NESTED: Record<string, Record<string, string>> = {
  "Binary": {
    "texts": "StageText"
  },
  "Bytecode": {
    "before": "Instruction",
    "after": "Instruction"
  },
  "CacheState": {
    "entries": "CacheEntry"
  },
  "Call": {
    "unreached": "StackFrame"
  },
  "CellRecord": {
    "versions": "Versions",
    "compiles": "Compile",
    "frames": "Frame",
    "calls": "Call",
    "compiled_objects": "CompiledObject",
    "findings": "Finding",
    "notes": "Note",
    "error": "CellError",
    "cache": "CacheState",
    "checks": "Check",
    "timings": "Timing",
    "machines": "Machine"
  },
  "Check": {
    "mismatches": "Mismatch"
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
    "stages": "StageTime",
    "specializations": "Specialization",
    "guard_costs": "GuardCost",
    "steps": "Steps",
    "passes": "GraphPass",
    "inlined": "Frame",
    "targets": "Target",
    "buffers": "Buffer",
    "folded": "Folded",
    "unfused": "NotFused",
    "skipped_cudagraphs": "SkippedCudagraph",
    "cudagraphs": "CudagraphUse",
    "tunings": "Tuning",
    "binaries": "Binary"
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
  "GraphPass": {
    "frame": "StackFrame",
    "rows": "PassRow"
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
  "Kernel": {
    "definitions": "Definition"
  },
  "Mismatch": {
    "frame": "StackFrame"
  },
  "Node": {
    "value": "TensorValue",
    "frames": "StackFrame",
    "also": "StackFrame"
  },
  "PassRow": {
    "frame": "StackFrame"
  },
  "RecompileReason": {
    "frame": "StackFrame"
  },
  "ShapeGuard": {
    "frame": "StackFrame",
    "user_stack": "StackFrame"
  },
  "SkippedCudagraph": {
    "frame": "StackFrame",
    "user_stack": "StackFrame"
  },
  "Specialization": {
    "frame": "StackFrame"
  },
  "StepCode": {
    "instructions": "Instruction"
  },
  "Steps": {
    "codes": "StepCode",
    "frames": "StepFrame"
  },
  "Symbol": {
    "frame": "StackFrame"
  },
  "Target": {
    "graphs": "Graph",
    "kernels": "Kernel",
    "output_code": "OutputCode",
    "buffers": "Buffer",
    "folded": "Folded",
    "unfused": "NotFused",
    "binaries": "Binary"
  },
  "Timing": {
    "eager": "Measured",
    "compiled": "Measured",
    "kernels": "KernelTime"
  },
  "Tuning": {
    "choices": "Choice"
  }
};
