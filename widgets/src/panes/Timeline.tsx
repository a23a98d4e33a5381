/** Where the time went: the stages of every compile as a flame strip. */
import type { VNode } from "preact";
import { useSignal } from "@preact/signals";
import { hueOf } from "../facts";
import { linked } from "../linked";
import { compileKey, type Compile, type StageTime } from "../record";
import { Empty } from "../ui";
import type { View } from "../view";

interface Bar {
  stage: StageTime;
  depth: number;
  /** Seconds from the strip's start, without the gaps in which this compile stood still. */
  at: number;
}

const ROW = 18; // px
const NARROWEST = 0.003; // of a strip: what is narrower is left out
const SHORTEST = 0.2; // of the width: shorter strips are drawn out to it

export function Timeline({ view }: { view: View }): VNode {
  const compiles = view.record.compiles.filter((one) => one.stages.length > 0);
  const shown = useSignal<{ stage: StageTime; key: string } | null>(null);
  const all = compiles.flatMap((one) => one.stages);
  if (!all.length) return <Empty>No times were recorded.</Empty>;
  const strips = compiles.map((compile) => ({ compile, bars: laidOut(compile.stages) }));
  const longest = Math.max(...strips.map(({ bars }) => lengthOf(bars)));
  const whole = strips.reduce((sum, { bars }) => sum + lengthOf(bars), 0);
  const one = shown.value;
  return (
    <>
      <div class="dnx-bar dnx-tools" role="status">
        {one ? (
          <span>
            <b>{one.key}</b> <code>{one.stage.name}</code> {seconds(one.stage.seconds)}
          </span>
        ) : (
          <span class="dnx-dim">{seconds(whole)} of compiling; the gaps between are left out</span>
        )}
      </div>
      <div class="dnx-scroll dnx-flames" tabIndex={0} role="group" aria-label="timeline">
        {strips.map(({ compile, bars }) => (
          <Strip
            key={compileKey(compile)}
            view={view}
            compile={compile}
            bars={bars}
            longest={longest}
            point={(stage) => (shown.value = stage && { stage, key: compileKey(compile) })}
          />
        ))}
      </div>
    </>
  );
}

function Strip(props: {
  view: View;
  compile: Compile;
  bars: Bar[];
  longest: number;
  point(stage: StageTime | null): void;
}): VNode {
  const { compile, view, bars } = props;
  const key = compileKey(compile);
  const total = lengthOf(bars) || 1;
  const wide = bars.filter((bar) => bar.stage.seconds / total >= NARROWEST);
  const depth = Math.max(0, ...wide.map((bar) => bar.depth)) + 1;
  const top = bars.filter((bar) => bar.depth === 0);
  const share = Math.max(SHORTEST, total / (props.longest || 1));
  return (
    <div class="dnx-flame">
      <button class={`dnx-chip dnx-hue${hueOf(view.record, key)}`} {...linked([key, "compile", ""])}>
        {key} <span class="dnx-dim">{seconds(total)}</span>
      </button>
      <div
        class="dnx-bars"
        role="img"
        aria-label={`${key}: ${top.map((bar) => `${bar.stage.name} ${seconds(bar.stage.seconds)}`).join(", ")}`}
        style={{ height: `${depth * ROW}px`, maxWidth: `${share * 100}%` }}
        onPointerLeave={() => props.point(null)}
      >
        {wide.map((bar, index) => (
          <span
            key={index}
            class={`dnx-flamebar dnx-hue${hueOf(view.record, key)}`}
            title={`${bar.stage.name} ${seconds(bar.stage.seconds)}`}
            onPointerEnter={() => props.point(bar.stage)}
            {...linked([key, "compile", ""])}
            style={{
              left: `${(bar.at / total) * 100}%`,
              width: `${(bar.stage.seconds / total) * 100}%`,
              top: `${bar.depth * ROW}px`,
            }}
          >
            {bar.stage.name}
          </span>
        ))}
      </div>
    </div>
  );
}

/** Stages with how deep each lies inside others: a stage contains what begins and ends in it. */
export function laidOut(stages: readonly StageTime[]): Bar[] {
  const ends: number[] = [];
  const sorted = [...stages].sort((a, b) => a.start - b.start || b.seconds - a.seconds);
  let gaps = sorted[0]?.start ?? 0;
  let reached = gaps;
  return sorted.map((stage) => {
    while (ends.length && (ends[ends.length - 1] ?? 0) <= stage.start + 1e-9) ends.pop();
    const depth = ends.length;
    if (depth === 0) gaps += Math.max(0, stage.start - reached);
    ends.push(stage.start + stage.seconds);
    reached = Math.max(reached, stage.start + stage.seconds);
    return { stage, depth, at: stage.start - gaps };
  });
}

const lengthOf = (bars: readonly Bar[]): number =>
  Math.max(0, ...bars.map((bar) => bar.at + bar.stage.seconds));

export const seconds = (value: number): string =>
  value >= 1 ? `${value.toFixed(2)} s` : `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`;
