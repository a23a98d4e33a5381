import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { completeRecord, type Compile } from "../src/record";
import { isChanged, nodesOf, Walk } from "../src/steps";
import { record, source, mounted, settled, press, shiftPress, LINES, type Mounted } from "./app";

const compile = (): Compile => completeRecord(record()).compiles[0]!;
const walk = (): Walk => new Walk(compile().steps!, new Set(["torch/nn/modules/linear.py"]));

describe("the walk", () => {
  const all = walk();
  const named = (index: number): string =>
    `${all.instruction(index).opname} ${all.instruction(index).argument}`.trim();
  const find = (what: string): number => all.steps.steps.findIndex((_, index) => named(index) === what);
  const call = find("CALL"); // of self.up, which is inlined

  test("every call but the frame itself was made by a step", () => {
    expect(all.caller(0)).toBe(-1);
    expect(all.callers).toContain(call);
    expect(all.depth(call)).toBe(0);
    expect(all.depth(call + 1)).toBe(1);
    expect([...all.callersOf(call + 1)]).toEqual([call]);
  });
  test("steps over a call lead past all that is inlined, both ways", () => {
    const next = all.over(call, 1);
    expect(next).toBeGreaterThan(call + 1);
    expect(all.depth(next)).toBe(0);
    expect(all.over(next, -1)).toBe(call);
    expect(all.over(all.length - 1, 1)).toBe(all.length);
  });
  test("closed calls hide what is in them, open ones show one level", () => {
    const closed = all.visible(new Set());
    expect(closed.every((step) => all.depth(step) === 0)).toBe(true);
    const open = all.visible(new Set([call]));
    expect(Math.max(...open.map((step) => all.depth(step)))).toBe(1);
    expect(all.visible(all.callers)).toHaveLength(all.length);
  });
  test("a store changes one local, and takes the top of the stack", () => {
    const store = find("STORE_FAST h");
    const [before, after] = all.states(store);
    expect(before.stack).toEqual(["tensor h"]);
    expect(after?.stack).toEqual([]);
    expect(all.locals(store).filter(isChanged)).toEqual([
      { name: "h", before: null, after: "tensor h" },
    ]);
  });
  test("a value names its node", () => {
    expect(all.nodeOf("tensor h")).toBe("h");
    expect(all.nodeOf("tensor gone")).toBe("");
    expect(all.nodeOf("constant 1")).toBe("");
  });
  test("a step's place is the innermost that can be shown", () => {
    const inLinear = all.steps.steps.findIndex((step) => nodesOf(step).includes("input_1"));
    expect(all.place(inLinear)?.file).toBe("torch/nn/modules/linear.py");
    expect(all.place(call + 1)?.file).toBe("<cell>"); // container.py is not at hand
  });
});

describe("the pane", () => {
  let app: Mounted;
  let pane: HTMLElement;
  beforeEach(async () => {
    app = await mounted(source(record()));
    pane = await app.section("Steps");
  });
  afterEach(() => app.close());

  const list = (): HTMLElement => pane.querySelector<HTMLElement>(".dnx-steps")!;
  const rows = (): HTMLElement[] => [...list().querySelectorAll<HTMLElement>("[role=option]")];
  const now = (): HTMLElement => list().querySelector<HTMLElement>("[data-lit=now]")!;
  const litLines = (): (string | undefined)[] =>
    app.all(".dnx-source [data-lit]").map((one) => one.dataset["dnxRef"]?.split(":").pop());
  const until = async (what: RegExp, key: (one: HTMLElement) => void): Promise<void> => {
    for (let turn = 0; turn < 80 && !what.test(now()?.textContent ?? ""); turn++) {
      key(list());
      await settled();
    }
    expect(now()?.textContent).toMatch(what);
  };
  const over = (one: HTMLElement): unknown => shiftPress(one, "ArrowDown");

  test("shows the frame's own instructions, calls closed", () => {
    expect(rows()[0]?.textContent).toContain("RESUME");
    expect(rows().some((one) => one.textContent?.includes("JUMP_BACKWARD"))).toBe(false);
    expect(pane.textContent).toContain("step 1 of");
  });

  test("stepping with Shift goes over calls and moves the source", async () => {
    await until(/STORE_FASTh/, over);
    expect(litLines()).toContain(String(LINES.forward));
    expect(rows().some((one) => one.textContent?.includes("JUMP_BACKWARD"))).toBe(false);
    const changed = pane.querySelector(".dnx-changed");
    expect(changed?.textContent).toContain("h");
    expect(changed?.textContent).toContain("tensor h");
  });

  test("an arrow steps into a call, which opens; left leaves and closes it", async () => {
    await until(/▸CALL/, over);
    const call = now().dataset["dnxRef"];
    press(list(), "ArrowDown");
    await settled();
    expect(pane.querySelector(".dnx-tools")?.textContent).toContain("Sequential.forward");
    press(list(), "ArrowLeft");
    await settled();
    expect(now().dataset["dnxRef"]).toBe(call);
    press(list(), "ArrowLeft");
    await settled();
    expect(rows().some((one) => one.textContent?.includes("FOR_ITER"))).toBe(false);
  });

  test("a step that adds a node lights it in the graph, its kernel, and links to it", async () => {
    await until(/BINARY_OP\*/, over);
    const node = [...pane.querySelectorAll<HTMLElement>(".dnx-stack .dnx-chip")].find(
      (one) => one.textContent === "h",
    );
    node?.click();
    await settled();
    expect(app.text(".dnx-status")).toContain("node h");
    expect(list().querySelector("[data-lit=yes]")?.textContent).toContain("BINARY_OP");
  });

  test("it says where it stopped and why", async () => {
    press(list(), "End");
    await settled();
    expect(pane.textContent).toContain("stopped here");
    expect(pane.textContent).toContain("does not know how to trace builtin operator");
  });

  test("what is held elsewhere leads to its step, in a call that opens", async () => {
    app.close();
    app = await mounted(source(record()));
    pane = await app.section("Steps");
    const kernels = app.all("[aria-label='first section'] [role=tab]");
    kernels.find((one) => one.textContent?.startsWith("Guards"))?.click();
    await settled();
    const field = app.find("[aria-label='filter guards']") as HTMLInputElement;
    field.value = "['weight']";
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await settled();
    app.find(".dnx-guard-rows [role=option]").click();
    await settled();
    expect(pane.querySelector(".dnx-tools")?.textContent).toContain("Linear.forward");
    expect(list().querySelector("[data-lit=yes]")).toBeTruthy();
  });

  test("a compile without steps says so", async () => {
    app.close();
    const bare = record();
    bare.compiles = bare.compiles.map(({ steps, ...one }) => one as Compile);
    app = await mounted(source(bare));
    expect((await app.section("Steps")).textContent).toContain("not recorded");
  });
});
