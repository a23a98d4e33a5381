/** What checking the guards of an entry costs at each look-up, by source, as it was measured. */
import type { VNode } from "preact";
import { VirtualList } from "../code/VirtualList";
import { compileKey, type Compile, type Guard, type GuardCost } from "../record";
import type { Ref } from "../selection";
import { readable } from "../sources";
import type { View } from "../view";

const LEAST = 0.005; // µs: what is less is the clock's noise

export function Costs(props: { view: View; compile: Compile; guards: Guard[]; wanted: string }): VNode {
  const { view, compile, guards, wanted } = props;
  const key = compileKey(compile);
  const parts = compile.guard_costs.filter(
    (one) => one.microseconds >= LEAST && one.source.toLowerCase().includes(wanted.toLowerCase()),
  );
  const whole = Number(compile.metrics["guard_check_us"]) || sum(compile.guard_costs);
  return (
    <>
      <p class="dnx-hint">
        One check of all guards took {whole.toFixed(2)} µs; these are the parts that stood out.
      </p>
      <VirtualList
        label={`guard costs of ${key}`}
        className="dnx-table"
        count={parts.length}
        rowHeight={22}
        selection={view.selection}
        refOf={(index) => refOf(key, guards, parts[index])}
        row={(index) => parts[index] && <Cells cost={parts[index]} whole={whole} />}
      />
    </>
  );
}

const sum = (costs: readonly GuardCost[]): number =>
  costs.reduce((total, one) => total + one.microseconds, 0);

/** The guard on a source, or the first that is reached through it. */
function refOf(key: string, guards: Guard[], cost: GuardCost | undefined): Ref | null {
  if (!cost) return null;
  const own = guards.findIndex((one) => one.source === cost.source);
  const index = own >= 0 ? own : guards.findIndex((one) => one.source.startsWith(cost.source));
  return index >= 0 ? [key, "guard", String(index)] : null;
}

function Cells({ cost, whole }: { cost: GuardCost; whole: number }): VNode {
  const share = Math.min(1, cost.microseconds / whole);
  return (
    <>
      <span class="dnx-cell dnx-c-number">{cost.microseconds.toFixed(2)} µs</span>
      <span class="dnx-share" role="img" aria-label={`${Math.round(100 * share)} % of the check`}>
        <i style={{ width: `${100 * share}%` }} />
      </span>
      <span class="dnx-cell dnx-c-times">{Math.round(100 * share)} %</span>
      <span class="dnx-cell dnx-c-source" title={cost.source}>
        {readable(cost.source)}
      </span>
      <span class="dnx-cell dnx-c-wide">{cost.managers > 1 && "and below"}</span>
    </>
  );
}
