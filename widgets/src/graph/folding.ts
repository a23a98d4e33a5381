/** Fewer boxes where there are many: runs of equal layers, and rows cut into parts. */
import { type GraphModel, shortTarget } from "./model";
import { type Box, isGroup, newBox } from "./tree";

/** A run of this many equal layers is folded, its first one left out as the example. */
const MIN_RUN = 3;
/** A group with more boxes than this is cut into parts. */
const MAX_KIDS = 160;

/** Fold runs of equal layers: `layers.0` stays, `layers.1…11` become one box. */
export function foldRuns(kids: Box[], signatures: Signatures): Box[] {
  const out: Box[] = [];
  for (let at = 0; at < kids.length; ) {
    let end = at + 1;
    while (end < kids.length && alike(kids[end - 1]!, kids[end]!, signatures)) end++;
    if (end - at >= MIN_RUN) {
      out.push(kids[at]!, fold(kids.slice(at + 1, end)));
      at = end;
    }
    while (at < end) out.push(kids[at++]!);
  }
  return out;
}

function fold(run: Box[]): Box {
  const [first, last] = [run[0]!, run[run.length - 1]!];
  return newBox("fold", `${first.label}…${numberOf(last.label)}`, first.detail, run);
}

const numberOf = (label: string): string => /(\d+)\D*$/.exec(label)?.[1] ?? label;
const stemOf = (label: string): string => label.replace(/\d+(\D*)$/, "#$1");

function alike(a: Box, b: Box, signatures: Signatures): boolean {
  return (
    a.kind === "module" &&
    b.kind === "module" &&
    a.detail === b.detail &&
    a.label !== b.label &&
    stemOf(a.label) === stemOf(b.label) &&
    signatures.of(a) === signatures.of(b)
  );
}

/** Numbers that are equal for groups with the same operators, nested in the same way. */
export class Signatures {
  readonly #numbers = new Map<string, number>();
  readonly #known = new Map<Box, number>();

  constructor(readonly model: GraphModel) {}

  of(box: Box): number {
    if (!isGroup(box)) return this.#number(shortTarget(this.model.nodes[box.node]!.target));
    let found = this.#known.get(box);
    if (found === undefined) {
      found = this.#number(`${box.detail}(${box.kids.map((kid) => this.of(kid)).join()})`);
      this.#known.set(box, found);
    }
    return found;
  }

  #number(text: string): number {
    let found = this.#numbers.get(text);
    if (found === undefined) this.#numbers.set(text, (found = this.#numbers.size));
    return found;
  }
}

/** Cut a row of many boxes into parts of about its square root, as often as it takes. */
export function chunkMany(kids: Box[], model: GraphModel): Box[] {
  if (kids.length <= MAX_KIDS) return kids;
  const size = Math.min(MAX_KIDS / 4, Math.ceil(Math.sqrt(kids.length)));
  const parts: Box[] = [];
  for (let at = 0; at < kids.length; at += size) {
    const part = kids.slice(at, at + size);
    parts.push(part.length > 1 ? newBox("chunk", span(part, model), "", part) : part[0]!);
  }
  return chunkMany(parts, model);
}

const span = (part: Box[], model: GraphModel): string =>
  `${edgeName(part[0]!, 0, model)} … ${edgeName(part[part.length - 1]!, -1, model)}`;

function edgeName(box: Box, end: 0 | -1, model: GraphModel): string {
  let at = box;
  while (at.kind === "chunk") at = at.kids.at(end)!;
  return isGroup(at) ? at.label : model.nodes[at.node]!.name;
}
