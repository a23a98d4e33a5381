/** Dynamo's walk over the bytecode, with the questions that its pane asks. */
import { CELL, lineRef, type Instruction, type StackFrame, type Step, type StepCode, type Steps } from "./record";
import type { Link, Ref } from "./selection";

const enum At {
  Frame,
  Instruction,
  Stack,
  Locals,
  Nodes,
  Guards,
  Raised,
}

/** A local variable around one instruction; null where it has no value. */
export interface Local {
  name: string;
  before: string | null;
  after: string | null;
}

export interface State {
  stack: string[];
  locals: Map<string, string>;
}

export const stepRef = (key: string, step: number): Ref => [key, "step", String(step)];

export const nodesOf = (step: Step): string[] => step[At.Nodes];
export const guardsOf = (step: Step): number[] => step[At.Guards];
export const raisedBy = (step: Step): string => step[At.Raised];

export class Walk {
  /** By frame, how deep it is inlined; its steps in order. */
  readonly depths: number[] = [];
  readonly own: number[][] = [];
  /** The steps that made calls which were inlined. */
  readonly callers = new Set<number>();
  /** The characters of the longest argument. */
  readonly longest: number;
  readonly #nodes = new Set<string>();

  readonly #files: ReadonlySet<string>;

  constructor(
    readonly steps: Steps,
    files: ReadonlySet<string>,
  ) {
    this.#files = files;
    const items = steps.codes.flatMap((one) => one.instructions);
    this.longest = items.reduce((most, one) => Math.max(most, one.argument.length), 0);
    for (const { parent } of steps.frames) {
      this.depths.push(parent === null ? 0 : this.depth(parent) + 1);
      this.own.push([]);
      if (parent !== null) this.callers.add(parent);
    }
    steps.steps.forEach((step, index) => {
      this.own[step[At.Frame]]?.push(index);
      for (const name of nodesOf(step)) this.#nodes.add(name);
    });
  }

  get length(): number {
    return this.steps.steps.length;
  }

  at(index: number): Step {
    return this.steps.steps[index]!;
  }

  code(index: number): StepCode {
    return this.steps.codes[this.steps.frames[this.at(index)[At.Frame]]!.code]!;
  }

  instruction(index: number): Instruction {
    return this.code(index).instructions[this.at(index)[At.Instruction]]!;
  }

  /** The step that made the call which this one is in; -1 for the compiled frame itself. */
  caller(index: number): number {
    return this.steps.frames[this.at(index)[At.Frame]]!.parent ?? -1;
  }

  depth(index: number): number {
    return this.depths[this.at(index)[At.Frame]]!;
  }

  /** The calls around a step, the innermost first. */
  *callersOf(index: number): Generator<number> {
    for (let at = this.caller(index); at >= 0; at = this.caller(at)) yield at;
  }

  /** The innermost place whose text is at hand: of the instruction, or of a call around it. */
  place(index: number): StackFrame | null {
    const own = this.instruction(index).frame;
    for (const at of [index, ...this.callersOf(index)]) {
      const { frame } = this.instruction(at);
      if (frame && (frame.file === CELL || frame.file.startsWith("<cell ") || this.#files.has(frame.file))) return frame;
    }
    return own;
  }

  /** The steps that are shown while these calls are open. */
  visible(open: ReadonlySet<number>): number[] {
    const shown: number[] = [];
    const hidden = new Set<number>(); // frames
    this.steps.frames.forEach(({ parent }, frame) => {
      if (parent !== null && (!open.has(parent) || hidden.has(this.at(parent)[At.Frame]))) hidden.add(frame);
    });
    this.steps.steps.forEach((step, index) => {
      if (!hidden.has(step[At.Frame])) shown.push(index);
    });
    return shown;
  }

  /** Where a step leads to, over the calls that it makes: the next one that is not within them. */
  over(index: number, by: 1 | -1): number {
    const depth = this.depth(index);
    let at = index + by;
    while (at >= 0 && at < this.length && this.depth(at) > depth) at += by;
    return at;
  }

  /** The state ahead of a step, and the one that it left: null where that was not seen. */
  states(index: number): [State, State | null] {
    const own = this.own[this.at(index)[At.Frame]]!;
    const here = own.indexOf(index);
    const next = own[here + 1];
    const before = this.#state(own, here);
    return [before, next === undefined ? null : this.#state(own, here + 1)];
  }

  #state(own: number[], end: number): State {
    const { values } = this.steps;
    const locals = new Map<string, string>();
    for (let at = 0; at <= end; at++) {
      for (const [name, value] of Object.entries(this.at(own[at]!)[At.Locals])) {
        if (value < 0) locals.delete(name);
        else locals.set(name, values[value] ?? "?");
      }
    }
    return { stack: this.at(own[end]!)[At.Stack].map((value) => values[value] ?? "?"), locals };
  }

  /** The locals around a step, those that it changed first. */
  locals(index: number): Local[] {
    const [before, after] = this.states(index);
    const names = new Set([...before.locals.keys(), ...(after?.locals.keys() ?? [])]);
    const rows = [...names].map((name) => ({
      name,
      before: before.locals.get(name) ?? null,
      after: (after ?? before).locals.get(name) ?? null,
    }));
    return rows.sort((a, b) => Number(isChanged(b)) - Number(isChanged(a)));
  }

  /** The node that a value stands for; empty for other values. */
  nodeOf(value: string): string {
    const name = value.startsWith("tensor ") ? value.slice(7) : "";
    return this.#nodes.has(name) ? name : "";
  }

  /** What a step belongs to. */
  links(key: string, index: number): Link[] {
    const here = stepRef(key, index);
    const step = this.at(index);
    const place = this.place(index);
    const links: Link[] = [];
    const to = (ref: Ref): unknown => links.push([`step-${ref[1]}`, here, ref]);
    if (place) to(lineRef(place.file, place.line));
    if (step[At.Frame] === 0) to([key, "instruction", `before:${this.instruction(index).offset}`]);
    for (const name of nodesOf(step)) to([key, "node", `dynamo/${name}`]);
    for (const guard of guardsOf(step)) to([key, "guard", String(guard)]);
    return links;
  }
}

export const isChanged = (local: Local): boolean => local.before !== local.after;
