/**
 * What is different from the report before this one: both sources side by side, then the rest.
 * What belongs to the report before has refs of its own, linked to their counterparts here.
 */
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { Line } from "../code/Line";
import { longest, VirtualList } from "../code/VirtualList";
import { plural } from "../describe";
import { linked } from "../linked";
import { CELL, lineRef, placeInGraph } from "../record";
import { beforeRef, ownRef, refKey, type Ref } from "../selection";
import type { Change, DiffPart, DiffRow } from "../store";
import { Chip, Loaded } from "../ui";
import type { View } from "../view";
import { Prose } from "./Findings";

export function Diff({ view }: { view: View }): VNode {
  return (
    <Loaded part={view.store.diff()} what="difference" retry={() => view.store.retry("diff")}>
      {(part) => <Difference view={view} part={part} />}
    </Loaded>
  );
}

function Difference({ view, part }: { view: View; part: DiffPart }): VNode {
  const { rows, groups } = part;
  const edited = rows.filter(isEdited).length;
  useEffect(() => view.selection.extend(part.links), [view, part]);
  return (
    <>
      <div class="dnx-bar dnx-tools">
        <b>
          {part.before} → {part.after}
        </b>
        <span class="dnx-ellipsis" title={part.headline}>
          {part.headline}
        </span>
        <span class="dnx-room" />
        <span class="dnx-dim">{edited ? plural(edited, "edited line") : "the same source"}</span>
      </div>
      <Sources view={view} rows={rows} />
      <div class="dnx-scroll dnx-groups" tabIndex={0} role="group" aria-label="what is different">
        {groups.map((group) => (
          <article class="dnx-card" key={group.title}>
            <header class="dnx-bar">
              <b>{group.title}</b> <span class="dnx-dim">{group.summary}</span>
            </header>
            {group.changes.map((change, index) => (
              <Item key={index} change={change} />
            ))}
          </article>
        ))}
        {groups.length === 0 && <p class="dnx-dim">Nothing else is different.</p>}
        {part.times.length > 0 && <Times part={part} />}
      </div>
    </>
  );
}

const isEdited = (row: DiffRow): boolean => row.change !== "same";

const beforeLine = (line: number): Ref => beforeRef(lineRef(CELL, line));

type Side = "old" | "new";

/** The line of a row on one side, or on the other where it has none there. */
function refAt(row: DiffRow | undefined, side: Side): Ref | null {
  const old = row?.old ? beforeLine(row.old) : null;
  const now = row?.new ? lineRef(CELL, row.new) : null;
  return side === "old" ? (old ?? now) : (now ?? old);
}

/** Both sources side by side: each half of a row is the line of its own report. */
function Sources({ view, rows }: { view: View; rows: DiffRow[] }): VNode {
  const side = useSignal<Side>("new"); // the arrow keys' own
  const sides: Record<string, Side> = { ArrowLeft: "old", ArrowRight: "new" };
  const onKey = (event: KeyboardEvent, index: number): boolean => {
    const wanted = sides[event.key];
    if (!wanted) return false;
    side.value = wanted;
    view.selection.set(refAt(rows[index], wanted), "hover");
    return true;
  };
  const bar = useRef<HTMLDivElement>(null);
  const shift = useSignal(0);
  const wide = longest(rows.flatMap((row) => [row.old_text, row.new_text]));
  return (
    <div
      class="dnx-pair"
      style={{ "--dnx-shift": `${-shift.value}px` }}
      onWheel={(event) => bar.current?.scrollBy(event.deltaX, 0)}
    >
      <VirtualList
        label="both sources; left and right arrows choose the side"
        className={`dnx-code dnx-both dnx-at-${side.value}`}
        count={rows.length}
        selection={view.selection}
        start={rows.findIndex(isEdited)}
        refOf={(index) => refAt(rows[index], side.value)}
        row={(index) => rows[index] && <Both row={rows[index]} />}
        onKey={onKey}
      />
      <div
        ref={bar}
        class="dnx-shift"
        tabIndex={0}
        role="group"
        aria-label="scroll both sources sideways"
        onScroll={(event) => (shift.value = event.currentTarget.scrollLeft)}
      >
        <div style={{ width: `calc(50% + ${wide + MARGIN}ch)` }} />
      </div>
    </div>
  );
}

const MARGIN = 9; // characters beside the code of one half

function Both({ row }: { row: DiffRow }): VNode {
  const halves: [number | null, string, string, string, Ref | null][] = [
    [row.old, row.old_text, "dnx-gone", "−", row.old ? beforeLine(row.old) : null],
    [row.new, row.new_text, "dnx-new", "+", row.new ? lineRef(CELL, row.new) : null],
  ];
  return (
    <>
      {halves.map(([number, text, style, sign, ref]) => {
        const edited = isEdited(row) && number !== null;
        return (
          <span key={style} title={text} class={`dnx-side ${edited ? style : ""}`} {...linked(ref)}>
            <span class="dnx-num">{number}</span>
            <span class="dnx-sign">{edited ? sign : ""}</span>
            <Line text={text} language="python" />
          </span>
        );
      })}
    </>
  );
}

const STYLES: Record<string, string> = { gone: "dnx-dim", removed: "dnx-dim", new: "dnx-warn", added: "dnx-warn" };

const FEW = 12; // details that are shown without being asked for

function Item({ change }: { change: Change }): VNode {
  const { details, old, new: now, text, refs_before: was, refs_after: is } = change;
  const lines = [...now.map((line) => lineRef(CELL, line)), ...old.map(beforeLine)];
  return (
    <div class="dnx-entry" {...linked(is[0] ?? was[0] ?? lines[0])}>
      <span class={`dnx-change-kind ${STYLES[change.change] ?? ""}`}>{change.change}</span>
      <span>
        {now.map((line) => (
          <Chip key={line} to={lineRef(CELL, line)}>
            line {line}
          </Chip>
        ))}
        {old.map((line) => (
          <Chip key={-line} to={beforeLine(line)} className="dnx-before">
            line {line} before
          </Chip>
        ))}{" "}
        <Prose text={text} /> {was.map((ref) => chipOf(ref, "before"))} {is.map((ref) => chipOf(ref, "now"))}
        {details.length > 0 && (
          <details open={details.length <= FEW}>
            <summary>{plural(details.length, "node")}</summary>
            {details.map((one, index) => (
              <Item key={index} change={one} />
            ))}
          </details>
        )}
      </span>
    </div>
  );
}

/** A thing of one of the reports, by its compile; a kernel by its name, since there may be several. */
const chipOf = (ref: Ref, when: "before" | "now"): VNode => (
  <Chip key={refKey(ref)} to={ref} className={when === "before" ? "dnx-before" : ""}>
    {when} {ref[1] === "kernel" ? placeInGraph(ref).name : ownRef(ref)[0]}
  </Chip>
);

function Times({ part }: { part: DiffPart }): VNode {
  return (
    <details class="dnx-card">
      <summary>Times, in ms: another in each run</summary>
      <table>
        <thead>
          <tr>
            <th>stage</th>
            <th>{part.before}</th>
            <th>{part.after}</th>
          </tr>
        </thead>
        <tbody>
          {part.times.map(([stage, before, after]) => (
            <tr key={stage}>
              <th scope="row">{stage}</th>
              <td>{before}</td>
              <td>{after}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
