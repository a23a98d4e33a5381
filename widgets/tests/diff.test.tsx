import { afterEach, describe, expect, test } from "vitest";
import type { DiffPart } from "../src/store";
import { record, source, mounted, point, LINES, type Mounted } from "./app";

const row = (change: string, old: number | null, now: number | null, text: string): DiffPart["rows"][number] => ({
  change,
  old,
  old_text: old === null ? "" : text,
  new: now,
  new_text: now === null ? "" : text,
});
const change = (kind: string, text: string, old: number[], now: number[], details: never[] = []) => ({
  change: kind,
  text,
  old,
  new: now,
  details,
});

const PART: DiffPart = {
  before: "cell [2]",
  after: "cell [3]",
  headline: "graph breaks 1 -> 0",
  rows: [
    row("same", 8, LINES.forward, "h = self.up(x).sin() * scale"),
    row("edited", 9, null, 'print("between")'),
    row("same", 10, 9, "return h.cos() + 1"),
  ],
  groups: [
    { title: "Graph breaks", summary: "1 gone", changes: [change("gone", "print in forward", [9], [])] },
    {
      title: "Graphs",
      summary: "1 changed",
      changes: [
        {
          ...change("changed", "0/0 dynamo of forward", [], []),
          details: [change("added", "cos", [], [LINES.forward])],
        },
      ],
    },
  ],
  times: [["dynamo", "20.1", "18.0"]],
};

const withDiff = (broken = ""): ReturnType<typeof source> => {
  const parts = source(record());
  return {
    part: async (name, wait) => {
      if (name !== "diff") return parts.part(name, wait);
      if (broken) throw new Error(broken);
      return PART;
    },
  };
};

let app: Mounted;
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
    const lit = app.all(".dnx-source [data-lit]").map((one) => one.dataset["dnxRef"]?.split(":").pop());
    expect(lit).toEqual([String(LINES.forward)]);
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
