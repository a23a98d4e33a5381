/** The Python modules that Inductor wrote for the graphs: for this machine, and for each target. */
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { useComputed, useSignal } from "@preact/signals";
import { CodeView } from "../code/CodeView";
import { compileKey, kernelRef, kernelsOf, placeInGraph, type Compile, type Kernel } from "../record";
import { refsIn, type Ref } from "../selection";
import { Copy, Empty, Loaded, Tabs } from "../ui";
import type { View } from "../view";
import { noKernels } from "./Kernels";
import { PREDICTED } from "./TargetPages";

/** The target of a graph (`cuda:90/post_grad.forward`); none for this machine's. */
const specOf = (graph: string): string => (graph.includes("/") ? placeOf(graph)[0] : "");
const directionOf = (graph: string): string => placeOf(graph)[1].replace("post_grad.", "");
const placeOf = (graph: string): [spec: string, name: string] => {
  const at = graph.indexOf("/");
  return [graph.slice(0, Math.max(at, 0)), graph.slice(at + 1)];
};

export function Code({ view, compile }: { view: View; compile: Compile }): VNode {
  const key = compileKey(compile);
  const wanted = useSignal("");
  const graphs = modulesOf(compile).map((one) => one.graph);
  const { selection } = view;
  const led = useComputed(() => {
    const held = selection.pinned.value;
    const [ref] = held ? refsIn(selection.lit.value, "kernel") : [];
    return ref?.[0] === key ? placeInGraph(ref).graph : "";
  }).value;
  if (!graphs.length) return <Empty>{noKernels(compile)}</Empty>;
  const graph = [led, wanted.value].find((one) => graphs.includes(one)) ?? graphs[0] ?? "";
  const spec = specOf(graph);
  const specs = [...new Set(graphs.map(specOf))];
  const here = graphs.filter((one) => specOf(one) === spec);
  const turn = (to: string): void => {
    const there = graphs.filter((one) => specOf(one) === to);
    wanted.value = there.find((one) => directionOf(one) === directionOf(graph)) ?? there[0] ?? "";
  };
  return (
    <Text view={view} compile={compile} spec={spec} graph={graph}>
      {(code) => (
        <>
          <div class="dnx-bar dnx-tools">
            {(specs.length > 1 || spec) && (
              <Tabs
                label="device"
                tabs={specs.map((id) => ({ id, label: id || "this machine" }))}
                chosen={spec}
                choose={turn}
              />
            )}
            <Tabs
              label="graph"
              tabs={here.map((id) => ({ id, label: directionOf(id) }))}
              chosen={graph}
              choose={(id) => (wanted.value = id)}
            />
            <span class="dnx-room" />
            {spec && <span class="dnx-ellipsis dnx-warn">{PREDICTED}</span>}
            <Copy text={() => code} title="Copy the module's code" />
          </div>
          <Module key={graph} view={view} compile={compile} graph={graph} code={code} />
        </>
      )}
    </Text>
  );
}

/** The modules for this machine and for the targets. */
export const modulesOf = (compile: Compile): Compile["output_code"] => [
  ...compile.output_code,
  ...compile.targets.flatMap((target) => target.output_code),
];

/** A module's text, which is in the part of its device. */
function Text(props: {
  view: View;
  compile: Compile;
  spec: string;
  graph: string;
  children: (code: string) => ComponentChildren;
}): VNode {
  const { view, compile, spec, graph, children } = props;
  const { store } = view;
  const key = compileKey(compile);
  return spec ? (
    <Loaded part={store.target(compile, spec)} what={`code for ${spec}`} retry={() => store.retry("target", key, spec)}>
      {(target) => children(target.output_code.find((one) => one.graph === graph)?.code ?? "")}
    </Loaded>
  ) : (
    <Loaded part={store.code(compile)} what="code" retry={() => store.retry("code", key)}>
      {(part) => children(part.output[graph] ?? "")}
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
  const kernels = kernelsOf(compile).filter((one) => one.graph === graph);
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
