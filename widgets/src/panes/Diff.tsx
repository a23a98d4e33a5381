/** What is different from the report before this one: both sources side by side, then the rest. */
import type { VNode } from "preact";
import { Line } from "../code/Line";
import { VirtualList } from "../code/VirtualList";
import { plural } from "../describe";
import { linked } from "../linked";
import { CELL, lineRef } from "../record";
import type { Change, DiffPart, DiffRow } from "../store";
import { Chip, Loaded } from "../ui";
import type { View } from "../view";
import { Prose } from "./Findings";
import { compact } from "./Kernels";

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
      {edited > 0 && (
        <VirtualList
          label="both sources"
          className="dnx-code dnx-both"
          count={rows.length}
          selection={view.selection}
          start={rows.findIndex(isEdited)}
          refOf={(index) => (rows[index]?.new ? lineRef(CELL, rows[index].new) : null)}
          row={(index) => rows[index] && <Both row={rows[index]} />}
        />
      )}
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

function Both({ row }: { row: DiffRow }): VNode {
  const sides: [number | null, string, string][] = [
    [row.old, row.old_text, "dnx-gone"],
    [row.new, row.new_text, "dnx-new"],
  ];
  return (
    <>
      {sides.map(([number, text, style]) => (
        <span key={style} title={text} class={`dnx-side ${isEdited(row) && number !== null ? style : ""}`}>
          <span class="dnx-num">{number}</span>
          <Line text={text} language="python" />
        </span>
      ))}
    </>
  );
}

const STYLES: Record<string, string> = { gone: "dnx-dim", removed: "dnx-dim", new: "dnx-warn", added: "dnx-warn" };

function Item({ change }: { change: Change }): VNode {
  const { details, old, new: now, text } = change;
  const [first] = now;
  return (
    <div class="dnx-entry" {...linked(first === undefined ? null : lineRef(CELL, first))}>
      <span class={`dnx-change-kind ${STYLES[change.change] ?? ""}`}>{change.change}</span>
      <span>
        {now.map((line) => (
          <Chip key={line} to={lineRef(CELL, line)}>
            line {line}
          </Chip>
        ))}
        {old.length > 0 && <span class="dnx-dim">{compact(old)} before</span>} <Prose text={text} />
        {details.length > 0 && (
          <details>
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
