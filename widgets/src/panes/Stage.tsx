/** One of the two slots on the right: a section of the report, chosen by tabs. */
import type { FunctionComponent, VNode } from "preact";
import type { Signal } from "@preact/signals";
import { compileKey, kernelsOf, type Compile } from "../record";
import { Empty, Guarded, Tabs } from "../ui";
import type { View } from "../view";
import { Bytecode } from "./Bytecode";
import { Cache } from "./Cache";
import { Checks } from "./Checks";
import { Code, modulesOf } from "./Code";
import { Diff } from "./Diff";
import { Frames } from "./Frames";
import { Graphs } from "./Graphs";
import { Guards } from "./Guards";
import { Kernels } from "./Kernels";
import { Passes } from "./Passes";
import { Recompiles } from "./Recompiles";
import { Shapes } from "./Shapes";
import { Steps } from "./Steps";
import { Timeline } from "./Timeline";

type Section = {
  label: string;
  /** How much there is; no number where it does not matter. */
  count?(view: View, compile: Compile): number;
  /** Whether it is there at all, for what a cell has to ask for. */
  when?(view: View): boolean;
} & (OfCompile | OfAll);

interface OfCompile {
  pane: FunctionComponent<{ view: View; compile: Compile }>;
  whole?: false;
}

/** It shows all compiles, not the chosen one, and there may be none. */
interface OfAll {
  pane: FunctionComponent<{ view: View }>;
  whole: true;
}

const SECTIONS: Record<string, Section> = {
  graph: { label: "Graphs", pane: Graphs, count: (_, one) => one.graphs.length },
  passes: {
    label: "Passes",
    pane: Passes,
    count: (_, one) => one.passes.length,
    when: (view) => view.record.compiles.some((one) => one.passes.length),
  },
  kernels: { label: "Kernels", pane: Kernels, count: (_, one) => one.kernels.length },
  code: { label: "Code", pane: Code, count: (_, one) => modulesOf(one).length },
  guards: {
    label: "Guards",
    pane: Guards,
    count: (view, one) => view.sizes[compileKey(one)]?.guards ?? 0,
  },
  recompiles: {
    label: "Recompiles",
    pane: Recompiles,
    whole: true,
    count: (view) => view.record.compiles.filter((one) => one.recompile_reasons.length).length,
  },
  cache: { label: "Cache", pane: Cache, whole: true },
  shapes: {
    label: "Shapes",
    pane: Shapes,
    count: (view, one) => view.sizes[compileKey(one)]?.symbols ?? 0,
  },
  checks: {
    label: "Checks",
    pane: Checks,
    whole: true,
    count: (view) => view.record.checks.length,
    when: (view) => view.record.checks.length > 0,
  },
  frames: { label: "Frames", pane: Frames, whole: true },
  steps: {
    label: "Steps",
    pane: Steps,
    count: (view, one) => view.sizes[compileKey(one)]?.steps ?? 0,
  },
  bytecode: { label: "Bytecode", pane: Bytecode },
  timeline: { label: "Timeline", pane: Timeline, whole: true },
  diff: { label: "Diff", pane: Diff, whole: true, when: (view) => view.before !== "" },
};

export function Stage(props: {
  view: View;
  label: string;
  chosen: Signal<string>;
  close?: () => void;
}): VNode {
  const { view, chosen, label } = props;
  const compile = view.shown;
  const section = SECTIONS[chosen.value];
  const there = Object.entries(SECTIONS).filter(([, one]) => one.when?.(view) ?? true);
  const tabs = there.map(([id, one]) => ({
    id,
    label: one.label,
    count: compile && one.count?.(view, compile),
  }));
  return (
    <section class="dnx-pane dnx-stage" aria-label={label}>
      <header class="dnx-bar">
        <Tabs
          label={`${label}: sections`}
          tabs={tabs}
          chosen={chosen.value}
          choose={(id) => (chosen.value = id)}
        />
        {props.close && (
          <button class="dnx-close" aria-label={`close ${label}`} title="Close" onClick={props.close}>
            ×
          </button>
        )}
      </header>
      {section && (compile || section.whole) ? (
        <Guarded key={chosen.value} what={section.label}>
          {section.whole ? (
            <section.pane view={view} />
          ) : (
            compile && <section.pane key={compileKey(compile)} view={view} compile={compile} />
          )}
        </Guarded>
      ) : (
        <Empty>Nothing was compiled in this cell.</Empty>
      )}
    </section>
  );
}

/** The two sections to open with: the graph, and what this record is about. */
export function firstSections(view: View): [string, string] {
  const { compiles } = view.record;
  if (compiles.some((one) => kernelsOf(one).length)) return ["graph", "kernels"];
  if (compiles.some((one) => one.recompile_reasons.length)) return ["graph", "recompiles"];
  return ["graph", "guards"];
}
