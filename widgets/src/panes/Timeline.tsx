/** Where the time went: the stages of every compile as a flame strip. */
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { hueOf } from "../facts";
import { linked } from "../linked";
import { compileKey, type Compile, type StageTime } from "../record";
import { Empty } from "../ui";
import type { View } from "../view";

interface Bar {
  stage: StageTime;
  depth: number;
}

const ROW = 18; // px
const NARROWEST = 0.0006; // of the whole width: what is narrower is left out

export function Timeline({ view }: { view: View }): VNode {
  const compiles = view.record.compiles.filter((one) => one.stages.length > 0);
  const shown = useSignal<{ stage: StageTime; key: string } | null>(null);
  const all = compiles.flatMap((one) => one.stages);
  if (!all.length) return <Empty>No times were recorded.</Empty>;
  const start = Math.min(...all.map((one) => one.start));
  const end = Math.max(...all.map((one) => one.start + one.seconds));
  const one = shown.value;
  return (
    <>
      <div class="dnx-bar dnx-tools" role="status">
        {one ? (
          <span>
            <b>{one.key}</b> <code>{one.stage.name}</code> {seconds(one.stage.seconds)}
          </span>
        ) : (
          <span class="dnx-dim">{seconds(end - start)} from the first stage to the last</span>
        )}
      </div>
      <div class="dnx-scroll dnx-flames" tabIndex={0} role="group" aria-label="timeline">
        {compiles.map((compile) => (
          <Strip
            key={compileKey(compile)}
            view={view}
            compile={compile}
            range={[start, end]}
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
  range: [number, number];
  point(stage: StageTime | null): void;
}): VNode {
  const { compile, view } = props;
  const [start, end] = props.range;
  const key = compileKey(compile);
  const bars = useMemo(() => nested(compile.stages), [compile]);
  const whole = end - start || 1;
  const wide = bars.filter((bar) => bar.stage.seconds / whole >= NARROWEST);
  const depth = Math.max(0, ...wide.map((bar) => bar.depth)) + 1;
  const top = bars.filter((bar) => bar.depth === 0);
  const total = top.reduce((sum, bar) => sum + bar.stage.seconds, 0);
  return (
    <div class="dnx-flame">
      <button class={`dnx-chip dnx-hue${hueOf(view.record, key)}`} {...linked([key, "compile", ""])}>
        {key} <span class="dnx-dim">{seconds(total)}</span>
      </button>
      <div
        class="dnx-bars"
        role="img"
        aria-label={`${key}: ${top.map((bar) => `${bar.stage.name} ${seconds(bar.stage.seconds)}`).join(", ")}`}
        style={{ height: `${depth * ROW}px` }}
        onPointerLeave={() => props.point(null)}
      >
        {wide.map((bar, index) => (
          <span
            key={index}
            class={`dnx-flamebar dnx-hue${hueOf(view.record, key)}`}
            title={`${bar.stage.name} ${seconds(bar.stage.seconds)}`}
            onPointerEnter={() => props.point(bar.stage)}
            style={{
              left: `${((bar.stage.start - start) / whole) * 100}%`,
              width: `${(bar.stage.seconds / whole) * 100}%`,
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
export function nested(stages: readonly StageTime[]): Bar[] {
  const ends: number[] = [];
  const sorted = [...stages].sort((a, b) => a.start - b.start || b.seconds - a.seconds);
  return sorted.map((stage) => {
    while (ends.length && (ends[ends.length - 1] ?? 0) <= stage.start + 1e-9) ends.pop();
    const depth = ends.length;
    ends.push(stage.start + stage.seconds);
    return { stage, depth };
  });
}

export const seconds = (value: number): string =>
  value >= 1 ? `${value.toFixed(2)} s` : `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`;
