/** What is known of kernels on this machine: code, memory, work, times, and what was not fused. */
import type { ComponentChildren, VNode } from "preact";
import type { Language } from "../code/tokens";
import { plural } from "../describe";
import { compileKey, kernelRef, nodeRef, valueText } from "../record";
import type { Buffer, CellRecord, Compile, Folded, Kernel, KernelTime, NotFused } from "../record";
import { bytesOf, floorOf, shareText, sizeText, sum, timeText } from "../quantities";
import type { CodePart } from "../store";
import { Chip, Loaded } from "../ui";
import { binaryFacts, stageLabel } from "./TargetPages";
import { codePage, factsPage, Pages, tablePage, type Fact, type Page, type PagesProps } from "./Pages";

const LANGUAGES: Record<string, Language> = { cpp: "cpp", triton: "python", ptx: "ptx" };

export function KernelPages(props: PagesProps): VNode {
  const { view, compile, kernel } = props;
  const key = compileKey(compile);
  return (
    <Loaded part={view.store.code(compile)} what="code" retry={() => view.store.retry("code", key)}>
      {(part) => (
        <Pages
          {...props}
          pages={[...(kernel ? ofKernel(props, kernel, part) : []), ...ofAll(compile, part)]}
        />
      )}
    </Loaded>
  );
}

function ofKernel({ view, compile }: PagesProps, kernel: Kernel, part: CodePart): Page[] {
  const code = part.kernels[`${kernel.graph}/${kernel.name}`] ?? "";
  const pairs = part.unfused.filter(
    (one) => one.graph === kernel.graph && [one.writer, one.reader].includes(kernel.name),
  );
  const binaries = part.binaries.filter((one) => one.kernel === kernel.name && one.graph === kernel.graph);
  return [
    codePage(view, kernel.name, "code", code, LANGUAGES[kernel.language] ?? "python"),
    ...binaries.flatMap(({ texts }) =>
      texts.map(({ stage, text }) => codePage(view, kernel.name, stageLabel(stage), text, "ptx")),
    ),
    factsPage("facts", kernel.name, [
      ...workFacts(kernel, (access) => <Accesses {...{ compile, kernel, access }} buffers={part.buffers} />),
      ["at best", floorText(view.record, kernel)],
      ["measured", measuredText(view.record, compile, kernel)],
      ...binaries.flatMap(binaryFacts),
      ...pairs.map((one): Fact => ["not fused", notFusedText(one)]),
    ]),
  ];
}

/** The work of a kernel, here or on a target. */
export function workFacts(
  kernel: Kernel,
  accesses: (access: Record<string, number>) => ComponentChildren,
): Fact[] {
  const { calls, replaces, reads, writes, flops } = kernel;
  const bytes = bytesOf(kernel);
  return [
    ["launches", calls > 0 && plural(calls, "call site")],
    ["in place of", replaces > 0 && `${plural(replaces, "operator")} of eager`],
    ["reads", sum(reads) > 0 && accesses(reads)],
    ["writes", sum(writes) > 0 && accesses(writes)],
    ["operations", flops !== null && flops.toLocaleString("en")],
    ["operations a byte", flops !== null && bytes > 0 && String(Number((flops / bytes).toPrecision(3)))],
  ];
}

/** How much is read or written, by buffer; a buffer lights the node that it holds. */
function Accesses(props: {
  compile: Compile;
  kernel: Kernel;
  access: Record<string, number>;
  buffers: Buffer[];
}): VNode {
  const { compile, kernel, access, buffers } = props;
  const nodes = new Map(buffers.filter((one) => one.graph === kernel.graph).map((one) => [one.name, one.node]));
  return (
    <>
      {sizeText(sum(access))}:{" "}
      {Object.entries(access).map(([name, size]) => {
        const node = nodes.get(name);
        const text = `${name} ${sizeText(size)}`;
        return node ? <Chip to={nodeRef(compile, kernel.graph, node)}>{text}</Chip> : `${text} `;
      })}
    </>
  );
}

function floorText(record: CellRecord, kernel: Kernel): string {
  const texts = record.machines.map((one) => {
    const floor = floorOf(one, kernel);
    return floor && `${timeText(floor.seconds)}, bound by ${floor.bound} (${one.name}, ${one.source})`;
  });
  return texts.filter(Boolean).join("; ") || (bytesOf(kernel) ? "not known: --time measures this machine" : "");
}

/** What a kernel took where it was measured (`--time`). */
export const timesOf = (record: CellRecord, compile: Compile, kernel: Kernel): KernelTime[] =>
  record.timings
    .flatMap((timing) => timing.kernels)
    .filter(
      (one) =>
        one.name === kernel.name && one.compile === compileKey(compile) && one.graph === kernel.graph,
    );

function measuredText(record: CellRecord, compile: Compile, kernel: Kernel): string {
  const floor = floorOf(record.machines[0], kernel);
  const texts = timesOf(record, compile, kernel).map(({ seconds }) => {
    const share = floor && seconds ? `, ${shareText(floor, seconds)}` : "";
    return `${timeText(seconds)} a call of the function${share}`;
  });
  return texts.join("; ");
}

const bothText = ({ writer, reader }: NotFused): string =>
  writer === reader ? writer : `${writer} and ${reader}`;

const reasonText = (one: NotFused): string => one.reason || "declined without a reason";

const notFusedText = (one: NotFused): string =>
  `${bothText(one)}: ${reasonText(one)} (${one.buffers.join(", ")}, ${sizeText(one.bytes)})`;

// ------------------------------------------------------------------ of the compile as a whole

/** What each word of `Folded.why` means. */
const FOLDED: Record<string, string> = {
  view: "another way to look at memory",
  result: "one of several results of a call",
  size: "arithmetic on sizes, done in Python",
  constant: "put in where it is used",
  dead: "nothing uses it",
  effect: "it returns nothing",
};

const directionOf = (graph: string): string => graph.split(".")[1] ?? "";

function ofAll(compile: Compile, part: CodePart): Page[] {
  const unfused = [...part.unfused].sort((a, b) => b.bytes - a.bytes);
  return [
    ...tablePage(
      "autotuning",
      "for|direction|sizes|candidate|time|details",
      part.tunings.flatMap((one) =>
        one.choices.map((choice) => ({
          cells: [
            one.operation || one.kernel,
            directionOf(one.graph),
            one.sizes.join(", "),
            choice.name,
            choice.microseconds === null ? "could not run" : timeText(choice.microseconds / 1e6),
            choice.detail,
          ],
          to: one.node ? nodeRef(compile, one.graph, one.node) : kernelRef(compile, { ...one, name: one.kernel }),
        })),
      ),
    ),
    ...tablePage(
      "CUDA graphs",
      "direction|warm-ups|recordings|replays|recorded again because",
      compile.cudagraphs.map((one) => ({
        cells: [directionOf(one.graph), one.warm_ups, one.recordings, one.replays, one.reasons.join("; ")],
      })),
    ),
    ...tablePage(
      "buffers",
      "buffer|direction|role|value|strides|memory|what becomes of it",
      part.buffers.map((one) => ({
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
      unfused.map((one) => {
        const writer = compile.kernels.find((it) => it.name === one.writer && it.graph === one.graph);
        const cells = [
          bothText(one),
          directionOf(one.graph),
          one.buffers.join(", "),
          sizeText(one.bytes),
          reasonText(one),
          one.loops.join("; then "),
        ];
        return { cells, to: writer ? kernelRef(compile, writer) : null };
      }),
    ),
    ...foldedPage(compile, part.folded),
  ];
}

/** The nodes that need no kernel, here or on a target. */
export const foldedPage = (compile: Compile, folded: Folded[]): Page[] =>
  tablePage(
    "without a kernel",
    "node|direction|why",
    folded.map((one) => ({
      cells: [one.node, directionOf(one.graph), FOLDED[one.why] ?? (one.why || "not known")],
      to: nodeRef(compile, one.graph, one.node),
    })),
  );

function fateText({ reuses, in_place, mutates, views, saved }: Buffer): string {
  const facts = [
    reuses && `has the memory of ${reuses} (${in_place ? "in place" : "reused"})`,
    mutates.length > 0 && `writes into ${mutates.join(", ")}`,
    views.length > 0 && `looks at ${views.join(", ")}`,
    saved && "saved for backward",
  ];
  return facts.filter(Boolean).join(", ");
}
