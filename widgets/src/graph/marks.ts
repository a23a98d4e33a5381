/** What is to be seen on boxes at the moment: light, search, focus. */
import type { Box, Tree } from "./tree";

/** A set of nodes that can be counted within any box at once. */
export class NodeSet {
  readonly #before: Int32Array;
  readonly size: number;

  constructor(tree: Tree, nodes: Iterable<number>) {
    const wanted = new Set(nodes);
    this.#before = new Int32Array(tree.order.length + 1);
    tree.order.forEach((node, at) => {
      this.#before[at + 1] = this.#before[at]! + (wanted.has(node) ? 1 : 0);
    });
    this.size = this.#before[tree.order.length]!;
  }

  countIn(box: Box): number {
    return this.#before[box.end]! - this.#before[box.start]!;
  }
}

export interface Marks {
  /** By node: the number of its colour, or -1. */
  hue: Int16Array;
  lit: NodeSet | null;
  /** The nodes that a search found; null when nothing is searched. */
  found: NodeSet | null;
  /** The box that is pointed at or pinned: its edges stand out. */
  chosen: Box | null;
  /** The box that the keyboard is at. */
  focus: Box | null;
}

export const noMarks = (): Marks => ({
  hue: new Int16Array(0),
  lit: null,
  found: null,
  chosen: null,
  focus: null,
});

/** The states of a box, as the style sheet names them. */
export function statesOf(box: Box, marks: Marks): string[] {
  const states: string[] = [];
  const frame = box.open && box.node < 0;
  if (!frame && marks.lit && marks.lit.countIn(box) > 0) states.push("lit");
  if (!frame && marks.found && marks.found.countIn(box) === 0) states.push("dim");
  if (box === marks.focus) states.push("focus");
  if (box === marks.chosen) states.push("chosen");
  return states;
}

export const hueOf = (box: Box, marks: Marks): number =>
  box.node < 0 ? -1 : (marks.hue[box.node] ?? -1);
