/** Which modules a node is drawn in, outermost first. */
import type { Node } from "../record";
import type { GraphModel } from "./model";

/** One level of nesting: a module's path, its class, and what it is called within its parent. */
export interface Step {
  path: string;
  kind: string;
  label: string;
}

const ROOT = /^L\[['"]?\w+['"]?\](?:\[\d+\])*\.?/;

/** Return each node's modules; nodes without any take what their neighbours have in common. */
export function modulesOf(model: GraphModel): Step[][] {
  const known = new Map<string, Step>();
  const steps = model.nodes.map((node) => ownSteps(node, known));
  placeSums(model, steps);
  fillGaps(model.nodes, steps);
  if (model.graph.stage === "joint") splitDirections(model.nodes, steps);
  return steps;
}

function ownSteps(node: Node, known: Map<string, Step>): Step[] {
  if (node.op === "placeholder" || node.op === "output") return [];
  const steps: Step[] = [];
  for (const level of node.module_stack) {
    const path = level[0]!;
    let step = known.get(path);
    if (!step) {
      const label = relative(path, steps.at(-1)?.path ?? "");
      known.set(path, (step = { path, kind: level[1] ?? "", label }));
    }
    steps.push(step);
  }
  return steps;
}

/** A module's path from its parent's: `self_attn` in `L['self'].layers.0`. */
const relative = (path: string, parent: string): string =>
  parent && path.startsWith(`${parent}.`)
    ? path.slice(parent.length + 1)
    : path.replace(ROOT, "");

const isOperation = (node: Node): boolean => node.op !== "placeholder" && node.op !== "output";

/**
 * Passes add nodes without a module stack. One between two nodes of a module belongs to it;
 * otherwise it would cut the module in two.
 */
function fillGaps(nodes: Node[], steps: Step[][]): void {
  let before: Step[] | null = null;
  let gap: number[] = [];
  nodes.forEach((node, at) => {
    if (!isOperation(node)) return;
    if (!steps[at]!.length) {
      gap.push(at);
      return;
    }
    const shared: Step[] = before ? sharedSteps(before, steps[at]!) : [];
    for (const one of gap) steps[one] = shared;
    gap = [];
    before = steps[at]!;
  });
}

/** Autograd adds up gradients under no module: the sum belongs where all its parts come from. */
function placeSums(model: GraphModel, steps: Step[][]): void {
  model.nodes.forEach((node, at) => {
    if (!node.is_backward || steps[at]!.length || node.target !== "aten.add.Tensor") return;
    const parts = model.inputs[at]!.map((input) => steps[input]!);
    if (parts.length) steps[at] = parts.reduce(sharedSteps);
  });
}

function sharedSteps(a: Step[], b: Step[]): Step[] {
  let depth = 0;
  while (depth < a.length && depth < b.length && a[depth]!.path === b[depth]!.path) depth++;
  return a.slice(0, depth);
}

const FORWARD: Step = { path: " forward", kind: "", label: "forward" };
const BACKWARD: Step = { path: " backward", kind: "", label: "backward" };

/** A joint graph runs through each module twice: its two directions are its outermost groups. */
function splitDirections(nodes: Node[], steps: Step[][]): void {
  const last = nodes.findLastIndex((node) => isOperation(node) && !node.is_backward && !!node.module_stack.length);
  nodes.forEach((node, at) => {
    if (!isOperation(node)) return;
    const backward = node.is_backward || at > last;
    steps[at] = [backward ? BACKWARD : FORWARD, ...steps[at]!];
  });
}
