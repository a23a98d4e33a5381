/** Synthetic FX graphs: a deep transformer with skip connections, as AOTAutograd would give it. */
import type { Graph, Node } from "../src/record";

export function node(name: string, op: string, target: string, inputs: string[] = [], modules: [string, string][] = []): Node {
  return {
    name,
    op,
    target,
    inputs,
    value: { shape: [2, 16, 64], dtype: "float32", device: "cpu", stride: [1024, 64, 1], requires_grad: false },
    frames: [],
    module_stack: modules,
    original_aten: "",
    is_backward: false,
    origins: [],
    also: [],
  };
}

export const graphOfNodes = (nodes: Node[], stage = "forward"): Graph => ({
  name: stage,
  stage,
  direction: "",
  nodes,
});

/** Operators of a block: target, module within the block, inputs by distance back. */
const BLOCK: [string, string, number[]][] = [
  ["aten.mul.Tensor", "norm1", [1]],
  ["aten.addmm.default", "attn.q", [1]],
  ["aten.addmm.default", "attn.k", [2]],
  ["aten.addmm.default", "attn.v", [3]],
  ["aten.view.default", "attn", [3]],
  ["aten.view.default", "attn", [3]],
  ["aten.view.default", "attn", [3]],
  ["aten.bmm.default", "attn", [3, 2]],
  ["aten.softmax.int", "attn", [1]],
  ["aten.bmm.default", "attn", [1, 3]],
  ["aten.addmm.default", "attn.out", [1]],
  ["aten.add.Tensor", "", [1, 12]],
  ["aten.mul.Tensor", "norm2", [1]],
  ["aten.addmm.default", "mlp.up", [1]],
  ["aten.relu.default", "mlp", [1]],
  ["aten.addmm.default", "mlp.down", [1]],
  ["aten.add.Tensor", "", [1, 5]],
];

const KINDS: Record<string, string> = { attn: "Attention", mlp: "MLP", norm1: "Norm", norm2: "Norm" };

function modulesOf(block: number, within: string): [string, string][] {
  const base = `L['self'].layers.${block}`;
  const stack: [string, string][] = [
    ["L['self']", "Model"],
    [base, "Block"],
  ];
  const parts = within ? within.split(".") : [];
  parts.forEach((part, at) => {
    const path = `${base}.${parts.slice(0, at + 1).join(".")}`;
    stack.push([path, KINDS[part] ?? "Linear"]);
  });
  return stack;
}

/** A graph of about `size` nodes; every fifth block also reads the input, far above. */
export function bigGraph(size: number): Graph {
  const inputs = [node("tangents_1", "placeholder", "tangents_1")];
  const nodes: Node[] = [];
  const chain: string[] = ["tangents_1"];
  for (let block = 0; inputs.length + nodes.length < size; block++) {
    for (const [target, within, back] of BLOCK) {
      const operator = target.split(".")[1]!;
      const name = `${operator}_${nodes.length}`;
      const used = back.map((distance) => chain.at(-distance) ?? "tangents_1");
      if (target.startsWith("aten.addmm")) {
        const weight = `primals_${inputs.length}`;
        inputs.push(node(weight, "placeholder", weight));
        used.push(weight);
      }
      if (block % 5 === 4 && operator === "relu") used.push("tangents_1");
      nodes.push(node(name, "call_function", target, used, modulesOf(block, within)));
      chain.push(name);
    }
  }
  const returned = nodes.filter((_, at) => at % 7 === 0 || at === nodes.length - 1);
  const output = node("output", "output", "output", returned.map((one) => one.name));
  return graphOfNodes([...inputs, ...nodes, output], "backward");
}
