/**
 * Layered placement of one group's boxes, after Sugiyama, in time linear in boxes and edges.
 *
 * Vertices are numbered: the boxes in topological order, then the in-ports, then the out-ports. All
 * edges that leave a vertex at the same place share one chain of bends, from which they branch off.
 */
import { Neighbours, zeros } from "./neighbours";
import { rank } from "./rank";

export interface Wiring {
  /** Sizes of the boxes. */
  width: number[];
  height: number[];
  inPorts: number;
  outPorts: number;
  /** Index of the box that has to be in the last row, or -1. */
  last: number;
  /**
   * By edge, in the order of the targets: its ends, where on their boxes (from the middle), and
   * which edges share its bends.
   */
  from: number[];
  to: number[];
  fromShift: number[];
  toShift: number[];
  chain: number[];
  chains: number;
}

export interface Placement {
  /** Left edges of the boxes, then middles of the ports. */
  x: number[];
  y: number[];
  /** By edge: `x, y` pairs from source to target; for a cut edge its two stubs. */
  lines: Line[];
  width: number;
  height: number;
}

export interface Line {
  points: number[];
  /** Where in `points` it leaves the edges that were given before it and share its bends. */
  branch: number;
  /** The stub at the target, for an edge that is too long to be drawn. */
  stub: number[] | null;
}

export const GAP_X = 16;
export const GAP_Y = 24;
/** An edge over more rows than this is drawn as two stubs. */
export const CUT = 24;
const STUB = 12;
const BEND = 10; // the room that a passing edge takes in a row
const STRAIGHT = 8; // how much more a line between two bends wants to be straight
const AXIS = 0.04; // how much a box is drawn to the middle of its group
const SNAP = 24; // how far a vertex is moved to make a line straight
const SWEEPS = 6;
const PASSES = 3;

/** Places groups; those that are wired alike, as equal layers are, share one placement. */
export class Placer {
  readonly #known = new Map<number, { wiring: Wiring; placement: Placement }[]>();

  place(wiring: Wiring): Placement {
    const hash = hashOf(wiring);
    const alike = this.#known.get(hash) ?? [];
    let found = alike.find((one) => sameWiring(one.wiring, wiring));
    if (!found) {
      found = { wiring, placement: layered(wiring) };
      alike.push(found);
      this.#known.set(hash, alike);
    }
    return found.placement;
  }
}

const NUMBERS = ["inPorts", "outPorts", "last", "chains"] as const;
const LISTS = ["to", "from", "width", "height", "chain", "fromShift", "toShift"] as const;

function hashOf(wiring: Wiring): number {
  let hash = 0;
  for (const name of LISTS) for (const one of wiring[name]) hash = (Math.imul(hash, 31) + 64 * one) | 0;
  return hash;
}

const sameWiring = (a: Wiring, b: Wiring): boolean =>
  NUMBERS.every((name) => a[name] === b[name]) &&
  LISTS.every((name) => a[name].length === b[name].length && a[name].every((one, at) => one === b[name][at]));

export function layered(wiring: Wiring): Placement {
  const rows = rank(wiring);
  const net = new Net(wiring, rows);
  net.order();
  net.place();
  return net.result();
}

/** The vertices and bends of a group, in rows. */
class Net {
  readonly #width: number[];
  readonly #height: number[];
  readonly #up = new Neighbours();
  readonly #down = new Neighbours();
  readonly #layers: number[][] = [];
  readonly #chains: number[][];
  /** By chain: how many of its bends have been drawn. */
  readonly #drawn: number[];
  readonly #x: number[];
  readonly #slot: number[];
  readonly #key: number[];
  readonly #vertices: number;

  readonly #wiring: Wiring;
  readonly #rows: number[];

  constructor(
    wiring: Wiring,
    rows: number[],
  ) {
    this.#wiring = wiring;
    this.#rows = rows;
    const ports = wiring.inPorts + wiring.outPorts;
    this.#vertices = rows.length;
    this.#width = [...wiring.width, ...new Array<number>(ports).fill(BEND)];
    this.#height = [...wiring.height, ...new Array<number>(ports).fill(0)];
    this.#chains = Array.from({ length: wiring.chains }, () => []);
    this.#drawn = zeros(wiring.chains);
    wiring.from.forEach((_, edge) => this.#connect(edge));
    for (let v = 0; v < this.#rows.length; v++) (this.#layers[this.#rows[v]!] ??= []).push(v);
    for (let row = 0; row < this.#layers.length; row++) this.#layers[row] ??= [];
    this.#x = zeros(this.#rows.length);
    this.#slot = zeros(this.#rows.length);
    this.#key = zeros(this.#rows.length);
  }

  #span(edge: number): number {
    return this.#rows[this.#wiring.to[edge]!]! - this.#rows[this.#wiring.from[edge]!]!;
  }

  /** Lead an edge along its chain, which grows as far as the edge needs it. */
  #connect(edge: number): void {
    const { from, to, fromShift, toShift, chain } = this.#wiring;
    const span = this.#span(edge);
    if (span > CUT) return;
    const bends = this.#chains[chain[edge]!]!;
    const source = from[edge]!;
    while (bends.length < span - 1) {
      const above = bends.length ? bends[bends.length - 1]! : source;
      const bend = this.#rows.push(this.#rows[source]! + bends.length + 1) - 1;
      this.#width.push(BEND);
      this.#height.push(0);
      this.#join(above, bend, bends.length ? 0 : fromShift[edge]!);
      bends.push(bend);
    }
    const above = span > 1 ? bends[span - 2]! : source;
    this.#join(above, to[edge]!, (span > 1 ? 0 : fromShift[edge]!) - toShift[edge]!);
  }

  #join(above: number, below: number, shift: number): void {
    this.#up.add(below, above, shift);
    this.#down.add(above, below, -shift);
  }

  /** Order each row by where its neighbours are, down and up in turn. */
  order(): void {
    for (const layer of this.#layers) for (let at = 0; at < layer.length; at++) this.#slot[layer[at]!] = at;
    if (this.#layers.every((layer) => layer.length < 2)) return;
    const last = this.#layers.length - 1;
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      if (sweep % 2) for (let row = last - 1; row >= 0; row--) this.#sort(row, this.#down);
      else for (let row = 1; row <= last; row++) this.#sort(row, this.#up);
    }
  }

  #sort(row: number, near: Neighbours): void {
    const layer = this.#layers[row]!;
    if (layer.length < 2) return;
    for (const v of layer) {
      let sum = 0;
      let count = 0;
      for (let at = near.first(v); at >= 0; at = near.next[at]!) {
        const u = near.vertex[at]!;
        sum += this.#slot[u]! / Math.max(1, this.#layers[this.#rows[u]!]!.length - 1);
        count++;
      }
      this.#key[v] = count ? (sum / count) * (layer.length - 1) : this.#slot[v]!;
    }
    layer.sort((a, b) => this.#key[a]! - this.#key[b]! || this.#slot[a]! - this.#slot[b]!);
    for (let at = 0; at < layer.length; at++) this.#slot[layer[at]!] = at;
  }

  /** Move each row's vertices towards their neighbours, keeping order and distance. */
  place(): void {
    for (const layer of this.#layers) {
      let edge = 0;
      for (const v of layer) {
        this.#x[v] = edge + this.#width[v]! / 2;
        edge += this.#width[v]! + GAP_X;
      }
      for (const v of layer) this.#x[v]! -= (edge - GAP_X) / 2;
    }
    const last = this.#layers.length - 1;
    for (let pass = 0; pass < PASSES; pass++) {
      const down = pass ? this.#nearBoth : this.#nearAbove;
      for (let row = 1; row <= last; row++) this.#settle(this.#layers[row]!, down);
      for (let row = last - 1; row >= 0; row--) this.#settle(this.#layers[row]!, this.#nearBoth);
    }
    for (let row = 1; row <= last; row++) this.#settle(this.#layers[row]!, this.#rightBelow);
    for (const bends of this.#chains) this.#straighten(bends);
  }

  /**
   * Isotonic regression by pooling adjacent violators: the closest places to what all vertices of
   * a row want that keep their order and distances.
   */
  #settle(layer: number[], wish: (v: number) => void): void {
    if (layer.length === 1) {
      wish(layer[0]!);
      this.#x[layer[0]!] = this.#sum / this.#weight;
      return;
    }
    const offset: number[] = [];
    const blocks: { sum: number; weight: number; size: number }[] = [];
    for (let at = 0; at < layer.length; at++) {
      const v = layer[at]!;
      const before = at ? layer[at - 1]! : v;
      const distance = at ? (this.#width[before]! + this.#width[v]!) / 2 + GAP_X : 0;
      offset.push((offset[at - 1] ?? 0) + distance);
      wish(v);
      const block = { sum: this.#sum - offset[at]! * this.#weight, weight: this.#weight, size: 1 };
      for (let last = blocks.at(-1); last; last = blocks.at(-1)) {
        if (last.sum / last.weight <= block.sum / block.weight) break;
        block.sum += last.sum;
        block.weight += last.weight;
        block.size += last.size;
        blocks.pop();
      }
      blocks.push(block);
    }
    let at = 0;
    for (const { sum, weight, size } of blocks) {
      for (let end = at + size; at < end; at++) this.#x[layer[at]!] = sum / weight + offset[at]!;
    }
  }

  /** Put the bends of a line over each other, in runs as long as their rows leave room for. */
  #straighten(bends: number[]): void {
    let first = 0;
    let [low, high] = [-Infinity, Infinity];
    const finish = (end: number): void => {
      let sum = 0;
      for (let at = first; at < end; at++) sum += this.#x[bends[at]!]!;
      const x = Math.min(high, Math.max(low, sum / (end - first)));
      for (let at = first; at < end; at++) this.#x[bends[at]!] = x;
    };
    for (let at = 0; at < bends.length; at++) {
      const [left, right] = this.#room(bends[at]!);
      if (Math.max(low, left) > Math.min(high, right)) {
        finish(at);
        [first, low, high] = [at, -Infinity, Infinity];
      }
      [low, high] = [Math.max(low, left), Math.min(high, right)];
    }
    if (bends.length > 1) finish(bends.length);
  }

  /** Between which places a vertex can be moved. */
  #room(v: number): [number, number] {
    const layer = this.#layers[this.#rows[v]!]!;
    const [before, after] = [layer[this.#slot[v]! - 1], layer[this.#slot[v]! + 1]];
    const apart = (u: number): number => (this.#width[u]! + this.#width[v]!) / 2 + GAP_X;
    return [
      before === undefined ? -Infinity : this.#x[before]! + apart(before),
      after === undefined ? Infinity : this.#x[after]! - apart(after),
    ];
  }

  /** What a vertex wishes, for `settle`: the places it wants to be at, weighed. */
  #sum = 0;
  #weight = 0;

  #nearAbove = (v: number): void => {
    this.#sum = this.#weight = 0;
    this.#attract(v, this.#up);
    if (!this.#weight) this.#attract(v, this.#down);
    this.#holdToAxis(v);
  };

  #nearBoth = (v: number): void => {
    this.#sum = this.#weight = 0;
    this.#attract(v, this.#up);
    this.#attract(v, this.#down);
    this.#holdToAxis(v);
  };

  /** Right below the vertex that alone leads here and nowhere else, if near; else where it is. */
  #rightBelow = (v: number): void => {
    this.#sum = this.#x[v]!;
    this.#weight = 1;
    const at = this.#up.only(v);
    if (at < 0 || this.#down.only(this.#up.vertex[at]!) < 0) return;
    const x = this.#x[this.#up.vertex[at]!]! + this.#up.shift[at]!;
    if (Math.abs(x - this.#sum) < SNAP) this.#sum = x;
  };

  #attract(v: number, near: Neighbours): void {
    const isBend = v >= this.#vertices;
    for (let at = near.first(v); at >= 0; at = near.next[at]!) {
      const u = near.vertex[at]!;
      const weight = isBend && u >= this.#vertices ? STRAIGHT : 1;
      this.#sum += (this.#x[u]! + near.shift[at]!) * weight;
      this.#weight += weight;
    }
  }

  /** Ports beside the middle would shift each row a little; the axis, at 0, holds against that. */
  #holdToAxis(v: number): void {
    if (!this.#weight) this.#sum = this.#x[v]! * AXIS;
    if (!this.#weight || v < this.#vertices) this.#weight += AXIS;
  }

  result(): Placement {
    const [wiring, vertices] = [this.#wiring, this.#vertices];
    const boxes = wiring.width.length;
    let left = Infinity;
    let right = -Infinity;
    for (let v = 0; v < this.#rows.length; v++) {
      left = Math.min(left, this.#x[v]! - this.#width[v]! / 2);
      right = Math.max(right, this.#x[v]! + this.#width[v]! / 2);
    }
    if (left > right) left = right = 0;
    const tops = this.#tops();
    const x = zeros(vertices);
    const y = zeros(vertices);
    for (let v = 0; v < this.#rows.length; v++) this.#x[v]! -= left;
    for (let v = 0; v < vertices; v++) {
      x[v] = this.#x[v]! - (v < boxes ? this.#width[v]! / 2 : 0);
      y[v] = tops[this.#rows[v]!]!;
    }
    const lines = wiring.from.map((_, edge) => this.#line(edge, tops));
    return { x, y, lines, width: right - left, height: Math.max(0, tops.at(-1)! - GAP_Y) };
  }

  /** The y of each row's top, and one more for what would follow the last. */
  #tops(): number[] {
    const tops = [0];
    this.#layers.forEach((layer, row) => {
      let tallest = 0;
      for (const v of layer) tallest = Math.max(tallest, this.#height[v]!);
      tops.push(tops[row]! + tallest + GAP_Y);
    });
    return tops;
  }

  #line(edge: number, tops: number[]): Line {
    const { from, to, fromShift, toShift, chain } = this.#wiring;
    const [source, target] = [from[edge]!, to[edge]!];
    const sourceRow = this.#rows[source]!;
    const startX = this.#x[source]! + fromShift[edge]!;
    const startY = tops[sourceRow]! + this.#height[source]!;
    const endX = this.#x[target]! + toShift[edge]!;
    const endY = tops[this.#rows[target]!]!;
    const span = this.#span(edge);
    if (span > CUT) {
      return {
        points: [startX, startY, startX, startY + STUB],
        branch: 0,
        stub: [endX, endY - STUB, endX, endY],
      };
    }
    const points = [startX, startY];
    const rowEnd = tops[sourceRow + 1]! - GAP_Y;
    if (rowEnd > startY) points.push(startX, rowEnd);
    const start = points.length;
    for (let at = 0; at < span - 1; at++) {
      const bend = this.#chains[chain[edge]!]![at]!;
      const row = this.#rows[bend]!;
      points.push(this.#x[bend]!, tops[row]!, this.#x[bend]!, tops[row + 1]! - GAP_Y);
    }
    points.push(endX, endY);
    const shared = Math.min(span - 1, this.#drawn[chain[edge]!]!);
    this.#drawn[chain[edge]!] = Math.max(span - 1, shared);
    return { points, branch: shared ? start + 4 * shared - 2 : 0, stub: null };
  }
}
