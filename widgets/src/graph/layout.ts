/**
 * The drawing of a tree of boxes: each open group is placed by itself, inner ones first. An edge
 * between boxes of different groups passes the borders of all groups between them through ports.
 */
import { sizeOf, headWidth, HEAD, PAD } from "./sizes";
import { hasWideOutput } from "./model";
import { Placer, type Placement, type Wiring } from "./layered";
import { type Box, isGroup, type Tree } from "./tree";

/** One drawn line. `from` is the box whose value it carries, `to` the box or group it leads to. */
export interface Segment {
  from: Box;
  to: Box;
  /** False where the line ends at a group's border and goes on in- or outside. */
  arrow: boolean;
  /** For one of the two stubs of a cut edge: the box at the other end. */
  far: Box | null;
  points: number[];
  /** Where in `points` it leaves another line of the same value, which is drawn already. */
  branch: number;
}

export interface Scene {
  /** The boxes that are shown, groups before what they hold. */
  boxes: Box[];
  segments: Segment[];
  width: number;
  height: number;
}

/** An edge within one group, before it is placed. */
interface Wire {
  producer: Box;
  from: Box | null; // null: comes in through a port
  to: Box | null; // null: goes out through a port
}

/** What is known of an open group while its parent is laid out; by the group's id. */
type Levels = (Level | undefined)[];

interface Level {
  wires: Wire[];
  /** The wires that others may share: those that pass the group's border, or another one's. */
  shared: Set<number>;
  /** By the producer's id, the number of its port. */
  inPorts: Map<number, number>;
  outPorts: Map<number, number>;
  placement: Placement | null;
  left: number;
}

export function layout(tree: Tree): Scene {
  const levels: Levels = new Array(tree.boxes.length);
  wire(tree, levels);
  measure(tree.root, tree, levels, new Placer());
  const scene: Scene = { boxes: [], segments: [], width: tree.root.w, height: tree.root.h };
  tree.root.x = tree.root.y = 0;
  settle(tree.root, levels, scene);
  return scene;
}

function levelOf(group: Box, levels: Levels): Level {
  let level = levels[group.id];
  if (!level) {
    levels[group.id] = level = { wires: [], shared: new Set(), inPorts: new Map(), outPorts: new Map(), placement: null, left: 0 };
  }
  return level;
}

/** Lead every value to its users, level by level. */
function wire(tree: Tree, levels: Levels): void {
  const { model } = tree;
  const shown = shownBoxes(tree);
  const last = new Int32Array(tree.boxes.length).fill(-1); // a box's nodes follow each other
  for (const user of tree.order) {
    if (user === model.output && hasWideOutput(model)) continue;
    const to = shown[user]!;
    for (const input of model.inputs[user]!) {
      const from = shown[input];
      if (!from || from === to) continue;
      if (last[from.id] === to.id) continue;
      last[from.id] = to.id;
      lead(from, to, tree, levels);
    }
  }
}

function shownBoxes(tree: Tree): (Box | undefined)[] {
  const shown: (Box | undefined)[] = new Array(tree.model.nodes.length);
  const visit = (box: Box): void => {
    if (isGroup(box) && box.open) box.kids.forEach(visit);
    else for (let at = box.start; at < box.end; at++) shown[tree.order[at]!] = box;
  };
  visit(tree.root);
  return shown;
}

function lead(producer: Box, consumer: Box, tree: Tree, levels: Levels): void {
  const size = tree.boxes.length + 1;
  const add = (group: Box, from: Box | null, to: Box | null): void => {
    const level = levelOf(group, levels);
    if (from !== producer || to !== consumer) {
      const key = producer.id * size + (to ? to.id : size - 1);
      if (level.shared.has(key)) return;
      level.shared.add(key);
    }
    level.wires.push({ producer, from, to });
    if (!from && !level.inPorts.has(producer.id)) level.inPorts.set(producer.id, level.inPorts.size);
    if (!to && !level.outPorts.has(producer.id)) level.outPorts.set(producer.id, level.outPorts.size);
  };
  let from = producer;
  let to = consumer;
  while (from.parent !== to.parent) {
    if (from.depth >= to.depth) {
      add(from.parent!, from, null);
      from = from.parent!;
    } else {
      add(to.parent!, null, to);
      to = to.parent!;
    }
  }
  add(from.parent!, from, to);
}

/** Size a box; an open group by placing what it holds. */
function measure(box: Box, tree: Tree, levels: Levels, placer: Placer): void {
  if (!isGroup(box) || !box.open) {
    if (isGroup(box) || Number.isNaN(box.w)) [box.w, box.h] = sizeOf(box, tree.model);
    return;
  }
  for (const kid of box.kids) measure(kid, tree, levels, placer);
  const level = levelOf(box, levels);
  const placement = placer.place(wiringOf(box, level, tree, levels));
  const head = box.parent ? HEAD : 0;
  level.placement = placement;
  box.w = Math.max(placement.width, headWidth(box)) + 2 * PAD;
  level.left = (box.w - placement.width) / 2;
  box.h = placement.height + head + (level.outPorts.size ? 0 : PAD) + (level.inPorts.size ? 0 : PAD);
}

/** Where the contents of a group begin, from its top: ports lie on the border itself. */
const contentTop = (group: Box, level: Level): number =>
  (group.parent ? HEAD : 0) + (level.inPorts.size ? 0 : PAD);

function wiringOf(group: Box, level: Level, tree: Tree, levels: Levels): Wiring {
  const boxes = group.kids.length;
  const wiring: Wiring = {
    width: group.kids.map((kid) => kid.w),
    height: group.kids.map((kid) => kid.h),
    inPorts: level.inPorts.size,
    outPorts: level.outPorts.size,
    last: group.kids.findIndex((kid) => kid.node >= 0 && kid.node === tree.model.output),
    from: [],
    to: [],
    fromShift: [],
    toShift: [],
    chain: [],
    chains: 0,
  };
  const chains = new Map<number, number>(); // a value leaves a group's row at one place only
  for (const { producer, from, to } of level.wires) {
    let chain = chains.get(producer.id);
    if (chain === undefined) chains.set(producer.id, (chain = chains.size));
    wiring.chain.push(chain);
    wiring.from.push(from ? from.at : boxes + level.inPorts.get(producer.id)!);
    wiring.to.push(
      to ? to.at : boxes + level.inPorts.size + level.outPorts.get(producer.id)!,
    );
    wiring.fromShift.push(from ? portShift(from, producer, "outPorts", levels) : 0);
    wiring.toShift.push(to ? portShift(to, producer, "inPorts", levels) : 0);
  }
  wiring.chains = chains.size;
  return wiring;
}

/** How far from a group's middle a value crosses its border; 0 for other boxes. */
function portShift(
  box: Box,
  producer: Box,
  side: "inPorts" | "outPorts",
  levels: Levels,
): number {
  const level = levels[box.id];
  const port = level?.[side].get(producer.id);
  if (!level?.placement || port === undefined) return 0;
  const before = box.kids.length + (side === "outPorts" ? level.inPorts.size : 0);
  return level.placement.x[before + port]! + level.left - box.w / 2;
}

/** Turn places within groups into places in the drawing. */
function settle(group: Box, levels: Levels, scene: Scene): void {
  const level = levelOf(group, levels);
  const placement = level.placement!;
  const left = group.x + level.left;
  const top = group.y + contentTop(group, level);
  group.kids.forEach((kid, at) => {
    kid.x = left + placement.x[at]!;
    kid.y = top + placement.y[at]!;
    scene.boxes.push(kid);
    if (isGroup(kid) && kid.open) settle(kid, levels, scene);
  });
  let edge = 0;
  for (const { producer, from, to } of level.wires) {
    const line = placement.lines[edge++]!;
    const { branch } = line;
    const points = moved(line.points, left, top);
    if (!from) points[1] = group.y;
    const target = to ?? group;
    const arrow = !!to && !(isGroup(to) && to.open);
    if (!line.stub) {
      if (!to) points[points.length - 1] = group.y + group.h;
      scene.segments.push({ from: producer, to: target, arrow, far: null, points, branch });
      continue;
    }
    const stub = moved(line.stub, left, top);
    if (!to) stub[3] = group.y + group.h;
    scene.segments.push({ from: producer, to: target, arrow: false, far: target, points, branch });
    scene.segments.push({ from: producer, to: target, arrow, far: producer, points: stub, branch });
  }
}

/** A line at its place: the one that it is made from may belong to several groups. */
function moved(points: number[], dx: number, dy: number): number[] {
  const placed = points.slice();
  for (let at = 0; at < placed.length; at += 2) {
    placed[at]! += dx;
    placed[at + 1]! += dy;
  }
  return placed;
}
