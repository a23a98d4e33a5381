/** Where the drawing is looked at from: a shift and a scale, moved by pointer, wheel and keys. */

export interface View {
  x: number;
  y: number;
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

export interface Rect extends Size {
  x: number;
  y: number;
}

const MOST = 2;
const LEAST = 0.02;
const MARGIN = 16;
const READABLE = 0.85;

export class Camera {
  view: View = { x: MARGIN, y: MARGIN, scale: 1 };

  readonly #screen: () => Size;
  readonly #drawing: () => Size;
  readonly #changed: () => void;

  constructor(
    screen: () => Size,
    drawing: () => Size,
    changed: () => void,
  ) {
    this.#screen = screen;
    this.#drawing = drawing;
    this.#changed = changed;
  }

  /** The part of the drawing that is on the screen. */
  seen(): Rect {
    const { width, height } = this.#screen();
    const { x, y, scale } = this.view;
    return { x: -x / scale, y: -y / scale, width: width / scale, height: height / scale };
  }

  toDrawing(x: number, y: number): [number, number] {
    return [(x - this.view.x) / this.view.scale, (y - this.view.y) / this.view.scale];
  }

  pan(dx: number, dy: number): void {
    this.set({ ...this.view, x: this.view.x + dx, y: this.view.y + dy });
  }

  /** Zoom about a point of the screen, by default its middle. */
  zoom(factor: number, x = this.#screen().width / 2, y = this.#screen().height / 2): void {
    const old = this.view.scale;
    const scale = Math.min(MOST, Math.max(this.#least(), old * factor));
    const ratio = scale / old;
    this.set({ scale, x: x - (x - this.view.x) * ratio, y: y - (y - this.view.y) * ratio });
  }

  /** Show the whole drawing. */
  fit(): void {
    this.#centre(this.#scale());
  }

  /** Show the top of the drawing at a size that can be read; `x` in the middle if it is wide. */
  home(x?: number): void {
    this.#centre(Math.max(READABLE, this.#scale()), x);
  }

  /** The scale at which the whole drawing is seen. */
  #scale(): number {
    const drawing = this.#drawing();
    const { width, height } = this.#screen();
    const across = (width - 2 * MARGIN) / Math.max(1, drawing.width);
    const down = (height - 2 * MARGIN) / Math.max(1, drawing.height);
    return Math.min(1, Math.max(LEAST, Math.min(across, down)));
  }

  #least(): number {
    return Math.min(0.2, this.#scale());
  }

  #centre(scale: number, at?: number): void {
    const drawing = this.#drawing();
    const screen = this.#screen();
    const spare = screen.height - drawing.height * scale;
    const wide = drawing.width * scale > screen.width;
    this.set({
      scale,
      x: screen.width / 2 - (wide && at !== undefined ? at : drawing.width / 2) * scale,
      y: Math.max(MARGIN, Math.min(spare / 2, 2 * MARGIN)),
    });
  }

  /** Bring a part of the drawing to the screen, moving as little as that takes. */
  show(rect: Rect, margin = 40): void {
    const screen = this.#screen();
    const { scale } = this.view;
    const shift = (start: number, size: number, most: number): number => {
      if (size + 2 * margin > most) return margin - start;
      return Math.max(margin - start, 0) || Math.min(most - margin - start - size, 0);
    };
    const x = rect.x * scale + this.view.x;
    const y = rect.y * scale + this.view.y;
    const dx = shift(x, rect.width * scale, screen.width);
    const dy = shift(y, rect.height * scale, screen.height);
    if (dx || dy) this.pan(dx, dy);
  }

  /** Put a point of the drawing in the middle of the screen. */
  lookAt(x: number, y: number): void {
    const { width, height } = this.#screen();
    const { scale } = this.view;
    this.set({ scale, x: width / 2 - x * scale, y: height / 2 - y * scale });
  }

  /** Take a view, held so that some of the drawing always stays on the screen. */
  set(view: View): void {
    const screen = this.#screen();
    const drawing = this.#drawing();
    const hold = (at: number, size: number, most: number): number => {
      const keep = Math.min(80, most / 2);
      return Math.min(most - keep, Math.max(keep - size * view.scale, at));
    };
    this.view = {
      scale: view.scale,
      x: hold(view.x, drawing.width, screen.width),
      y: hold(view.y, drawing.height, screen.height),
    };
    this.#changed();
  }
}

/** What the pointer does on the drawing, apart from pointing. */
export interface Gestures {
  /** A press that did not become a drag. */
  click(event: PointerEvent): void;
}

const CLICK = 4; // pixels a click may wander

/** Let the pointer drag and pinch, and the wheel scroll and zoom. Return what undoes it. */
export function attachGestures(element: HTMLElement, camera: Camera, gestures: Gestures): () => void {
  const pointers = new Map<number, PointerEvent>();
  let moved = 0;
  const stop = new AbortController();
  const listen = <K extends keyof HTMLElementEventMap>(
    name: K,
    handler: (event: HTMLElementEventMap[K]) => void,
  ): void => element.addEventListener(name, handler, { signal: stop.signal, passive: false });

  listen("pointerdown", (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, event);
    moved = 0;
  });
  listen("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    moved += Math.abs(dx) + Math.abs(dy);
    if (moved < CLICK) return;
    element.setPointerCapture(event.pointerId);
    element.dataset["dragging"] = "";
    if (pointers.size > 1) pinch(element, camera, pointers, event);
    else camera.pan(dx, dy);
    pointers.set(event.pointerId, event);
  });
  const release = (event: PointerEvent): void => {
    const pressed = pointers.delete(event.pointerId);
    delete element.dataset["dragging"];
    if (pressed && moved < CLICK && event.type === "pointerup") gestures.click(event);
  };
  listen("pointerup", release);
  listen("pointercancel", release);
  listen("wheel", (event) => {
    // A page scrolls past the drawing unless one works with it.
    const zooms = event.ctrlKey || event.metaKey;
    if (!zooms && !element.contains(element.ownerDocument.activeElement)) return;
    event.preventDefault();
    const frame = element.getBoundingClientRect();
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (!zooms) camera.pan(-event.deltaX * unit, -event.deltaY * unit);
    else {
      const factor = Math.exp(-Math.max(-60, Math.min(60, event.deltaY * unit)) * 0.008);
      camera.zoom(factor, event.clientX - frame.left, event.clientY - frame.top);
    }
  });
  return () => stop.abort();
}

function pinch(
  element: HTMLElement,
  camera: Camera,
  pointers: Map<number, PointerEvent>,
  moved: PointerEvent,
): void {
  const other = [...pointers.values()].find((one) => one.pointerId !== moved.pointerId)!;
  const before = pointers.get(moved.pointerId)!;
  const apart = (one: PointerEvent): number =>
    Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
  const frame = element.getBoundingClientRect();
  const x = (moved.clientX + other.clientX) / 2 - frame.left;
  const y = (moved.clientY + other.clientY) / 2 - frame.top;
  camera.zoom(apart(moved) / Math.max(1, apart(before)), x, y);
}
