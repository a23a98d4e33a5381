/** Graphs to lay out: recorded ones of real models, and synthetic ones of any size. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { type CellRecord, completeRecord, type Compile, type Graph, type Node } from "../src/record";
import { buildTree, openAll, openWithin, type Tree } from "../src/graph/tree";
import { modelOf } from "../src/graph/model";

export { bigGraph, graphOfNodes, node } from "../bench/synthetic";

/** Milliseconds that a test of 20 000 nodes may take on a busy machine. */
export const BUSY = 60_000;

const FOLDER = fileURLToPath(import.meta.url).replace(/[^/]*$/, "fixtures/");

export function recorded(name: string): CellRecord {
  const data = gunzipSync(readFileSync(`${FOLDER}${name}.json.gz`));
  return completeRecord(JSON.parse(new TextDecoder().decode(data)));
}

export interface Case {
  name: string;
  graph: Graph;
  compile: Compile;
}

/** All graphs of the recorded models, each under `model/stage`. */
export function recordedGraphs(...models: string[]): Case[] {
  return models.flatMap((model) =>
    recorded(model).compiles.flatMap((compile) =>
      compile.graphs.map((graph) => ({ name: `${model}/${graph.name}`, graph, compile })),
    ),
  );
}

export const treeOf = (graph: Graph, compile?: Compile): Tree => buildTree(modelOf(graph, compile));

export function opened(tree: Tree, how: "first" | "all"): Tree {
  if (how === "all") openAll(tree, true);
  else openWithin(tree, 250);
  return tree;
}

export const nodeNamed = (graph: Graph, name: string): Node =>
  graph.nodes.find((one) => one.name === name)!;
