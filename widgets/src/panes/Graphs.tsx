/** The FX graphs of one compile, stage by stage. */
import type { VNode } from "preact";
import { useComputed, useSignal } from "@preact/signals";
import { GraphPane } from "../graph/GraphPane";
import { compileKey, placeInGraph, type Compile, type Graph } from "../record";
import { refsIn } from "../selection";
import { Empty, Loaded, Tabs } from "../ui";
import type { View } from "../view";

const COLOURS = ["module", "kernel", "dtype", "device"] as const;
export type Colour = (typeof COLOURS)[number];

export function Graphs({ view, compile }: { view: View; compile: Compile }): VNode {
  const key = compileKey(compile);
  const wanted = useSignal("");
  const colour = useSignal<Colour>("module");
  const names = compile.graphs.map((graph) => graph.name);
  const led = useComputed(() => ledTo(view, key, wanted.value || (names[0] ?? ""))).value;
  if (!names.length) return <Empty>{noGraph(compile)}</Empty>;
  const name = [led, wanted.value].find((one) => names.includes(one)) ?? names[0] ?? "";
  const sizes = view.sizes[key]?.graphs ?? {};
  const tabs = names.map((one) => ({ id: one, label: label(one), count: sizes[one], title: one }));
  const show = (id: string): void => {
    wanted.value = id;
  };
  return (
    <>
      <div class="dnx-bar dnx-tools">
        <Tabs label="stage" tabs={tabs} chosen={name} choose={show} />
        <span class="dnx-room" />
        <label>
          colour{" "}
          <select
            value={colour.value}
            aria-label="colour nodes by"
            onChange={(event) => (colour.value = event.currentTarget.value as Colour)}
          >
            {COLOURS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      </div>
      <Loaded
        part={view.store.graph(compile, name)}
        what={`${name} graph`}
        retry={() => view.store.retry("graph", key, name)}
      >
        {(graph: Graph) => (
          <div class="dnx-graph" data-dnx-own>
            <GraphPane
              key={`${key}/${name}`}
              record={view.record}
              compile={compile}
              graph={graph}
              selection={view.selection}
              colour={colour.value}
              onStage={show}
            />
          </div>
        )}
      </Loaded>
    </>
  );
}

/** `post_grad.forward` in a tab: `post-grad fw` would be coined, so only the dot becomes a space. */
const label = (name: string): string => name.replace(".", " ");

/** The graph to show for what is held: the wanted one if anything in it is lit. */
function ledTo(view: View, key: string, wanted: string): string {
  const held = view.selection.pinned.value;
  if (!held) return "";
  const lit = refsIn(view.selection.lit.value, "node").filter((ref) => ref[0] === key);
  const graphs = lit.map((ref) => placeInGraph(ref).graph);
  if (graphs.includes(wanted)) return wanted;
  if (held[1] === "node" && held[0] === key) return placeInGraph(held).graph;
  return graphs[0] ?? "";
}

function noGraph(compile: Compile): string {
  if (compile.seen === "guards") return "Compiled before: only its guards could be read.";
  if (compile.status !== "ok") return `No graph: the compile ${compile.status}. ${compile.reason}`;
  return "No graph: this frame held no tensor operation.";
}
