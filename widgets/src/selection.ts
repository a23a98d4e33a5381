/**
 * The one selection. A pane calls `set` and renders from `lit`; panes never know each other.
 *
 * Pointing shows, clicking holds: while something is pinned, pointing elsewhere changes nothing.
 */
import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { Link, Ref } from "./schema";

export type { Link, Ref };
export type How = "hover" | "pin";

const SEPARATOR = "\u0000";

export const refKey = (ref: Ref): string => ref.join(SEPARATOR);

export const parseKey = (key: string): Ref => key.split(SEPARATOR) as unknown as Ref;

/** Refs of the report before this one stand apart by this, ahead of their compile's key. */
const EARLIER = "~";

export const beforeRef = ([compile, artifact, key]: Ref): Ref => [EARLIER + compile, artifact, key];

export const isBefore = (ref: Ref): boolean => ref[0].startsWith(EARLIER);

/** A ref as its own record has it. */
export const ownRef = (ref: Ref): Ref =>
  isBefore(ref) ? [ref[0].slice(EARLIER.length), ref[1], ref[2]] : ref;

/** The kind of the links from the report before to this one. */
export const COUNTERPART = "counterpart";

export const sameRef = (a: Ref | null, b: Ref | null): boolean =>
  a === b || (!!a && !!b && refKey(a) === refKey(b));

/** The directions in which links are followed, apart from their plain neighbours. */
interface Index {
  earlier: Map<string, Set<string>>; // node → the nodes of earlier graphs it came from
  later: Map<string, Set<string>>; // node → the nodes of later graphs made from it
  across: Map<string, Set<string>>; // what stands for a thing in the other report, both ways
  beside: Map<string, Set<string>>; // all other links, both ways
}

export class Selection {
  readonly hovered: Signal<Ref | null> = signal(null);
  readonly pinned: Signal<Ref | null> = signal(null);
  readonly current: ReadonlySignal<Ref | null>;
  /** `refKey` of `current` and of all that belongs to it. */
  readonly lit: ReadonlySignal<Set<string>>;

  readonly #index: Signal<Index>;

  constructor(links: readonly Link[]) {
    this.#index = signal(indexOf(links));
    this.current = computed(() => this.pinned.value ?? this.hovered.value);
    this.lit = computed(() => across(closure(this.current.value, this.#index.value), this.#index.value));
  }

  /** Point at something, or hold it; pinning what is pinned already lets it go. */
  set(ref: Ref | null, how: How): void {
    if (how === "hover") {
      if (!sameRef(this.hovered.value, ref)) this.hovered.value = ref;
    } else {
      this.pinned.value = sameRef(this.pinned.value, ref) ? null : ref;
    }
  }

  /** Hold something, whether it is held already or not. */
  pin(ref: Ref): void {
    if (!sameRef(this.pinned.value, ref)) this.pinned.value = ref;
  }

  /** Let go of everything. */
  release(): void {
    this.hovered.value = null;
    this.pinned.value = null;
  }

  isLit(ref: Ref): boolean {
    return this.lit.value.has(refKey(ref));
  }

  /** The lit refs of one kind, those of the report before left out. */
  refsOf(artifact: string): Ref[] {
    return refsIn(this.lit.value, artifact);
  }

  /** What belongs to a ref in its own report, itself included, whether it is selected or not. */
  related(ref: Ref): Set<string> {
    return closure(ref, this.#index.value);
  }

  /** Take in further links: those of a part that came after the rest. */
  extend(links: readonly Link[]): void {
    this.#index.value = { ...linkUp(links, this.#index.peek()) };
  }
}

/** The refs of one kind, those of the report before left out: no pane but Diff shows them. */
export const refsIn = (keys: Iterable<string>, artifact: string): Ref[] =>
  [...keys].map(parseKey).filter((ref) => ref[1] === artifact && !isBefore(ref));

const indexOf = (links: readonly Link[]): Index =>
  linkUp(links, { earlier: new Map(), later: new Map(), across: new Map(), beside: new Map() });

function linkUp(links: readonly Link[], index: Index): Index {
  for (const [kind, a, b] of links) {
    const [from, to] = [refKey(a), refKey(b)];
    if (kind === "node-node") {
      add(index.earlier, from, to);
      add(index.later, to, from);
    } else {
      const both = kind === COUNTERPART ? index.across : index.beside;
      add(both, from, to);
      add(both, to, from);
    }
  }
  return index;
}

function add(map: Map<string, Set<string>>, from: string, to: string): void {
  const known = map.get(from);
  if (known) known.add(to);
  else map.set(from, new Set([to]));
}

/**
 * What belongs to a ref. Links are followed as a reader would: up to where a thing came from, down
 * to what became of it, never down again after going up; so a line's other nodes stay dark when
 * one of them is chosen.
 */
function closure(ref: Ref | null, index: Index): Set<string> {
  const lit = new Set<string>();
  if (!ref) return lit;
  const start = refKey(ref);
  lit.add(start);
  const near = neighbours(start, index);
  for (const key of near) lit.add(key);
  const nodes = ref[1] === "node" ? [start] : ref[1] === "code" ? viaKernels(near, index) : near;
  const own = nodes.filter((key) => artifactOf(key) === "node");
  for (const key of own) lit.add(key);
  if (DESCENDING.has(ref[1])) descend(own, index, lit);
  if (ref[1] === "line") return lit;
  ascend(own, index, lit);
  for (const key of near) if (artifactOf(key) === "compile") addPlaces(key, index, lit);
  return lit;
}

/** Light what stands for lit things in the other report. */
function across(lit: Set<string>, index: Index): Set<string> {
  for (const key of [...lit]) for (const other of index.across.get(key) ?? []) lit.add(other);
  return lit;
}

/** What becomes of these is lit, too. */
const DESCENDING = new Set(["line", "node", "step"]);

const artifactOf = (key: string): string => parseKey(key)[1];

const neighbours = (key: string, index: Index): string[] => [...(index.beside.get(key) ?? [])];

/** The nodes of a code line: its own, and those of its kernels. */
const viaKernels = (near: string[], index: Index): string[] =>
  near.flatMap((key) => (artifactOf(key) === "kernel" ? neighbours(key, index) : [key]));

/** Light what became of nodes: nodes of later graphs, kernels, their lines of output code. */
function descend(nodes: string[], index: Index, lit: Set<string>): void {
  for (const key of reach(nodes, index.later)) {
    lit.add(key);
    const near = neighbours(key, index);
    const kernels = near.filter((one) => artifactOf(one) === "kernel");
    for (const kernel of kernels) {
      lit.add(kernel);
      near.push(...neighbours(kernel, index));
    }
    for (const code of near) if (artifactOf(code) === "code") lit.add(code);
  }
}

/** Light where nodes came from: nodes of earlier graphs, and the places of all of them. */
function ascend(nodes: string[], index: Index, lit: Set<string>): void {
  for (const key of reach(nodes, index.earlier)) {
    lit.add(key);
    addPlaces(key, index, lit);
  }
}

/** Light the lines and the steps that made a thing. */
function addPlaces(key: string, index: Index, lit: Set<string>): void {
  for (const place of neighbours(key, index)) {
    if (PLACES.has(artifactOf(place))) lit.add(place);
  }
}

const PLACES = new Set(["line", "step"]);

function reach(start: string[], edges: Map<string, Set<string>>): Set<string> {
  const seen = new Set(start);
  for (const key of seen) for (const next of edges.get(key) ?? []) seen.add(next);
  return seen;
}
