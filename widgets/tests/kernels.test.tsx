/** Graph passes, what is known of kernels, targets, and modified bytecode that leads elsewhere. */
import { afterEach, describe, expect, test } from "vitest";
import { render } from "preact";
import { binaryFacts } from "../src/panes/TargetPages";
import { shareText } from "../src/quantities";
import { Table } from "../src/ui";
import { mounted, point, press, record, settled, source, type Mounted } from "./app";

let app: Mounted;
afterEach(() => app.close());

const litLines = (): number[] =>
  app.all(".dnx-source [data-lit]").map((one) => Number(one.dataset["dnxRef"]?.split(":").pop()));
const tab = async (label: string): Promise<void> => {
  app.all("[aria-label='second section'] [role=tab]").find((one) => one.textContent?.startsWith(label))!.click();
  await settled();
};
const compile = async (key: string): Promise<void> => {
  app.all(".dnx-compile").find((one) => one.textContent?.startsWith(key))!.click();
  await settled();
};

describe("graph passes", () => {
  test("a pass shows its nodes before and after, and lights their line", async () => {
    app = await mounted(source(record({}, "passes")));
    const pane = await app.section("Passes");
    expect(pane.querySelector("summary")?.textContent).toBe(
      "post_grad_custom_pre_pass.inference twice: 1 removed, 1 added, 1 changed",
    );
    const rows = [...pane.querySelectorAll<HTMLTableRowElement>("tbody tr")];
    expect(rows.map((one) => one.cells[1]?.textContent)).toEqual(
      expect.arrayContaining(["removed", "added", "changed"]),
    );
    const changed = rows.find((one) => one.cells[1]?.textContent === "changed")!;
    expect(changed.querySelector(".dnx-gone")?.textContent).toContain("sin");
    expect(changed.querySelector(".dnx-new")?.textContent).toContain("add");
    point(changed);
    expect(litLines()).toEqual([4]);
  });

  test("one that failed is first and open, with what it raised", async () => {
    const [whole] = [record({}, "passes")];
    const [fine, failed] = whole.compiles;
    const both = [...(fine?.passes ?? []), ...(failed?.passes ?? [])];
    app = await mounted(source({ ...whole, compiles: [{ ...fine!, passes: both }] }));
    const [first, other] = [...(await app.section("Passes")).querySelectorAll<HTMLDetailsElement>("details")];
    expect(first?.open).toBe(true);
    expect(first?.querySelector(".dnx-err")?.textContent).toBe("raised ValueError: this graph is not mine");
    expect(other?.open).toBe(false);
  });

  test("there is no tab where no compile has any; a compile without says where some are", async () => {
    app = await mounted(source(record()));
    expect(app.all("[role=tab]").some((one) => one.textContent?.startsWith("Passes"))).toBe(false);
    app.close();
    const whole = record({}, "passes");
    whole.compiles = whole.compiles.map((one, at) => ({ ...one, passes: at ? [] : one.passes }));
    app = await mounted(source(whole));
    await app.section("Passes");
    await compile("1/0");
    expect(app.text("[aria-label='second section'] .dnx-empty")).toBe(
      "No pass changed a graph of 1/0. There are some in 0/0",
    );
  });
});

describe("kernels of this machine", () => {
  test("memory, operations, time and what was not fused", async () => {
    app = await mounted(source(record({}, "gpu")));
    const pane = await app.section("Kernels");
    expect(pane.textContent).toContain("2 launches in place of 5 operators of eager");
    const kernel = [...pane.querySelectorAll<HTMLElement>(".dnx-kernel-rows [role=option]")].find((one) =>
      one.textContent?.includes("softmax"),
    )!;
    expect(kernel.textContent).toMatch(/\d µs.*164\.9 kB/);
    kernel.click();
    await settled();
    await tab("facts");
    const facts = Object.fromEntries(
      [...pane.querySelectorAll<HTMLTableRowElement>("tbody tr")].map((row) => [
        row.cells[0]?.textContent,
        row.cells[1]?.textContent,
      ]),
    );
    expect(facts["reads"]).toBe("98.6 kB: buf0 65.5 kBbuf2 32.8 kBbuf3 256 B");
    expect(facts["in place of"]).toBe("all or part of 4 operators of eager");
    expect(facts["operations"]).toBe("73,728");
    expect(facts["operations a byte"]).toBe("0.447");
    expect(facts["at best"]).toMatch(/^45 µs, bound by memory \(CPU/);
    expect(facts["measured"]).toMatch(
      /µs a call of the function, faster than memory allows: the data stays in cache$/,
    );
    expect(facts["not fused"]).toContain("no shared data");
  });

  test("its nodes with their lines, and where it is under the roof", async () => {
    app = await mounted(source(record({}, "gpu")));
    const pane = await app.section("Kernels");
    const named = (one: HTMLElement): boolean => !!one.textContent?.includes("softmax");
    [...pane.querySelectorAll<HTMLElement>(".dnx-kernel-rows [role=option]")].find(named)!.click();
    await settled();
    await tab("nodes");
    const rows = [...pane.querySelectorAll<HTMLTableRowElement>("tbody tr")];
    expect(rows.length).toBeGreaterThan(3);
    expect(rows.map((one) => one.cells[3]?.textContent)).toEqual(expect.arrayContaining(["line 4", "line 5"]));
    const [, , , , origins] = rows[0]!.cells;
    expect(origins?.querySelectorAll("button.dnx-chip").length).toBeGreaterThan(0);
    await tab("roofline");
    const points = [...pane.querySelectorAll("circle")];
    expect(points.length).toBe(pane.querySelectorAll("tbody tr").length);
    for (const one of points) {
      const [x, y] = [Number(one.getAttribute("cx")), Number(one.getAttribute("cy"))];
      expect(x).toBeGreaterThan(84);
      expect(y).toBeGreaterThanOrEqual(16);
      expect(y).toBeLessThan(170);
    }
    point(points.find((one) => one.textContent?.includes("softmax"))! as unknown as HTMLElement);
    expect(litLines()).toEqual([4, 5]);
  });

  test("buffers light the nodes that they hold", async () => {
    app = await mounted(source(record({}, "gpu")));
    const pane = await app.section("Kernels");
    await tab("buffers");
    const rows = [...pane.querySelectorAll<HTMLTableRowElement>("tbody tr")];
    const buffer = rows.find((one) => one.textContent?.startsWith("buf0"))!;
    expect(buffer.textContent).toContain("f32[64, 128]");
    point(buffer);
    expect(litLines()).toEqual([3]);
  });

  test("what ran: tuning, CUDA graphs and binaries", async () => {
    const whole = record({}, "gpu");
    const kernel = whole.compiles[0]!.kernels.find((one) => one.code)!;
    const { name, graph } = kernel;
    const choices = [
      { name: "XBLOCK=128", detail: "registers 24", microseconds: 250 },
      { name: "XBLOCK=512", detail: "", microseconds: null },
    ];
    const tuning = { graph, kernel: name, operation: "", node: "", sizes: [], choices };
    const use = { graph, warm_ups: 1, recordings: 2, replays: 3, reasons: ["address 2 is <new>"] };
    const texts = [{ stage: "ptx", text: ".target sm_90\nret;", lines: [0, 1] }];
    whole.links.push(["code-line", ["0/0", "code", `${graph}/${name}:1`], ["", "line", "<cell>:4"]]);
    const binary = { ...whole.compiles[0]!.targets[0]!.binaries[0]!, kernel: name, graph, texts, occupancy: null };
    whole.compiles = whole.compiles.map((one, at) =>
      at ? one : { ...one, tunings: [tuning], cudagraphs: [use], binaries: [binary] },
    );
    app = await mounted(source(whole));
    const pane = await app.section("Kernels");
    const rows = (): string[] => [...pane.querySelectorAll("tbody tr")].map((row) => row.textContent ?? "");
    await tab("autotuning");
    expect(rows()).toEqual([
      `${name}inferenceXBLOCK=128250 µsregisters 24`,
      `${name}inferenceXBLOCK=512could not run`,
    ]);
    expect(pane.textContent).not.toContain("sizes");
    await tab("CUDA graphs");
    expect(rows()).toEqual(["inference123address 2 is <new>"]);
    const options = [...pane.querySelectorAll<HTMLElement>(".dnx-kernel-rows [role=option]")];
    options.find((one) => one.textContent?.includes(name))!.click();
    await settled();
    await tab("PTX");
    expect(pane.textContent).toContain(".target sm_90");
    app.find(".dnx-root").dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
    const ret = [...pane.querySelectorAll<HTMLElement>("[data-dnx-ref]")].find((one) => one.textContent?.includes("ret;"))!;
    point(ret);
    expect(litLines()).toEqual([4]);
    await tab("facts");
    expect(rows().join("\n")).toContain("registers");
  });

  test("nodes without a kernel say why", async () => {
    const whole = record({}, "gpu");
    const folded = [{ graph: "post_grad.inference", node: "permute", why: "view" }];
    whole.compiles = whole.compiles.map((one) => ({ ...one, folded }));
    app = await mounted(source(whole));
    const pane = await app.section("Kernels");
    await tab("without a kernel");
    expect(pane.querySelector("tbody tr")?.textContent).toBe("permuteinferenceanother way to look at memory");
  });
});

test("a kernel that beats its floor says why", () => {
  expect(shareText({ seconds: 1, bound: "memory" }, 2)).toBe("50% of what is possible");
  expect(shareText({ seconds: 1, bound: "memory" }, 0.5)).toBe("faster than memory allows: the data stays in cache");
  expect(shareText({ seconds: 1, bound: "arithmetic" }, 0.5)).toContain("faster than the arithmetic");
});

describe("a target", () => {
  const opened = async (): Promise<HTMLElement> => {
    app = await mounted(source(record({}, "gpu")));
    const pane = await app.section("Kernels");
    await tab("cuda:90");
    return pane;
  };
  const kernels = (): HTMLElement[] => app.all("[aria-label='second section'] .dnx-kernel-rows [role=option]");

  test("has its own kernels, labelled as predicted, and they light their lines", async () => {
    const pane = await opened();
    expect(pane.textContent).toContain("NVIDIA H100 80GB HBM3, predicted: not run, not autotuned");
    expect(kernels().map((one) => one.querySelector(".dnx-lang")?.textContent)).toEqual([
      "extern",
      "triton",
      "triton",
    ]);
    kernels()[1]!.click();
    await settled();
    expect(litLines()).toEqual([4, 5]);
    expect(app.text(".dnx-status")).toContain("kernel triton_per_fused__softmax_cos");
    expect(app.text(".dnx-status")).toContain("triton · 6 nodes · cuda:90/post_grad.inference of 0/0");
  });

  test("what its binary takes", async () => {
    const pane = await opened();
    kernels()[1]!.click();
    await settled();
    await tab("facts");
    const text = pane.querySelector("tbody")?.textContent ?? "";
    expect(text).toContain("registers27 a thread");
    expect(text).toContain("spillsnone");
    expect(text).toContain("shared memory8 B");
    expect(text).toContain("occupancy100%");
    expect(text).toContain("grid 64 of blocks of 64 threads");
    expect(text).toContain("bound by memory");
  });

  test("settings are written as in Python, shares are rounded as in the text", () => {
    const binary = record({}, "gpu").compiles[0]!.targets[0]!.binaries[0]!;
    const config = { EVEN: true, ODD: false, OTHER: null, XBLOCK: 64 };
    const facts = Object.fromEntries(binaryFacts({ ...binary, config, occupancy: 0.125, limited_by: "" }));
    expect(facts["configuration"]).toBe("EVEN=True, ODD=False, OTHER=None, XBLOCK=64");
    expect(facts["occupancy"]).toBe("13%");
  });

  test("a line of PTX lights its Triton line, nodes and source lines", async () => {
    const pane = await opened();
    kernels()[1]!.click();
    await settled();
    await tab("PTX");
    app.find(".dnx-root").dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
    const [triton, ptx] = [...pane.querySelectorAll<HTMLElement>(".dnx-beside [role=listbox]")];
    const list = ptx!;
    const rows = (of: HTMLElement): HTMLElement[] => [...of.querySelectorAll<HTMLElement>("[data-dnx-ref]")];
    let row: HTMLElement | undefined;
    for (let top = 0; !row && top < 12000; top += 400) {
      list.scrollTop = top;
      list.dispatchEvent(new Event("scroll"));
      await settled();
      row = rows(list).find((one) => Number(one.dataset["dnxRef"]?.split(":").pop()) >= 43);
    }
    triton!.scrollTop = 30 * 19;
    triton!.dispatchEvent(new Event("scroll"));
    await settled();
    point(row!);
    await settled();
    const line = row!.dataset["dnxRef"];
    expect(litLines()).toEqual([4, 5]);
    expect(rows(triton!).filter((one) => one.dataset["lit"]).map((one) => one.dataset["dnxRef"])).toEqual([line]);
    expect(app.text(".dnx-status")).toMatch(/generated code of 0\/0, .* line \d+ with .*nodes/);
  });

  test("nodes without a kernel say why", async () => {
    const whole = record({}, "gpu");
    const folded = [{ graph: "cuda:90/post_grad.inference", node: "permute", why: "view" }];
    const targets = whole.compiles[0]!.targets.map((one) => ({ ...one, folded }));
    whole.compiles = whole.compiles.map((one) => ({ ...one, targets }));
    app = await mounted(source(whole));
    const pane = await app.section("Kernels");
    await tab("cuda:90");
    await tab("without a kernel");
    expect(pane.querySelector("tbody tr")?.textContent).toBe("permuteinferenceanother way to look at memory");
  });

  test("its buffers, what it does not fuse, and its kernels on the roof of the data sheet", async () => {
    const whole = record({}, "gpu");
    const [target] = whole.compiles[0]!.targets;
    const graph = "cuda:90/post_grad.inference";
    const [node, writer] = [target!.graphs[0]!.nodes.at(-2)!.name, target!.kernels[1]!.name];
    const unfused = [{ graph, writer, reader: writer, reason: "too <big>", buffers: ["buf0"], bytes: 8, writer_nodes: [], reader_nodes: [], loops: [] }];
    const buffer = { ...whole.compiles[0]!.buffers[0]!, graph, node, name: "buf0", saved: true };
    const properties = { bandwidth: 2e12, flops: { float32: 1e12, float16: 4e12 } };
    const kernels = target!.kernels.map((one, at) => ({ ...one, dtype: at ? "float32" : "float16", reads: { buf0: 8 }, flops: 16 }));
    const eager_operators = { [graph]: 9 };
    whole.compiles[0]!.targets = [{ ...target!, buffers: [buffer], unfused, properties, kernels, eager_operators }];
    app = await mounted(source(whole));
    const pane = await app.section("Kernels");
    await tab("cuda:90");
    expect(pane.textContent).toMatch(/predicted: not run, not autotuned; \d launches? in place of 9 operators of eager/);
    await tab("buffers");
    expect(pane.querySelector("tbody tr")?.textContent).toMatch(/^buf0inference.*saved for backward$/);
    await tab("not fused");
    expect(pane.querySelector("tbody tr")?.textContent).toContain("too <big>");
    point(pane.querySelector<HTMLElement>("tbody tr")!);
    expect(litLines()).toEqual([4, 5]);
    await tab("roofline");
    expect(pane.querySelectorAll("circle").length).toBe(kernels.length);
    expect([...pane.querySelectorAll("svg.dnx-plot path")].length).toBe(3); // the axes, two roofs
    expect(pane.textContent).toContain("float16");
    kernels.forEach((one) => expect(pane.querySelector("table")?.textContent).toContain(one.name));
  });

  test("a target's part that does not come costs the lower half only", async () => {
    app = await mounted(source(record({}, "gpu"), { target: "the notebook's kernel is gone" }));
    const pane = await app.section("Kernels");
    await tab("cuda:90");
    expect(pane.querySelector("[role=alert]")?.textContent).toContain("kernel is gone");
    expect(kernels().length).toBe(3);
  });

  test("its output code is beside that of this machine, and its kernels light their lines", async () => {
    app = await mounted(source(record({}, "gpu")));
    const pane = await app.section("Code");
    const list = (): HTMLElement => pane.querySelector<HTMLElement>("[role=listbox]")!;
    expect(list().getAttribute("aria-label")).toBe("output code of post_grad.inference");
    expect(pane.textContent).not.toContain("predicted");
    await tab("cuda:90");
    expect(list().getAttribute("aria-label")).toBe("output code of cuda:90/post_grad.inference");
    expect(pane.textContent).toContain("predicted: not run, not autotuned");
    list().dispatchEvent(new Event("scroll")); // to its first kernel
    await settled();
    expect(list().textContent).toContain("async_compile.triton(");
    const row = [...list().querySelectorAll<HTMLElement>("[data-dnx-ref]")].find((one) =>
      one.textContent?.includes("triton_per_fused__softmax_cos"),
    )!;
    point(row);
    expect(litLines()).toEqual([4, 5]);
    await tab("this machine");
    expect(list().getAttribute("aria-label")).toBe("output code of post_grad.inference");
  });

  test("a kernel that is held leads to its target's output code", async () => {
    app = await mounted(source(record({}, "gpu")));
    await app.section("Kernels");
    await tab("cuda:90");
    kernels()[1]!.click();
    await settled();
    const pane = await app.section("Code");
    expect(pane.querySelector("[role=listbox]")?.getAttribute("aria-label")).toBe(
      "output code of cuda:90/post_grad.inference",
    );
  });

  test("one that came to nothing says why", async () => {
    const whole = record({}, "gpu");
    const targets = [{ ...whole.compiles[0]!.targets[0]!, kernels: [], binaries: [], error: "no such operator" }];
    whole.compiles = whole.compiles.map((one) => ({ ...one, targets }));
    app = await mounted(source(whole));
    await app.section("Kernels");
    await tab("cuda:90");
    expect(app.text("[aria-label='second section'] .dnx-empty")).toBe("No kernels for cuda:90: no such operator");
  });
});

test("modified bytecode has a chip that goes to the compile of its resume function", async () => {
  app = await mounted(source(record()));
  const pane = await app.section("Bytecode");
  const after = pane.querySelector<HTMLElement>("[role=grid]")!;
  expect(pane.querySelector("[role=listbox] .dnx-chip")).toBeNull();
  after.scrollTop = 90 * 19;
  after.dispatchEvent(new Event("scroll"));
  await settled();
  const chip = [...after.querySelectorAll<HTMLElement>(".dnx-chip")].find((one) =>
    one.textContent?.startsWith("resumes in"),
  )!;
  expect(chip.textContent).toBe("resumes in 1/0");
  chip.click();
  await settled();
  expect(app.text(".dnx-compile[aria-pressed=true]")).toMatch(/^1\/0/);
});

test("the chip of an instruction is a button, which the right arrow reaches and the left leaves", async () => {
  app = await mounted(source(record()));
  const pane = await app.section("Bytecode");
  const after = pane.querySelector<HTMLElement>("[role=grid]")!;
  after.focus();
  const move = async (key: string): Promise<void> => {
    press(after, key);
    after.dispatchEvent(new Event("scroll"));
    await settled();
  };
  await move("End");
  const row = (): HTMLElement => after.querySelector<HTMLElement>("[aria-selected=true]")!;
  while (!row().querySelector("button")) await move("ArrowUp");
  press(after, "ArrowRight");
  const chip = document.activeElement as HTMLElement;
  expect(chip.getAttribute("aria-label")).toMatch(/^(graph of|resumes in) \d\/\d: go to that compile$/);
  expect(press(chip, "Enter")).toBe(true); // left to the button, whose click holds the compile
  press(chip, "ArrowLeft");
  expect(document.activeElement).toBe(after);
  chip.click();
  await settled();
  expect(app.find(".dnx-compile[data-lit=now]").textContent).toContain(chip.textContent!.slice(-3));
  expect(document.activeElement?.textContent).toBe("Bytecode");
});

test("every row of a table of 5 000 can be reached", async () => {
  app = await mounted(source(record()));
  const rows = Array.from({ length: 5000 }, (_, index) => ({ cells: [`row ${index + 1}`, ""] }));
  const place = document.createElement("div");
  render(<Table label="many" columns={["name", "nothing"]} rows={rows} />, place);
  const seen = new Set<string>();
  for (let page = 0; page < 11; page++) {
    for (const one of place.querySelectorAll("tbody tr")) seen.add(one.textContent ?? "");
    place.querySelector<HTMLElement>("[aria-label='later rows']")!.click();
    await settled();
  }
  expect(seen.size).toBe(5000);
  expect(place.querySelector("[role=status]")?.textContent).toBe("rows 4501–5000 of 5000");
  expect(place.querySelector("tbody tr:last-child")?.getAttribute("aria-rowindex")).toBe("5001");
  expect(place.querySelectorAll("th")).toHaveLength(1);
  render(null, place);
});

test("every one of 5 000 guards can be reached", async () => {
  const whole = record();
  const [guard] = whole.compiles[0]!.guards;
  const guards = Array.from({ length: 5000 }, (_, at) => ({ ...guard!, source: `L['x${at}']` }));
  whole.compiles[0] = { ...whole.compiles[0]!, guards };
  app = await mounted(source(whole));
  const pane = await app.section("Guards");
  const list = pane.querySelector<HTMLElement>(".dnx-guard-rows")!;
  press(list, "End");
  list.dispatchEvent(new Event("scroll"));
  await settled();
  expect(list.querySelector("[aria-posinset='5000']")?.getAttribute("aria-selected")).toBe("true");
});
