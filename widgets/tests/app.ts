/** The explorer mounted on the record that the Python tests read, too. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { mount, type Host } from "../src/app";
import type { CellRecord } from "../src/record";
import { splitRecord, Store, type Source } from "../src/store";

const DATA = fileURLToPath(import.meta.url).replace(/widgets\/tests\/[^/]*$/, "tests/data/");

/** The lines of the recorded cell. */
export const LINES = { forward: 8, break: 9, after: 10, again: 14 };

export function record(changes: Partial<CellRecord> = {}, name = "cell"): CellRecord {
  const data = gunzipSync(readFileSync(`${DATA}${name}.json.gz`));
  return { ...JSON.parse(new TextDecoder().decode(data)).record, ...changes };
}

/** Parts of a record that come at once; those named in `broken` never do. */
export function source(of: CellRecord, broken: Record<string, string> = {}): Source {
  const parts = splitRecord(of);
  return {
    async part(name) {
      const why = broken[name] ?? broken[name.split("|")[0] ?? ""];
      if (why) throw new Error(why);
      return JSON.parse(JSON.stringify(parts[name]));
    },
  };
}

export interface Mounted {
  root: HTMLElement;
  find(selector: string): HTMLElement;
  all(selector: string): HTMLElement[];
  text(selector: string): string;
  /** Choose a section in the second slot. */
  section(label: string): Promise<HTMLElement>;
  lit(): string[];
  close(): void;
}

export async function mounted(from: Source, host: Partial<Host> = {}): Promise<Mounted> {
  const root = document.createElement("div");
  document.body.append(root);
  const close = mount(root, new Store(from), { headline: "1 graph", ...host });
  await settled();
  const all = (selector: string): HTMLElement[] => [...root.querySelectorAll<HTMLElement>(selector)];
  const find = (selector: string): HTMLElement => {
    const [found] = all(selector);
    if (!found) throw new Error(`nothing fits ${selector} in ${root.textContent}`);
    return found;
  };
  const section = async (label: string): Promise<HTMLElement> => {
    const tabs = all("[aria-label='second section'] [role=tab]");
    tabs.find((tab) => tab.textContent?.startsWith(label))?.click();
    await settled();
    return find("[aria-label='second section']");
  };
  return {
    root,
    find,
    all,
    text: (selector) => find(selector).textContent ?? "",
    section,
    lit: () => all("[data-lit]").map((one) => one.dataset["dnxRef"] ?? ""),
    close: () => {
      close();
      root.remove();
    },
  };
}

/** Wait until parts have come and everything that follows is drawn. */
export const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 6; turn++) await new Promise((done) => setTimeout(done, 0));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))); // effects
};

export const point = (element: Element): void => {
  element.dispatchEvent(new Event("pointerover", { bubbles: true }));
};

export const press = (element: Element, key: string): boolean =>
  element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));

/** Press a key as a person does who holds Shift. */
export const shiftPress = (element: Element, key: string): boolean =>
  element.dispatchEvent(
    new KeyboardEvent("keydown", { key, shiftKey: true, bubbles: true, cancelable: true }),
  );
