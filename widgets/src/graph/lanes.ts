/** Lanes beside a list of nodes, as in a log of commits: each value keeps one while it is used. */

export interface LaneRow {
  /** The row's own lane; -1 for a row that makes no value. */
  lane: number;
  /** The lanes of the values that the row uses. */
  from: number[];
  /** The lanes of values that pass the row. */
  passing: number[];
  /** Whether the row's value is used below. */
  used: boolean;
}

/** More lanes than this are not drawn: their values only show where they are used. */
export const MOST_LANES = 14;

/**
 * Give each row a lane. `inputs[row]` are the earlier rows whose values it uses, or null for a row
 * that stands apart, such as a heading.
 */
export function lanes(inputs: (number[] | null)[]): LaneRow[] {
  const lastUse = new Int32Array(inputs.length).fill(-1);
  inputs.forEach((used, row) => used?.forEach((one) => (lastUse[one] = row)));
  const holders: number[] = []; // by lane: the row whose value it carries, or -1
  const laneOf = new Int32Array(inputs.length).fill(-1);
  return inputs.map((used, row) => {
    if (!used) return { lane: -1, from: [], passing: held(holders), used: false };
    const from = used.map((one) => laneOf[one]!).filter((lane) => lane >= 0 && lane < MOST_LANES);
    used.forEach((one) => {
      const lane = laneOf[one]!;
      if (lastUse[one] === row && lane >= 0) holders[lane] = -1;
    });
    const isUsed = lastUse[row]! > row;
    const lane = freeLane(holders);
    const passing = held(holders);
    laneOf[row] = lane;
    if (isUsed) holders[lane] = row;
    return { lane, from, passing, used: isUsed };
  });
}

const held = (holders: number[]): number[] =>
  holders.flatMap((holder, lane) => (holder >= 0 && lane < MOST_LANES ? [lane] : []));

function freeLane(holders: number[]): number {
  const free = holders.indexOf(-1);
  return free >= 0 ? free : holders.push(-1) - 1;
}
