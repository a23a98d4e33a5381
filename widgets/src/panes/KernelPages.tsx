/** What is known of kernels on this machine: code, nodes, memory, work, times. */
import type { ComponentChildren, VNode } from "preact";
import type { Language } from "../code/tokens";
import { plural } from "../describe";
import { CELL, compileKey, kernelRef, nodeRef, ownFrame, valueText } from "../record";
import type { Buffer, CellRecord, Compile, Graph, Kernel, KernelTime } from "../record";
import { bytesOf, floorOf, floorText, shareText, sizeText, sum, timeText } from "../quantities";
import type { CodePart } from "../store";
import { Chip, Loaded, Place, Table } from "../ui";
import { binaryFacts, codePages } from "./TargetPages";
import { factsPage, Pages, tablePage, type Fact, type Page, type PagesProps } from "./Pages";
import { rooflinePage } from "./Roofline";
import { directionOf, notFusedText, schedulePages, type Schedule } from "./SchedulePages";

const LANGUAGES: Record<string, Language> = { cpp: "cpp", triton: "python", ptx: "ptx" };

export function KernelPages(props: PagesProps): VNode {
  const { view, compile, kernel } = props;
  const key = compileKey(compile);
  return (
    <Loaded part={view.store.code(compile)} what="code" retry={() => view.store.retry("code", key)}>
      {(part) => (
        <Pages
          {...props}
          pages={[...(kernel ? ofKernel(props, kernel, part) : []), ...ofAll(props, part)]}
        />
      )}
    </Loaded>
  );
}

function ofKernel({ view, compile }: PagesProps, kernel: Kernel, part: CodePart): Page[] {
  const code = part.kernels[`${kernel.graph}/${kernel.name}`] ?? "";
  const binaries = part.binaries.filter((one) => one.kernel === kernel.name && one.graph === kernel.graph);
  const { graph } = kernel;
  return [
    ...codePages(
      view,
      compile,
      kernel,
      "code",
      code,
      LANGUAGES[kernel.language] ?? "python",
      binaries.flatMap(({ texts }) => texts),
    ),
    {
      label: "nodes",
      count: kernel.nodes.length,
      show: () => (
        <Loaded
          part={view.store.graph(compile, graph)}
          what={`${graph} graph`}
          retry={() => view.store.retry("graph", compileKey(compile), graph)}
        >
          {(whole) => <Nodes {...{ compile, kernel }} graph={whole} />}
        </Loaded>
      ),
    },
    factsPage("facts", kernel.name, [
      ...workFacts(compile, kernel, part),
      ["at best", atBest(view.record, kernel)],
      ["measured", measuredText(view.record, compile, kernel)],
      ...binaries.flatMap(binaryFacts),
    ]),
  ];
}

/** The nodes that were fused into a kernel, each with its line and what it comes from. */
export function Nodes(props: { compile: Compile; kernel: Kernel; graph: Graph | undefined }): VNode {
  const { compile, kernel, graph } = props;
  const nodes = graph?.nodes.filter((one) => kernel.nodes.includes(one.name)) ?? [];
  return (
    <div class="dnx-scroll">
      <Table
        label={`nodes of ${kernel.name}`}
        columns={["node", "target", "value", "line", "comes from"]}
        rows={nodes.map((node) => ({
          cells: [
            node.name,
            node.target,
            valueText(node.value),
            [node.frames.findLast((one) => one.file === CELL) ?? ownFrame(node), ...node.also].map(
              (frame) => frame && <Place frame={frame} />,
            ),
            node.origins.length > 0 &&
              node.origins.map((origin) => <Chip to={[compileKey(compile), "node", origin]}>{origin}</Chip>),
          ],
          to: nodeRef(compile, kernel.graph, node.name),
        }))}
      />
    </div>
  );
}

/** The work of a kernel, here or on a target, and what it was not fused with. */
export function workFacts(compile: Compile, kernel: Kernel, { buffers, unfused }: Schedule): Fact[] {
  const { calls, replaces, reads, writes, flops } = kernel;
  const bytes = bytesOf(kernel);
  const pairs = unfused.filter(
    (one) => one.graph === kernel.graph && [one.writer, one.reader].includes(kernel.name),
  );
  const accesses = (access: Record<string, number>): ComponentChildren =>
    sum(access) > 0 && <Accesses {...{ compile, kernel, access, buffers }} />;
  return [
    ["launches", calls > 0 && plural(calls, "call site")],
    ["in place of", replaces > 0 && `all or part of ${plural(replaces, "operator")} of eager`],
    ["reads", accesses(reads)],
    ["writes", accesses(writes)],
    ["operations", flops !== null && flops.toLocaleString("en")],
    ["operations a byte", flops !== null && bytes > 0 && String(Number((flops / bytes).toPrecision(3)))],
    ...pairs.map((one): Fact => ["not fused", notFusedText(one)]),
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

function atBest(record: CellRecord, kernel: Kernel): string {
  const texts = record.machines.map((one) => {
    const floor = floorOf(one, kernel);
    return floor && `${floorText(floor)} (${one.name}, ${one.source})`;
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
    const share = floor?.whole && seconds ? `, ${shareText(floor, seconds)}` : "";
    return `${timeText(seconds)} a call of the function${share}`;
  });
  return texts.join("; ");
}

// ------------------------------------------------------------------ of the compile as a whole

function ofAll({ view, compile }: PagesProps, part: CodePart): Page[] {
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
    ...rooflinePage(compile, view.record.machines[0], measuredOf(view.record, compile), "measured"),
    ...schedulePages(compile, part),
  ];
}

const measuredOf = (record: CellRecord, compile: Compile): [Kernel, number][] =>
  compile.kernels.flatMap((kernel) =>
    timesOf(record, compile, kernel)
      .filter(({ seconds }) => seconds > 0)
      .map(({ seconds }): [Kernel, number] => [kernel, seconds]),
  );
