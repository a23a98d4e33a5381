/**
 * The drawing on the screen: paints it, and tells what the pointer and the keys do to it.
 * What is lit, searched and coloured is given to it; it knows neither record nor selection.
 */
import { attachGestures, Camera, type Rect, type Size, type View } from "./camera";
import { CanvasPainter } from "./canvas";
import { ARROWS, neighbour } from "./keys";
import { type Marks, noMarks } from "./marks";
import { Minimap } from "./minimap";
import { Palette } from "./palette";
import { Drawing } from "./scene";
import { SvgPainter } from "./svg";
import { type Box, isGroup, shownBox, type Tree } from "./tree";

/** Above this scale text can be read, and boxes are SVG elements. */
const READING = 0.5;
const ZOOM_STEP = 1.25;
const PAN_STEP = 60;

export interface Events {
  /** The pointer or the keyboard is at a box, or at none. */
  point(box: Box | null): void;
  /** A box was clicked, or Enter was pressed on it. */
  choose(box: Box): void;
  /** A group is to be closed from within. */
  close(group: Box): void;
  /** The box at the other end of a cut edge is wanted. */
  jump(box: Box): void;
  search(): void;
  release(): void;
  zoomed(scale: number): void;
}

export class GraphView {
  readonly camera: Camera;
  drawing: Drawing | null = null;
  #marks: Marks = noMarks();
  readonly #svg = new SvgPainter();
  readonly #canvas: CanvasPainter;
  readonly #minimap: Minimap;
  readonly #palette: Palette;
  readonly #observer: ResizeObserver;
  readonly #stop = new AbortController();
  readonly #detachGestures: () => void;
  #size: Size = { width: 0, height: 0 };
  #frame = 0;
  #placed = false;
  #pointed: Box | null = null;

  readonly #host: HTMLElement;
  readonly #events: Events;

  constructor(
    host: HTMLElement,
    events: Events,
  ) {
    this.#host = host;
    this.#events = events;
    this.#palette = new Palette(host, () => this.#repaintAll());
    this.#canvas = new CanvasPainter(this.#palette);
    this.camera = new Camera(
      () => this.#size,
      () => this.drawing?.scene ?? { width: 0, height: 0 },
      () => this.#moved(),
    );
    this.#minimap = new Minimap(this.camera, this.#palette);
    host.append(this.#canvas.element, this.#svg.element, this.#minimap.element);
    this.#measure();
    this.#observer = new ResizeObserver(() => this.#measure());
    this.#observer.observe(host);
    this.#detachGestures = attachGestures(host, this.camera, { click: (event) => this.#click(event) });
    this.#listen();
  }

  dispose(): void {
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
    this.#palette.dispose();
    this.#detachGestures();
    this.#stop.abort();
    this.#host.replaceChildren();
  }

  /** Lay the tree out anew. With `keep`, that box stays where it is on the screen. */
  show(tree: Tree, keep: Box | null = null): void {
    const before = keep && this.drawing?.tree === tree ? { x: keep.x, y: keep.y } : null;
    if (this.drawing?.tree !== tree) this.#placed = false;
    this.drawing = new Drawing(tree);
    if (before && keep) {
      const { view } = this.camera;
      const shift = { x: (before.x - keep.x) * view.scale, y: (before.y - keep.y) * view.scale };
      this.camera.set({ ...view, x: view.x + shift.x, y: view.y + shift.y });
    }
    this.#minimap.paint(this.drawing, this.#marks, this.#size);
    this.#placeFirst();
    this.#schedule();
  }

  setMarks(marks: Partial<Marks>): void {
    this.#marks = { ...this.#marks, ...marks };
    if (this.drawing && !("focus" in marks) && !("chosen" in marks)) {
      this.#minimap.paint(this.drawing, this.#marks, this.#size);
    }
    this.#schedule();
  }

  get focus(): Box | null {
    return this.#marks.focus;
  }

  /** Bring a box to the screen. */
  reveal(box: Box): void {
    this.camera.show(rectOf(box));
  }

  isSeen(box: Box): boolean {
    const seen = this.camera.seen();
    return (
      box.x < seen.x + seen.width &&
      box.x + box.w > seen.x &&
      box.y < seen.y + seen.height &&
      box.y + box.h > seen.y
    );
  }

  moveFocus(box: Box): void {
    this.setMarks({ focus: box });
    this.reveal(box);
    this.#point(box);
  }

  #measure(): void {
    const { clientWidth: width, clientHeight: height } = this.#host;
    if (width === this.#size.width && height === this.#size.height) return;
    this.#size = { width, height };
    if (this.drawing) this.#minimap.paint(this.drawing, this.#marks, this.#size);
    this.#placeFirst();
    this.#schedule();
  }

  /** The first look at a tree waits until there is room to look at it. */
  #placeFirst(): void {
    if (this.#placed || !this.drawing || !this.#size.width) return;
    this.#placed = true;
    this.home();
  }

  /** Look at where the graph begins. */
  home(): void {
    const kids = this.drawing?.tree.root.kids ?? [];
    const top = kids.filter((box) => box.y === kids[0]!.y);
    const middles = top.map((box) => box.x + box.w / 2);
    this.camera.home(middles.reduce((sum, x) => sum + x, 0) / Math.max(1, top.length));
  }

  #moved(): void {
    this.#events.zoomed(this.camera.view.scale);
    this.#schedule();
  }

  #repaintAll(): void {
    this.#svg.clear();
    if (this.drawing) this.#minimap.paint(this.drawing, this.#marks, this.#size);
    this.#schedule();
  }

  #schedule(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.paint();
    });
  }

  /** Paint now; called once a frame at most. */
  paint(): void {
    const [drawing, size, camera] = [this.drawing, this.#size, this.camera];
    if (!drawing || !size.width) return;
    const near = camera.view.scale >= READING;
    this.#host.dataset["painter"] = near ? "svg" : "canvas";
    if (near) this.#svg.paint(drawing, camera, this.#marks);
    else {
      this.#svg.clear();
      this.#canvas.paint(drawing, camera, this.#marks, size.width, size.height);
    }
    this.#minimap.follow();
  }

  #listen(): void {
    const { signal } = this.#stop;
    this.#host.addEventListener("pointermove", (event) => this.#hover(event), { signal });
    this.#host.addEventListener("pointerleave", () => this.#point(null), { signal });
    this.#host.addEventListener("keydown", (event) => this.#key(event), { signal });
    this.#host.addEventListener("focus", () => this.#focused(), { signal });
    this.#host.addEventListener("blur", () => this.setMarks({ focus: null }), { signal });
  }

  #at(event: MouseEvent): [number, number] {
    const frame = this.#host.getBoundingClientRect();
    return this.camera.toDrawing(event.clientX - frame.left, event.clientY - frame.top);
  }

  #hover(event: PointerEvent): void {
    if (!this.drawing || event.buttons) return;
    const place = this.#at(event);
    const box = this.drawing.boxAt(...place);
    const stub = box ? null : this.drawing.stubAt(...place);
    this.#host.style.cursor = box || stub ? "pointer" : "";
    this.#point(box);
  }

  #point(box: Box | null): void {
    if (box === this.#pointed) return;
    this.#pointed = box;
    this.#events.point(box);
  }

  #click(event: PointerEvent): void {
    if (!this.drawing) return;
    const place = this.#at(event);
    const box = this.drawing.boxAt(...place);
    const far = box ? null : this.drawing.stubAt(...place)?.far;
    if (box) this.#events.choose(box);
    else if (far) this.#events.jump(far);
    else this.#events.release();
  }

  /** The Tab key enters the drawing: begin at what is on the screen. */
  #focused(): void {
    if (!this.drawing || this.focus || !this.#host.matches(":focus-visible")) return;
    const first = this.#stops().find((box) => box.y + box.h > this.camera.seen().y);
    if (first) this.moveFocus(first);
  }

  /** The boxes that the arrow keys stop at. */
  #stops(): Box[] {
    return this.drawing!.scene.boxes.filter((box) => !(isGroup(box) && box.open));
  }

  #key(event: KeyboardEvent): void {
    const action = this.#actionFor(event);
    if (!action || !this.drawing) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  #actionFor(event: KeyboardEvent): (() => void) | undefined {
    const { focus, camera } = this;
    const arrow = ARROWS[event.key];
    if (arrow && event.shiftKey) {
      const [dx, dy] = { up: [0, 1], down: [0, -1], left: [1, 0], right: [-1, 0] }[arrow];
      return () => camera.pan(dx! * PAN_STEP, dy! * PAN_STEP);
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
    if (arrow) return () => this.#step(arrow);
    const actions: Record<string, () => void> = {
      Enter: () => focus && this.#events.choose(focus),
      " ": () => focus && this.#events.choose(focus),
      Backspace: () => focus?.parent?.parent && this.#events.close(focus.parent),
      Escape: () => this.#events.release(),
      Home: () => this.#stepTo(0),
      End: () => this.#stepTo(-1),
      "/": () => this.#events.search(),
      "+": () => camera.zoom(ZOOM_STEP),
      "=": () => camera.zoom(ZOOM_STEP),
      "-": () => camera.zoom(1 / ZOOM_STEP),
      "0": () => camera.fit(),
      "1": () => this.home(),
    };
    return actions[event.key];
  }

  #step(arrow: (typeof ARROWS)[string]): void {
    const stops = this.#stops();
    const next = this.focus ? neighbour(stops, shownBox(this.focus), arrow!) : stops[0];
    if (next) this.moveFocus(next);
  }

  #stepTo(end: 0 | -1): void {
    const box = this.#stops().at(end);
    if (box) this.moveFocus(box);
  }
}

export const rectOf = (box: Box): Rect => ({ x: box.x, y: box.y, width: box.w, height: box.h });

export type { View };
