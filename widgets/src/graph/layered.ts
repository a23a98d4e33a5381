/**
 * Layered placement of one group's boxes, after Sugiyama, in time linear in boxes and edges.
 *
 * Vertices are numbered: the boxes in topological order, then the in-ports, then the out-ports. All
 * edges that leave a vertex at the same place share one chain of bends, from which they branch off.
 */

export interface Wiring {
  /** Sizes of the boxes. */
  width: Float64Array;
  height: Float64Array;
  inPorts: number;
  outPorts: number;
  /** Index of the box that has to be in the last row, or -1. */
  last: number;
  /** By edge: ends, where on their boxes (from the middle), and which edges share their bends. */
  from: number[];
  to: number[];
  fromShift: number[];
  toShift: number[];
  chain: number[];
  chains: number;
}

export interface Placement {
  /** Left edges of the boxes, then middles of the ports. */
  x: Float64Array;
  y: Float64Array;
  /** By edge: `x, y` pairs from source to target; for a cut edge its two stubs. */
  lines: Line[];
  width: number;
  height: number;
}

export interface Line {
  points: number[];
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
const SWEEPS = 6;
const PASSES = 3;

export function layered(wiring: Wiring): Placement {
  const rows = rank(wiring);
  const net = new Net(wiring, rows);
  net.order();
  net.place();
  return net.result();
}

/** Give each vertex a row: below all that it uses, and not far above its first user. */
function rank(wiring: Wiring): Int32Array {
  const { from, to, inPorts, outPorts, last } = wiring;
  const boxes = wiring.width.length;
  const first = inPorts ? 1 : 0;
  const rows = new Int32Array(boxes + inPorts + outPorts).fill(first);
  rows.fill(0, boxes, boxes + inPorts);
  const uses: number[][] = Array.from(rows, () => []);
  const hasInput = new Uint8Array(boxes);
  from.forEach((source, edge) => {
    uses[source]!.push(to[edge]!);
    if (to[edge]! < boxes) hasInput[to[edge]!] = 1;
  });
  for (let v = 0; v < boxes; v++) {
    for (const user of uses[v]!) if (user < boxes) rows[user] = Math.max(rows[user]!, rows[v]! + 1);
  }
  for (let v = boxes - 1; v >= 0; v--) {
    const users = hasInput[v] ? [] : uses[v]!.filter((user) => user < boxes);
    if (users.length) {
      const closest = users.reduce((least, user) => Math.min(least, rows[user]!), Infinity);
      rows[v] = Math.max(first, closest - 1);
    }
  }
  let bottom = first;
  for (let v = 0; v < boxes; v++) if (v !== last) bottom = Math.max(bottom, rows[v]!);
  if (last >= 0) rows[last] = bottom = boxes > 1 ? bottom + 1 : first;
  rows.fill(bottom + 1, boxes + inPorts);
  return rows;
}

/** The vertices and bends of a group, in rows. */
class Net {
  private readonly rows: number[];
  private readonly width: number[];
  private readonly height: number[];
  private readonly up: number[][];
  private readonly down: number[][];
  /** Where an edge's lower end wants to be, from its upper end: parallel to `up` and `down`. */
  private readonly upShift: number[][];
  private readonly downShift: number[][];
  private readonly layers: number[][] = [];
  private readonly chains: number[][];
  private readonly x: Float64Array;
  private readonly slot: Float64Array;
  private readonly key: Float64Array;
  private readonly vertices: number;

  constructor(
    private readonly wiring: Wiring,
    rows: Int32Array,
  ) {
    const ports = wiring.inPorts + wiring.outPorts;
    this.vertices = rows.length;
    this.rows = Array.from(rows);
    this.width = [...wiring.width, ...new Array<number>(ports).fill(BEND)];
    this.height = [...wiring.height, ...new Array<number>(ports).fill(0)];
    this.up = this.rows.map(() => []);
    this.down = this.rows.map(() => []);
    this.upShift = this.rows.map(() => []);
    this.downShift = this.rows.map(() => []);
    this.chains = Array.from({ length: wiring.chains }, () => []);
    wiring.from.forEach((_, edge) => this.connect(edge));
    for (let v = 0; v < this.rows.length; v++) (this.layers[this.rows[v]!] ??= []).push(v);
    for (let row = 0; row < this.layers.length; row++) this.layers[row] ??= [];
    this.x = new Float64Array(this.rows.length);
    this.slot = new Float64Array(this.rows.length);
    this.key = new Float64Array(this.rows.length);
  }

  private span(edge: number): number {
    return this.rows[this.wiring.to[edge]!]! - this.rows[this.wiring.from[edge]!]!;
  }

  /** Lead an edge along its chain, which grows as far as the edge needs it. */
  private connect(edge: number): void {
    const { from, to, fromShift, toShift, chain } = this.wiring;
    const span = this.span(edge);
    if (span > CUT) return;
    const bends = this.chains[chain[edge]!]!;
    const source = from[edge]!;
    while (bends.length < span - 1) {
      const above = bends.length ? bends[bends.length - 1]! : source;
      const bend = this.rows.push(this.rows[source]! + bends.length + 1) - 1;
      this.width.push(BEND);
      this.height.push(0);
      for (const list of [this.up, this.down, this.upShift, this.downShift]) list.push([]);
      this.join(above, bend, bends.length ? 0 : fromShift[edge]!);
      bends.push(bend);
    }
    const above = span > 1 ? bends[span - 2]! : source;
    this.join(above, to[edge]!, (span > 1 ? 0 : fromShift[edge]!) - toShift[edge]!);
  }

  private join(above: number, below: number, shift: number): void {
    this.up[below]!.push(above);
    this.upShift[below]!.push(shift);
    this.down[above]!.push(below);
    this.downShift[above]!.push(-shift);
  }

  /** Order each row by where its neighbours are, down and up in turn. */
  order(): void {
    for (const layer of this.layers) layer.forEach((v, at) => (this.slot[v] = at));
    if (this.layers.every((layer) => layer.length < 2)) return;
    const last = this.layers.length - 1;
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      if (sweep % 2) for (let row = last - 1; row >= 0; row--) this.sort(row, this.down);
      else for (let row = 1; row <= last; row++) this.sort(row, this.up);
    }
  }

  private sort(row: number, neighbours: number[][]): void {
    const layer = this.layers[row]!;
    if (layer.length < 2) return;
    for (const v of layer) {
      const near = neighbours[v]!;
      let sum = 0;
      for (const u of near) sum += this.slot[u]! / Math.max(1, this.layers[this.rows[u]!]!.length - 1);
      this.key[v] = near.length ? (sum / near.length) * (layer.length - 1) : this.slot[v]!;
    }
    layer.sort((a, b) => this.key[a]! - this.key[b]! || this.slot[a]! - this.slot[b]!);
    layer.forEach((v, at) => (this.slot[v] = at));
  }

  /** Move each row's vertices towards their neighbours, keeping order and distance. */
  place(): void {
    for (const layer of this.layers) {
      let edge = 0;
      for (const v of layer) {
        this.x[v] = edge + this.width[v]! / 2;
        edge += this.width[v]! + GAP_X;
      }
      for (const v of layer) this.x[v]! -= (edge - GAP_X) / 2;
    }
    const last = this.layers.length - 1;
    for (let pass = 0; pass < PASSES; pass++) {
      for (let row = 1; row <= last; row++) this.settle(this.layers[row]!, pass > 0);
      for (let row = last - 1; row >= 0; row--) this.settle(this.layers[row]!, true);
    }
    for (let row = 1; row <= last; row++) this.settle(this.layers[row]!, true, true);
  }

  /**
   * Isotonic regression by pooling adjacent violators: the closest places to what all vertices of
   * a row want that keep their order and distances.
   */
  private settle(layer: number[], both: boolean, straighten = false): void {
    const offset: number[] = [];
    const sums: number[] = [];
    const weights: number[] = [];
    const sizes: number[] = [];
    layer.forEach((v, at) => {
      const before = at ? layer[at - 1]! : v;
      const distance = at ? (this.width[before]! + this.width[v]!) / 2 + GAP_X : 0;
      offset.push((offset[at - 1] ?? 0) + distance);
      let [sum, weight] = straighten ? this.below(v) : this.wish(v, both);
      sum -= offset[at]! * weight;
      let size = 1;
      while (sums.length && sums.at(-1)! / weights.at(-1)! > sum / weight) {
        sum += sums.pop()!;
        weight += weights.pop()!;
        size += sizes.pop()!;
      }
      sums.push(sum);
      weights.push(weight);
      sizes.push(size);
    });
    let at = 0;
    sizes.forEach((size, block) => {
      const start = sums[block]! / weights[block]!;
      for (let end = at + size; at < end; at++) this.x[layer[at]!] = start + offset[at]!;
    });
  }

  /** Where a vertex wants to be: weighted sum and weight. */
  private wish(v: number, both: boolean): [number, number] {
    let sum = 0;
    let weight = 0;
    const isBend = v >= this.vertices;
    const add = (near: number[], shifts: number[]): void => {
      for (let at = 0; at < near.length; at++) {
        const u = near[at]!;
        const w = isBend && u >= this.vertices ? STRAIGHT : 1;
        sum += (this.x[u]! + shifts[at]!) * w;
        weight += w;
      }
    };
    add(this.up[v]!, this.upShift[v]!);
    if (both || !weight) add(this.down[v]!, this.downShift[v]!);
    return weight ? [sum, weight] : [this.x[v]! * 0.05, 0.05];
  }

  /** Right below the vertex that alone leads here and nowhere else; else where it is. */
  private below(v: number): [number, number] {
    const u = this.up[v]!.length === 1 ? this.up[v]![0]! : -1;
    if (u < 0 || this.down[u]!.length > 1) return [this.x[v]!, 1];
    return [(this.x[u]! + this.upShift[v]![0]!) * STRAIGHT, STRAIGHT];
  }

  result(): Placement {
    const { wiring, vertices } = this;
    const boxes = wiring.width.length;
    let left = Infinity;
    let right = -Infinity;
    for (let v = 0; v < this.rows.length; v++) {
      left = Math.min(left, this.x[v]! - this.width[v]! / 2);
      right = Math.max(right, this.x[v]! + this.width[v]! / 2);
    }
    if (left > right) left = right = 0;
    const tops = this.tops();
    const x = new Float64Array(vertices);
    const y = new Float64Array(vertices);
    for (let v = 0; v < this.rows.length; v++) this.x[v]! -= left;
    for (let v = 0; v < vertices; v++) {
      x[v] = this.x[v]! - (v < boxes ? this.width[v]! / 2 : 0);
      y[v] = tops[this.rows[v]!]!;
    }
    const lines = wiring.from.map((_, edge) => this.line(edge, tops));
    return { x, y, lines, width: right - left, height: Math.max(0, tops.at(-1)! - GAP_Y) };
  }

  /** The y of each row's top, and one more for what would follow the last. */
  private tops(): number[] {
    const tops = [0];
    this.layers.forEach((layer, row) => {
      let tallest = 0;
      for (const v of layer) tallest = Math.max(tallest, this.height[v]!);
      tops.push(tops[row]! + tallest + GAP_Y);
    });
    return tops;
  }

  private line(edge: number, tops: number[]): Line {
    const { from, to, fromShift, toShift, chain } = this.wiring;
    const [source, target] = [from[edge]!, to[edge]!];
    const sourceRow = this.rows[source]!;
    const startX = this.x[source]! + fromShift[edge]!;
    const startY = tops[sourceRow]! + this.height[source]!;
    const endX = this.x[target]! + toShift[edge]!;
    const endY = tops[this.rows[target]!]!;
    const span = this.span(edge);
    if (span > CUT) {
      return {
        points: [startX, startY, startX, startY + STUB],
        stub: [endX, endY - STUB, endX, endY],
      };
    }
    const points = [startX, startY];
    const rowEnd = tops[sourceRow + 1]! - GAP_Y;
    if (rowEnd > startY) points.push(startX, rowEnd);
    for (let at = 0; at < span - 1; at++) {
      const bend = this.chains[chain[edge]!]![at]!;
      const row = this.rows[bend]!;
      points.push(this.x[bend]!, tops[row]!, this.x[bend]!, tops[row + 1]! - GAP_Y);
    }
    points.push(endX, endY);
    return { points, stub: null };
  }
}
