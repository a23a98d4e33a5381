/**
 * An FX graph made ready for drawing: who uses whom by index, which nodes stand inside their users,
 * and which carry a badge instead of an edge.
 */
import type { Compile, Graph, Node } from "../record";

/** An output that returns more values than this has badges on them instead of edges from them. */
export const WIDE_OUTPUT = 8;

export interface GraphModel {
  graph: Graph;
  nodes: Node[];
  index: Map<string, number>;
  inputs: number[][];
  users: number[][];
  /** 1 for parameters, buffers and saved values: shown as names inside the nodes that use them. */
  inside: Uint8Array;
  /** What a node held inside its users is called there. */
  shortNames: Map<number, string>;
  /** What becomes of a node's value when no edge says so: `output`, `saved`, `returned`, or empty. */
  badges: string[];
  /** Index of the output node; -1 when the graph has none. */
  output: number;
}

export function modelOf(graph: Graph, compile?: Compile): GraphModel {
  const nodes = graph.nodes;
  const index = new Map<string, number>();
  nodes.forEach((node, at) => index.set(node.name, at));
  const inputs = nodes.map((node) => indices(node.inputs, index));
  const users: number[][] = nodes.map(() => []);
  inputs.forEach((used, user) => used.forEach((one) => users[one]!.push(user)));
  const output = nodes.findLastIndex((node) => node.op === "output");
  const model: GraphModel = {
    graph,
    nodes,
    index,
    inputs,
    users,
    inside: new Uint8Array(nodes.length),
    shortNames: new Map(),
    badges: nodes.map(() => ""),
    output,
  };
  markInside(model, compile);
  markReturned(model, compile);
  return model;
}

function indices(names: string[], index: Map<string, number>): number[] {
  const found: number[] = [];
  for (const name of names) {
    const at = index.get(name);
    if (at !== undefined && (found.length > FEW || !found.includes(at))) found.push(at);
  }
  return found.length > FEW ? [...new Set(found)] : found;
}

/** So many are compared one by one: a set is dear to make. */
const FEW = 8;

const PARAMETER = /_(?:parameters|buffers)_(\w+?)_?$/;
const AOT_INPUT = /^(?:primals_(\d+)|arg(\d+)_1)$/;

/** Mark what is drawn inside its users, as long as one of them is drawn at all. */
function markInside(model: GraphModel, compile: Compile | undefined): void {
  const parameterOf = parameterNames(model, compile);
  const backward = model.graph.stage === "backward" || model.graph.direction === "backward";
  model.nodes.forEach((node, at) => {
    if (node.op !== "placeholder" && node.op !== "get_attr") return;
    const parameter = parameterOf(node, at);
    const saved = backward && !node.name.startsWith("tangents");
    const drawnUser = model.users[at]!.some((user) => user !== model.output);
    if (!drawnUser || !(parameter || saved || node.op === "get_attr")) return;
    model.inside[at] = 1;
    model.shortNames.set(at, parameter || node.name);
  });
}

type ParameterOf = (node: Node, at: number) => string;

/**
 * How to tell parameters and buffers. Dynamo's names say it. AOTAutograd's do not: there the origin
 * says it, or Dynamo's placeholder of the same number, or else that one module alone uses the value.
 */
function parameterNames(model: GraphModel, compile: Compile | undefined): ParameterOf {
  const own = (text: string): string => PARAMETER.exec(text)?.[1] ?? "";
  const given = dynamoInputs(model, compile);
  if (model.graph.stage === "dynamo" || model.graph.stage === "pre_grad") {
    return (node) => own(node.target);
  }
  if (given) return (node) => own(given(node.name)?.target ?? "");
  const traced = model.nodes.some((node) => node.op === "placeholder" && own(node.origins.at(-1) ?? ""));
  if (traced) return (node) => own(node.origins.at(-1) ?? "");
  return (node, at) => (AOT_INPUT.test(node.name) && usedInOneModule(model, at) ? node.name : "");
}

function usedInOneModule(model: GraphModel, at: number): boolean {
  let only = "";
  for (const user of model.users[at]!) {
    if (user === model.output) continue;
    const module = model.nodes[user]!.module_stack.at(-1)?.[0] ?? "";
    if (!module || (only && module !== only)) return false;
    only = module;
  }
  return only !== "";
}

/**
 * Dynamo's placeholder behind an AOT one. AOTAutograd numbers its inputs in Dynamo's order; this is
 * relied on only where all shapes agree.
 */
function dynamoInputs(
  model: GraphModel,
  compile: Compile | undefined,
): ((name: string) => Node | undefined) | undefined {
  const dynamo = compile?.graphs.find((graph) => graph.stage === "dynamo");
  const given = dynamo?.nodes.filter((node) => node.op === "placeholder") ?? [];
  const base = model.nodes.some((node) => node.name.startsWith("primals_")) ? 1 : 0;
  const counterpart = (name: string): Node | undefined => {
    const found = AOT_INPUT.exec(name);
    return found ? given[Number(found[1] ?? found[2]) - base] : undefined;
  };
  const agrees = model.nodes.every((node) => {
    if (node.op !== "placeholder" || !AOT_INPUT.test(node.name)) return true;
    const origin = counterpart(node.name);
    return !!origin && shapeOf(origin) === shapeOf(node);
  });
  return agrees ? counterpart : undefined;
}

const shapeOf = (node: Node): string =>
  typeof node.value === "object" && node.value && "shape" in node.value
    ? node.value.shape.join()
    : String(node.value);

/** Give the values of a wide output a badge: what backward reads again was saved for it. */
function markReturned(model: GraphModel, compile: Compile | undefined): void {
  if (!hasWideOutput(model)) return;
  const backward = compile?.graphs.find((graph) => graph.stage === "backward");
  const read = new Set(
    backward?.nodes.filter((node) => node.op === "placeholder").map((node) => node.name),
  );
  const feedsBackward = model.graph.stage === "forward" || model.graph.direction === "forward";
  const known = !feedsBackward || read.size > 0;
  for (const at of model.inputs[model.output]!) {
    const saved = feedsBackward && read.has(model.nodes[at]!.name);
    model.badges[at] = !known ? "returned" : saved ? "saved" : "output";
  }
}

/** Whether edges into the output node are left out, badges standing for them. */
export const hasWideOutput = (model: GraphModel): boolean =>
  model.output >= 0 && model.inputs[model.output]!.length > WIDE_OUTPUT;

const shortTargets = new Map<string, string>();

/** An operator's name without its package: `aten.mm`, `layer_norm`, `add`. */
export function shortTarget(target: string): string {
  let short = shortTargets.get(target);
  if (short === undefined) shortTargets.set(target, (short = withoutPackage(target)));
  return short;
}

function withoutPackage(target: string): string {
  const parts = target.split(".");
  if (parts[0] === "aten" || parts[0] === "prims") return parts.slice(0, 2).join(".");
  if (parts[0] === "torch" && parts[1] === "ops") return parts.slice(2, 4).join(".");
  return parts[parts.length - 1] || target;
}

/** The operator, unless the node's name says it already, as `mul_3` does. */
export function operatorBeside(node: Node): string {
  if (node.op === "placeholder" || node.op === "output") return "";
  const operator = shortTarget(node.target);
  const last = operator.slice(operator.lastIndexOf(".") + 1);
  const said = node.name.startsWith(last) && /^(_\d+)?$/.test(node.name.slice(last.length));
  return said ? "" : operator;
}
