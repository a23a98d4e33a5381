/** What Inductor's schedule tells besides kernels, here or on a target: buffers, what stays apart. */
import { kernelRef, nodeRef, valueText } from "../record";
import type { Buffer, Compile, Folded, NotFused } from "../record";
import { sizeText } from "../quantities";
import { tablePage, type Page } from "./Pages";

export interface Schedule {
  buffers: Buffer[];
  folded: Folded[];
  unfused: NotFused[];
}

/** What each word of `Folded.why` means. */
const FOLDED: Record<string, string> = {
  view: "another way to look at memory",
  result: "one of several results of a call",
  size: "arithmetic on sizes, done in Python",
  memory: "memory that is allocated",
  constant: "put in where it is used",
  dead: "nothing uses it",
  effect: "it returns nothing",
  empty: "its result has no elements",
  graphs: "it runs graphs that have kernels of their own",
};

export const directionOf = (graph: string): string => graph.split(".")[1] ?? "";

const bothText = ({ writer, reader }: NotFused): string =>
  writer === reader ? writer : `${writer} and ${reader}`;

const reasonText = (one: NotFused): string => one.reason || "declined without a reason";

export const notFusedText = (one: NotFused): string =>
  `${bothText(one)}: ${reasonText(one)} (${one.buffers.join(", ")}, ${sizeText(one.bytes)})`;

export function schedulePages(compile: Compile, { buffers, folded, unfused }: Schedule): Page[] {
  return [
    ...tablePage(
      "buffers",
      "buffer|direction|role|value|strides|memory|what becomes of it",
      buffers.map((one) => ({
        cells: [
          one.name,
          directionOf(one.graph),
          one.role,
          valueText({ ...one, requires_grad: false }),
          one.stride.join(", "),
          sizeText(one.bytes),
          fateText(one),
        ],
        to: one.node ? nodeRef(compile, one.graph, one.node) : null,
      })),
    ),
    ...tablePage(
      "not fused",
      "kernel|direction|handed on|memory|Inductor's reason|loops",
      [...unfused]
        .sort((a, b) => b.bytes - a.bytes)
        .map((one) => ({
          cells: [
            bothText(one),
            directionOf(one.graph),
            one.buffers.join(", "),
            sizeText(one.bytes),
            reasonText(one),
            one.loops.join("; then "),
          ],
          to: one.writer ? kernelRef(compile, { ...one, name: one.writer }) : null,
        })),
    ),
    ...tablePage(
      "without a kernel",
      "node|direction|why",
      folded.map((one) => ({
        cells: [one.node, directionOf(one.graph), FOLDED[one.why] ?? (one.why || "not known")],
        to: nodeRef(compile, one.graph, one.node),
      })),
    ),
  ];
}

function fateText({ reuses, in_place, mutates, views, saved }: Buffer): string {
  const facts = [
    reuses && `has the memory of ${reuses} (${in_place ? "in place" : "reused"})`,
    mutates.length > 0 && `writes into ${mutates.join(", ")}`,
    views.length > 0 && `looks at ${views.join(", ")}`,
    saved && "saved for backward",
  ];
  return facts.filter(Boolean).join(", ");
}
