/** The rows of the outline: the tree of a graph as a list, as far as it is open. */
import { hasWideOutput } from "./model";
import { type LaneRow, lanes } from "./lanes";
import type { NodeSet } from "./marks";
import { type Box, isGroup, type Tree } from "./tree";

export interface Row {
  box: Box;
  depth: number;
  lane: LaneRow;
}

/** Return the rows. With `found`, only what a search found, and the groups around it. */
export function outlineRows(tree: Tree, found: NodeSet | null): Row[] {
  const boxes: Box[] = [];
  const visit = (box: Box): void => {
    if (found && !found.countIn(box)) return;
    if (box.parent) boxes.push(box);
    if (isGroup(box) && (box.open || found)) box.kids.forEach(visit);
  };
  visit(tree.root);
  const laneRows = lanes(found ? boxes.map(() => null) : rowInputs(tree, boxes));
  return boxes.map((box, at) => ({ box, depth: box.depth - 1, lane: laneRows[at]! }));
}

function rowInputs(tree: Tree, boxes: Box[]): (number[] | null)[] {
  const { model, order } = tree;
  const rowOf = new Int32Array(model.nodes.length).fill(-1);
  boxes.forEach((box, row) => {
    if (isGroup(box) && box.open) return;
    for (let at = box.start; at < box.end; at++) rowOf[order[at]!] = row;
  });
  return boxes.map((box, row) => {
    if (isGroup(box) && box.open) return null;
    const used = new Set<number>();
    for (let at = box.start; at < box.end; at++) {
      const node = order[at]!;
      if (node === model.output && hasWideOutput(model)) continue;
      for (const input of model.inputs[node]!) {
        const from = rowOf[input]!;
        if (from >= 0 && from !== row) used.add(from);
      }
    }
    return [...used];
  });
}
