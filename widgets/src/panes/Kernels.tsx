/** The kernels of one compile, here or on a target: what was fused into each, and what it takes. */
import type { VNode } from "preact";
import { useSignal, useSignalEffect } from "@preact/signals";
import { VirtualList } from "../code/VirtualList";
import { plural } from "../describe";
import { CELL, compileKey, fileText, kernelRef, lineOf, type Compile, type Kernel } from "../record";
import { bytesOf, sizeText, sum, timeText } from "../quantities";
import { refsIn, refKey } from "../selection";
import { Empty, Tabs } from "../ui";
import type { View } from "../view";
import { KernelPages, timesOf } from "./KernelPages";
import { binaryOf, PREDICTED, TargetPages } from "./TargetPages";

export function Kernels({ view, compile }: { view: View; compile: Compile }): VNode {
  const { targets } = compile;
  const device = useSignal(compile.kernels.length ? "" : (targets[0]?.spec ?? ""));
  const page = useSignal("");
  const last = useSignal<Kernel | undefined>(undefined);
  const target = targets.find((one) => one.spec === device.value);
  const kernels = (target ?? compile).kernels;
  const { selection } = view;
  useSignalEffect(() => {
    const on = targets.find((one) => one.spec === device.value) ?? compile;
    const lit = on.kernels.filter((one) => selection.lit.value.has(refKey(kernelRef(compile, one))));
    if (lit.length === 1) last.value = lit[0];
  });
  const chosen = kernels.find((one) => one === last.value);
  const pages = { view, compile, kernel: chosen, page };
  const devices = [{ id: "", label: "this machine" }, ...targets.map(({ spec }) => ({ id: spec, label: spec }))];
  const launches = launchesText(target ?? compile);
  const summary = target
    ? `${target.device || target.spec}, ${[PREDICTED, launches].filter(Boolean).join("; ")}`
    : launches;
  if (!kernels.length && !targets.length) return <Empty>{noKernels(compile)}</Empty>;
  return (
    <>
      {(targets.length > 0 || summary) && (
        <div class="dnx-bar dnx-tools">
          {targets.length > 0 && (
            <Tabs label="device" tabs={devices} chosen={device.value} choose={(id) => (device.value = id)} />
          )}
          <span class={`dnx-ellipsis ${target ? "dnx-warn" : ""}`} title={summary}>
            {summary}
          </span>
        </div>
      )}
      {kernels.length ? (
        <VirtualList
          key={device.value}
          label={`kernels of ${compileKey(compile)}`}
          className="dnx-table dnx-kernel-rows"
          count={kernels.length}
          rowHeight={22}
          selection={selection}
          refOf={(index) => (kernels[index] ? kernelRef(compile, kernels[index]) : null)}
          row={(index) => kernels[index] && <Cells view={view} compile={compile} kernel={kernels[index]} />}
        />
      ) : (
        <Empty>{target ? `No kernels for ${target.spec}: ${target.error}` : noKernels(compile)}</Empty>
      )}
      {target ? <TargetPages key={target.spec} {...pages} spec={target.spec} /> : <KernelPages {...pages} />}
    </>
  );
}

/** Why there are none: the backend makes none, or nothing was compiled to the end. */
export function noKernels(compile: Compile): string {
  if (compile.status !== "ok") return `No kernels: the compile ${compile.status}.`;
  if (!compile.graphs.length) return "This compile made no graph, so there is nothing to generate.";
  return "The backend generated no kernels for this compile (eager and aot_eager never do).";
}

/** How many launches the kernels are, and in place of how many. */
function launchesText({ kernels, eager_operators }: Pick<Compile, "kernels" | "eager_operators">): string {
  const before = sum(eager_operators);
  const now = kernels.reduce((total, one) => total + one.calls, 0);
  const launches = `${now} ${now === 1 ? "launch" : "launches"}`;
  return before ? `${launches} in place of ${plural(before, "operator")} of eager` : "";
}

function Cells(props: { view: View; compile: Compile; kernel: Kernel }): VNode {
  const { view, compile, kernel } = props;
  const lit = view.selection.related(kernelRef(compile, kernel));
  const lines = refsIn(lit, "line").map(lineOf);
  const direction = kernel.graph.split(".")[1] ?? "";
  const [time] = timesOf(view.record, compile, kernel);
  const registers = binaryOf(compile, kernel)?.resources["registers"];
  return (
    <>
      <span class={`dnx-cell dnx-lang dnx-lang-${kernel.language}`}>{kernel.language}</span>
      <span class="dnx-cell dnx-c-name" title={kernel.name}>
        {kernel.name}
      </span>
      <span class="dnx-cell dnx-c-wide">{direction}</span>
      <span class="dnx-cell dnx-c-wide">{kernel.calls > 1 && `${kernel.calls} calls`}</span>
      {time && <span class="dnx-cell dnx-c-wide">{timeText(time.seconds)}</span>}
      {registers !== undefined && <span class="dnx-cell dnx-c-wide">{plural(registers, "reg")}</span>}
      {bytesOf(kernel) > 0 && <span class="dnx-cell dnx-c-number">{sizeText(bytesOf(kernel))}</span>}
      <span class="dnx-cell dnx-c-number">{plural(kernel.nodes.length, "node")}</span>
      <span class="dnx-cell dnx-c-lines">{placesText(lines)}</span>
    </>
  );
}

/** Lines by file, the notebook's cells before other files, which are left out beside them. */
function placesText(places: { file: string; line: number }[]): string {
  const byFile = new Map<string, number[]>();
  for (const { file, line } of places) byFile.set(file, [...(byFile.get(file) ?? []), line]);
  const own = byFile.get(CELL);
  if (own) return compact(own);
  const cells = [...byFile].filter(([file]) => file.startsWith("<"));
  return (cells.length ? cells : [...byFile])
    .map(([file, lines]) => `${fileText(file)} ${compact(lines)}`)
    .join("; ");
}

/** Lines in few characters: `14-16, 25`. */
export function compact(lines: number[]): string {
  const sorted = [...new Set(lines)].sort((a, b) => a - b);
  const runs: [number, number][] = [];
  for (const line of sorted) {
    const last = runs[runs.length - 1];
    if (last && last[1] === line - 1) last[1] = line;
    else runs.push([line, line]);
  }
  const text = runs.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(", ");
  return text && `${sorted.length > 1 ? "lines" : "line"} ${text}`;
}
