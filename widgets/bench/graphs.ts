/** The graphs that are measured, by name: `synthetic:1000` or `transformer24:backward`. */
import type { CellRecord, Compile, Graph } from "../src/record";
import { completeRecord } from "../src/record";
import { modelOf } from "../src/graph/model";
import { sizeOf } from "../src/graph/sizes";
import { buildTree, type Tree } from "../src/graph/tree";
import { bigGraph } from "./synthetic";

export interface Measured {
  record: CellRecord;
  compile: Compile;
  graph: Graph;
}

/** The graph of a name; a recorded one out of its record. */
export function measured(name: string, recorded: unknown): Measured {
  const [source, what] = name.split(":") as [string, string];
  const synthetic = source === "synthetic";
  const compile = { compile_id: "0/0", graphs: synthetic ? [bigGraph(Number(what))] : [] };
  const record = completeRecord(synthetic ? { compiles: [compile] } : recorded);
  const whole = record.compiles[0]!;
  const graph = whole.graphs.find((one) => one.name === (synthetic ? "backward" : what))!;
  return { record, compile: whole, graph };
}

export const treeFor = ({ graph, compile }: Measured): Tree => buildTree(modelOf(graph, compile));

/** A graph as any layout program takes it: all nodes but parameters, all edges between them. */
export interface Plain {
  nodes: { id: string; label: string; width: number; height: number }[];
  edges: [from: string, to: string][];
}

export function plainOf(tree: Tree): Plain {
  const { model, order, leafOf } = tree;
  const nodes = order.map((at) => {
    const [width, height] = sizeOf(leafOf[at]!, model);
    return { id: `n${at}`, label: model.nodes[at]!.name, width, height };
  });
  const edges = order.flatMap((at) =>
    model.inputs[at]!.filter((input) => !model.inside[input]).map(
      (input): [string, string] => [`n${input}`, `n${at}`],
    ),
  );
  return { nodes, edges };
}
