/** The whole drawing in a corner, with the part that is on the screen. */
import type { Camera, Size } from "./camera";
import { hueOf, type Marks } from "./marks";
import type { Palette } from "./palette";
import type { Drawing } from "./scene";
import { isGroup } from "./tree";

const LEAST_WIDTH = 36;
const LEAST_HEIGHT = 24;

/** The room that the map may take on a screen. */
const roomOn = (screen: Size): Size => ({
  width: Math.max(LEAST_WIDTH, Math.min(120, screen.width / 6)),
  height: Math.max(LEAST_HEIGHT, Math.min(150, screen.height / 4)),
});

export class Minimap {
  readonly element = document.createElement("div");
  readonly #canvas = document.createElement("canvas");
  readonly #frame = document.createElement("div");
  #width = 0;
  #height = 0;

  readonly #camera: Camera;
  readonly #palette: Palette;

  constructor(
    camera: Camera,
    palette: Palette,
  ) {
    this.#camera = camera;
    this.#palette = palette;
    this.element.className = "dnx-g-minimap";
    this.element.setAttribute("aria-hidden", "true");
    this.#frame.className = "dnx-g-minimap-frame";
    this.element.append(this.#canvas, this.#frame);
    const go = (event: PointerEvent): void => this.#go(event);
    this.element.addEventListener("pointerdown", (event) => {
      event.stopPropagation();
      this.element.setPointerCapture(event.pointerId);
      this.element.addEventListener("pointermove", go);
      go(event);
    });
    for (const name of ["pointerup", "pointercancel"] as const) {
      this.element.addEventListener(name, () => this.element.removeEventListener("pointermove", go));
    }
  }

  #drawing: Drawing | null = null;

  #go(event: PointerEvent): void {
    if (!this.#drawing) return;
    const box = this.#canvas.getBoundingClientRect();
    const { width, height } = this.#drawing.scene;
    this.#camera.lookAt(
      ((event.clientX - box.left) / box.width) * width,
      ((event.clientY - box.top) / box.height) * height,
    );
  }

  /** Paint all boxes once; a long drawing is squeezed to stay readable. */
  paint(drawing: Drawing, marks: Marks, screen: Size): void {
    this.#drawing = drawing;
    const { width, height } = drawing.scene;
    const room = roomOn(screen);
    const wide = (room.height * width) / Math.max(1, height);
    this.#width = Math.round(Math.min(room.width, Math.max(LEAST_WIDTH, wide)));
    const high = (this.#width * height) / Math.max(1, width);
    this.#height = Math.round(Math.min(room.height, Math.max(LEAST_HEIGHT, high)));
    const density = window.devicePixelRatio || 1;
    this.#canvas.width = this.#width * density;
    this.#canvas.height = this.#height * density;
    this.#canvas.style.width = `${this.#width}px`;
    this.#canvas.style.height = `${this.#height}px`;
    const pen = this.#canvas.getContext("2d");
    if (!pen) return;
    pen.scale((this.#width * density) / width, (this.#height * density) / height);
    for (const box of drawing.scene.boxes) {
      const frame = isGroup(box) && box.open;
      const hue = hueOf(box, marks);
      const lit = !frame && marks.lit && marks.lit.countIn(box) > 0;
      const found = !frame && marks.found && marks.found.countIn(box) > 0;
      pen.fillStyle =
        lit || found
          ? this.#palette.colour("lit-strong")
          : frame
            ? this.#palette.colour("frame")
            : hue >= 0
              ? this.#palette.hue(hue)
              : this.#palette.colour("edge");
      pen.fillRect(box.x, box.y, box.w, box.h);
    }
  }

  /** Move the frame to what is seen; a drawing that is seen whole needs no map. */
  follow(): void {
    if (!this.#drawing) return;
    const { width, height } = this.#drawing.scene;
    const seen = this.#camera.seen();
    const whole = seen.x <= 0 && seen.y <= 0 && seen.x + seen.width >= width && seen.y + seen.height >= height;
    this.element.hidden = whole;
    const left = Math.max(0, seen.x / width) * this.#width;
    const top = Math.max(0, seen.y / height) * this.#height;
    const right = Math.min(1, (seen.x + seen.width) / width) * this.#width;
    const bottom = Math.min(1, (seen.y + seen.height) / height) * this.#height;
    this.#frame.style.transform = `translate(${left}px, ${top}px)`;
    this.#frame.style.width = `${Math.max(4, right - left)}px`;
    this.#frame.style.height = `${Math.max(3, bottom - top)}px`;
  }
}
