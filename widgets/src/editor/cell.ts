/** The marks over the real cell, and over other cells that the report's lines lie in. */
import { effect } from "@preact/signals";
import { hueOf, type LineFacts } from "../facts";
import { CELL, lineOf, lineRef } from "../record";
import type { View } from "../view";
import { Overlay, shiftOf } from "./overlay";
import { CellEditor } from "./view";

const OTHER_CELL = /^<cell .*>$/;
const NO_FACTS = new Map<number, LineFacts>();
const RETRY = 50; // ms: the output is rendered before it is put into the page
const TRIES = 40;

/** Draw over the cells of a notebook; return what takes everything away again. */
export function decorateCell(element: HTMLElement, view: View): () => void {
  const marks = new CellMarks(element, view);
  return () => marks.dispose();
}

class CellMarks {
  readonly #overlays = new Map<string, Overlay>();
  readonly #stop: () => void;
  #timer = 0;

  readonly #element: HTMLElement;
  readonly #view: View;

  constructor(
    element: HTMLElement,
    view: View,
  ) {
    this.#element = element;
    this.#view = view;
    this.#stop = effect(() => {
      const { lit } = view.selection;
      lit.value;
      if (this.#wantsOthers) view.store.files().value;
      this.#draw();
    });
    this.#find(TRIES);
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#stop();
    for (const overlay of this.#overlays.values()) overlay.dispose();
  }

  /** Look for the cell until the output is in the page; outside a notebook it never is. */
  #find(tries: number): void {
    if (CellEditor.around(this.#element)) this.#draw();
    else if (tries > 0) {
      this.#timer = window.setTimeout(() => this.#find(tries - 1), RETRY);
    }
  }

  #draw(): void {
    const lit = this.#litLines();
    for (const file of this.#files) {
      this.#overlayOf(file)?.show({
        facts: this.#view.facts.get(file) ?? NO_FACTS,
        lit: lit.get(file) ?? new Set(),
        hue: (key) => hueOf(this.#view.record, key),
      });
    }
  }

  get #files(): string[] {
    const others = [...this.#view.facts.keys()].filter((file) => OTHER_CELL.test(file));
    return [CELL, ...others.filter((file) => file !== CELL)];
  }

  get #wantsOthers(): boolean {
    return this.#files.length > 1;
  }

  /** The overlay of a cell; made when its editor is there, made anew when that was replaced. */
  #overlayOf(file: string): Overlay | undefined {
    const known = this.#overlays.get(file);
    if (known?.isAttached) return known;
    known?.dispose();
    this.#overlays.delete(file);
    const source = this.#sourceOf(file);
    const editor = source === undefined ? null : this.#editorOf(file, source);
    if (!editor || source === undefined) return undefined;
    const { selection } = this.#view;
    const point = (line: number | null): void =>
      selection.set(line === null ? null : lineRef(file, line), "hover");
    const overlay = new Overlay(editor, source, point, file === CELL);
    this.#overlays.set(file, overlay);
    return overlay;
  }

  #sourceOf(file: string): string | undefined {
    const { record, store } = this.#view;
    return file === CELL ? record.source : store.peek<Record<string, string>>("files")?.[file];
  }

  /** The own cell, whatever it holds now; another cell while it holds what was recorded. */
  #editorOf(file: string, source: string): CellEditor | null {
    if (file === CELL) return CellEditor.around(this.#element);
    const editors = CellEditor.beside(this.#element);
    return editors.find((editor) => shiftOf(editor.text, source) !== null) ?? null;
  }

  #litLines(): Map<string, Set<number>> {
    const lines = new Map<string, Set<number>>();
    for (const ref of this.#view.selection.refsOf("line")) {
      const { file, line } = lineOf(ref);
      lines.set(file, (lines.get(file) ?? new Set()).add(line));
    }
    return lines;
  }
}
