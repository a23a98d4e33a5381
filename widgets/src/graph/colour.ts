/** What boxes are coloured by. */
import { type Compile, isTensor, type Node } from "../record";
import type { GraphModel } from "./model";

export type Colour = "module" | "kernel" | "dtype" | "device";

/** How many colours the style sheet defines; more groups than that begin again. */
export const HUES = 8;

export interface Colouring {
  /** By node: the number of its colour, or -1 for none. */
  hue: Int16Array;
  /** The groups, the largest first. */
  legend: { name: string; hue: number; count: number }[];
}

export function colouring(model: GraphModel, colour: Colour, compile: Compile): Colouring {
  const nameOf = NAMES[colour](model, compile);
  const names = model.nodes.map((node) =>
    node.op === "placeholder" || node.op === "output" ? "" : nameOf(node),
  );
  const counts = new Map<string, number>();
  for (const name of names) if (name) counts.set(name, (counts.get(name) ?? 0) + 1);
  const order = [...counts].sort((a, b) => b[1] - a[1]);
  const hues = new Map(order.map(([name], at) => [name, at % HUES]));
  return {
    hue: Int16Array.from(names, (name) => hues.get(name) ?? -1),
    legend: order.map(([name, count]) => ({ name, hue: hues.get(name)!, count })),
  };
}

type NameOf = (node: Node) => string;

const NAMES: Record<Colour, (model: GraphModel, compile: Compile) => NameOf> = {
  module: () => (node) => node.module_stack.at(-1)?.[1]?.split(".").pop() ?? "",
  kernel: (model, compile) => {
    const kernels = kernelsOf(model, compile);
    return (node) => kernels.get(node.name)?.[0] ?? "";
  },
  dtype: () => (node) => tensorField(node, "dtype"),
  device: () => (node) => tensorField(node, "device"),
};

function tensorField(node: Node, field: "dtype" | "device"): string {
  const value = Array.isArray(node.value) ? node.value.find(isTensor) : node.value;
  return isTensor(value) ? value[field] : "";
}

/** The kernels that a graph's nodes are in, by node name: directly, or through post-grad nodes. */
export function kernelsOf(model: GraphModel, compile: Compile): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const add = (node: string, kernel: string): void => {
    const known = found.get(node);
    if (!known) found.set(node, [kernel]);
    else if (!known.includes(kernel)) known.push(kernel);
  };
  const prefix = `${model.graph.name}/`;
  for (const kernel of compile.kernels) {
    const graph = compile.graphs.find((one) => one.name === kernel.graph);
    const fused = new Set(kernel.nodes);
    if (graph?.name === model.graph.name) fused.forEach((name) => add(name, kernel.name));
    else {
      for (const node of graph?.nodes ?? []) {
        if (!fused.has(node.name)) continue;
        for (const origin of node.origins) {
          if (origin.startsWith(prefix)) add(origin.slice(prefix.length), kernel.name);
        }
      }
    }
  }
  return found;
}
