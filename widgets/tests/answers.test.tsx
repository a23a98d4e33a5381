/** The panes that answer: frames, symbolic sizes, checks against eager, what guards cost. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { origin, rangeText } from "../src/panes/Shapes";
import { readable } from "../src/sources";
import { record, source, mounted, settled, point, type Mounted } from "./app";

let app: Mounted;
afterEach(() => app.close());

const litLines = (): (string | undefined)[] =>
  app.all(".dnx-source [data-lit]").map((one) => one.dataset["dnxRef"]?.split(":").pop());

async function type(field: HTMLInputElement, text: string): Promise<void> {
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await settled();
}

describe("on the recorded cell", () => {
  beforeEach(async () => {
    app = await mounted(source(record()));
  });

  test("frames: the cell's own come first; torch's are there on demand", async () => {
    const pane = await app.section("Frames");
    const rows = (): HTMLElement[] => [...pane.querySelectorAll<HTMLElement>("[role=option]")];
    expect(rows()[0]?.textContent).toContain("compiledNet.forwardline 7");
    expect(pane.textContent).not.toContain("Module._call_impl");
    pane.querySelector<HTMLInputElement>("[type=checkbox]")?.click();
    await settled();
    expect(pane.textContent).toContain("Module._call_impl");
    await type(pane.querySelector<HTMLInputElement>("[type=search]")!, "inlined");
    expect(rows()[0]?.textContent).toContain("Sequential.forward");
    rows()[0]?.click();
    await settled();
    expect(pane.querySelector(".dnx-detail")?.textContent).toContain("called from line 8");
  });

  test("a frame that was compiled stands for its compile, and lights its lines", async () => {
    const pane = await app.section("Frames");
    point(pane.querySelector("[role=option]")!);
    expect(litLines()).toEqual(["8", "9"]);
  });

  test("the compiles, the cache's entries and the timeline's bars light the same lines", async () => {
    for (const [section, selector] of [
      ["", ".dnx-compile"],
      ["Timeline", ".dnx-flamebar"],
      ["Cache", ".dnx-entry:nth-of-type(2)"],
    ] as const) {
      if (section) await app.section(section);
      app.find(".dnx-root").dispatchEvent(new Event("pointerleave"));
      expect(litLines()).toEqual([]);
      point(app.find(selector));
      expect(litLines()).toEqual(["8", "9"]);
    }
  });

  test("a recompile's card lights the guard that failed, in the section beside it", async () => {
    const first = app.all("[aria-label='first section'] [role=tab]");
    first.find((one) => one.textContent?.startsWith("Guards"))?.click();
    const card = (await app.section("Recompiles")).querySelector(".dnx-card")!;
    point(card);
    const guards = app.all(".dnx-guard-rows [data-lit]");
    expect(guards.map((one) => one.textContent)).toEqual([expect.stringContaining("scale")]);
    expect(litLines()).toContain("8");
  });

  test("guards by cost: the dearest first, with their share of one check", async () => {
    const pane = await app.section("Guards");
    const order = pane.querySelector<HTMLSelectElement>("select")!;
    order.value = "cost";
    order.dispatchEvent(new Event("change", { bubbles: true }));
    await settled();
    const rows = [...pane.querySelectorAll<HTMLElement>("[role=option]")];
    const shares = rows.map((one) => parseFloat(one.textContent ?? ""));
    expect(shares.length).toBeGreaterThan(1);
    expect(shares).toEqual([...shares].sort((a, b) => b - a));
    expect(rows.some((one) => one.textContent?.includes("self.up[0].weight"))).toBe(true);
    expect(rows[0]?.dataset["dnxRef"]).toContain("guard");
    expect(pane.textContent).toMatch(/One check of all guards took \d/);
  });

  test("nothing was checked: no tab for it", () => {
    expect(app.all("[role=tab]").some((one) => one.textContent?.startsWith("Checks"))).toBe(false);
  });
});

describe("on a cell with symbolic sizes and a wrong backend", () => {
  const SYMBOLIC = 1;

  test("a size: where it comes from, what was seen, what it may be, which line asked", async () => {
    app = await mounted(source(record({}, "shapes")));
    expect((await app.section("Shapes")).textContent).toContain("There are some in 0/10/2");
    app.all(".dnx-compile")[SYMBOLIC]?.click();
    await settled();
    const card = app.find("[aria-label='second section'] .dnx-card");
    expect(card.textContent).toContain("dimension 0 of k");
    expect(card.textContent).toContain("value seen 6");
    expect(card.textContent).toContain("from 4");
    expect(card.textContent).toContain("> 3 line 3");
    point(card);
    expect(litLines()).toContain("3");
    expect(card.querySelector("[data-dnx-ref*=guard]")).toBeTruthy();
  });

  test("a size that became a constant says by which line", async () => {
    const changed = record({}, "shapes");
    const constant = { symbol: "s37", value: "6", reason: "range(k)", sources: [], frame: { file: "<cell>", line: 4 } };
    changed.compiles[SYMBOLIC]!.specializations = [constant as never];
    app = await mounted(source(changed));
    app.all(".dnx-compile")[SYMBOLIC]?.click();
    const pane = await app.section("Shapes");
    expect(pane.textContent).toContain("became the constant 6: range(k) line 4");
  });

  test("a check: what differs, by how much, first at which stage, and where it is made", async () => {
    app = await mounted(source(record({}, "shapes")));
    const pane = await app.section("Checks");
    const cards = [...pane.querySelectorAll<HTMLElement>(".dnx-card")];
    expect(cards).toHaveLength(4);
    const last = cards.at(-1)!;
    expect(last.textContent).toContain("differs attend");
    expect(last.textContent).toContain("the stage wrong");
    expect(last.querySelector("tbody")?.textContent).toContain("4 of 4 elements");
    const place = [...last.querySelectorAll<HTMLElement>("td .dnx-chip")][0];
    expect(place?.textContent).toBe("line 5");
    point(place!);
    expect(litLines()).toEqual(["5"]);
  });
});

test("sources and ranges in the user's words", () => {
  expect(origin("L['k'].size()[0]")).toBe("dimension 0 of k");
  expect(origin("L['self'].width")).toBe("self.width");
  expect(readable("L['self']._modules['up']._modules['0']._parameters['weight']")).toBe("self.up[0].weight");
  expect(readable("lazy G['__import_torch_dot_nn'].F")).toBe("lazy torch.nn.F");
  expect(["VR[4, int_oo]", "VR[-oo, oo]", "VR[2, 3]", "VR[5, 5]", "VR[-int_oo, 9]"].map(rangeText)).toEqual([
    "from 4",
    "any value",
    "2 to 3",
    "5",
    "up to 9",
  ]);
});
