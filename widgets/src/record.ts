/** The record as the panes read it: every field there, and the few questions they all ask. */
import {
  CELL,
  DEFAULTS,
  NESTED,
  type CellRecord,
  type Compile,
  type Graph,
  type Kernel,
  type Node,
  type Ref,
  type StackFrame,
  type TensorValue,
} from "./schema";

export * from "./schema";

type Plain = Record<string, unknown>;

/** Fill in what JSON leaves out, all the way down; unknown fields stay. */
export function complete<T>(kind: string, value: unknown): T {
  if (value === null || typeof value !== "object") return value as T;
  const whole: Plain = { ...absentIn(kind), ...value };
  for (const [field, below] of Object.entries(NESTED[kind] ?? {})) {
    const held = whole[field];
    if (Array.isArray(held)) whole[field] = held.map((one) => complete(below, one));
    else if (held && typeof held === "object") whole[field] = complete(below, held);
  }
  return whole as T;
}

const known = new Map<string, Plain>();

/** The fields of a struct that JSON leaves out, with their defaults. */
function absentIn(kind: string): Plain {
  const found = known.get(kind) ?? {};
  if (known.has(kind)) return found;
  for (const [value, fields] of Object.entries(DEFAULTS[kind] ?? {})) {
    for (const field of fields.split(" ")) found[field] = JSON.parse(value);
  }
  known.set(kind, found);
  return found;
}

export const completeRecord = (value: unknown): CellRecord => complete("CellRecord", value);

/** The compile's name in a Ref. */
export const compileKey = (compile: Compile): string => compile.alias || compile.compile_id;

export const graphOf = (compile: Compile, name: string): Graph | undefined =>
  compile.graphs.find((graph) => graph.name === name);

/** The kernels of this machine and of the targets. */
export const kernelsOf = (compile: Compile): Kernel[] => [
  ...compile.kernels,
  ...compile.targets.flatMap((target) => target.kernels),
];

export const lineRef = (file: string, line: number): Ref => ["", "line", `${file}:${line}`];

export const nodeRef = (compile: Compile, graph: string, node: string): Ref => [
  compileKey(compile),
  "node",
  `${graph}/${node}`,
];

export const kernelRef = (compile: Compile, kernel: Pick<Kernel, "name" | "graph">): Ref => [
  compileKey(compile),
  "kernel",
  `${kernel.graph}/${kernel.name}`,
];

/** The file and line of a `line` ref. */
export function lineOf(ref: Ref): { file: string; line: number } {
  const at = ref[2].lastIndexOf(":");
  return { file: ref[2].slice(0, at), line: Number(ref[2].slice(at + 1)) };
}

/** The graph and name of a `node` or `kernel` ref; names of a target's graphs have a slash, too. */
export function placeInGraph(ref: Ref): { graph: string; name: string } {
  const at = ref[2].lastIndexOf("/");
  return { graph: ref[2].slice(0, at), name: ref[2].slice(at + 1) };
}

/** A node's innermost frame: where its operation is written. */
export const ownFrame = (node: Node): StackFrame | undefined => node.frames[node.frames.length - 1];

export const isTensor = (value: unknown): value is TensorValue =>
  typeof value === "object" && value !== null && "dtype" in value;

const SHORT: Record<string, string> = {
  float32: "f32",
  float64: "f64",
  float16: "f16",
  bfloat16: "bf16",
  int64: "i64",
  int32: "i32",
  int16: "i16",
  int8: "i8",
  uint8: "u8",
  bool: "b8",
  complex64: "c64",
};

/** A value in a few characters, as torch prints it in graphs: `f32[8, 16]`. */
export function valueText(value: Node["value"]): string {
  if (Array.isArray(value)) return `(${value.map((one) => valueText(one)).join(", ")})`;
  if (isTensor(value)) return `${SHORT[value.dtype] ?? value.dtype}[${value.shape.join(", ")}]`;
  return value ?? "";
}

/** A file in a few characters: `cell`, `cell [3]`, `linear.py`. */
export function fileText(file: string): string {
  if (file === CELL) return "cell";
  const other = /^<cell (\d+)>$/.exec(file);
  return other ? `cell [${other[1]}]` : file.slice(file.lastIndexOf("/") + 1);
}

/** A place in words, short: `line 7` in the cell, `linear.py:12` elsewhere. */
export const placeText = ({ file, line }: Pick<StackFrame, "file" | "line">): string =>
  file === CELL ? `line ${line}` : `${fileText(file)}:${line}`;
