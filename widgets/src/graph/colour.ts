/** What boxes are coloured by. */
import { isTensor, type Node } from "../record";
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

/** Group the nodes; `kernelOf` names the fused kernel that a node ends up in. */
export function colouring(
  model: GraphModel,
  colour: Colour,
  kernelOf: (node: Node) => string,
): Colouring {
  const nameOf = colour === "kernel" ? kernelOf : NAMES[colour];
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

const NAMES: Record<Exclude<Colour, "kernel">, (node: Node) => string> = {
  module: (node) => node.module_stack.at(-1)?.[1]?.split(".").pop() ?? "",
  dtype: (node) => tensorField(node, "dtype"),
  device: (node) => tensorField(node, "device"),
};

function tensorField(node: Node, field: "dtype" | "device"): string {
  const value = Array.isArray(node.value) ? node.value.find(isTensor) : node.value;
  return isTensor(value) ? value[field] : "";
}
