/**
 * The nested boxes of a graph. Each group is an interval of one topological order of the nodes, so
 * drawing it as a single box can never close a cycle.
 */
import { type GraphModel } from "./model";
import { modulesOf, type Step } from "./modules";
import { chunkMany, foldRuns, Signatures } from "./folding";

export type BoxKind = "node" | "module" | "fold" | "chunk";

export interface Box {
  kind: BoxKind;
  /** Index of the node; -1 for a group. */
  node: number;
  label: string;
  /** A module's class; for a node, the module that holds nothing but it. */
  detail: string;
  kids: Box[];
  parent: Box | null;
  open: boolean;
  /** Position in the tree, parents first. */
  id: number;
  depth: number;
  /** Position among its parent's kids. */
  at: number;
  /** The nodes inside, as positions in `Tree.order`. */
  start: number;
  end: number;
  /** Geometry, set by the layout. */
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface Tree {
  model: GraphModel;
  root: Box;
  boxes: Box[];
  /** All drawn nodes, in an order in which inputs come first. */
  order: number[];
  /** The box of each node; undefined for nodes drawn inside their users. */
  leafOf: (Box | undefined)[];
}

export function newBox(kind: BoxKind, label: string, detail = "", kids: Box[] = []): Box {
  return {
    kind,
    node: -1,
    label,
    detail,
    kids,
    parent: null,
    open: false,
    id: -1,
    depth: 0,
    at: 0,
    start: 0,
    end: 0,
    x: NaN, // no integers: V8 would have to change the form of every box when fractions come
    y: NaN,
    w: NaN,
    h: NaN,
  };
}

export const isGroup = (box: Box): boolean => box.node < 0;
export const nodeCount = (box: Box): number => box.end - box.start;

export function buildTree(model: GraphModel): Tree {
  const drawn: number[] = [];
  for (let at = 0; at < model.nodes.length; at++) {
    if (!model.inside[at] && at !== model.output) drawn.push(at);
  }
  const root = newBox("module", "", "", new Arranger(model).arrange(drawn));
  unwrap(root, model);
  compact(root, new Signatures(model));
  if (model.output >= 0) root.kids.push(leaf(model, model.output));
  return number(model, root);
}

function leaf(model: GraphModel, at: number): Box {
  const box = newBox("node", model.nodes[at]!.name);
  box.node = at;
  return box;
}

/** A module's run of nodes, and the loose nodes that stand after it. */
interface Segment {
  step: Step | null;
  members: number[];
  loose: number[];
}

/** Gathers nodes into their modules, level by level. */
class Arranger {
  readonly #steps: Step[][];
  /** By node: which call of `arrange` placed it last, and where. */
  readonly #call: Int32Array;
  readonly #place: Int32Array;
  #calls = 0;

  readonly #model: GraphModel;

  constructor(model: GraphModel) {
    this.#model = model;
    this.#steps = modulesOf(model);
    this.#call = new Int32Array(model.nodes.length);
    this.#place = new Int32Array(model.nodes.length);
  }

  /** Return the boxes of some nodes, nested from a depth on. */
  arrange(members: number[], depth = 0): Box[] {
    const boxes: Box[] = [];
    for (const { step, members: inner, loose } of this.#segments(members, depth)) {
      if (step) boxes.push(newBox("module", step.label, step.kind, this.arrange(inner, depth + 1)));
      for (const at of loose) boxes.push(leaf(this.#model, at));
    }
    return boxes;
  }

  /**
   * A node joins the last run of its module when nothing that it uses comes after that run; else
   * it starts a new run. Places are twice the segment's number, and 1 more for loose nodes.
   */
  #segments(members: number[], depth: number): Segment[] {
    const segments: Segment[] = [{ step: null, members: [], loose: [] }];
    const lastOf = new Map<string, number>();
    const call = ++this.#calls;
    for (const at of members) {
      let after = 0;
      for (const input of this.#model.inputs[at]!) {
        if (this.#call[input] === call) after = Math.max(after, this.#place[input]!);
      }
      this.#call[at] = call;
      const step = this.#steps[at]![depth];
      if (!step) {
        segments[after >> 1]!.loose.push(at);
        this.#place[at] = after | 1;
        continue;
      }
      let run = lastOf.get(step.path) ?? -1;
      if (2 * run < after) {
        run = segments.push({ step, members: [], loose: [] }) - 1;
        lastOf.set(step.path, run);
      }
      segments[run]!.members.push(at);
      this.#place[at] = 2 * run;
    }
    return segments;
  }
}

/** Leave out modules that hold the whole graph: they would only be a frame around it. */
function unwrap(root: Box, model: GraphModel): void {
  const isInput = (box: Box): boolean =>
    !isGroup(box) && model.nodes[box.node]!.op === "placeholder";
  for (;;) {
    const [only, ...others] = root.kids.filter((kid) => !isInput(kid));
    if (!only || others.length || !isGroup(only)) return;
    root.label = [root.label, only.label].filter(Boolean).join(".");
    root.detail = only.detail;
    root.kids = root.kids.flatMap((kid) => (kid === only ? only.kids : [kid]));
  }
}

/** Bottom up: join modules that only hold one thing, fold equal layers, part long rows. */
function compact(group: Box, signatures: Signatures): void {
  for (const kid of group.kids) if (isGroup(kid)) compact(kid, signatures);
  group.kids = group.kids.map(joinSingle);
  group.kids = chunkMany(foldRuns(group.kids, signatures), signatures.model);
}

function joinSingle(box: Box): Box {
  const only = box.kids.length === 1 ? box.kids[0]! : null;
  if (!only || box.kind !== "module") return box;
  if (!isGroup(only)) {
    only.detail = only.detail ? `${box.label}.${only.detail}` : box.label;
    return only;
  }
  if (only.kind !== "module") return box;
  only.label = [box.label, only.label].filter(Boolean).join(".");
  return only;
}

function number(model: GraphModel, root: Box): Tree {
  const tree: Tree = { model, root, boxes: [], order: [], leafOf: new Array(model.nodes.length) };
  const visit = (box: Box, parent: Box | null, at: number): void => {
    box.parent = parent;
    box.at = at;
    box.depth = parent ? parent.depth + 1 : 0;
    box.id = tree.boxes.push(box) - 1;
    box.start = tree.order.length;
    if (isGroup(box)) {
      box.kids.forEach((kid, place) => visit(kid, box, place));
    } else {
      tree.order.push(box.node);
      tree.leafOf[box.node] = box;
    }
    box.end = tree.order.length;
  };
  visit(root, null, 0);
  root.open = true;
  return tree;
}

/** Open groups level by level, the outermost first, while at most `budget` boxes are shown. */
export function openWithin(tree: Tree, budget: number): void {
  for (const box of tree.boxes) box.open = false;
  tree.root.open = true;
  let shown = tree.root.kids.length;
  for (let level = tree.root.kids; level.length; ) {
    const next: Box[] = [];
    for (const box of level) {
      if (!isGroup(box) || box.kind === "fold" || shown + box.kids.length > budget) continue;
      box.open = true;
      shown += box.kids.length;
      next.push(...box.kids);
    }
    level = next;
  }
}

export function openAll(tree: Tree, open: boolean): void {
  for (const box of tree.boxes) box.open = open && isGroup(box);
  tree.root.open = true;
}

/** Open all that hides a box. Return whether anything changed. */
export function reveal(box: Box): boolean {
  let changed = false;
  for (let at = box.parent; at; at = at.parent) {
    changed ||= !at.open;
    at.open = true;
  }
  return changed;
}

/** The box that stands for a node now: its own, or the closed group that hides it. */
export function shownBox(box: Box): Box {
  let shown = box;
  for (let at = box.parent; at; at = at.parent) if (!at.open) shown = at;
  return shown;
}
