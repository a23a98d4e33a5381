/** The course of a line: straight down through rows, curved from one to the next. */

export interface Pen {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
  bezierCurveTo(ax: number, ay: number, bx: number, by: number, x: number, y: number): void;
}

const HEAD_WIDTH = 3;
const HEAD_LENGTH = 5;

/** Draw a line, from its point number `start / 2` on. */
export function trace(points: number[], arrow: boolean, pen: Pen, start = 0): void {
  let [fromX, fromY] = [points[start]!, points[start + 1]!];
  pen.moveTo(fromX, fromY);
  for (let at = start + 2; at < points.length; at += 2) {
    const [x, y] = [points[at]!, points[at + 1]!];
    const middle = (fromY + y) / 2;
    if (Math.abs(fromX - x) < 0.5) pen.lineTo(x, y);
    else pen.bezierCurveTo(fromX, middle, x, middle, x, y);
    [fromX, fromY] = [x, y];
  }
  if (!arrow) return;
  const [x, y] = points.slice(-2) as [number, number];
  pen.moveTo(x - HEAD_WIDTH, y - HEAD_LENGTH);
  pen.lineTo(x, y);
  pen.lineTo(x + HEAD_WIDTH, y - HEAD_LENGTH);
}

/** A pen that writes an SVG path. */
export class SvgPen implements Pen {
  #parts: string[] = [];

  moveTo(x: number, y: number): void {
    this.#parts.push(`M${short(x)} ${short(y)}`);
  }

  lineTo(x: number, y: number): void {
    this.#parts.push(`L${short(x)} ${short(y)}`);
  }

  bezierCurveTo(...values: [number, number, number, number, number, number]): void {
    this.#parts.push(`C${values.map(short).join(" ")}`);
  }

  toString(): string {
    return this.#parts.join("");
  }
}

const short = (value: number): string => String(Math.round(value * 10) / 10);
