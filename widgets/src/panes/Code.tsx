/** The Python module that Inductor wrote for one graph. */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { useComputed, useSignal } from "@preact/signals";
import { CodeView } from "../code/CodeView";
import { compileKey, kernelRef, placeInGraph, type Compile, type Kernel } from "../record";
import { refsIn, type Ref } from "../selection";
import { Copy, Empty, Loaded, Tabs } from "../ui";
import type { View } from "../view";
import { noKernels } from "./Kernels";

export function Code({ view, compile }: { view: View; compile: Compile }): VNode {
  const key = compileKey(compile);
  const wanted = useSignal("");
  const graphs = compile.output_code.map((one) => one.graph);
  const { selection } = view;
  const led = useComputed(() => {
    const held = selection.pinned.value;
    const [ref] = held ? refsIn(selection.lit.value, "kernel") : [];
    return ref?.[0] === key ? placeInGraph(ref).graph : "";
  }).value;
  if (!graphs.length) return <Empty>{noKernels(compile)}</Empty>;
  const graph = [led, wanted.value].find((one) => graphs.includes(one)) ?? graphs[0] ?? "";
  const tabs = graphs.map((one) => ({ id: one, label: one.replace("post_grad.", "") }));
  return (
    <Loaded part={view.store.code(compile)} what="code" retry={() => view.store.retry("code", key)}>
      {(part) => {
        const code = part.output[graph] ?? "";
        return (
          <>
            <div class="dnx-bar dnx-tools">
              <Tabs label="graph" tabs={tabs} chosen={graph} choose={(id) => (wanted.value = id)} />
              <span class="dnx-room" />
              <Copy text={() => code} title="Copy the module's code" />
            </div>
            <Module key={graph} view={view} compile={compile} graph={graph} code={code} />
          </>
        );
      }}
    </Loaded>
  );
}

function Module(props: { view: View; compile: Compile; graph: string; code: string }): VNode {
  const { view, compile, graph, code } = props;
  const owners = useMemo(() => ownersOf(code, compile, graph), [code, compile, graph]);
  const [first] = owners.keys();
  return (
    <CodeView
      label={`output code of ${graph}`}
      code={code}
      language="python"
      selection={view.selection}
      {...(first === undefined ? {} : { start: first })}
      refOf={(line): Ref => {
        const kernel = owners.get(line);
        return kernel
          ? kernelRef(compile, kernel)
          : [compileKey(compile), "code", `${graph}:${line}`];
      }}
    />
  );
}

/** The kernel that each line defines or calls. */
export function ownersOf(code: string, compile: Compile, graph: string): Map<number, Kernel> {
  const kernels = compile.kernels.filter((one) => one.graph === graph);
  const byName = new Map(kernels.map((one) => [one.name, one]));
  const owners = new Map<number, Kernel>();
  let open: Kernel | undefined;
  code.split("\n").forEach((line, index) => {
    const defined = /^(\w+) = async_compile\.|^@triton|^def (\w+)\(/.exec(line);
    const starts = defined && byName.get(defined[1] ?? defined[2] ?? "");
    if (starts) open = starts;
    const named = open ?? calledIn(line, byName);
    if (named) owners.set(index + 1, named);
    if (open && !starts && /^'''|^\S.*'''\)?/.test(line)) open = undefined;
  });
  return owners;
}

/** The kernel that a line names: `cpp_fused_add_0(buf0, …)`, `extern_kernels.mm(…)`. */
function calledIn(line: string, byName: Map<string, Kernel>): Kernel | undefined {
  if (line.trimStart().startsWith("#")) return undefined;
  for (const [word] of line.matchAll(/[A-Za-z_][\w.]*/g)) {
    const found = byName.get(word) ?? byName.get(word.replace(/\.run$/, ""));
    if (found) return found;
  }
  return undefined;
}
