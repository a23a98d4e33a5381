import { describe, expect, it } from "vitest";
import { modelOf, operatorBeside, shortTarget } from "../src/graph/model";
import { type Box, buildTree, isGroup, openWithin, reveal, shownBox, type Tree } from "../src/graph/tree";
import { bigGraph, graphOfNodes, node, recorded, recordedGraphs, treeOf } from "./graphs";

const graphIn = (model: string, name: string): Tree => {
  const compile = recorded(model).compiles[0]!;
  return treeOf(compile.graphs.find((one) => one.name === name)!, compile);
};

const labels = (box: Box): string[] => box.kids.map((kid) => kid.label);
const within = (box: Box, ...path: string[]): Box =>
  path.reduce((at, label) => at.kids.find((kid) => kid.label === label)!, box);

describe("the order of boxes", () => {
  it.each(recordedGraphs("encoder", "residual", "llama", "transformer24"))(
    "has inputs before users: $name",
    ({ graph, compile }) => {
      const tree = treeOf(graph, compile);
      const place = new Map(tree.order.map((at, position) => [at, position]));
      const late = tree.order.filter((at) =>
        tree.model.inputs[at]!.some((input) => (place.get(input) ?? -1) > place.get(at)!),
      );
      expect(late).toEqual([]);
      const drawn = graph.nodes.filter((_, at) => !tree.model.inside[at]).length;
      expect(new Set(tree.order).size).toBe(drawn);
    },
  );
});

describe("modules", () => {
  it("nests by module, without a frame around the whole", () => {
    const { root } = graphIn("encoder", "dynamo");
    expect(root.detail).toBe("TransformerEncoder");
    expect(labels(root)).toEqual(["l_kwargs_src_", "layers.0", "layers.1", "output"]);
    expect(labels(within(root, "layers.0"))).toContain("self_attn");
  });

  it("shows a module that holds one node as that node", () => {
    const { root } = graphIn("encoder", "dynamo");
    const norm = within(root, "layers.0").kids.find((kid) => kid.label === "x")!;
    expect([norm.kind, norm.detail]).toEqual(["node", "norm1"]);
  });

  it("groups backward by its forward modules, the last one first", () => {
    const { root } = graphIn("encoder", "backward");
    expect(labels(root)).toEqual(["tangents_1", "layers.1", "layers.0", "output"]);
    expect(labels(within(root, "layers.1"))).toEqual(expect.arrayContaining(["norm2", "linear2", "self_attn"]));
  });

  it("parts a joint graph by direction", () => {
    const { root } = graphIn("encoder", "joint");
    expect(root.kids.filter(isGroup).map((kid) => kid.label)).toEqual(["forward", "backward"]);
  });

  it("keeps a node without a module stack where its neighbours are", () => {
    const stack: [string, string][] = [["L['self'].a", "A"]];
    const graph = graphOfNodes([
      node("x", "placeholder", "x"),
      node("one", "call_function", "aten.sin.default", ["x"], stack),
      node("added", "call_function", "aten.clone.default", ["one"]),
      node("two", "call_function", "aten.cos.default", ["added"], stack),
      node("after", "call_function", "aten.neg.default", ["two"]),
      node("output", "output", "output", ["after"]),
    ]);
    const { root } = treeOf(graph);
    expect(labels(root)).toEqual(["x", "a", "after", "output"]);
    expect(labels(within(root, "a"))).toEqual(["one", "added", "two"]);
  });

  it("joins a module's parts unless that would close a cycle", () => {
    const a: [string, string][] = [["L['self'].a", "A"]];
    const b: [string, string][] = [["L['self'].b", "B"]];
    const make = (last: string): string[] =>
      labels(
        treeOf(
          graphOfNodes([
            node("x", "placeholder", "x"),
            node("a1", "call_function", "aten.sin.default", ["x"], a),
            node("a2", "call_function", "aten.sin.default", ["a1"], a),
            node("b1", "call_function", "aten.cos.default", ["a1"], b),
            node("b2", "call_function", "aten.cos.default", ["b1"], b),
            node("a3", "call_function", "aten.neg.default", [last], a),
            node("a4", "call_function", "aten.neg.default", ["a3"], a),
          ]),
        ).root,
      );
    expect(make("a2")).toEqual(["x", "a", "b"]);
    expect(make("b2")).toEqual(["x", "a", "b", "a"]);
  });
});

describe("folding", () => {
  it("folds equal layers and leaves the first as the example", () => {
    const forward = graphIn("transformer24", "forward").root;
    expect(labels(forward)).toEqual(["primals_1", "layers.0", "layers.1…23", "output"]);
    expect(within(forward, "layers.1…23").kids.length).toBe(23);
  });

  it("folds backward layers, sums of gradients with them", () => {
    const backward = graphIn("transformer24", "backward").root;
    expect(labels(backward)).toEqual(["tangents_1", "layers.23", "layers.22…1", "layers.0", "output"]);
  });

  it("does not fold layers that differ", () => {
    const graph = bigGraph(400);
    const changed = graph.nodes.find((one) => one.target === "aten.relu.default" && one.name.length > 7)!;
    changed.target = "aten.gelu.default";
    const { root } = treeOf(graph);
    expect(root.kids.filter((kid) => kid.kind === "fold").length).not.toBe(1);
  });

  it("opens what hides a box", () => {
    const tree = treeOf(bigGraph(2_000));
    openWithin(tree, 250);
    const leaf = tree.leafOf[tree.order.at(-2)!]!;
    expect(shownBox(leaf).kind).toBe("fold");
    expect(reveal(leaf)).toBe(true);
    expect(shownBox(leaf)).toBe(leaf);
    expect(reveal(leaf)).toBe(false);
  });
});

describe("what is drawn inside its users", () => {
  it("holds Dynamo's parameters and buffers under their short names", () => {
    const { model } = graphIn("residual", "dynamo");
    const drawn = model.nodes.filter((one, at) => one.op === "placeholder" && !model.inside[at]);
    expect(drawn.map((one) => one.name)).toEqual(["l_images_"]);
    expect([...model.shortNames.values()]).toEqual(expect.arrayContaining(["weight", "running_mean"]));
  });

  it("knows AOTAutograd's parameters by Dynamo's", () => {
    const { model } = graphIn("residual", "forward");
    const drawn = model.nodes.filter((one, at) => one.op === "placeholder" && !model.inside[at]);
    expect(drawn.map((one) => one.name)).toEqual(["primals_3"]);
  });

  it("guesses parameters by their users where Dynamo's graph is not at hand", () => {
    const compile = recorded("residual").compiles[0]!;
    const alone = { ...compile, graphs: compile.graphs.map((one) => ({ ...one, nodes: [] })) };
    const model = modelOf(compile.graphs.find((one) => one.name === "forward")!, alone);
    expect(model.inside[model.index.get("primals_1")!]).toBe(1);
  });

  it("holds saved values in backward, the tangents apart", () => {
    const { model } = graphIn("encoder", "backward");
    const drawn = model.nodes.filter((one, at) => one.op === "placeholder" && !model.inside[at]);
    expect(drawn.map((one) => one.name)).toEqual(["tangents_1"]);
  });
});

describe("badges of wide outputs", () => {
  it("tells what was saved from what is returned", () => {
    const { model } = graphIn("encoder", "forward");
    const returned = model.inputs[model.output]!.map((at) => model.badges[at]);
    expect(returned[0]).toBe("output");
    expect(returned.filter((badge) => badge === "saved").length).toBeGreaterThan(20);
  });

  it("leaves narrow outputs to their edges", () => {
    const { model } = graphIn("encoder", "dynamo");
    expect(model.badges.every((badge) => !badge)).toBe(true);
  });
});

describe("names of operators", () => {
  it.each([
    ["aten.mm.default", "aten.mm"],
    ["torch.nn.functional.layer_norm", "layer_norm"],
    ["torch.ops.mylib.scale.default", "mylib.scale"],
    ["_operator.add", "add"],
    ["transpose", "transpose"],
  ])("shortens %s", (target, short) => expect(shortTarget(target)).toBe(short));

  it("are left out where the node's name says them", () => {
    expect(operatorBeside(node("mul_3", "call_function", "aten.mul.Tensor"))).toBe("");
    expect(operatorBeside(node("scores", "call_function", "aten.mul.Tensor"))).toBe("aten.mul");
  });
});

it("draws a graph without an output node", () => {
  const tree = buildTree(modelOf(graphOfNodes([node("x", "placeholder", "x")])));
  expect(labels(tree.root)).toEqual(["x"]);
});
