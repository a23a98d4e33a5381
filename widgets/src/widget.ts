/** The explorer in a notebook: parts from the saved snapshot, the rest from the kernel. */
import { mount } from "./app";
import { decorateCell } from "./editor/cell";
import type { Source } from "./store";
import { Store } from "./store";

/** What anywidget hands to `render`. */
export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown): void;
  on(event: string, listener: (...args: never[]) => void): void;
  off(event: string, listener: (...args: never[]) => void): void;
}

interface Meta {
  id: string;
  headline: string;
  before?: string;
}

interface Answer {
  re?: number;
  error?: string;
}

const PATIENCE = 3000; // ms until the pane says that the kernel has not answered

export function renderWidget({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const meta = model.get("meta") as Meta;
  el.classList.add("dnx");
  el.dataset["dnbLive"] = meta.id;
  const kernel = new Kernel(model);
  const store = new Store(widgetSource(model, kernel));
  const unmount = mount(el, store, {
    headline: meta.headline,
    savable: true,
    before: meta.before ?? "",
    decorate: (view) => decorateCell(el, view),
    onSelect: (refs) => {
      model.set("selection", refs);
      try {
        model.save_changes();
      } catch {
        // no kernel: there is nobody to tell
      }
    },
  });
  return () => {
    unmount();
    kernel.dispose();
  };
}

/** Parts from the snapshot that was saved with the notebook; what it lacks, from the kernel. */
export function widgetSource(model: Model, kernel: Kernel): Source {
  let snapshot: Promise<Record<string, unknown>> | null = null;
  return {
    async part(name, wait) {
      snapshot ??= readSnapshot(model.get("snapshot") as DataView | undefined);
      const saved = await snapshot;
      return name in saved ? saved[name] : kernel.ask(name, wait);
    },
  };
}

async function readSnapshot(data: DataView | undefined): Promise<Record<string, unknown>> {
  return data?.byteLength ? (JSON.parse(await gunzip(data)) as Record<string, unknown>) : {};
}

async function gunzip(data: DataView): Promise<string> {
  const bytes = new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser can't decompress (no DecompressionStream); update it");
  }
  const packed = new Response(bytes).body;
  return packed ? new Response(packed.pipeThrough(new DecompressionStream("gzip"))).text() : "";
}

/** Requests to the kernel, each with an id that its answer bears. */
export class Kernel {
  readonly #waiting = new Map<number, { done(text: string): void; fail(why: Error): void }>();
  #last = 0;
  readonly #listener = (answer: Answer, buffers: DataView[]): void => {
    void this.#receive(answer, buffers);
  };

  readonly #model: Model;

  constructor(model: Model) {
    this.#model = model;
    model.on("msg:custom", this.#listener);
  }

  async ask(part: string, wait: (note: string) => void): Promise<unknown> {
    const id = ++this.#last;
    const timer = setTimeout(() => wait(SILENT), PATIENCE);
    try {
      const text = await new Promise<string>((done, fail) => {
        this.#waiting.set(id, { done, fail });
        this.#model.send({ id, part });
      });
      return JSON.parse(text);
    } catch (error) {
      throw new Error(`${(error as Error).message || "no kernel"}. ${RERUN}`);
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(id);
    }
  }

  dispose(): void {
    this.#model.off("msg:custom", this.#listener);
    for (const { fail } of this.#waiting.values()) fail(new Error("closed"));
  }

  async #receive(answer: Answer, buffers: DataView[]): Promise<void> {
    const request = this.#waiting.get(answer.re ?? 0);
    if (!request) return;
    const [data] = buffers;
    try {
      if (answer.error !== undefined || !data) throw new Error(answer.error ?? "an empty answer");
      request.done(await gunzip(data));
    } catch (error) {
      request.fail(error as Error);
    }
  }
}

const RERUN = "Run the cell again to have it here.";
const SILENT =
  "The kernel has not answered yet: it is busy, or it was restarted since. " +
  "If it was restarted, run the cell again.";
