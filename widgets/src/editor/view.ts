/**
 * The real cell's editor, reached through the page: JupyterLab 4 and Notebook 7 draw it with
 * CodeMirror 6 in the same document. In VS Code and Colab there is none to be found.
 */

interface Block {
  from: number;
  top: number;
  height: number;
}

/** What is used of CodeMirror's EditorView; it is private there, so its presence is checked. */
interface EditorView {
  state: {
    doc: {
      lines: number;
      toString(): string;
      line(number: number): { from: number };
      lineAt(position: number): { number: number };
    };
  };
  documentTop: number;
  scaleY?: number;
  lineBlockAt(position: number): Block;
  lineBlockAtHeight(height: number): Block;
}

type Attached = Element & {
  cmTile?: { view?: EditorView; root?: { view?: EditorView } };
  cmView?: { view?: EditorView; rootView?: { view?: EditorView } };
};

/** One cell's editor: its text and where its lines are. */
export class CellEditor {
  readonly scroller: HTMLElement;
  readonly content: HTMLElement;

  private constructor(readonly element: HTMLElement) {
    this.scroller = element.querySelector<HTMLElement>(".cm-scroller") ?? element;
    this.content = element.querySelector<HTMLElement>(".cm-content") ?? element;
  }

  /** The editor of the cell whose output an element stands in. */
  static around(element: Element): CellEditor | null {
    return CellEditor.of(element.closest(".jp-Cell"));
  }

  /** The editors of a notebook's cells that are drawn now. */
  static beside(element: Element): CellEditor[] {
    const cells = element.closest(".jp-Notebook")?.querySelectorAll(".jp-CodeCell") ?? [];
    return [...cells].flatMap((cell) => CellEditor.of(cell) ?? []);
  }

  private static of(cell: Element | null): CellEditor | null {
    const element = cell?.querySelector<HTMLElement>(".jp-InputArea-editor .cm-editor");
    return element?.querySelector(".cm-content") ? new CellEditor(element) : null;
  }

  /** The text, or null when the page holds only a part of it. */
  get text(): string | null {
    const view = this.#view;
    if (view) return view.state.doc.toString();
    if (this.content.querySelector(".cm-gap")) return null;
    return this.#drawnLines.map((line) => line.textContent ?? "").join("\n");
  }

  /** Where a line is, in pixels from the top of what scrolls. */
  place(line: number): { top: number; height: number } | null {
    const base = this.scroller.getBoundingClientRect().top - this.scroller.scrollTop;
    const view = this.#view;
    if (!view) {
      const box = this.#drawnLines[line - 1]?.getBoundingClientRect();
      return box ? { top: box.top - base, height: box.height } : null;
    }
    if (line < 1 || line > view.state.doc.lines) return null;
    const block = view.lineBlockAt(view.state.doc.line(line).from);
    const scale = view.scaleY ?? 1;
    return { top: view.documentTop + block.top * scale - base, height: block.height * scale };
  }

  /** The line under the pointer. */
  lineAt(event: MouseEvent): number | null {
    const view = this.#view;
    if (view) {
      const block = view.lineBlockAtHeight((event.clientY - view.documentTop) / (view.scaleY ?? 1));
      return view.state.doc.lineAt(block.from).number;
    }
    const line = (event.target as Element).closest(".cm-line");
    const at = line ? this.#drawnLines.indexOf(line) : -1;
    return at < 0 ? null : at + 1;
  }

  /** Looked up each time: CodeMirror may replace what it hangs the view on. */
  get #view(): EditorView | null {
    const { cmTile } = this.content as Attached;
    const view = cmTile?.view ?? cmTile?.root?.view ?? this.#olderView;
    return typeof view?.lineBlockAt === "function" && view.state?.doc ? view : null;
  }

  /** Before 6.39; newer versions warn when it is so much as read. */
  get #olderView(): EditorView | undefined {
    const { cmView } = this.content as Attached;
    return cmView?.view ?? cmView?.rootView?.view;
  }

  get #drawnLines(): Element[] {
    return [...this.content.querySelectorAll(".cm-line")];
  }
}
