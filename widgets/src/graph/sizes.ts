/** How large boxes are, and the texts that make them so. */
import { valueText } from "../record";
import { type GraphModel, operatorBeside } from "./model";
import { type Box, isGroup, nodeCount } from "./tree";

export const PAD = 10;
/** Height of an open group's heading. */
export const HEAD = 22;
/** Width of a character of the small and the normal monospaced text. */
export const CHAR = 6.63;
export const SMALL_CHAR = 5.43;
const LINE = 14;
const MAX_NAME = 34;
const MAX_SMALL = 40;
const ROOM = 8;

/** The texts in a box: its name and operator, its value, and what it holds inside. */
export interface Texts {
  name: string;
  beside: string;
  below: string;
  inside: string;
}

export function textsOf(box: Box, model: GraphModel): Texts {
  if (isGroup(box)) return groupTexts(box);
  const node = model.nodes[box.node]!;
  const value = valueText(node.value);
  return {
    name: clip(node.name, MAX_NAME),
    beside: clip(operatorBeside(node), MAX_NAME),
    below: clip(box.detail && value ? `${box.detail} · ${value}` : box.detail || value, MAX_SMALL),
    inside: insideText(box, model),
  };
}

function groupTexts(box: Box): Texts {
  const count = nodeCount(box);
  const nodes = `${count} node${count === 1 ? "" : "s"}`;
  const below = box.kind === "fold" ? `${box.kids.length} × ${box.kids[0]!.end - box.kids[0]!.start} nodes` : nodes;
  const times = box.kind === "fold" ? ` ×${box.kids.length}` : "";
  return {
    name: clip(box.label || box.detail, MAX_NAME) + times,
    beside: box.label ? clip(box.detail, MAX_NAME) : "",
    below,
    inside: "",
  };
}

/** The parameters and saved values that a node uses, as many as there is room for. */
function insideText(box: Box, model: GraphModel): string {
  const names = model.inputs[box.node]!
    .filter((input) => model.inside[input])
    .map((input) => model.shortNames.get(input)!);
  if (!names.length) return "";
  let text = "";
  let shown = 0;
  for (const name of names) {
    const longer = text ? `${text}, ${name}` : name;
    if (shown && longer.length > MAX_SMALL - 4) break;
    text = clip(longer, MAX_SMALL);
    shown++;
  }
  return shown < names.length ? `${text} +${names.length - shown}` : text;
}

export const clip = (text: string, most: number): string =>
  text.length <= most
    ? text
    : `${text.slice(0, Math.ceil(most / 2) - 1)}…${text.slice(text.length - Math.floor(most / 2))}`;

export function sizeOf(box: Box, model: GraphModel): [number, number] {
  const texts = textsOf(box, model);
  const marker = isGroup(box) ? 2 : 0;
  const first = texts.name.length + marker + (texts.beside ? texts.beside.length + 1 : 0);
  const badge = !isGroup(box) && model.badges[box.node] ? model.badges[box.node]!.length + 2 : 0;
  const small = Math.max(texts.below.length + badge, texts.inside ? texts.inside.length + 2 : 0);
  const lines = 1 + (texts.below || badge ? 1 : 0) + (texts.inside ? 1 : 0);
  return [
    Math.round(Math.max(44, first * CHAR, small * SMALL_CHAR) + 2 * ROOM + 2),
    lines * LINE + 9,
  ];
}

/** The room that an open group's heading takes. */
export const headWidth = (box: Box): number =>
  box.parent ? (Math.min(box.label.length + box.detail.length, 2 * MAX_NAME) + 4) * CHAR : 0;
