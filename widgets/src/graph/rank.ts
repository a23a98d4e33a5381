/** The rows of a group's boxes. */
import { zeros } from "./neighbours";
import type { Wiring } from "./layered";

/** Give each vertex a row: below all that it uses, and not far above its first user. */
export function rank(wiring: Wiring): number[] {
  const { from, to, inPorts, outPorts, last } = wiring;
  const boxes = wiring.width.length;
  const first = inPorts ? 1 : 0;
  const rows = zeros(boxes + inPorts + outPorts).fill(first, 0, boxes);
  const hasInput = new Array<boolean>(boxes).fill(false);
  for (let edge = 0; edge < from.length; edge++) {
    const user = to[edge]!;
    if (user >= boxes) continue;
    rows[user] = Math.max(rows[user]!, rows[from[edge]!]! + 1);
    hasInput[user] = true;
  }
  const closest = new Array<number>(boxes).fill(Infinity);
  for (let edge = 0; edge < from.length; edge++) {
    const [v, user] = [from[edge]!, to[edge]!];
    if (user < boxes && v < boxes) closest[v] = Math.min(closest[v]!, rows[user]!);
  }
  for (let v = 0; v < boxes; v++) {
    if (!hasInput[v] && closest[v]! < Infinity) rows[v] = Math.max(first, closest[v]! - 1);
  }
  let bottom = first;
  for (let v = 0; v < boxes; v++) if (v !== last) bottom = Math.max(bottom, rows[v]!);
  if (last >= 0) rows[last] = bottom = boxes > 1 ? bottom + 1 : first;
  return rows.fill(bottom + 1, boxes + inPorts);
}
