/** Paints the drawing from afar: shapes and colours, and the names of groups. */
import type { Camera, View } from "./camera";
import { hueOf, type Marks } from "./marks";
import type { Palette } from "./palette";
import { trace } from "./paths";
import type { Drawing } from "./scene";
import { type Box, isGroup } from "./tree";

const LABEL = 11; // pixels on the screen, at any scale
const CURVES = 0.12; // the scale below which curves and outlines are not seen

export class CanvasPainter {
  readonly element = document.createElement("canvas");
  readonly #context: CanvasRenderingContext2D | null;

  readonly #palette: Palette;

  constructor(palette: Palette) {
    this.#palette = palette;
    this.element.className = "dnx-g-canvas";
    this.element.setAttribute("aria-hidden", "true");
    this.#context = this.element.getContext("2d");
  }

  paint(drawing: Drawing, camera: Camera, marks: Marks, width: number, height: number): void {
    const pen = this.#context;
    if (!pen) return;
    const density = window.devicePixelRatio || 1;
    this.#resize(Math.round(width * density), Math.round(height * density));
    const { x, y, scale } = camera.view;
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.setTransform(scale * density, 0, 0, scale * density, x * density, y * density);
    const seen = camera.seen();
    const boxes = drawing.boxesIn(seen);
    this.#frames(pen, boxes, scale);
    this.#edges(pen, drawing, camera, marks);
    this.#nodes(pen, boxes, marks, scale);
    pen.setTransform(density, 0, 0, density, 0, 0);
    this.#labels(pen, boxes, camera.view);
  }

  clear(): void {
    this.#context?.clearRect(0, 0, this.element.width, this.element.height);
  }

  #resize(width: number, height: number): void {
    if (this.element.width !== width) this.element.width = width;
    if (this.element.height !== height) this.element.height = height;
  }

  #frames(pen: CanvasRenderingContext2D, boxes: Box[], scale: number): void {
    pen.lineWidth = 1 / scale;
    pen.strokeStyle = this.#palette.colour("border");
    pen.fillStyle = this.#palette.colour("frame");
    for (const box of boxes) {
      if (!isGroup(box) || !box.open) continue;
      pen.fillRect(box.x, box.y, box.w, box.h);
      pen.strokeRect(box.x, box.y, box.w, box.h);
    }
  }

  #edges(
    pen: CanvasRenderingContext2D,
    drawing: Drawing,
    camera: Camera,
    marks: Marks,
  ): void {
    const { scale } = camera.view;
    pen.lineWidth = 1 / scale;
    pen.strokeStyle = this.#palette.colour("edge");
    pen.beginPath();
    for (const { points, branch } of drawing.segmentsIn(camera.seen())) {
      if (scale > CURVES) trace(points, false, pen, branch);
      else {
        pen.moveTo(points[branch]!, points[branch + 1]!);
        for (let at = branch + 2; at < points.length; at += 2) pen.lineTo(points[at]!, points[at + 1]!);
      }
    }
    pen.stroke();
    if (!marks.chosen) return;
    pen.lineWidth = 2 / scale;
    pen.strokeStyle = this.#palette.colour("accent");
    pen.beginPath();
    for (const one of drawing.linesOf(marks.chosen)) trace(one.points, false, pen);
    pen.stroke();
  }

  /** All boxes of one colour at once: that is what a canvas is quick at. */
  #nodes(pen: CanvasRenderingContext2D, boxes: Box[], marks: Marks, scale: number): void {
    const byFill = new Map<string, Box[]>();
    for (const box of boxes) {
      if (isGroup(box) && box.open) continue;
      const dim = marks.found && !marks.found.countIn(box) ? "dim" : "";
      const fill = `${dim}|${this.#fillOf(box, marks)}`;
      const known = byFill.get(fill);
      if (known) known.push(box);
      else byFill.set(fill, [box]);
    }
    pen.lineWidth = 1 / scale;
    pen.strokeStyle = this.#palette.colour("border");
    for (const [fill, alike] of byFill) {
      const [dim, colour] = fill.split("|") as [string, string];
      pen.globalAlpha = dim ? 0.25 : 1;
      pen.fillStyle = colour;
      pen.beginPath();
      for (const { x, y, w, h } of alike) pen.rect(x, y, w, h);
      pen.fill();
      if (scale > CURVES) pen.stroke();
    }
    pen.globalAlpha = 1;
    const { focus } = marks;
    if (!focus || !boxes.includes(focus)) return;
    pen.lineWidth = 2.5 / scale;
    pen.strokeStyle = this.#palette.colour("accent");
    pen.strokeRect(focus.x, focus.y, focus.w, focus.h);
  }

  #fillOf(box: Box, marks: Marks): string {
    if (marks.lit?.countIn(box)) return this.#palette.colour("lit-strong");
    const hue = hueOf(box, marks);
    if (hue >= 0) return this.#palette.hue(hue);
    return this.#palette.colour(isGroup(box) ? "group" : "box");
  }

  /** Names of groups, where there is room for them and no other name. */
  #labels(pen: CanvasRenderingContext2D, boxes: Box[], view: View): void {
    pen.font = `${LABEL}px ${this.#palette.font}`;
    pen.textBaseline = "top";
    pen.lineWidth = 3;
    pen.strokeStyle = this.#palette.colour("background");
    pen.fillStyle = this.#palette.colour("text");
    const taken: [left: number, top: number, right: number][] = [];
    for (const box of boxes) {
      if (!isGroup(box)) continue;
      const text = box.label || box.detail;
      const width = text.length * LABEL * 0.62 + 6;
      if (box.h * view.scale < LABEL + 2 || box.w * view.scale < width) continue;
      const [x, y] = [box.x * view.scale + view.x + 4, box.y * view.scale + view.y + 2];
      const free = taken.every(
        ([left, top, right]) => x > right || x + width < left || Math.abs(y - top) > LABEL + 1,
      );
      if (!free) continue;
      taken.push([x, y, x + width]);
      pen.strokeText(text, x, y);
      pen.fillText(text, x, y);
    }
  }
}
