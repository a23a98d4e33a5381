/** Paints the drawing at reading size: SVG elements for what is on the screen, and no others. */
import type { Camera } from "./camera";
import type { Segment } from "./layout";
import { hueOf, type Marks, statesOf } from "./marks";
import { SvgPen, trace } from "./paths";
import type { Drawing } from "./scene";
import { CHAR, clip, SMALL_CHAR, textsOf } from "./sizes";
import { type Box, isGroup } from "./tree";

const SPACE = "http://www.w3.org/2000/svg";

type Attributes = Record<string, string | number>;

function make<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  text = "",
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text) element.textContent = text;
  return element;
}

export class SvgPainter {
  readonly element = make("svg", { class: "dnx-g-svg", "aria-hidden": "true" });
  readonly #world = make("g");
  readonly #frames = make("g");
  readonly #edges = make("g");
  readonly #chosen = make("path", { class: "dnx-g-chosen" });
  readonly #nodes = make("g");
  readonly #headings = make("g");
  readonly #boxes = new Map<Box, SVGGElement>();
  readonly #heads = new Map<Box, SVGElement>();
  readonly #lines = new Map<Segment, SVGElement>();
  #drawing: Drawing | null = null;
  #marks: Marks | null = null;

  constructor() {
    this.#world.append(this.#frames, this.#edges, this.#chosen, this.#nodes, this.#headings);
    this.element.append(this.#world);
  }

  paint(drawing: Drawing, camera: Camera, marks: Marks): void {
    if (drawing !== this.#drawing) this.clear();
    this.#drawing = drawing;
    const { x, y, scale } = camera.view;
    this.#world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    const seen = camera.seen();
    const boxes = drawing.boxesIn(seen);
    keep(this.#boxes, boxes, (box) => this.#addBox(box, marks));
    keep(this.#heads, boxes.filter(isFrame), (box) => this.#headings.appendChild(headingOf(box)));
    for (const [box, heading] of this.#heads) {
      heading.setAttribute("x", String(headingX(box, seen.x)));
    }
    keep(this.#lines, drawing.segmentsIn(seen), (one) => this.#addLine(one));
    if (marks !== this.#marks) this.#remark(marks);
    this.#marks = marks;
  }

  clear(): void {
    for (const layer of [this.#frames, this.#edges, this.#nodes, this.#headings]) {
      layer.replaceChildren();
    }
    for (const live of [this.#boxes, this.#heads, this.#lines]) live.clear();
    this.#marks = this.#drawing = null;
  }

  #remark(marks: Marks): void {
    for (const [box, element] of this.#boxes) {
      element.setAttribute("class", classOf(box, marks));
      if (isGroup(box) && !box.open) this.#tellFound(box, element, marks);
    }
    const pen = new SvgPen();
    if (marks.chosen) {
      for (const one of this.#drawing!.linesOf(marks.chosen)) trace(one.points, one.arrow, pen);
    }
    this.#chosen.setAttribute("d", pen.toString());
  }

  /** A closed group says how much a search found in it. */
  #tellFound(box: Box, element: SVGGElement, marks: Marks): void {
    const found = marks.found?.countIn(box);
    const { below } = textsOf(box, this.#drawing!.tree.model);
    const text = element.querySelector(".dnx-g-below");
    if (text) text.textContent = found ? `${below} · ${found} found` : below;
  }

  #addBox(box: Box, marks: Marks): SVGGElement {
    const frame = isFrame(box);
    const element = frame ? frameOf(box) : this.#boxOf(box);
    element.setAttribute("class", classOf(box, marks));
    if (!frame && isGroup(box)) this.#tellFound(box, element, marks);
    (frame ? this.#frames : this.#nodes).append(element);
    return element;
  }

  #boxOf(box: Box): SVGGElement {
    const { model } = this.#drawing!.tree;
    const texts = textsOf(box, model);
    const element = make("g", {
      transform: `translate(${box.x} ${box.y})`,
      [isGroup(box) ? "data-group" : "data-node"]: box.label,
    });
    const size = { width: box.w, height: box.h, rx: 4 };
    if (isGroup(box)) element.append(make("rect", { ...size, x: 3, y: 3, class: "dnx-g-back" }));
    element.append(make("rect", { ...size, class: "dnx-g-rect" }));
    if (!isGroup(box)) {
      element.append(make("path", { class: "dnx-g-hue", d: `M4.5 4v${box.h - 8}` }));
    }
    const first = make("text", { x: 10, y: 15 });
    if (isGroup(box)) first.append(make("tspan", { class: "dnx-g-mark" }, "▸ "));
    first.append(make("tspan", { class: "dnx-g-name" }, texts.name));
    if (texts.beside) first.append(make("tspan", { class: "dnx-g-op" }, ` ${texts.beside}`));
    element.append(first);
    this.#addSmallTexts(element, box, texts);
    return element;
  }

  #addSmallTexts(element: SVGGElement, box: Box, texts: ReturnType<typeof textsOf>): void {
    let y = 29;
    const badge = isGroup(box) ? "" : this.#drawing!.tree.model.badges[box.node]!;
    if (texts.below) element.append(make("text", { x: 10, y, class: "dnx-g-below" }, texts.below));
    if (badge) {
      const width = (badge.length + 1.6) * SMALL_CHAR;
      const x = box.w - width - 5;
      element.append(make("rect", { x, y: y - 9, width, height: 12, rx: 6, class: "dnx-g-badge" }));
      const at = { x: x + width / 2, y, class: "dnx-g-badge-text" };
      element.append(make("text", at, badge));
    }
    if (texts.below || badge) y += 14;
    if (texts.inside) element.append(make("text", { x: 10, y, class: "dnx-g-inside" }, texts.inside));
  }

  #addLine(one: Segment): SVGElement {
    const pen = new SvgPen();
    trace(one.points, one.arrow, pen, one.branch);
    const element = make("g", { class: one.far ? "dnx-g-stub" : "dnx-g-edge" });
    element.append(make("path", { d: pen.toString() }));
    if (one.far) element.append(stubLabel(one));
    this.#edges.append(element);
    return element;
  }
}

const isFrame = (box: Box): boolean => isGroup(box) && box.open;

function frameOf(box: Box): SVGGElement {
  const element = make("g", { "data-group": box.label });
  const { x, y, w: width, h: height } = box;
  element.append(make("rect", { x, y, width, height, rx: 6, class: "dnx-g-frame" }));
  return element;
}

/** A heading stays on the screen while its group reaches over the screen's edge. */
const headingX = (box: Box, left: number): number =>
  Math.max(box.x + 8, Math.min(left + 8, box.x + box.w - (box.label.length + 3) * CHAR));

function headingOf(box: Box): SVGTextElement {
  const heading = make("text", { y: box.y + 15, class: "dnx-g-heading" });
  heading.append(make("tspan", { class: "dnx-g-mark" }, "▾ "));
  const room = Math.floor(box.w / CHAR) - 3;
  heading.append(make("tspan", { class: "dnx-g-name" }, clip(box.label || box.detail, room)));
  const left = room - box.label.length - 1;
  if (box.label && box.detail && left > 3) {
    heading.append(make("tspan", { class: "dnx-g-op" }, ` ${clip(box.detail, left)}`));
  }
  return heading;
}

/** A cut edge's stub says which box is at its other end. */
function stubLabel(one: Segment): SVGTextElement {
  const goes = one.far !== one.from;
  const [x, top, , bottom] = one.points as [number, number, number, number];
  const text = `${goes ? "↓" : "↑"} ${clip(one.far!.label, 18)}`;
  return make("text", { x: x + 4, y: goes ? bottom : top + 5 }, text);
}

function classOf(box: Box, marks: Marks): string {
  const frame = isFrame(box);
  const hue = hueOf(box, marks);
  const kind = frame ? "dnx-g-open" : isGroup(box) ? "dnx-g-closed" : "dnx-g-node";
  const states = statesOf(box, marks).map((state) => ` dnx-g-is-${state}`);
  return `${kind} dnx-g-hue-${hue < 0 ? "none" : hue}${states.join("")}`;
}

/** Remove what is no longer wanted, add what is new. */
function keep<T, E extends Element>(live: Map<T, E>, wanted: T[], add: (thing: T) => E): void {
  const now = new Set(wanted);
  for (const [thing, element] of live) {
    if (now.has(thing)) continue;
    element.remove();
    live.delete(thing);
  }
  for (const thing of now) if (!live.has(thing)) live.set(thing, add(thing));
}
