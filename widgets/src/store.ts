/** Parts of the record: the core at once, everything else when a pane first needs it. */
import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { complete, completeRecord, compileKey, type Buffer, type Bytecode } from "./record";
import { beforeRef, COUNTERPART } from "./selection";
import type { CellRecord, Compile, Folded, Graph, Guard, GuardTree, Link, NotFused } from "./record";
import type { Binary, Ref, ShapeGuard, Specialization, Steps, Symbol, Target, Tuning } from "./record";

/** Where parts come from; `wait` tells that the answer takes unusually long. */
export interface Source {
  part(name: string, wait: (note: string) => void): Promise<unknown>;
}

export type Part<T> =
  | { state: "loading"; note: string }
  | { state: "ready"; value: T }
  | { state: "failed"; message: string };

/** A list of links with each ref written once. */
export interface PackedLinks {
  refs: Ref[];
  pairs: number[];
}

/** How much there is of what has parts of its own. */
export interface Sizes {
  guards: number;
  symbols: number;
  steps: number;
  graphs: Record<string, number>;
}

/** The record without what has a part of its own, how much that is, and the files at hand. */
export interface Core {
  record: CellRecord;
  sizes: Record<string, Sizes>;
  files: string[];
}

export interface GuardsPart {
  guards: Guard[];
  guard_tree: GuardTree | null;
  shape_guards: ShapeGuard[];
  symbols: Symbol[];
  specializations: Specialization[];
}

/** Generated code: of whole graphs by graph, of kernels by `<graph>/<kernel>`; and its memory. */
export interface CodePart {
  output: Record<string, string>;
  kernels: Record<string, string>;
  buffers: Buffer[];
  folded: Folded[];
  unfused: NotFused[];
  tunings: Tuning[];
  binaries: Binary[];
}

/** A line of the source in both records, side by side. */
export interface DiffRow {
  change: string;
  old: number | null;
  old_text: string;
  new: number | null;
  new_text: string;
}

/** One thing that is different, with its lines in each of the cells, and the refs of each record. */
export interface Change {
  change: string;
  text: string;
  old: number[];
  new: number[];
  refs_before: Ref[];
  refs_after: Ref[];
  details: Change[];
}

/** What is different from the report before: `diff_data` in views/diff.py makes it. */
export interface DiffPart {
  before: string;
  after: string;
  headline: string;
  rows: DiffRow[];
  groups: { title: string; summary: string; changes: Change[] }[];
  times: [stage: string, before: string, after: string][];
  /** The links within the report before, and those that lead from it to this one. */
  links: Link[];
}

export type SentDiff = Omit<DiffPart, "links"> & { links: PackedLinks; counterparts: PackedLinks };

/** How each kind of part is made ready for the panes. */
const READERS: Record<string, (value: unknown) => unknown> = {
  core: (value) => {
    const { record, sizes, files } = value as Core;
    return { record: completeRecord(record), sizes: sizes ?? {}, files: files ?? [] };
  },
  links: (value) => unpackLinks(value as PackedLinks),
  graph: (value) => complete("Graph", value),
  guards: (value) => complete("Compile", value),
  code: (value) => {
    const part = value as CodePart;
    return { ...complete<CodePart>("Compile", { ...part, kernels: [] }), kernels: part.kernels };
  },
  target: (value) => complete("Target", value),
  diff: (value) => readDiff(value as SentDiff),
  bytecode: (value) => complete("Bytecode", value),
  steps: (value) => complete("Steps", value),
};

export class Store {
  readonly #parts = new Map<string, Signal<Part<unknown>>>();

  readonly #source: Source;

  constructor(source: Source) {
    this.#source = source;
  }

  core = (): ReadonlySignal<Part<Core>> => this.#part("core");
  links = (): ReadonlySignal<Part<Link[]>> => this.#part("links");
  files = (): ReadonlySignal<Part<Record<string, string>>> => this.#part("files");
  graph = (compile: Compile, name: string): ReadonlySignal<Part<Graph>> =>
    this.#part("graph", compileKey(compile), name);
  guards = (compile: Compile): ReadonlySignal<Part<GuardsPart>> =>
    this.#part("guards", compileKey(compile));
  code = (compile: Compile): ReadonlySignal<Part<CodePart>> =>
    this.#part("code", compileKey(compile));
  target = (compile: Compile, spec: string): ReadonlySignal<Part<Target>> =>
    this.#part("target", compileKey(compile), spec);
  bytecode = (compile: Compile): ReadonlySignal<Part<Bytecode>> =>
    this.#part("bytecode", compileKey(compile));
  steps = (compile: Compile): ReadonlySignal<Part<Steps>> =>
    this.#part("steps", compileKey(compile));
  diff = (): ReadonlySignal<Part<DiffPart>> => this.#part("diff");
  page = (): ReadonlySignal<Part<string>> => this.#part("page");

  /** Return a part that is there already; fetch nothing. */
  peek<T>(...name: string[]): T | null {
    const part = this.#parts.get(partName(...name))?.peek();
    return part?.state === "ready" ? (part.value as T) : null;
  }

  /** Ask again for a part that failed. */
  retry(...name: string[]): void {
    const key = partName(...name);
    const part = this.#parts.get(key);
    if (part) void this.#load(key, part);
  }

  #part<T>(...name: string[]): ReadonlySignal<Part<T>> {
    const key = partName(...name);
    let part = this.#parts.get(key);
    if (!part) {
      part = signal<Part<unknown>>({ state: "loading", note: "" });
      this.#parts.set(key, part);
      void this.#load(key, part);
    }
    return part as Signal<Part<T>>;
  }

  async #load(key: string, part: Signal<Part<unknown>>): Promise<void> {
    part.value = { state: "loading", note: "" };
    try {
      const wait = (note: string): void => {
        part.value = { state: "loading", note };
      };
      const value = await this.#source.part(key, wait);
      const read = READERS[key.split("|")[0] ?? ""];
      part.value = { state: "ready", value: read ? read(value) : value };
    } catch (error) {
      part.value = { state: "failed", message: (error as Error).message };
    }
  }
}

export const partName = (...name: string[]): string => name.join("|");

/** Refs of the report before are told apart from here on. */
function readDiff(sent: SentDiff): DiffPart {
  const within = unpackLinks(sent.links).map(
    ([kind, a, b]): Link => [kind, beforeRef(a), beforeRef(b)],
  );
  const across = unpackLinks(sent.counterparts).map(
    ([, a, b]): Link => [COUNTERPART, beforeRef(a), b],
  );
  const located = (one: Change): Change => ({
    ...one,
    refs_before: one.refs_before.map(beforeRef),
    details: one.details.map(located),
  });
  const groups = sent.groups.map((one) => ({ ...one, changes: one.changes.map(located) }));
  return { ...sent, groups, links: [...within, ...across] };
}

function unpackLinks({ refs, pairs }: PackedLinks): Link[] {
  const links: Link[] = [];
  for (let at = 0; at + 1 < pairs.length; at += 2) {
    const [a, b] = [refs[pairs[at] ?? -1], refs[pairs[at + 1] ?? -1]];
    if (a && b) links.push([`${a[1]}-${b[1]}`, a, b]);
  }
  return links;
}

/** Parts of a record that is here as a whole, as on a saved page. */
export function wholeSource(record: CellRecord): Source {
  const parts = splitRecord(record);
  return {
    async part(name) {
      if (!(name in parts)) throw new Error(`This page holds no ${name.split("|")[0]}.`);
      return parts[name];
    },
  };
}

/** The parts of a record by name: the same split as views/parts.py makes. */
export function splitRecord(record: CellRecord): Record<string, unknown> {
  const parts: Record<string, unknown> = {};
  const sizes: Core["sizes"] = {};
  for (const compile of record.compiles ?? []) {
    const key = compileKey(compile);
    for (const graph of compile.graphs ?? []) parts[partName("graph", key, graph.name)] = graph;
    const graphs = (compile.graphs ?? []).map((one) => [one.name, one.nodes?.length ?? 0]);
    sizes[key] = {
      guards: compile.guards?.length ?? 0,
      symbols: compile.symbols?.length ?? 0,
      steps: compile.steps?.steps?.length ?? 0,
      graphs: Object.fromEntries(graphs),
    };
    parts[partName("guards", key)] = compile;
    parts[partName("bytecode", key)] = compile.bytecode ?? {};
    parts[partName("code", key)] = codeOf(compile);
    parts[partName("steps", key)] = compile.steps ?? {};
    for (const one of compile.targets ?? []) parts[partName("target", key, one.spec)] = one;
  }
  parts["core"] = { record, sizes, files: Object.keys(record.files ?? {}) } satisfies Core;
  parts["files"] = record.files ?? {};
  parts["links"] = packLinks(record.links ?? []);
  return parts;
}

function codeOf(compile: Compile): CodePart {
  const kernels = (compile.kernels ?? []).map((one) => [`${one.graph}/${one.name}`, one.code]);
  const output = (compile.output_code ?? []).map((one) => [one.graph, one.code]);
  return {
    output: Object.fromEntries(output),
    kernels: Object.fromEntries(kernels),
    buffers: compile.buffers ?? [],
    folded: compile.folded ?? [],
    unfused: compile.unfused ?? [],
    tunings: compile.tunings ?? [],
    binaries: compile.binaries ?? [],
  };
}

function packLinks(links: Link[]): PackedLinks {
  const refs = links.flatMap(([, a, b]) => [a, b]);
  return { refs, pairs: refs.map((_, index) => index) };
}
