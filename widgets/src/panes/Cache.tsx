/** The cache: per code object its entries, and which call compiled or reused which. */
import type { VNode } from "preact";
import { frameAt, hueOf, mainReason } from "../facts";
import { compileKey, type Call, type Compile } from "../record";
import { plural } from "../describe";
import { Chip, Empty, Place } from "../ui";
import type { View } from "../view";
import { Change } from "./Guards";

export function Cache({ view }: { view: View }): VNode {
  const { compiles, calls, compiled_objects: objects, frames } = view.record;
  const uncompiled = frames.filter((one) => one.outcome !== "compiled");
  if (!compiles.length && !calls.length) return <Empty>Nothing was compiled.</Empty>;
  return (
    <div class="dnx-scroll" tabIndex={0} role="group" aria-label="cache and calls">
      {codeObjects(compiles).map(([name, entries]) => (
        <article class="dnx-card" key={name}>
          <header class="dnx-bar">
            <b>{name}</b>
            <span class="dnx-dim">{entries.length === 1 ? "1 entry" : `${entries.length} entries`}</span>
          </header>
          {entries.map((entry) => (
            <Entry key={compileKey(entry)} view={view} entry={entry} />
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
      {uncompiled.length > 0 && (
        <details class="dnx-card">
          <summary>{plural(uncompiled.length, "frame")} that Dynamo left alone</summary>
          {uncompiled.map((one, index) => (
            <p key={index}>
              <code>{one.name}</code> <Place frame={frameAt(one.first_line, one.file)} />{" "}
              <span class="dnx-dim">
                {one.outcome}: {one.reason} {one.count > 1 && `(${one.count} times)`}
              </span>
            </p>
          ))}
        </details>
      )}
    </div>
  );
}

/** The entries by code object, named by function and place. */
function codeObjects(compiles: Compile[]): [string, Compile[]][] {
  const found = new Map<string, Compile[]>();
  for (const one of compiles) {
    const at = one.first_line ? `, line ${one.first_line}` : "";
    const name = `${one.name || "?"}${at}`;
    found.set(name, [...(found.get(name) ?? []), one]);
  }
  return [...found];
}

function Entry({ view, entry }: { view: View; entry: Compile }): VNode {
  const key = compileKey(entry);
  const hits = view.record.calls.flatMap((call) => {
    const count = call.hits[key];
    return count ? [{ call, count }] : [];
  });
  const reason = mainReason(entry);
  const guards = view.sizes[key]?.guards ?? 0;
  return (
    <div class="dnx-entry">
      <Chip to={[key, "compile", ""]} className={`dnx-hue${hueOf(view.record, key)}`}>
        {key}
      </Chip>
      <span>
        {entry.status === "ok" ? "" : `${entry.status}: ${entry.reason} `}
        {plural(guards, "guard")}
        {entry.cell !== null && `, compiled by cell [${entry.cell}]`}
        {entry.call_line !== null && (
          <>
            , compiled at <Place frame={frameAt(entry.call_line)} />
          </>
        )}
        {hits.map(({ call, count }, index) => (
          <span key={index}>
            , hit {count > 1 ? `${count} times ` : ""}at <Place frame={frameAt(call.line)} />
          </span>
        ))}
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
    <div class="dnx-entry">
      <Place frame={frameAt(call.line)} />
      <span>
        <code>{call.name}</code>
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
