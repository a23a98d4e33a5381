/**
 * A layer over a cell's editor. It lies beside the editor's content, so the document, its undo
 * history and its being saved or not are untouched; it is drawn only while the text is the one
 * that was recorded.
 */
import { HUES, type LineFacts } from "../facts";
import type { CellEditor } from "./view";

export interface Drawing {
  facts: Map<number, LineFacts>;
  lit: Set<number>;
  hue(key: string): number;
}

/** The layers of explorers that stand under the cell itself: the last run's is the only one. */
const OWN = ".dnx-overlay-own";

export class Overlay {
  readonly #layer: HTMLElement;
  readonly #control = new AbortController();
  readonly #watchers: { disconnect(): void }[];
  #drawing: Drawing | null = null;
  #frame = 0;
  #shift: number | null = null;
  readonly #source: string;

  constructor(
    readonly editor: CellEditor,
    source: string,
    point: (line: number | null) => void,
    own: boolean,
  ) {
    this.#source = source;
    if (own) for (const old of editor.scroller.querySelectorAll(OWN)) old.remove();
    this.#layer = document.createElement("div");
    this.#layer.className = `dnx dnx-overlay${own ? " dnx-overlay-own" : ""}`;
    this.#layer.setAttribute("aria-hidden", "true");
    editor.scroller.append(this.#layer);
    const soon = (): void => this.#redraw();
    const resized = new ResizeObserver(soon);
    resized.observe(editor.element);
    const edited = new MutationObserver(soon);
    edited.observe(editor.content, { childList: true, characterData: true, subtree: true });
    this.#watchers = [resized, edited];
    this.#listen(point);
  }

  get isAttached(): boolean {
    return this.#layer.isConnected;
  }

  show(drawing: Drawing): void {
    this.#drawing = drawing;
    this.#redraw();
  }

  dispose(): void {
    cancelAnimationFrame(this.#frame);
    this.#control.abort();
    for (const watcher of this.#watchers) watcher.disconnect();
    this.#layer.remove();
  }

  #listen(point: (line: number | null) => void): void {
    const { signal } = this.#control;
    let last: number | null = null;
    const tell = (line: number | null): void => {
      if (line !== last) point((last = line));
    };
    const onMove = (event: MouseEvent): void => {
      const line = this.editor.lineAt(event);
      tell(this.#shift === null || line === null ? null : line - this.#shift);
    };
    this.editor.element.addEventListener("mousemove", onMove, { signal });
    this.editor.element.addEventListener("mouseleave", () => tell(null), { signal });
  }

  #redraw(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    this.#shift = shiftOf(this.editor.text, this.#source);
    const drawing = this.#shift === null ? null : this.#drawing;
    this.#layer.replaceChildren(...(drawing ? this.#marks(drawing) : []));
  }

  #marks(drawing: Drawing): HTMLElement[] {
    const { facts, lit, hue } = drawing;
    const lines = new Set([...facts.keys(), ...lit]);
    return [...lines].flatMap((line) => {
      const place = this.editor.place(line + (this.#shift ?? 0));
      if (!place) return [];
      const mark = markOf(line, facts.get(line), lit.has(line), hue);
      mark.style.top = `${place.top}px`;
      mark.style.height = `${place.height}px`;
      return [mark];
    });
  }
}

function markOf(
  line: number,
  facts: LineFacts | undefined,
  lit: boolean,
  hue: (key: string) => number,
): HTMLElement {
  const mark = document.createElement("div");
  mark.dataset["line"] = String(line);
  const [first] = facts?.graphs ?? [];
  if (first !== undefined) mark.classList.add("dnx-over-strip", `dnx-hue${hue(first) % HUES}`);
  if (lit) mark.classList.add("dnx-over-lit");
  if (facts?.marks.length) {
    const badge = document.createElement("span");
    badge.className = "dnx-over-mark";
    badge.textContent = facts.marks.map((one) => one.text).join("; ");
    badge.title = badge.textContent;
    mark.append(badge);
  }
  return mark;
}

/**
 * How many lines lower the recorded source begins in the editor's text; null when the text is
 * another one. The kernel leaves out empty lines on top and common indentation, as IPython does.
 */
export function shiftOf(text: string | null, source: string): number | null {
  if (text === null) return null;
  const [shown, recorded] = [normal(text), normal(source)];
  return shown.text === recorded.text ? shown.skipped - recorded.skipped : null;
}

function normal(text: string): { text: string; skipped: number } {
  const lines = text.trimEnd().split("\n");
  const skipped = Math.max(0, lines.findIndex((line) => line.trim() !== ""));
  const kept = lines.slice(skipped);
  const indent = /^[ \t]*/.exec(kept[0] ?? "")?.[0] ?? "";
  const bare = kept.map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
  return { text: bare.map((line) => line.trimEnd()).join("\n"), skipped };
}
