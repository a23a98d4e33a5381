import { afterEach, describe, expect, test } from "vitest";
import { beforeRef, refKey, type Ref } from "../src/selection";
import { splitRecord, type Change, type DiffPart, type PackedLinks, type SentDiff, type Source } from "../src/store";
import { record, source, mounted, point, press, settled, LINES, type Mounted } from "./app";

const row = (change: string, old: number | null, now: number | null, text: string): DiffPart["rows"][number] => ({
  change,
  old,
  old_text: old === null ? "" : text,
  new: now,
  new_text: now === null ? "" : text,
});
const change = (
  kind: string,
  text: string,
  old: number[],
  now: number[],
  refs: Partial<Pick<Change, "refs_before" | "refs_after" | "details">> = {},
): Change => ({ change: kind, text, old, new: now, refs_before: [], refs_after: [], details: [], ...refs });

const cell = (line: number): Ref => ["", "line", `<cell>:${line}`];
const node = (name: string): Ref => ["0/0", "node", `dynamo/${name}`];
const gone: Ref = ["0/0", "break", "0"];
/** A link list as it is sent: each ref once. */
const packed = (...pairs: [Ref, Ref][]): PackedLinks => ({
  refs: pairs.flat(),
  pairs: pairs.flat().map((_, index) => index),
});

const PART: SentDiff = {
  before: "cell [2]",
  after: "cell [3]",
  headline: "graph breaks 1 -> 0",
  rows: [
    row("same", 8, LINES.forward, "h = self.up(x).sin() * scale"),
    row("edited", 9, null, 'print("between")'),
    row("same", 10, 9, "return h.cos() + 1"),
  ],
  groups: [
    {
      title: "Graph breaks",
      summary: "1 gone",
      changes: [change("gone", "print in forward", [9], [], { refs_before: [gone] })],
    },
    {
      title: "Graphs",
      summary: "1 changed",
      changes: [
        change("changed", "0/0 dynamo of forward", [], [], {
          details: [
            change("added", "cos", [], [LINES.forward]),
            change("changed", "sin: f32[4] -> f32[8]", [], [LINES.forward], {
              refs_before: [node("sin")],
              refs_after: [node("sin")],
            }),
          ],
        }),
      ],
    },
  ],
  times: [["dynamo", "20.1", "18.0"]],
  links: packed([node("sin"), cell(8)], [gone, cell(9)]),
  counterparts: packed([cell(8), cell(LINES.forward)], [cell(10), cell(9)], [node("sin"), node("sin")]),
};

const withDiff = (broken = "", part = PART): ReturnType<typeof source> => {
  const parts = source(record());
  return {
    part: async (name, wait) => {
      if (name !== "diff") return parts.part(name, wait);
      if (broken) throw new Error(broken);
      return part;
    },
  };
};

let app: Mounted;
const sourceLines = (): number[] =>
  app.all(".dnx-source [data-lit]").map((one) => Number(one.dataset["dnxRef"]?.split(":").pop()));
const halves = (pane: HTMLElement, row: number): HTMLElement[] => [
  ...pane.querySelectorAll("[role=option]")[row]!.querySelectorAll<HTMLElement>(".dnx-side"),
];
afterEach(() => app.close());

describe("the difference from the report before", () => {
  test("both sources stand side by side, the edited line marked", async () => {
    app = await mounted(withDiff(), { before: "cell [2]" });
    const pane = await app.section("Diff");
    expect(pane.querySelector(".dnx-tools")?.textContent).toContain("cell [2] → cell [3]");
    const rows = [...pane.querySelectorAll<HTMLElement>(".dnx-both [role=option]")];
    expect(rows).toHaveLength(3);
    expect(rows.map((one) => one.querySelectorAll(".dnx-gone").length)).toEqual([0, 1, 0]);
    expect(rows[1]?.textContent).toContain("between");
  });

  test("a change lights its line; one that is gone names the old one", async () => {
    app = await mounted(withDiff(), { before: "cell [2]" });
    const pane = await app.section("Diff");
    const entries = [...pane.querySelectorAll<HTMLElement>(".dnx-entry")];
    expect(entries[0]?.textContent).toContain("line 9 before");
    point(entries.find((one) => one.textContent?.startsWith("added"))!);
    expect(sourceLines()).toEqual([LINES.forward]);
  });

  test("pointing at a line of the report before marks what belongs to it on both sides", async () => {
    app = await mounted(withDiff(), { before: "cell [2]" });
    const pane = await app.section("Diff");
    const [old, now] = halves(pane, 0);
    point(old!);
    expect([old!.dataset["lit"], now!.dataset["lit"]]).toEqual(["now", "yes"]);
    expect(sourceLines()).toEqual([LINES.forward]);
    const chips = [...pane.querySelectorAll<HTMLElement>(".dnx-chip[data-lit]")];
    expect(chips.map((one) => one.textContent)).toEqual([
      `line ${LINES.forward}`,
      `line ${LINES.forward}`,
      "before 0/0",
      "now 0/0",
    ]);
    await settled();
    expect(app.text(".dnx-status")).toMatch(/^before: line 8 with .*; before: 1 node$/);
  });

  test("a line of this report marks its counterpart; its own panes take no ref of the other", async () => {
    const told: Ref[][] = [];
    app = await mounted(withDiff(), { before: "cell [2]", onSelect: (refs) => told.push(refs) });
    const pane = await app.section("Diff");
    const [old, now] = halves(pane, 0);
    now!.click();
    await settled();
    expect([old!.dataset["lit"], now!.dataset["lit"]]).toEqual(["yes", "now"]);
    expect(app.all(".dnx-source [data-lit=now]")).toHaveLength(1);
    const keys = told.at(-1)!.map((ref) => ref[0]);
    expect(keys).toContain("0/0");
    expect(keys.some((key) => key.startsWith("~"))).toBe(false);
  });

  test("what is gone is a break of the report before, not of this one", async () => {
    app = await mounted(withDiff(), { before: "cell [2]" });
    const pane = await app.section("Diff");
    const chip = [...pane.querySelectorAll<HTMLElement>(".dnx-chip")].find(
      (one) => one.dataset["dnxRef"] === refKey(beforeRef(gone)),
    )!;
    const compile = app.text(".dnx-compile[aria-pressed=true]");
    chip.click();
    await settled();
    expect(halves(pane, 1)[0]!.dataset["lit"]).toBe("yes");
    expect(sourceLines()).toEqual([]); // this report has a break 0 of 0/0, too: it stays dark
    expect(app.text(".dnx-compile[aria-pressed=true]")).toBe(compile);
    expect(app.text(".dnx-status")).toContain("before: graph break in 0/0 with before: 1 line");
  });

  test("the arrow keys go through both sources, side by side", async () => {
    app = await mounted(withDiff(), { before: "cell [2]" });
    const pane = await app.section("Diff");
    const list = pane.querySelector<HTMLElement>(".dnx-both")!;
    press(list, "ArrowDown");
    await settled();
    expect(app.text(".dnx-status")).toMatch(new RegExp(`^line ${LINES.forward} `));
    press(list, "ArrowLeft");
    await settled();
    expect(app.text(".dnx-status")).toMatch(/^before: line 8/);
    press(list, "ArrowDown");
    press(list, "ArrowDown");
    press(list, "Enter");
    await settled();
    expect(halves(pane, 2).map((one) => one.dataset["lit"])).toEqual(["now", "yes"]);
    press(list, "ArrowRight");
    press(list, "Enter");
    await settled();
    expect(halves(pane, 2).map((one) => one.dataset["lit"])).toEqual(["yes", "now"]);
  });

  test("the same source is shown, too: what belongs to its lines may differ", async () => {
    const rows = PART.rows.filter((one) => one.change === "same");
    app = await mounted(withDiff("", { ...PART, rows }), { before: "cell [2]" });
    const pane = await app.section("Diff");
    expect(pane.querySelector(".dnx-tools")?.textContent).toContain("the same source");
    expect(pane.querySelectorAll(".dnx-side")).toHaveLength(4);
  });

  test("it is there, too, where nothing is compiled any more", async () => {
    const none = splitRecord(record({ compiles: [], calls: [], links: [], findings: [] }));
    const from: Source = { part: async (name) => (name === "diff" ? PART : none[name]) };
    app = await mounted(from, { before: "cell [2]" });
    expect((await app.section("Diff")).textContent).toContain("print in forward");
    expect((await app.section("Guards")).textContent).toContain("Nothing was compiled");
  });

  test("the kernel that is gone costs this pane only, and it says what to do", async () => {
    app = await mounted(withDiff("no kernel. Run the cell again."), { before: "cell [2]" });
    expect((await app.section("Diff")).textContent).toContain("Run the cell again");
  });

  test("there is no tab for it without a report before", async () => {
    app = await mounted(withDiff());
    expect(app.all("[role=tab]").some((one) => one.textContent === "Diff")).toBe(false);
  });
});
