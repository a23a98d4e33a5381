/** What a graph pane shows and how it answers to being used; knows no element. */
import { batch, computed, signal, type ReadonlySignal } from "@preact/signals";
import { type Compile, compileKey, type Graph, nodeRef, placeInGraph } from "../record";
import { refsIn, type Ref, type Selection } from "../selection";
import { type Colour, type Colouring, colouring } from "./colour";
import { NodeSet } from "./marks";
import { modelOf } from "./model";
import { Search } from "./search";
import { type Box, buildTree, isGroup, openAll, openWithin, reveal, type Tree } from "./tree";

/** As many boxes are open at first. */
export const BUDGET = 250;

export type Mode = "drawing" | "outline";

export class GraphState {
  readonly tree: Tree;
  readonly key: string;
  readonly mode = signal<Mode>("drawing");
  readonly query = signal("");
  readonly colour = signal<Colour>("module");
  /** Goes up when groups were opened or closed. */
  readonly version = signal(0);
  /** Goes up when all were, so that the drawing is to be seen from its beginning. */
  readonly begun = signal(0);
  /** The box that pointer or keyboard are at. */
  readonly pointed = signal<Box | null>(null);
  readonly found: ReadonlySignal<Set<number> | null>;
  readonly foundSet: ReadonlySignal<NodeSet | null>;
  readonly lit: ReadonlySignal<NodeSet | null>;
  readonly colouring: ReadonlySignal<Colouring>;
  /** The box whose edges stand out: what is pointed at, else what is pinned. */
  readonly chosen: ReadonlySignal<Box | null>;
  readonly #search: Search;

  constructor(
    readonly graph: Graph,
    readonly compile: Compile,
    readonly selection: Selection,
  ) {
    this.key = compileKey(compile);
    this.tree = buildTree(modelOf(graph, compile));
    openWithin(this.tree, BUDGET);
    this.#search = new Search(this.tree.model);
    this.found = computed(() => this.#search.find(this.query.value));
    this.foundSet = computed(() => this.found.value && new NodeSet(this.tree, this.found.value));
    this.lit = computed(() => this.#litNodes(selection.lit.value));
    this.colouring = computed(() =>
      colouring(this.tree.model, this.colour.value, (node) => this.kernelsOf(node.name)[0] ?? ""),
    );
    this.chosen = computed(() => this.pointed.value ?? this.boxOf(selection.pinned.value));
  }

  refOf(node: number): Ref {
    return nodeRef(this.compile, this.graph.name, this.graph.nodes[node]!.name);
  }

  /** The node of a ref, when it is one of this graph; -1 for others. */
  nodeOf(ref: Ref | null): number {
    if (!ref || ref[0] !== this.key || ref[1] !== "node") return -1;
    const { graph, name } = placeInGraph(ref);
    return graph === this.graph.name ? (this.tree.model.index.get(name) ?? -1) : -1;
  }

  /** The box of a ref's node; a parameter's is that of its first user. */
  boxOf(ref: Ref | null): Box | null {
    const node = this.nodeOf(ref);
    return node < 0 ? null : this.leafFor(node);
  }

  leafFor(node: number): Box | null {
    const { leafOf, model } = this.tree;
    return leafOf[node] ?? model.users[node]!.map((user) => leafOf[user]).find(Boolean) ?? null;
  }

  #litNodes(keys: Set<string>): NodeSet | null {
    if (!keys.size) return null;
    const nodes = refsIn(keys, "node").map((ref) => this.nodeOf(ref)).filter((node) => node >= 0);
    const drawn = nodes.flatMap((node) => this.#standIns(node));
    return drawn.length ? new NodeSet(this.tree, drawn) : null;
  }

  /** A parameter is lit in its users. */
  #standIns(node: number): number[] {
    const { model } = this.tree;
    return model.inside[node] ? model.users[node]! : [node];
  }

  /** The kernels that a node ends up in. */
  kernelsOf(name: string): string[] {
    const related = this.selection.related(nodeRef(this.compile, this.graph.name, name));
    return refsIn(related, "kernel").map((ref) => placeInGraph(ref).name);
  }

  /** What a node is in the other stages. */
  counterparts(node: number): Ref[] {
    const refs = refsIn(this.selection.related(this.refOf(node)), "node");
    return refs.filter((ref) => placeInGraph(ref).graph !== this.graph.name);
  }

  point(box: Box | null): void {
    batch(() => {
      this.pointed.value = box;
      this.selection.set(box && !isGroup(box) ? this.refOf(box.node) : null, "hover");
    });
  }

  pin(node: number): void {
    this.selection.set(this.refOf(node), "pin");
  }

  toggle(group: Box): void {
    group.open = !group.open;
    this.version.value = this.version.peek() + 1;
  }

  setAll(open: boolean): void {
    openAll(this.tree, open);
    batch(() => {
      this.version.value = this.version.peek() + 1;
      this.begun.value = this.begun.peek() + 1;
    });
  }

  reveal(box: Box): void {
    if (reveal(box)) this.version.value = this.version.peek() + 1;
  }

  /** The found node after (or before) a position in the tree's order, going round. */
  nextFound(from: Box | null, step: 1 | -1): Box | null {
    const found = this.found.value;
    if (!found) return null;
    const { order, leafOf } = this.tree;
    const start = from ? from.start : step > 0 ? -1 : order.length;
    for (let away = 1; away <= order.length; away++) {
      const at = (start + step * away + order.length * 2) % order.length;
      if (found.has(order[at]!)) return leafOf[order[at]!]!;
    }
    return null;
  }
}
