/** Where the arrow keys lead in the drawing. */
import type { Box } from "./tree";

export type Direction = "up" | "down" | "left" | "right";

export const ARROWS: Record<string, Direction> = {
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
};

const ASIDE = 3; // how much more a step sideways costs than one ahead

/** The nearest box in a direction, boxes straight ahead first; null when there is none. */
export function neighbour(boxes: Box[], from: Box, direction: Direction): Box | null {
  let best: Box | null = null;
  let least = Infinity;
  for (const box of boxes) {
    if (box === from) continue;
    const cost = costOf(from, box, direction);
    if (cost < least) [best, least] = [box, cost];
  }
  return best;
}

function costOf(from: Box, to: Box, direction: Direction): number {
  const vertical = direction === "up" || direction === "down";
  const sign = direction === "down" || direction === "right" ? 1 : -1;
  const [dx, dy] = [middle(to) - middle(from), to.y - from.y];
  const ahead = (vertical ? dy : dx) * sign;
  const aside = Math.abs(vertical ? dx : dy);
  return ahead > 0.5 ? ahead + aside * ASIDE : Infinity;
}

const middle = (box: Box): number => box.x + box.w / 2;
