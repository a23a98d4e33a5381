import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { record, source, mounted, settled, point, press, LINES, type Mounted } from "./app";

let app: Mounted;
const row = (line: number): HTMLElement =>
  app.find(`.dnx-source [data-dnx-ref$="<cell>:${line}"]`);
const litLines = (): number[] =>
  app.all(".dnx-source [data-lit]").map((one) => Number(one.dataset["dnxRef"]?.split(":").pop()));

describe("on the recorded cell", () => {
  beforeEach(async () => {
    app = await mounted(source(record()));
  });
  afterEach(() => app.close());

  test("findings stand on top and lead to their lines", () => {
    const [first] = app.all(".dnx-finding");
    expect(first?.textContent).toContain("graph-break");
    expect(first?.textContent).toContain(`line ${LINES.break}`);
    first?.click();
    expect(litLines()).toContain(LINES.break);
  });

  test("the source has its gutter: graphs, breaks, recompiles, guards", () => {
    expect(row(LINES.break).querySelector(".dnx-letters")?.textContent).toBe("B");
    expect(row(LINES.break).querySelector(".dnx-note")?.textContent).toContain("graph break");
    expect(row(LINES.forward).querySelector(".dnx-letters")?.textContent).toBe("R");
    expect(row(LINES.forward).querySelector(".dnx-strip")?.className).toContain("dnx-hue0");
    expect(row(LINES.after).querySelector(".dnx-strip")?.className).toContain("dnx-hue1");
    expect(Number(row(LINES.forward).querySelector(".dnx-guards")?.textContent)).toBeGreaterThan(0);
  });

  test("pointing at a line lights its kernel; leaving lets go", () => {
    point(row(LINES.forward));
    expect(litLines()).toEqual([LINES.forward]);
    expect(app.all(".dnx-kernel-rows [data-lit]").length).toBeGreaterThan(0);
    app.find(".dnx-root").dispatchEvent(new Event("pointerleave"));
    expect(app.lit()).toEqual([]);
  });

  test("a kernel that is clicked stays until Escape, and says what it is", async () => {
    const kernel = app.find(".dnx-kernel-rows [role=option]");
    kernel.click();
    point(row(LINES.after));
    await settled();
    expect(kernel.dataset["lit"]).toBe("now");
    expect(app.text(".dnx-status")).toContain("kernel");
    expect(app.text(".dnx-split-code")).toContain(kernel.querySelector(".dnx-c-name")?.textContent);
    press(app.find(".dnx-source [role=listbox]"), "Escape");
    expect(app.lit()).toEqual([]);
  });

  test("arrow keys move, Enter holds, and no key leaves the explorer", () => {
    let leaked = 0;
    const count = (): number => leaked++;
    document.addEventListener("keydown", count);
    const list = app.find(".dnx-source [role=listbox]");
    for (let step = 0; step < LINES.forward; step++) press(list, "ArrowDown");
    press(list, "Enter");
    document.removeEventListener("keydown", count);
    expect(row(LINES.forward).dataset["lit"]).toBe("now");
    expect(leaked).toBe(0);
  });

  test("a guard underlines the columns that made it", async () => {
    const pane = await app.section("Guards");
    const guard = [...pane.querySelectorAll<HTMLElement>(".dnx-guard-rows [role=option]")].find(
      (one) => one.textContent?.includes("EQUALS_MATCH") || one.textContent?.includes("scale"),
    );
    guard?.click();
    await settled();
    expect(row(LINES.forward).querySelector("u")?.textContent).toContain("scale");
    expect(pane.querySelector(".dnx-detail pre")?.textContent).toContain("scale");
  });

  test("guards are filtered as one types, and the one that failed comes first", async () => {
    const pane = await app.section("Guards");
    expect(pane.querySelector(".dnx-guard-rows [role=option]")?.textContent).toContain("failed");
    const field = pane.querySelector<HTMLInputElement>("input[type=search]")!;
    field.value = "weight";
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await settled();
    const rows = [...pane.querySelectorAll(".dnx-guard-rows [role=option]")];
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.every((one) => one.textContent?.includes("weight"))).toBe(true);
  });

  test("a recompile is a card: what changed, from what to what, at which call", async () => {
    const card = (await app.section("Recompiles")).querySelector(".dnx-card");
    expect(card?.textContent).toContain("scale1.0→0.5");
    expect(card?.textContent).toContain(`line ${LINES.again}`);
    expect(card?.textContent).toContain("0/0 did not fit");
  });

  test("the cache says which call hit which entry", async () => {
    const pane = await app.section("Cache");
    expect(pane.textContent).toContain(`hit at line ${LINES.again + 1}`);
    expect(pane.textContent).toContain("hit 2 times");
  });

  test("output code: a kernel's lines stand for the kernel", async () => {
    const pane = await app.section("Code");
    const rows = [...pane.querySelectorAll<HTMLElement>(".dnx-code [data-dnx-ref]")];
    expect(rows.length).toBeGreaterThan(0);
    rows.find((one) => one.dataset["dnxRef"]?.includes("kernel"))?.click();
    expect(litLines()).toContain(LINES.forward);
  });

  test("a guard's source is the user's name for it, found by that and by torch's", async () => {
    const pane = await app.section("Guards");
    const field = pane.querySelector<HTMLInputElement>("input[type=search]")!;
    const sources = async (wanted: string): Promise<(string | undefined)[]> => {
      field.value = wanted;
      field.dispatchEvent(new Event("input", { bubbles: true }));
      await settled();
      return [...pane.querySelectorAll<HTMLElement>(".dnx-c-source")].map((one) => one.textContent?.trim());
    };
    const found = await sources("self.up");
    expect(found).toContain("self.up");
    expect(await sources("l['self']._modules['up']")).toEqual(expect.arrayContaining(["self.up"]));
  });

  test("bytecode stands beside what replaced it", async () => {
    const pane = await app.section("Bytecode");
    const lists = [...pane.querySelectorAll<HTMLElement>(".dnx-list")];
    expect(lists.map((one) => one.getAttribute("aria-label"))).toEqual([
      "bytecode as written",
      "bytecode as compiled",
    ]);
    const load = [...lists[0]!.querySelectorAll<HTMLElement>("[role=option]")].find((one) =>
      one.textContent?.includes("scale"),
    );
    load?.click();
    expect(litLines()).toContain(LINES.forward);
  });

  test("modified bytecode leads to the resume function that it calls", async () => {
    const pane = await app.section("Bytecode");
    const after = pane.querySelector<HTMLElement>("[role=grid]")!;
    after.scrollTop = 90 * 19;
    after.dispatchEvent(new Event("scroll"));
    await settled();
    const load = [...after.querySelectorAll<HTMLElement>("[role=row]")].find((one) =>
      one.textContent?.includes("__resume_at"),
    );
    point(load!);
    expect(litLines()).toEqual([LINES.after]);
    const compiles = app.all(".dnx-compile[data-lit]").map((one) => one.textContent?.slice(0, 3));
    expect(compiles).toEqual(["1/0"]);
  });

  test("the timeline has a strip for every compile", async () => {
    const pane = await app.section("Timeline");
    expect(pane.querySelectorAll(".dnx-flame").length).toBe(3);
    expect(pane.querySelector(".dnx-bars")?.getAttribute("aria-label")).toMatch(/^0\/0: .* s/);
  });

  test("choosing a compile changes its panes; holding something of another one, too", async () => {
    const pressed = (): string | undefined =>
      app.find(".dnx-compile[aria-pressed=true]").textContent?.slice(0, 3);
    expect(pressed()).toBe("0/0");
    row(LINES.after).click();
    await settled();
    expect(pressed()).toBe("1/0");
  });

  test("the second section closes and opens again", async () => {
    app.find(".dnx-close").click();
    await settled();
    expect(app.all(".dnx-stage").length).toBe(1);
    app.find(".dnx-reopen").click();
    await settled();
    expect(app.all(".dnx-stage").length).toBe(2);
  });

  test("another file opens in the source pane", async () => {
    const tabs = app.all(".dnx-source [role=tab]");
    tabs.find((one) => one.textContent === "linear.py")?.click();
    await settled();
    expect(app.find(".dnx-source [role=listbox]").getAttribute("aria-label")).toMatch(/linear.py$/);
  });

  test("the host hears what is held, and of its end", async () => {
    const heard: string[][] = [];
    const other = await mounted(source(record()), {
      onSelect: (refs) => heard.push(refs.map((ref) => ref[1])),
    });
    other.find(".dnx-kernel-rows [role=option]").click();
    expect(heard[0]?.[0]).toBe("kernel");
    expect(heard[0]).toContain("line");
    press(other.find(".dnx-source [role=listbox]"), "Escape");
    expect(heard.at(-1)).toEqual([]);
    other.close();
  });
});

describe("on what is missing or broken", () => {
  afterEach(() => app.close());

  test("an empty cell says so", async () => {
    app = await mounted(source(record({ compiles: [], calls: [], links: [], findings: [] })));
    expect(app.text(".dnx-stage")).toContain("Nothing was compiled");
    expect(app.text(".dnx-findings")).toContain("No findings");
  });

  test("a part that fails costs its own pane", async () => {
    app = await mounted(source(record(), { code: "the kernel is gone" }));
    const pane = await app.section("Code");
    expect(pane.querySelector("[role=alert]")?.textContent).toContain("the kernel is gone");
    expect((await app.section("Guards")).querySelectorAll("[role=option]").length).toBeGreaterThan(0);
  });

  test("without links it opens and says that nothing lights up", async () => {
    app = await mounted(source(record(), { links: "too large" }));
    expect(app.text(".dnx-warning")).toContain("too large");
    expect(app.all(".dnx-source [role=option]").length).toBeGreaterThan(0);
  });

  test("without its core it says what to do", async () => {
    app = await mounted(source(record(), { core: "Run the cell again." }));
    expect(app.text("[role=alert]")).toContain("Run the cell again.");
  });

  test("a newer schema is told and shown as far as it is known", async () => {
    const newer = { ...record({ schema: 99 }), surprising: [1] };
    app = await mounted(source(newer));
    expect(app.text("[role=alert]")).toContain("schema 99");
    expect(app.all(".dnx-finding").length).toBeGreaterThan(0);
  });

  test("a pane that breaks leaves the others", async () => {
    const broken = record();
    broken.compiles = broken.compiles.map((one) => ({ ...one, stages: [null] as never }));
    app = await mounted(source(broken));
    const pane = await app.section("Timeline");
    expect(pane.querySelector("[role=alert]")?.textContent).toContain("Timeline");
    expect(app.all(".dnx-source [role=option]").length).toBeGreaterThan(0);
  });

  test("text from a record is text", async () => {
    const evil = "<img src=x onerror=alert(1)>";
    const [finding] = record().findings;
    app = await mounted(
      source(
        record({
          source: `%%dynamo\n${evil}`,
          name: evil,
          findings: [{ ...finding!, message: evil, advice: evil }],
        }),
      ),
    );
    expect(app.all("img").length).toBe(0);
    expect(app.text(".dnx-finding")).toContain(evil);
  });
});
