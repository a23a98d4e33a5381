/** Boxes in words, for those who hear the graph. */
import { ownFrame, placeText, valueText } from "../record";
import { shortTarget } from "./model";
import type { GraphState } from "./state";
import { type Box, isGroup, nodeCount } from "./tree";

const KINDS: Record<string, string> = { module: "module", fold: "equal modules", chunk: "nodes" };

export function describe(box: Box, state: GraphState): string {
  return isGroup(box) ? describeGroup(box, state) : describeNode(box, state);
}

function describeGroup(box: Box, state: GraphState): string {
  const found = state.foundSet.value?.countIn(box);
  return [
    `${KINDS[box.kind]} ${box.label} ${box.detail}`.trim(),
    `${nodeCount(box)} nodes`,
    box.open ? "open" : "closed",
    found ? `${found} found` : "",
  ]
    .filter(Boolean)
    .join(", ");
}

function describeNode(box: Box, state: GraphState): string {
  const { model } = state.tree;
  const node = model.nodes[box.node]!;
  const frame = ownFrame(node);
  const inside = model.inputs[box.node]!.flatMap((input) => model.shortNames.get(input) ?? []);
  return [
    node.name,
    node.op === "call_function" || node.op === "call_method" ? shortTarget(node.target) : node.op,
    valueText(node.value),
    inside.length ? `with ${inside.join(" and ")}` : "",
    frame ? placeText(frame) : "",
    model.badges[box.node] ?? "",
  ]
    .filter(Boolean)
    .join(", ");
}
