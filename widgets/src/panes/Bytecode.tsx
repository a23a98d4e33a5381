/** A frame's bytecode, and what Dynamo put in its place. */
import type { VNode } from "preact";
import { longest, VirtualList } from "../code/VirtualList";
import { compileKey, placeText, type Compile, type Instruction } from "../record";
import { hueOf } from "../facts";
import { linked } from "../linked";
import { refsIn, type Ref } from "../selection";
import { Copy, Empty, Loaded } from "../ui";
import type { View } from "../view";

export function Bytecode({ view, compile }: { view: View; compile: Compile }): VNode {
  const key = compileKey(compile);
  const sides = ["before", "after"] as const;
  return (
    <Loaded
      part={view.store.bytecode(compile)}
      what="bytecode"
      retry={() => view.store.retry("bytecode", key)}
    >
      {(part) =>
        part.before.length + part.after.length === 0 ? (
          <Empty>The bytecode of {key} was not recorded.</Empty>
        ) : (
          <div class="dnx-columns">
            {sides.map((side) => (
              <Column key={side} view={view} compile={key} side={side} rows={part[side]} />
            ))}
          </div>
        )
      }
    </Loaded>
  );
}

const TITLES = { before: "as written", after: "as compiled" };

function Column(props: {
  view: View;
  compile: string;
  side: "before" | "after";
  rows: Instruction[];
}): VNode {
  const { rows, side, compile } = props;
  const ref = (index: number): Ref => [compile, "instruction", `${side}:${rows[index]?.offset}`];
  return (
    <div class="dnx-column">
      <div class="dnx-bar dnx-tools">
        <b>{TITLES[side]}</b>
        <span class="dnx-dim">{rows.length} instructions</span>
        <span class="dnx-room" />
        <Copy text={() => rows.map(textOf).join("\n")} />
      </div>
      <VirtualList
        label={`bytecode ${TITLES[side]}`}
        className="dnx-code dnx-bytecode"
        count={rows.length}
        columns={30 + longest(rows.map((one) => one.argument))}
        selection={props.view.selection}
        buttons={side === "after"}
        refOf={ref}
        row={(index) =>
          rows[index] && (
            <>
              <Cells row={rows[index]} previous={rows[index - 1]} />
              {side === "after" && <Leads view={props.view} from={ref(index)} />}
            </>
          )
        }
      />
    </div>
  );
}

/** The compile whose graph or resume function an instruction loads, to go to it. */
function Leads({ view, from }: { view: View; from: Ref }): VNode {
  const [to] = refsIn(view.selection.related(from), "compile");
  if (!to) return <></>;
  const what = to[0] === from[0] ? "graph of" : "resumes in";
  return (
    <button
      class={`dnx-chip dnx-made dnx-hue${hueOf(view.record, to[0])}`}
      tabIndex={-1}
      aria-label={`${what} ${to[0]}: go to that compile`}
      title="Go to that compile (right arrow, Enter)"
      onClick={keepFocus}
      {...linked(to)}
    >
      {what} {to[0]}
    </button>
  );
}

/** The list is another one for another compile: the focus waits on the pane's tab. */
const keepFocus = (event: Event & { currentTarget: HTMLElement }): void =>
  event.currentTarget.closest(".dnx-stage")?.querySelector<HTMLElement>("[aria-selected=true]")?.focus();

const textOf = (row: Instruction): string => `${row.offset} ${row.opname} ${row.argument}`.trim();

/** The place stands only where it changes, as in `dis`. */
function Cells({ row, previous }: { row: Instruction; previous: Instruction | undefined }): VNode {
  const place = row.frame ? placeText(row.frame) : "";
  const same = previous?.frame ? placeText(previous.frame) === place : false;
  return (
    <>
      <span class="dnx-num dnx-c-place">{same ? "" : place}</span>
      <span class="dnx-num">{row.offset}</span>
      <code class="dnx-op">{row.opname}</code>
      <code class="dnx-dim">{row.argument}</code>
    </>
  );
}
