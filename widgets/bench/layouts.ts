/**
 * Lays one graph out with one program and says what that took, as a line of JSON.
 *
 *     node layouts.mjs PROGRAM GRAPH [RECORD] [--svg FILE]
 */
import { readFileSync, writeFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import dagre from "@dagrejs/dagre";
import ELK from "elkjs/lib/elk.bundled.js";
import { layout } from "../src/graph/layout";
import { openAll, openWithin } from "../src/graph/tree";
import { measured, plainOf, type Plain, treeFor, type Measured } from "./graphs";

interface Placed {
  boxes: { x: number; y: number; width: number; height: number; label: string }[];
  lines: number[][];
  width: number;
  height: number;
}

/** Lays out; what it returns turns the result into plain boxes and lines, which is not measured. */
type Program = (graph: Measured, plain: Plain) => Promise<() => Placed> | (() => Placed);

const ours = (open: "all" | "first"): Program => (graph) => {
  const tree = treeFor(graph);
  if (open === "all") openAll(tree, true);
  else openWithin(tree, 250);
  const { boxes, segments, width, height } = layout(tree);
  return () => ({
    boxes: boxes.map(({ x, y, w, h, label }) => ({ x, y, width: w, height: h, label })),
    lines: segments.map((one) => one.points),
    width,
    height,
  });
};

const elkLayout: Program = async (_, plain) => {
  const placed = await new ELK().layout({
    id: "root",
    layoutOptions: { "elk.algorithm": "layered", "elk.direction": "DOWN" },
    children: plain.nodes.map(({ id, width, height }) => ({ id, width, height })),
    edges: plain.edges.map(([from, to], at) => ({ id: `e${at}`, sources: [from], targets: [to] })),
  });
  return () => ({
    boxes: (placed.children ?? []).map((box, at) => ({
      x: box.x!,
      y: box.y!,
      width: box.width!,
      height: box.height!,
      label: plain.nodes[at]!.label,
    })),
    lines: (placed.edges ?? []).flatMap((edge) =>
      (edge.sections ?? []).map(({ startPoint, bendPoints, endPoint }) =>
        [startPoint, ...(bendPoints ?? []), endPoint].flatMap(({ x, y }) => [x, y]),
      ),
    ),
    width: placed.width!,
    height: placed.height!,
  });
};

const dagreLayout: Program = (_, plain) => {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({});
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, label, width, height } of plain.nodes) graph.setNode(id, { label, width, height });
  for (const [from, to] of plain.edges) graph.setEdge(from, to);
  dagre.layout(graph);
  const { width = 0, height = 0 } = graph.graph();
  return () => ({
    boxes: graph.nodes().map((id: string) => {
      const { x, y, label = "", ...size } = graph.node(id);
      return { x: x - size.width / 2, y: y - size.height / 2, ...size, label };
    }),
    lines: graph.edges().map((edge: { v: string; w: string }) =>
      graph.edge(edge).points.flatMap(({ x, y }: { x: number; y: number }) => [x, y]),
    ),
    width,
    height,
  });
};

const PROGRAMS: Record<string, Program> = {
  "explorer, all open": ours("all"),
  "explorer, first view": ours("first"),
  elkjs: elkLayout,
  dagre: dagreLayout,
};

function svgOf({ boxes, lines, width, height }: Placed): string {
  const rects = boxes.map(
    ({ x, y, width: w, height: h, label }) =>
      `<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="#eee" stroke="#888"/>` +
      `<text x="${x + 4}" y="${y + 14}" font-size="11">${label}</text>`,
  );
  const paths = lines.map((points) => `<polyline points="${points.join(" ")}" fill="none" stroke="#888"/>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${paths.join("")}${rects.join("")}</svg>`;
}

function dotOf({ nodes, edges }: Plain): string {
  const boxes = nodes.map(({ id, label }) => `${id} [label="${label}"];`);
  const lines = edges.map(([from, to]) => `${from} -> ${to};`);
  return `digraph { node [shape=box, fontname=monospace, fontsize=10];\n${[...boxes, ...lines].join("\n")}\n}`;
}

async function main(program: string, name: string, recordFile: string, svgFile: string): Promise<void> {
  const recorded: unknown = recordFile
    ? JSON.parse(new TextDecoder().decode(gunzipSync(readFileSync(recordFile))))
    : null;
  const graph = measured(name, recorded);
  const plain = plainOf(treeFor(graph));
  if (program === "dot text") {
    writeFileSync(svgFile, dotOf(plain));
    return;
  }
  const before = process.cpuUsage();
  const start = performance.now();
  const result = await PROGRAMS[program]!(graph, plain);
  const wall = performance.now() - start;
  const { user, system } = process.cpuUsage(before);
  const placed = result();
  if (svgFile) writeFileSync(svgFile, svgOf(placed));
  console.log(
    JSON.stringify({
      wall: wall / 1000,
      cpu: (user + system) / 1e6,
      boxes: placed.boxes.length,
      width: Math.round(placed.width),
    }),
  );
}

const [program = "", name = "", recordFile = "", svgFile = ""] = process.argv.slice(2);
await main(program, name, recordFile, svgFile);
