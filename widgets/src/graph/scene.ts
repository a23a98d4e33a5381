/** A laid out drawing with what the painters and the pointer ask of it. */
import { Bands } from "./bands";
import type { Rect } from "./camera";
import { layout, type Scene, type Segment } from "./layout";
import { HEAD } from "./sizes";
import { type Box, isGroup, shownBox, type Tree } from "./tree";

export class Drawing {
  readonly scene: Scene;
  readonly milliseconds: number;
  readonly #boxes: Bands<Box>;
  readonly #segments: Bands<Segment>;
  #byProducer: Map<Box, Segment[]> | null = null;

  constructor(readonly tree: Tree) {
    const start = performance.now();
    this.scene = layout(tree);
    this.#boxes = new Bands(this.scene.boxes, (box) => [box.y, box.y + box.h]);
    this.#segments = new Bands(this.scene.segments, (one) => [one.points[1]!, one.points.at(-1)!]);
    this.milliseconds = performance.now() - start;
  }

  boxesIn(rect: Rect): Box[] {
    return [...this.#boxes.between(rect.y, rect.y + rect.height)].filter(
      (box) =>
        box.y < rect.y + rect.height &&
        box.y + box.h > rect.y &&
        box.x < rect.x + rect.width &&
        box.x + box.w > rect.x,
    );
  }

  segmentsIn(rect: Rect): Segment[] {
    return [...this.#segments.between(rect.y, rect.y + rect.height)].filter(
      ({ points }) => points[1]! < rect.y + rect.height && points.at(-1)! > rect.y,
    );
  }

  /** The innermost box at a point; an open group is hit by its heading only. */
  boxAt(x: number, y: number): Box | null {
    let found: Box | null = null;
    for (const box of this.#boxes.between(y, y)) {
      const within = x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h;
      const hit = within && (!(isGroup(box) && box.open) || y <= box.y + HEAD);
      if (hit && (!found || box.depth > found.depth)) found = box;
    }
    return found;
  }

  /** The stub of a cut edge at a point. */
  stubAt(x: number, y: number): Segment | null {
    for (const one of this.#segments.between(y, y)) {
      if (!one.far) continue;
      const [left, top, , bottom] = one.points as [number, number, number, number];
      if (Math.abs(x - left) < 7 && y > top - 4 && y < bottom + 4) return one;
    }
    return null;
  }

  /** The lines that bring a box its inputs and carry its value on. */
  linesOf(box: Box): Segment[] {
    const all = this.#producers();
    const lines = [...(all.get(box) ?? [])];
    const ends = new Set([box, ...ancestors(box)]);
    for (const producer of this.producersFor(box)) {
      const outer = ancestors(producer);
      // Out of the producer's groups, or into those of the box, but not into both.
      lines.push(...(all.get(producer) ?? []).filter(({ to }) => ends.has(to) !== outer.has(to)));
    }
    return lines;
  }

  /** The shown boxes whose values a box uses. */
  producersFor(box: Box): Set<Box> {
    const { model, order } = this.tree;
    const found = new Set<Box>();
    for (let at = box.start; at < box.end; at++) {
      for (const input of model.inputs[order[at]!]!) {
        const leaf = this.tree.leafOf[input];
        if (leaf && (leaf.id < box.id || leaf.start >= box.end)) found.add(shownBox(leaf));
      }
    }
    found.delete(box);
    return found;
  }

  #producers(): Map<Box, Segment[]> {
    if (!this.#byProducer) {
      this.#byProducer = new Map();
      for (const one of this.scene.segments) {
        const known = this.#byProducer.get(one.from);
        if (known) known.push(one);
        else this.#byProducer.set(one.from, [one]);
      }
    }
    return this.#byProducer;
  }
}

function ancestors(box: Box): Set<Box> {
  const found = new Set<Box>();
  for (let at = box.parent; at; at = at.parent) found.add(at);
  return found;
}
