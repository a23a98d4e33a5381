import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { GraphPane } from "../src/graph/GraphPane";
import { nodeRef, type CellRecord } from "../src/record";
import { Selection } from "../src/selection";
import { recorded } from "./graphs";

const SCREEN = { clientWidth: 900, clientHeight: 600 };

let record: CellRecord;
let selection: Selection;
let root: HTMLElement;
const onStage = vi.fn();

const frame = (): Promise<void> => act(() => new Promise((done) => requestAnimationFrame(() => done())));
const one = <T extends Element = HTMLElement>(query: string): T => root.querySelector<T>(query)!;
const all = (query: string): Element[] => [...root.querySelectorAll(query)];
const text = (query: string): string => one(query).textContent ?? "";
const button = (name: string): HTMLButtonElement =>
  [...root.querySelectorAll("button")].find((each) => each.textContent === name)!;
const press = (element: Element, key: string, more: KeyboardEventInit = {}): boolean =>
  element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));

async function show(graphName: string): Promise<void> {
  const compile = record.compiles[0]!;
  const graph = compile.graphs.find((each) => each.name === graphName)!;
  await act(() =>
    render(
      <GraphPane
        record={record}
        compile={compile}
        graph={graph}
        selection={selection}
        colour="module"
        onStage={onStage}
      />,
      root,
    ),
  );
  await frame();
}

/** What a pointer does at the middle of a box's element. */
async function pointer(kind: string, element: Element): Promise<void> {
  const at = /translate\(([-\d.]+) ([-\d.]+)\)/.exec(element.getAttribute("transform")!)!;
  const view = /translate\(([-\d.]+) ([-\d.]+)\) scale\(([-\d.]+)\)/.exec(one(".dnx-g-svg > g").getAttribute("transform")!)!;
  const [x, y, scale] = view.slice(1).map(Number) as [number, number, number];
  const place = { clientX: x + (Number(at[1]) + 5) * scale, clientY: y + (Number(at[2]) + 5) * scale };
  const event = new MouseEvent(kind, { ...place, bubbles: true, button: 0 });
  Object.assign(event, { pointerId: 1 });
  await act(() => void element.dispatchEvent(event));
}

async function click(element: Element): Promise<void> {
  await pointer("pointerdown", element);
  await pointer("pointerup", element);
  await frame();
}

beforeEach(() => {
  for (const [name, value] of Object.entries(SCREEN)) {
    Object.defineProperty(HTMLElement.prototype, name, { configurable: true, get: () => value });
  }
  HTMLCanvasElement.prototype.getContext = () => null;
  record = recorded("encoder");
  selection = new Selection(record.links);
  root = document.createElement("div");
  document.body.append(root);
});

afterEach(async () => {
  await act(() => render(null, root));
  root.remove();
  onStage.mockClear();
});

describe("the drawing", () => {
  it("paints the boxes that are on the screen, and no others", async () => {
    await show("forward");
    const shown = all("[data-node]").length;
    expect(shown).toBeGreaterThan(5);
    expect(shown).toBeLessThan(60);
    expect(text("[data-group='layers.0']") + text(".dnx-g-heading")).toContain("TransformerEncoderLayer");
  });

  it("points at a node, and lets go of it", async () => {
    await show("dynamo");
    await pointer("pointermove", one("[data-node='query']"));
    expect(selection.current.value).toEqual(nodeRef(record.compiles[0]!, "dynamo", "query"));
    expect(text(".dnx-g-card")).toContain("transpose");
    await act(() => void one(".dnx-g-stage").dispatchEvent(new MouseEvent("pointerleave")));
    expect(selection.current.value).toBeNull();
    expect(one(".dnx-g-card")).toBeNull();
  });

  it("pins with a click; the card tells everything and leads to the other stages", async () => {
    await show("dynamo");
    await click(one("[data-node='query']"));
    expect(selection.pinned.value?.[2]).toBe("dynamo/query");
    const card = text(".dnx-g-card");
    for (const told of ["[8, 2, 32]", "float32", "cpu", "stride", "activation.py:1460", "MultiheadAttention"]) {
      expect(card).toContain(told);
    }
    const counterpart = all(".dnx-g-card button").find((each) => (each as HTMLElement).title.startsWith("forward/"))!;
    const wanted = (counterpart as HTMLElement).title;
    await act(() => (counterpart as HTMLElement).click());
    expect(onStage).toHaveBeenCalledWith("forward");
    expect(selection.pinned.value?.[2]).toBe(wanted);
  });

  it("lights what the selection lights, also in closed modules", async () => {
    await show("forward");
    const line = record.links.find(([kind, a]) => kind === "node-line" && a[2] === "dynamo/x_4")![2];
    await act(() => button("close all").click());
    await act(() => selection.set(line, "hover"));
    await frame();
    expect(one("[data-group='layers.0']").getAttribute("class")).toContain("dnx-g-is-lit");
    await act(() => selection.set(null, "hover"));
    await frame();
    expect(all(".dnx-g-is-lit")).toEqual([]);
  });

  it("opens and closes modules", async () => {
    await show("forward");
    await act(() => button("close all").click());
    await frame();
    expect(all("[data-node]").length).toBe(2);
    await click(one("[data-group='layers.0']"));
    expect(one("[data-group='self_attn']")).not.toBeNull();
    await act(() => button("open all").click());
    await frame();
    expect(all(".dnx-g-closed")).toEqual([]);
  });

  it("brings a pinned node to the screen, whatever hides it", async () => {
    await show("forward");
    await act(() => button("close all").click());
    const last = record.compiles[0]!.graphs.find((each) => each.name === "forward")!.nodes.at(-2)!;
    await act(() => selection.pin(nodeRef(record.compiles[0]!, "forward", last.name)));
    await frame();
    expect(one(`[data-node='${last.name}']`).getAttribute("class")).toContain("dnx-g-is-chosen");
  });
});

describe("keys in the drawing", () => {
  it("move, open, hold, close and let go; none reaches the notebook", async () => {
    await show("forward");
    const leaked = vi.fn();
    document.body.addEventListener("keydown", leaked);
    await act(() => button("close all").click());
    const stage = one(".dnx-g-stage");
    await act(() => void press(stage, "ArrowDown"));
    await act(() => void press(stage, "ArrowDown"));
    expect(text(".dnx-g-said")).toBe("module layers.0 TransformerEncoderLayer, 65 nodes, closed");
    await act(() => void press(stage, "Enter"));
    await frame();
    await act(() => void press(stage, "ArrowDown"));
    expect(text(".dnx-g-said")).toContain("self_attn");
    await act(() => void press(stage, "End"));
    await act(() => void press(stage, "Enter"));
    expect(selection.pinned.value?.[2]).toBe("forward/output");
    await act(() => void press(stage, "Escape"));
    expect(selection.pinned.value).toBeNull();
    expect(leaked).not.toHaveBeenCalled();
    document.body.removeEventListener("keydown", leaked);
  });

  it("slash goes to the search", async () => {
    await show("forward");
    await act(() => void press(one(".dnx-g-stage"), "/"));
    expect(document.activeElement).toBe(one(".dnx-g-search input"));
  });
});

describe("search", () => {
  const type = async (query: string): Promise<void> => {
    const input = one<HTMLInputElement>(".dnx-g-search input");
    input.value = query;
    await act(() => void input.dispatchEvent(new Event("input", { bubbles: true })));
    await frame();
  };

  it("dims the rest as one types, and Enter goes from find to find", async () => {
    await show("forward");
    await type("relu");
    expect(text(".dnx-g-search")).toContain("2 found");
    expect(all("[data-node].dnx-g-is-dim").length).toBeGreaterThan(3);
    await act(() => void press(one(".dnx-g-search input"), "Enter"));
    await frame();
    expect(one("[data-node='relu']").getAttribute("class")).not.toContain("dim");
    await type("");
    expect(all(".dnx-g-is-dim")).toEqual([]);
  });

  it("filters the outline", async () => {
    await show("forward");
    await act(() => button("outline").click());
    await type("relu");
    expect(all("[role=treeitem]").map((row) => row.querySelector(".dnx-g-name")!.textContent)).toEqual([
      "layers.0",
      "relu",
      "layers.1",
      "relu_1",
    ]);
    await type("nothing such");
    expect(text(".dnx-g-none")).toBe("Nothing found.");
  });
});

describe("the outline", () => {
  beforeEach(async () => {
    await show("forward");
    await act(() => button("outline").click());
  });

  it("is a tree that says level, state and what each row is", () => {
    const tree = one("[role=tree]");
    expect(tree.getAttribute("aria-label")).toContain("forward graph");
    const group = one("[role=treeitem][aria-expanded]");
    expect(group.getAttribute("aria-level")).toBe("1");
    expect(group.getAttribute("aria-label")).toContain("module layers.0 TransformerEncoderLayer");
    expect(all("[role=treeitem]").length).toBeLessThan(60);
  });

  it("is walked with the arrow keys", async () => {
    const tree = one("[role=tree]");
    await act(() => tree.focus());
    await act(() => void press(tree, "ArrowDown"));
    await act(() => void press(tree, "ArrowLeft"));
    expect(one("[data-current]").getAttribute("aria-expanded")).toBe("false");
    await act(() => void press(tree, "ArrowRight"));
    await act(() => void press(tree, "ArrowRight"));
    await act(() => void press(tree, "ArrowRight"));
    expect(one("[data-current] .dnx-g-name").textContent).toBe("permute");
    expect(tree.getAttribute("aria-activedescendant")).toBe(one("[data-current]").id);
    await act(() => void press(tree, "Enter"));
    expect(selection.pinned.value?.[2]).toBe("forward/permute");
    expect(one("[aria-selected=true] .dnx-g-name").textContent).toBe("permute");
  });
});

it("says the symbolic sizes of a node", async () => {
  record = recorded("dynamic");
  selection = new Selection(record.links);
  await show("dynamo");
  await click(one("[data-node='scores']"));
  expect(text(".dnx-g-card")).toMatch(/symbols.*s\d+/);
});

it("shows text of the record as text", async () => {
  const graph = record.compiles[0]!.graphs.find((each) => each.name === "dynamo")!;
  graph.nodes.find((each) => each.name === "query")!.target = "<img src=x onerror=alert(1)>";
  await show("dynamo");
  await click(one("[data-node='query']"));
  expect(one("img")).toBeNull();
  expect(text(".dnx-g-card")).toContain("<img src=x");
});
