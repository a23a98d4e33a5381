/** The guards of one compile: what it assumes, and which line made it assume that. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { VirtualList } from "../code/VirtualList";
import { changeText, refOfFrame } from "../facts";
import { compileKey, placeText, type Compile, type Guard, type RecompileReason } from "../record";
import { refsIn, type Ref } from "../selection";
import { readable } from "../sources";
import type { GuardsPart } from "../store";
import { Chip, Copy, Empty, Loaded, Place } from "../ui";
import type { View } from "../view";
import { Costs } from "./Costs";

export function Guards({ view, compile }: { view: View; compile: Compile }): VNode {
  const key = compileKey(compile);
  const retry = (): void => view.store.retry("guards", key);
  return (
    <Loaded part={view.store.guards(compile)} what="guards" retry={retry}>
      {(part) => <Table view={view} compile={compile} part={part} />}
    </Loaded>
  );
}

type Order = "source" | "line" | "cost";

interface Row {
  index: number;
  guard: Guard;
  failed: RecompileReason | undefined;
}

function Table(props: { view: View; compile: Compile; part: GuardsPart }): VNode {
  const { view, compile, part } = props;
  const key = compileKey(compile);
  const [wanted, want] = useState("");
  const [order, sort] = useState<Order>("line");
  const rows = rowsOf(part.guards, failuresOf(view, key), wanted, order);
  const failed = rows.filter((row) => row.failed).length;
  const shown = view.selection.current.value;
  const one = shown?.[1] === "guard" && shown[0] === key ? part.guards[Number(shown[2])] : undefined;
  return (
    <>
      <div class="dnx-bar dnx-tools">
        <input
          type="search"
          placeholder="filter guards"
          aria-label="filter guards"
          value={wanted}
          onInput={(event) => want(event.currentTarget.value)}
        />
        <label>
          by{" "}
          <select
            value={order}
            onChange={(event) => sort(event.currentTarget.value as Order)}
            aria-label="order of the guards"
          >
            <option value="line">line</option>
            <option value="source">source</option>
            {compile.guard_costs.length > 0 && <option value="cost">cost</option>}
          </select>
        </label>
        <span class="dnx-dim" role="status">
          {rows.length} of {part.guards.length}
          {failed ? `, ${failed} failed later` : ""}
        </span>
      </div>
      {order === "cost" && <Costs view={view} compile={compile} guards={part.guards} wanted={wanted} />}
      {order !== "cost" && rows.length === 0 && (
        <Empty>{part.guards.length ? "No guard fits the filter." : emptyReason(compile)}</Empty>
      )}
      {order !== "cost" && rows.length > 0 && (
        <VirtualList
          label={`guards of ${key}`}
          className="dnx-table dnx-guard-rows"
          count={rows.length}
          rowHeight={22}
          selection={view.selection}
          refOf={(index) => refOf(key, rows[index])}
          row={(index) => rows[index] && <Cells row={rows[index]} />}
        />
      )}
      {rows.length > 0 && (one ? <Detail guard={one} /> : <p class="dnx-detail dnx-dim">Point at a guard to see its code.</p>)}
    </>
  );
}

const refOf = (key: string, row: Row | undefined): Ref | null =>
  row ? [key, "guard", String(row.index)] : null;

const emptyReason = (compile: Compile): string =>
  compile.status === "ok" ? "This compile made no guards." : `No guards: the compile ${compile.status}.`;

function Cells({ row }: { row: Row }): VNode {
  const { guard, failed } = row;
  return (
    <>
      <span class="dnx-cell dnx-c-place">{guard.frame ? placeText(guard.frame) : ""}</span>
      <span class="dnx-cell dnx-c-kind">{guard.kind}</span>
      <span class="dnx-cell dnx-c-source" title={guard.source}>
        {readable(guard.source) || "global state"}
      </span>
      <span class="dnx-cell dnx-c-code">{guard.value || guard.code.join(" and ")}</span>
      {failed && <span class="dnx-badge dnx-warn">failed {failedAt(failed)}</span>}
    </>
  );
}

const failedAt = (reason: RecompileReason): string =>
  reason.call_line === null ? "later" : `at line ${reason.call_line}`;

function Detail({ guard }: { guard: Guard }): VNode {
  const code = guard.code.join("\n");
  return (
    <div class="dnx-detail">
      <div class="dnx-bar">
        <b>{guard.kind}</b> <code>{guard.source}</code>
        <Place frame={guard.frame} />
        {guard.origin && <span class="dnx-dim">{guard.origin}</span>}
        {code && <Copy text={() => code} />}
      </div>
      {code && <pre>{code}</pre>}
      {guard.value && <p class="dnx-dim">value: {guard.value}</p>}
    </div>
  );
}

/** The reasons of later compiles that blame a guard of this entry, by the guard's number. */
function failuresOf(view: View, key: string): Map<string, RecompileReason> {
  const failures = new Map<string, RecompileReason>();
  for (const compile of view.record.compiles) {
    compile.recompile_reasons.forEach((reason, index) => {
      if (reason.entry !== key) return;
      const related = view.selection.related([compileKey(compile), "recompile", String(index)]);
      for (const [, , guard] of refsIn(related, "guard")) {
        if (!failures.has(guard)) failures.set(guard, reason);
      }
    });
  }
  return failures;
}

function rowsOf(
  guards: Guard[],
  failures: Map<string, RecompileReason>,
  wanted: string,
  order: Order,
): Row[] {
  const needle = wanted.toLowerCase();
  const rows = guards.map((guard, index) => ({
    index,
    guard,
    failed: failures.get(String(index)),
  }));
  const fits = rows.filter(({ guard }) => !needle || textOf(guard).includes(needle));
  const key: (row: Row) => string =
    order === "source" ? ({ guard }) => guard.source : ({ guard }) => placeKey(guard);
  return fits.sort(
    (a, b) => Number(!!b.failed) - Number(!!a.failed) || key(a).localeCompare(key(b)) || a.index - b.index,
  );
}

const textOf = (guard: Guard): string =>
  [guard.kind, guard.source, readable(guard.source), guard.value, ...guard.code, guard.frame ? placeText(guard.frame) : ""]
    .join(" ")
    .toLowerCase();

/** Sorts the cell's lines first, in order; guards without a place last. */
function placeKey({ frame }: Guard): string {
  if (!frame) return "~";
  return `${frame.file}:${String(frame.line).padStart(7, "0")}`;
}

/** A recompile as one line: used by the cards and by the cache. */
export function Change({ reason }: { reason: RecompileReason }): VNode {
  const what = reason.name || reason.source || reason.guard || reason.text;
  const ref = refOfFrame(reason.frame);
  return (
    <span class="dnx-change" title={changeText(reason)}>
      {ref ? <Chip to={ref}>{what}</Chip> : <code>{what}</code>}
      {(reason.was || reason.now) && (
        <>
          <code class="dnx-was">{reason.was || "?"}</code>
          <span aria-label="became">→</span>
          <code class="dnx-now">{reason.now || "?"}</code>
        </>
      )}
    </span>
  );
}
