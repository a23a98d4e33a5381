/** Every frame that Dynamo looked at, and every call it traced into: what became of it, and why. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { VirtualList } from "../code/VirtualList";
import { frameAt, hueOf } from "../facts";
import { linked } from "../linked";
import { CELL, compileKey, lineRef, placeText, type CellRecord, type Frame } from "../record";
import { sameRef, type Ref } from "../selection";
import { Chip, Empty, Place } from "../ui";
import type { View } from "../view";

const TORCH = "torch/";

export function Frames({ view }: { view: View }): VNode {
  const [wanted, want] = useState("");
  const [withTorch, show] = useState(false);
  const all = framesOf(view.record);
  const own = all.filter((one) => !one.file.startsWith(TORCH));
  const rows = (withTorch ? all : own).filter((one) => textOf(one).includes(wanted.toLowerCase()));
  if (!all.length) return <Empty>Dynamo looked at no frame.</Empty>;
  const shown = view.selection.current.value;
  const one = shown ? rows.find((row) => sameRef(refOf(row), shown)) : undefined;
  return (
    <>
      <div class="dnx-bar dnx-tools">
        <input
          type="search"
          placeholder="filter frames"
          aria-label="filter frames"
          value={wanted}
          onInput={(event) => want(event.currentTarget.value)}
        />
        {own.length < all.length && (
          <label>
            <input
              type="checkbox"
              checked={withTorch}
              onChange={(event) => show(event.currentTarget.checked)}
            />{" "}
            torch's own
          </label>
        )}
        <span class="dnx-dim" role="status">
          {rows.length} of {all.length}
        </span>
      </div>
      {rows.length === 0 ? (
        <Empty>{wanted ? "No frame fits the filter." : "Only frames of torch's own."}</Empty>
      ) : (
        <VirtualList
          label="frames"
          className="dnx-table dnx-frame-rows"
          count={rows.length}
          rowHeight={22}
          selection={view.selection}
          refOf={(index) => (rows[index] ? refOf(rows[index]) : null)}
          row={(index) => rows[index] && <Cells frame={rows[index]} />}
        />
      )}
      {one ? (
        <Detail view={view} frame={one} />
      ) : (
        <p class="dnx-hint">Point at a frame to see why, and which call led to it.</p>
      )}
    </>
  );
}

/** The frames with the calls that were inlined, and those that ran eagerly; the cells' own first. */
function framesOf(record: CellRecord): Frame[] {
  const inlined = record.compiles.flatMap((one) =>
    one.inlined.map((frame) => ({ ...frame, compile_id: compileKey(one) })),
  );
  const eager = record.calls
    .filter((call) => call.eager > 0)
    .map((call): Frame => ({
      name: call.name || "a call",
      file: CELL,
      first_line: call.line,
      outcome: "ran eagerly",
      reason: call.reason,
      compile_id: "",
      call_line: call.line,
      count: call.eager,
    }));
  const all = [...record.frames, ...eager, ...inlined];
  return all.sort((a, b) => Number(isInCell(b)) - Number(isInCell(a)));
}

const isInCell = (frame: Frame): boolean => frame.file.startsWith("<cell");

const refOf = (frame: Frame): Ref =>
  frame.outcome === "compiled"
    ? [frame.compile_id, "compile", ""]
    : lineRef(frame.file, frame.first_line);

const textOf = (frame: Frame): string =>
  [frame.outcome, frame.name, frame.file, frame.reason, frame.compile_id].join(" ").toLowerCase();

const placeOf = (frame: Frame): string => placeText({ file: frame.file, line: frame.first_line });

const STYLES: Record<string, string> = { failed: "dnx-err", "ran eagerly": "dnx-warn" };

function Cells({ frame }: { frame: Frame }): VNode {
  return (
    <>
      <span class={`dnx-cell dnx-c-outcome ${STYLES[frame.outcome] ?? ""}`}>{frame.outcome}</span>
      <span class="dnx-cell dnx-c-name">{frame.name}</span>
      <span class="dnx-cell dnx-c-lines">{placeOf(frame)}</span>
      <span class="dnx-cell dnx-c-code">{frame.compile_id || frame.reason}</span>
      <span class="dnx-cell dnx-c-wide">{frame.call_line !== null && `at line ${frame.call_line}`}</span>
      <span class="dnx-cell dnx-c-times">{frame.count > 1 && `×${frame.count}`}</span>
    </>
  );
}

function Detail({ view, frame }: { view: View; frame: Frame }): VNode {
  const key = frame.compile_id;
  return (
    <div class="dnx-detail" tabIndex={0} role="group" aria-label={`frame ${frame.name}`}>
      <div class="dnx-bar">
        <b>{frame.name}</b> <Place frame={frameAt(frame.first_line, frame.file)} />
        <span class="dnx-dim">{frame.file}</span>
      </div>
      <p>
        {frame.outcome}
        {key && (
          <>
            {frame.outcome === "inlined" ? " into " : " as "}
            <button class={`dnx-chip dnx-hue${hueOf(view.record, key)}`} {...linked([key, "compile", ""])}>
              {key}
            </button>
          </>
        )}
        {frame.reason && `: ${frame.reason}`}
      </p>
      {frame.call_line !== null && (
        <p>
          called from <Chip to={lineRef(CELL, frame.call_line)}>line {frame.call_line}</Chip>
          {frame.count > 1 && ` ${frame.count} times`}
        </p>
      )}
    </div>
  );
}
