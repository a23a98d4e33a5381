/** What every pane is given: the data, the selection, and what is shown. */
import { effect, signal, type Signal } from "@preact/signals";
import { factsOf, type Facts, type LineFacts } from "./facts";
import { CELL, compileKey, lineOf, type CellRecord, type Compile, type Link } from "./record";
import { isBefore, refKey, refsIn, Selection, type Ref } from "./selection";
import type { Core, Store } from "./store";

export class View {
  readonly record: CellRecord;
  readonly sizes: Core["sizes"];
  /** The files whose text is at hand. */
  readonly files: ReadonlySet<string>;
  readonly facts: Facts;
  readonly selection: Selection;
  /** The key of the compile whose details are shown. */
  readonly compile: Signal<string>;
  /** The file in the source pane. */
  readonly file: Signal<string>;
  readonly #stop: () => void;

  constructor(
    core: Core,
    links: readonly Link[],
    readonly store: Store,
    /** Which report came before; empty where there is none to compare with. */
    readonly before = "",
  ) {
    this.record = core.record;
    this.sizes = core.sizes;
    this.files = new Set(core.files);
    this.facts = factsOf(core.record, links);
    this.selection = new Selection(links);
    this.file = signal(firstFile(this.facts));
    this.compile = signal(firstCompile(core.record));
    this.#stop = effect(() => {
      const held = this.selection.pinned.value;
      if (held) this.#follow(held);
    });
  }

  get shown(): Compile | undefined {
    return this.record.compiles.find((one) => compileKey(one) === this.compile.value);
  }

  dispose(): void {
    this.#stop();
  }

  /** Show the compile and the file that a held ref lives in. */
  #follow(held: Ref): void {
    const lit = this.selection.lit.peek();
    const [key] = held;
    const shown = this.compile.peek();
    if (key && !isBefore(held)) this.compile.value = key;
    else if (held[1] === "line" || isBefore(held)) {
      const keys = refsIn(lit, "node").map((ref) => ref[0]);
      if (keys[0] !== undefined && !keys.includes(shown)) this.compile.value = keys[0];
    }
    const lines = refsIn(held[1] === "line" && !isBefore(held) ? [refKey(held)] : lit, "line");
    const own = held[1] === "step" ? lines.slice(0, 1) : lines; // a step's own place comes first
    const files = own.map((ref) => lineOf(ref).file);
    const wanted = files.includes(CELL) ? CELL : files[0];
    if (wanted !== undefined && !files.includes(this.file.peek())) this.file.value = wanted;
  }
}

/** The cell; or another cell where everything happened, when this one only calls it. */
function firstFile(facts: Facts): string {
  const busy = (file: string): boolean => [...(facts.get(file)?.values() ?? [])].some(isBusy);
  return [CELL, ...[...facts.keys()].filter((file) => file.startsWith("<"))].find(busy) ?? CELL;
}

const isBusy = (one: LineFacts): boolean => one.graphs.length > 0 || one.marks.length > 0;

/** The compile with the most graphs of those that came first. */
function firstCompile(record: CellRecord): string {
  const withGraph = record.compiles.find((one) => one.graphs.length > 0);
  const first = withGraph ?? record.compiles[0];
  return first ? compileKey(first) : "";
}
