/** The kernels of one compile: what was fused into each, from which lines, and its code. */
import type { VNode } from "preact";
import { useSignal, useSignalEffect } from "@preact/signals";
import { CodeView } from "../code/CodeView";
import type { Language } from "../code/tokens";
import { VirtualList } from "../code/VirtualList";
import { CELL, compileKey, fileText, kernelRef, lineOf, type Compile, type Kernel } from "../record";
import { refsIn, refKey, type Ref } from "../selection";
import { plural } from "../describe";
import { Copy, Empty, Loaded } from "../ui";
import type { View } from "../view";

export const LANGUAGES: Record<string, Language> = { cpp: "cpp", triton: "python", ptx: "ptx" };

export function Kernels({ view, compile }: { view: View; compile: Compile }): VNode {
  const { kernels } = compile;
  const { selection } = view;
  const last = useSignal<Kernel | undefined>(undefined);
  useSignalEffect(() => {
    const found = chosenKernel(compile, selection.lit.value);
    if (found) last.value = found;
  });
  const chosen = last.value;
  if (!kernels.length) return <Empty>{noKernels(compile)}</Empty>;
  return (
    <>
      <VirtualList
        label={`kernels of ${compileKey(compile)}`}
        className="dnx-table dnx-kernel-rows"
        count={kernels.length}
        rowHeight={22}
        selection={selection}
        refOf={(index) => (kernels[index] ? kernelRef(compile, kernels[index]) : null)}
        row={(index) => kernels[index] && <Cells view={view} compile={compile} kernel={kernels[index]} />}
      />
      {chosen ? (
        <Code key={chosen.graph + chosen.name} view={view} compile={compile} kernel={chosen} />
      ) : (
        <p class="dnx-hint">Point at a kernel to see its nodes, lines and code.</p>
      )}
    </>
  );
}

/** Why there are none: the backend makes none, or nothing was compiled to the end. */
export function noKernels(compile: Compile): string {
  if (compile.status !== "ok") return `No kernels: the compile ${compile.status}.`;
  if (!compile.graphs.length) return "This compile made no graph, so there is nothing to generate.";
  return "The backend generated no kernels for this compile (eager and aot_eager never do).";
}

function Cells(props: { view: View; compile: Compile; kernel: Kernel }): VNode {
  const { view, compile, kernel } = props;
  const lit = view.selection.related(kernelRef(compile, kernel));
  const lines = refsIn(lit, "line").map(lineOf);
  const direction = kernel.graph.split(".")[1] ?? "";
  return (
    <>
      <span class={`dnx-cell dnx-lang dnx-lang-${kernel.language}`}>{kernel.language}</span>
      <span class="dnx-cell dnx-c-name">{kernel.name}</span>
      <span class="dnx-cell dnx-c-wide">{direction}</span>
      <span class="dnx-cell dnx-c-wide">{kernel.calls > 1 && `${kernel.calls} calls`}</span>
      <span class="dnx-cell dnx-c-number">{plural(kernel.nodes.length, "node")}</span>
      <span class="dnx-cell dnx-c-lines">{placesText(lines)}</span>
    </>
  );
}

function Code(props: { view: View; compile: Compile; kernel: Kernel }): VNode {
  const { view, compile, kernel } = props;
  return (
    <div class="dnx-split-code">
      <Loaded
        part={view.store.code(compile)}
        what="code"
        retry={() => view.store.retry("code", compileKey(compile))}
      >
        {(part) => {
          const code = part.kernels[`${kernel.graph}/${kernel.name}`] ?? "";
          return (
            <>
              <div class="dnx-bar">
                <b class="dnx-ellipsis">{kernel.name}</b>
                {code && <Copy text={() => code} title="Copy the kernel's code" />}
              </div>
              {code ? (
                <CodeView
                  label={`code of ${kernel.name}`}
                  code={code}
                  language={LANGUAGES[kernel.language] ?? "python"}
                  selection={view.selection}
                  refOf={() => null}
                />
              ) : (
                <Empty>{`${kernel.name} is a library call: there is no generated code.`}</Empty>
              )}
            </>
          );
        }}
      </Loaded>
    </div>
  );
}

/** The kernel that is lit, if it is only one. */
function chosenKernel(compile: Compile, lit: Set<string>): Kernel | undefined {
  const found = compile.kernels.filter((one) => lit.has(refKey(kernelRef(compile, one) as Ref)));
  return found.length === 1 ? found[0] : undefined;
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
