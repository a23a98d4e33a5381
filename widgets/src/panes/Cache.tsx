/** The cache: per code object its entries, and which call compiled or reused which. */
import type { VNode } from "preact";
import { compileOf, frameAt, hueOf, mainReason } from "../facts";
import { linked } from "../linked";
import { CELL, compileKey, lineRef, type Call, type CellRecord, type Compile } from "../record";
import { plural } from "../describe";
import { Chip, Empty, Place } from "../ui";
import type { View } from "../view";
import { Change } from "./Guards";

export function Cache({ view }: { view: View }): VNode {
  const { compiles, calls, compiled_objects: objects } = view.record;
  if (!compiles.length && !calls.length) return <Empty>Nothing was compiled.</Empty>;
  return (
    <div class="dnx-scroll" tabIndex={0} role="group" aria-label="cache and calls">
      {codeObjects(view.record).map(([name, entries]) => (
        <article class="dnx-card" key={name}>
          <header class="dnx-bar">
            <b>{name}</b>
            <span class="dnx-dim">{entries.length === 1 ? "1 entry" : `${entries.length} entries`}</span>
          </header>
          {entries.map((entry) => (
            <Entry key={entry.key} view={view} held={entry} />
          ))}
        </article>
      ))}
      {calls.length > 0 && (
        <article class="dnx-card">
          <header class="dnx-bar">
            <b>Calls</b>
          </header>
          {calls.map((call, index) => (
            <CallRow key={index} view={view} call={call} />
          ))}
        </article>
      )}
      {objects.some((one) => !one.entered) && (
        <article class="dnx-card">
          {objects
            .filter((one) => !one.entered)
            .map((one) => (
              <p key={one.name}>
                <code>{one.name}</code> holds compiled <code>{one.callee}</code> and was never
                entered {one.line !== null && <Place frame={frameAt(one.line)} />}
              </p>
            ))}
        </article>
      )}
    </div>
  );
}

interface Held {
  key: string;
  compile: Compile | undefined;
  hits: number;
  lines: number[];
  invalidated: string;
}

/** The entries by code object: in the order of the next look-up, where it was recorded. */
function codeObjects(record: CellRecord): [string, Held[]][] {
  if (record.cache.length) {
    return record.cache.map((state) => [
      titleOf(state.name, state.first_line),
      state.entries.map((one) => ({ ...one, key: one.entry, compile: compileOf(record, one.entry) })),
    ]);
  }
  const found = new Map<string, Held[]>();
  for (const compile of record.compiles) {
    const name = titleOf(compile.name, compile.first_line);
    found.set(name, [...(found.get(name) ?? []), heldOf(record, compile)]);
  }
  return [...found];
}

const titleOf = (name: string, line: number): string => `${name || "?"}${line ? `, line ${line}` : ""}`;

function heldOf(record: CellRecord, compile: Compile): Held {
  const key = compileKey(compile);
  const calls = record.calls.filter((call) => call.hits[key]);
  const hits = calls.reduce((sum, call) => sum + (call.hits[key] ?? 0), 0);
  return { key, compile, hits, lines: calls.map((call) => call.line), invalidated: "" };
}

function Entry({ view, held }: { view: View; held: Held }): VNode {
  const { key, compile, hits } = held;
  const reason = compile && mainReason(compile);
  const guards = view.sizes[key]?.guards ?? 0;
  return (
    <div class="dnx-entry" {...linked([key, "compile", ""])}>
      <Chip to={[key, "compile", ""]} className={`dnx-hue${hueOf(view.record, key)}`}>
        {key}
      </Chip>
      <span>
        {compile && compile.status !== "ok" && `${compile.status}: ${compile.reason} `}
        {plural(guards, "guard")}
        {compile && compile.cell !== null && `, compiled by cell [${compile.cell}]`}
        {compile && compile.cell === null && compile.call_line !== null && (
          <>
            , compiled at <Place frame={frameAt(compile.call_line)} />
          </>
        )}
        {hits > 0 && `, hit${hits > 1 ? ` ${hits} times` : ""} at `}
        {hits > 0 && held.lines.map((line) => <Place key={line} frame={frameAt(line)} />)}
        {held.invalidated && <span class="dnx-warn"> dropped: {held.invalidated}</span>}
        {reason && (
          <>
            {" because "}
            <Change reason={reason} />
          </>
        )}
      </span>
    </div>
  );
}

function CallRow({ view, call }: { view: View; call: Call }): VNode {
  const chips = (keys: string[]): VNode[] =>
    keys.map((key) => (
      <Chip key={key} to={[key, "compile", ""]} className={`dnx-hue${hueOf(view.record, key)}`}>
        {key}
      </Chip>
    ));
  const hits = Object.entries(call.hits);
  return (
    <div class="dnx-entry" {...linked(lineRef(CELL, call.line))}>
      <Place frame={frameAt(call.line)} />
      <span>
        <code>{call.name || "a call"}</code>
        {call.compiles.length > 0 && <> compiled {chips(call.compiles)}</>}
        {hits.length > 0 && <> reused {chips(hits.map(([key]) => key))}</>}
        {call.eager > 0 && (
          <span class="dnx-warn">
            {" "}
            ran eagerly{call.eager > 1 ? ` ${call.eager} times` : ""}
            {call.reason && `: ${call.reason}`}
          </span>
        )}
      </span>
    </div>
  );
}
