import { describe, expect, it } from "vitest";
import { Bands } from "../src/graph/bands";
import { Camera } from "../src/graph/camera";
import { colouring } from "../src/graph/colour";
import { neighbour } from "../src/graph/keys";
import { lanes, MOST_LANES } from "../src/graph/lanes";
import { NodeSet } from "../src/graph/marks";
import { modelOf } from "../src/graph/model";
import { outlineRows } from "../src/graph/rows";
import { Drawing } from "../src/graph/scene";
import { Search } from "../src/graph/search";
import { clip } from "../src/graph/sizes";
import { isGroup, newBox, openAll } from "../src/graph/tree";
import { bigGraph, BUSY, recorded, treeOf } from "./graphs";

const compile = recorded("encoder").compiles[0]!;
const dynamo = compile.graphs.find((one) => one.name === "dynamo")!;

describe("lanes", () => {
  it("keep a straight line for a chain", () => {
    const rows = lanes([[], [0], [1]]);
    expect(rows.map((row) => row.lane)).toEqual([0, 0, 0]);
    expect(rows[1]).toMatchObject({ from: [0], used: true });
    expect(rows[2]!.used).toBe(false);
  });

  it("hold a value's lane until its last use", () => {
    const rows = lanes([[], [0], [1], [0, 2]]);
    expect(rows[1]!.lane).toBe(1);
    expect(rows[2]!.passing).toContain(0);
    expect(rows[3]!.from).toEqual([0, 1]);
  });

  it("let a heading pass", () => {
    const rows = lanes([[], null, [0]]);
    expect(rows[1]).toMatchObject({ lane: -1, passing: [0] });
  });

  it("draw no more than there is room for", () => {
    const wide = lanes([...Array.from({ length: 40 }, () => []), Array.from({ length: 40 }, (_, at) => at)]);
    expect(Math.max(...wide.at(-1)!.from)).toBeLessThan(MOST_LANES);
  });
});

describe("the outline", () => {
  it("has a row for every node of 20 000 that is drawn, and every group", () => {
    const tree = treeOf(bigGraph(20_000));
    openAll(tree, true);
    const rows = outlineRows(tree, null);
    expect(rows.length).toBe(tree.boxes.length - 1);
    expect(rows.filter((row) => row.box.label.startsWith("softmax")).every((row) => row.lane.lane >= 0)).toBe(true);
  }, BUSY);

  it("filters to what was found and the groups around it", () => {
    const tree = treeOf(dynamo, compile);
    const found = new Search(tree.model).find("layer_norm")!;
    const rows = outlineRows(tree, new NodeSet(tree, found));
    expect(rows.filter((row) => !isGroup(row.box)).length).toBe(found.size);
    expect(rows[0]!.box.label).toBe("layers.0");
  });
});

describe("search", () => {
  const search = new Search(modelOf(dynamo, compile));
  const names = (query: string): string[] => [...search.find(query)!].map((at) => dynamo.nodes[at]!.name);

  it("finds by name, operator, module, shape and line", () => {
    expect(names("dropout_3")).toEqual(["dropout_3"]);
    expect(names("multi_head_attention_forward").length).toBe(2);
    expect(names("layers.1 norm1 layer_norm")).toEqual(["x_3"]);
    expect(names("f32[96, 32]").length).toBe(2);
    expect(names("activation.py:1460").length).toBe(2);
  });

  it("tells nothing searched from nothing found", () => {
    expect(search.find("  ")).toBeNull();
    expect(search.find("no such node")!.size).toBe(0);
  });
});

describe("colours", () => {
  const model = modelOf(dynamo, compile);

  it("group by the innermost module's class, the largest group first", () => {
    const { hue, legend } = colouring(model, "module", () => "");
    const named = Object.fromEntries(legend.map(({ name, count }) => [name, count]));
    expect(named).toMatchObject({ LayerNorm: 4, MultiheadAttention: 8 });
    expect(legend[0]!.count).toBeGreaterThanOrEqual(legend.at(-1)!.count);
    expect(hue[model.index.get("x")!]).toBe(hue[model.index.get("x_5")!]);
    expect(hue[model.index.get("l_kwargs_src_")!]).toBe(-1);
  });

  it("group by dtype, device and kernel", () => {
    expect(colouring(model, "dtype", () => "").legend.map(({ name }) => name)).toEqual(["float32"]);
    expect(colouring(model, "device", () => "").legend.map(({ name }) => name)).toEqual(["cpu"]);
    const kernel = colouring(model, "kernel", (node) => (node.name === "add" ? "k0" : ""));
    expect(kernel.legend).toEqual([{ name: "k0", hue: 0, count: 1 }]);
  });
});

describe("lines of one box", () => {
  it("lead through the borders of the groups between", () => {
    const tree = treeOf(dynamo, compile);
    openAll(tree, true);
    const drawing = new Drawing(tree);
    const query = tree.leafOf[tree.model.index.get("query")!]!;
    const lines = drawing.linesOf(query);
    const into = lines.filter((line) => line.from.label === "l_kwargs_src_");
    expect(into.map((line) => line.to.label)).toEqual(expect.arrayContaining(["query", "self_attn", "layers.0"]));
    for (const line of into.filter((one) => one.to !== query)) {
      expect(line.points.at(-1)).toBeCloseTo(line.to.y, 3);
    }
    expect(lines.some((line) => line.from === query && line.to.label.startsWith("multi_head"))).toBe(true);
  });

  it("cuts long edges into stubs that name their other end", () => {
    const tree = treeOf(bigGraph(3_000));
    openAll(tree, true);
    const { scene } = new Drawing(tree);
    const stubs = scene.segments.filter((one) => one.far);
    expect(stubs.length).toBeGreaterThan(0);
    expect(stubs.length % 2).toBe(0);
    const tallest = Math.max(
      ...scene.segments.filter((one) => one.far).map(({ points }) => points.at(-1)! - points[1]!),
    );
    expect(tallest).toBeLessThan(40);
  }, BUSY);
});

describe("keys", () => {
  const at = (label: string, x: number, y: number) =>
    Object.assign(newBox("node", label), { x, y, w: 40, h: 20 });
  const top = at("top", 100, 0);
  const left = at("left", 0, 50);
  const under = at("under", 90, 60);
  const far = at("far", 100, 400);
  const boxes = [top, left, under, far];

  it("lead to the nearest box, straight ahead first", () => {
    expect(neighbour(boxes, top, "down")).toBe(under);
    expect(neighbour(boxes, under, "left")).toBe(left);
    expect(neighbour(boxes, under, "up")).toBe(top);
    expect(neighbour(boxes, far, "down")).toBeNull();
  });
});

describe("the camera", () => {
  const screen = { width: 800, height: 600 };
  const cameraOn = (width: number, height: number): Camera =>
    new Camera(() => screen, () => ({ width, height }), () => {});

  it("fits a drawing, and opens a long one at its top, readable", () => {
    const camera = cameraOn(400, 6000);
    camera.fit();
    expect(camera.seen().height).toBeGreaterThan(6000);
    camera.home();
    expect(camera.view.scale).toBe(0.85);
    expect(camera.toDrawing(400, 0)[1]).toBeCloseTo(-19, 0);
  });

  it("zooms about a point that stays where it is", () => {
    const camera = cameraOn(2000, 2000);
    camera.set({ x: -100, y: -50, scale: 1 });
    const before = camera.toDrawing(300, 200);
    camera.zoom(1.5, 300, 200);
    const after = camera.toDrawing(300, 200);
    expect(after[0]).toBeCloseTo(before[0]);
    expect(after[1]).toBeCloseTo(before[1]);
  });

  it("never loses the drawing", () => {
    const camera = cameraOn(400, 400);
    camera.pan(1e6, -1e6);
    expect(camera.view.x).toBeLessThan(800);
    expect(camera.view.y).toBeGreaterThan(-400);
  });

  it("shows a part with as little movement as it takes", () => {
    const camera = cameraOn(2000, 4000);
    camera.set({ x: 0, y: 0, scale: 1 });
    camera.show({ x: 100, y: 100, width: 50, height: 50 });
    expect([camera.view.x, camera.view.y]).toEqual([0, 0]);
    camera.show({ x: 100, y: 900, width: 50, height: 50 });
    expect(camera.view.y).toBe(600 - 40 - 950);
  });
});

it("finds in a strip what touches it, once", () => {
  const bands = new Bands([[0, 3000], [600, 700], [4000, 4100]], ([top, bottom]) => [top!, bottom!]);
  expect([...bands.between(550, 1200)]).toEqual([[0, 3000], [600, 700]]);
  expect([...bands.between(-500, -100)]).toEqual([[0, 3000]]);
});

it("clips in the middle", () => {
  expect(clip("short", 10)).toBe("short");
  expect(clip("l_fn_modules_layers_weight_", 11)).toBe("l_fn_…ight_");
});
