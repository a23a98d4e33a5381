/** What the record says about the lines of a file: the gutter, here and over the real cell. */
import { CELL, compileKey, graphOf, lineOf, lineRef, placeInGraph } from "./record";
import type { CellRecord, Compile, GraphBreak, Link, RecompileReason, StackFrame } from "./record";

/** How many colours tell compiles apart. */
export const HUES = 8;

export type Letter = "B" | "R" | "E";

/** What the letters of the gutter mean. */
export const LEGEND: Record<Letter, string> = {
  B: "graph break",
  R: "recompile",
  E: "compile error",
};

export interface Mark {
  letter: Letter;
  text: string;
}

export interface LineFacts {
  /** Keys of the compiles whose graphs hold operations of this line. */
  graphs: string[];
  guards: number;
  marks: Mark[];
  /** Something on this line ran outside every graph. */
  eager: boolean;
}

export const hueOf = (record: CellRecord, key: string): number =>
  Math.max(0, record.compiles.findIndex((one) => compileKey(one) === key)) % HUES;

export const compileOf = (record: CellRecord, key: string): Compile | undefined =>
  record.compiles.find((one) => compileKey(one) === key);

/** The facts of every line that has any, by file. */
export type Facts = Map<string, Map<number, LineFacts>>;

export function factsOf(record: CellRecord, links: readonly Link[]): Facts {
  const facts: Facts = new Map();
  const compiles = new Map(record.compiles.map((one) => [compileKey(one), one]));
  for (const [, a, b] of links) {
    if (b[1] !== "line") continue;
    const { file, line } = lineOf(b);
    if (a[1] === "guard") at(facts, file, line).guards += 1;
    if (a[1] !== "node") continue;
    const compile = compiles.get(a[0]);
    if (!compile || graphOf(compile, placeInGraph(a).graph)?.stage !== "dynamo") continue;
    const { graphs } = at(facts, file, line);
    if (!graphs.includes(a[0])) graphs.push(a[0]);
  }
  for (const compile of record.compiles) addEvents(facts, compile);
  for (const call of record.calls) if (call.eager) at(facts, CELL, call.line).eager = true;
  return facts;
}

function addEvents(facts: Facts, compile: Compile): void {
  for (const item of breaksOf(compile)) {
    mark(facts, item.frame, "B", `graph break: ${item.kind}`, true);
  }
  const reason = mainReason(compile);
  if (reason) {
    const text = `recompile: ${changeText(reason)}`;
    mark(facts, reason.frame ?? callFrame(reason), "R", text, false);
  }
  if (compile.error) {
    mark(facts, compile.error.frame, "E", compile.error.kind || compile.error.type, true);
  }
}

const callFrame = (reason: RecompileReason): StackFrame | null =>
  reason.call_line === null ? null : frameAt(reason.call_line);

/** The frame of a whole line of the cell. */
export const frameAt = (line: number, file: string = CELL): StackFrame => ({
  file,
  line,
  name: "",
  end_line: null,
  column: null,
  end_column: null,
});

function mark(
  facts: Facts,
  frame: StackFrame | null,
  letter: Letter,
  text: string,
  eager: boolean,
): void {
  if (!frame) return;
  const line = at(facts, frame.file, frame.line);
  line.eager ||= eager;
  if (!line.marks.some((one) => one.text === text)) line.marks.push({ letter, text });
}

function at(facts: Facts, file: string, line: number): LineFacts {
  const lines = facts.get(file) ?? new Map<number, LineFacts>();
  facts.set(file, lines);
  const known = lines.get(line) ?? { graphs: [], guards: 0, marks: [], eager: false };
  lines.set(line, known);
  return known;
}

/** A compile's breaks, once each: a restarted attempt meets the same one again. */
export function breaksOf(compile: Compile): GraphBreak[] {
  const seen = new Map<string, GraphBreak>();
  for (const item of compile.graph_breaks) {
    const key = JSON.stringify([item.kind, item.reason, item.frame]);
    if (!seen.has(key)) seen.set(key, item);
  }
  return [...seen.values()];
}

/** The reason against the entry that nearly fitted, which the record puts first. */
export function mainReason(compile: Compile): RecompileReason | undefined {
  return compile.recompile_reasons[0];
}

/** `x.dtype: float32 → bfloat16`. */
export function changeText(reason: RecompileReason): string {
  const what = reason.name || reason.source || reason.guard || reason.text;
  const change = reason.was || reason.now ? `${reason.was || "?"} → ${reason.now || "?"}` : "";
  return [what, change].filter(Boolean).join(": ");
}

export const refOfFrame = (frame: StackFrame | null | undefined): ReturnType<typeof lineRef> | null =>
  frame ? lineRef(frame.file, frame.line) : null;
