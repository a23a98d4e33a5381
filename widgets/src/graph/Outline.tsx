/** The graph as a tree of rows with lanes: at any size, and for those who do not see the drawing. */
import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useComputed, useSignalEffect } from "@preact/signals";
import { describe } from "./describe";
import { type LaneRow, MOST_LANES } from "./lanes";
import { outlineRows, type Row } from "./rows";
import { textsOf } from "./sizes";
import type { GraphState } from "./state";
import { type Box, isGroup, shownBox } from "./tree";

const ROW = 21;
const LANE = 9;
const AROUND = 8; // rows beyond the screen
const INDENT = 12;

interface Props {
  state: GraphState;
  search(): void;
}

export function Outline({ state, search }: Props): VNode {
  const host = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const [at, setAt] = useState<Box | null>(null);
  const { rows, lanes } = useComputed(() => {
    state.version.value;
    const shown = outlineRows(state.tree, state.foundSet.value);
    return { rows: shown, lanes: shown.reduce((most, row) => Math.max(most, widest(row.lane)), 0) };
  }).value;

  useLayoutEffect(() => {
    const element = host.current!;
    const measure = (): void => setHeight(element.clientHeight || 400);
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);

  const show = (row: number): void => {
    const element = host.current;
    if (!element || row < 0) return;
    if (row * ROW < element.scrollTop) element.scrollTop = row * ROW;
    const least = (row + 1) * ROW - element.clientHeight;
    if (element.scrollTop < least) element.scrollTop = least;
  };
  useSignalEffect(() => {
    const pinned = state.boxOf(state.selection.pinned.value);
    if (pinned) show(outlineRows(state.tree, null).findIndex((row) => row.box === shownBox(pinned)));
  });

  const current = rows.findIndex((row) => row.box === at);
  const go = (row: number): void => {
    const to = rows[Math.max(0, Math.min(rows.length - 1, row))];
    if (!to) return;
    setAt(to.box);
    state.point(to.box);
    show(rows.indexOf(to));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = actions(state, rows, current, go, search)[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };

  const first = Math.max(0, Math.floor(top / ROW) - AROUND);
  const last = Math.min(rows.length, Math.ceil((top + height) / ROW) + AROUND);
  return (
    <div
      ref={host}
      class="dnx-g-outline"
      role="tree"
      aria-label={`${state.graph.name} graph, ${state.tree.order.length} nodes`}
      tabIndex={0}
      aria-activedescendant={current >= first && current < last ? rowId(state, current) : undefined}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
      onFocus={() => current < 0 && rows.length && setAt(rows[first]!.box)}
      onPointerLeave={() => state.point(null)}
    >
      <div role="presentation" style={{ height: `${rows.length * ROW}px` }}>
        {rows.slice(first, last).map((row, offset) => (
          <OutlineRow
            key={row.box.id}
            state={state}
            row={row}
            index={first + offset}
            lanes={lanes}
            current={row.box === at}
            take={() => setAt(row.box)}
          />
        ))}
      </div>
      {!rows.length && <p class="dnx-g-none">Nothing found.</p>}
    </div>
  );
}

const rowId = (state: GraphState, row: number): string =>
  `dnx-g-${state.key}-${state.graph.name}-${row}`.replace(/[^\w-]/g, "_");

const widest = ({ lane, passing, from }: LaneRow): number =>
  1 + Math.min(MOST_LANES, Math.max(lane, ...passing, ...from, 0));

function actions(
  state: GraphState,
  rows: Row[],
  current: number,
  go: (row: number) => void,
  search: () => void,
): Record<string, () => void> {
  const box = rows[current]?.box;
  const group = box && isGroup(box) ? box : null;
  const toggle = (): void => {
    if (group) state.toggle(group);
    else if (box) state.pin(box.node);
  };
  return {
    ArrowDown: () => go(current + 1),
    ArrowUp: () => go(Math.max(0, current - 1)),
    ArrowRight: () => (group && !group.open ? state.toggle(group) : go(current + 1)),
    ArrowLeft: () => {
      if (group?.open) state.toggle(group);
      else go(rows.findIndex((row) => row.box === box?.parent));
    },
    Home: () => go(0),
    End: () => go(rows.length - 1),
    PageDown: () => go(current + 15),
    PageUp: () => go(current - 15),
    Enter: toggle,
    " ": toggle,
    Escape: () => state.selection.release(),
    "/": search,
  };
}

function OutlineRow(props: {
  state: GraphState;
  row: Row;
  index: number;
  lanes: number;
  current: boolean;
  take(): void;
}): VNode {
  const { state, row, index, lanes, current } = props;
  const { box } = row;
  const group = isGroup(box);
  const texts = textsOf(box, state.tree.model);
  const hue = group ? -1 : state.colouring.value.hue[box.node]!;
  const lit = !(group && box.open) && (state.lit.value?.countIn(box) ?? 0) > 0;
  const pinned = state.boxOf(state.selection.pinned.value) === box;
  const badge = group ? "" : state.tree.model.badges[box.node];
  const choose = (): void => {
    props.take();
    if (group) state.toggle(box);
    else state.pin(box.node);
  };
  return (
    <div
      id={rowId(state, index)}
      role="treeitem"
      aria-level={row.depth + 1}
      aria-selected={pinned}
      aria-label={describe(box, state)}
      {...(group ? { "aria-expanded": box.open } : {})}
      class={`dnx-g-row dnx-g-hue-${hue < 0 ? "none" : hue}`}
      data-lit={lit ? "yes" : undefined}
      data-current={current ? "" : undefined}
      style={{ top: `${index * ROW}px`, height: `${ROW}px` }}
      onPointerEnter={() => state.point(box)}
      onClick={choose}
    >
      <Lanes row={row.lane} count={lanes} />
      <span class="dnx-g-row-text" style={{ paddingLeft: `${row.depth * INDENT}px` }}>
        <span class="dnx-g-mark">{group ? (box.open ? "▾" : "▸") : ""}</span>
        <span class="dnx-g-name">{texts.name}</span>
        {texts.beside && <span class="dnx-g-op"> {texts.beside}</span>}
        <span class="dnx-g-below"> {group && box.open ? "" : texts.below}</span>
        {texts.inside && <span class="dnx-g-inside"> {texts.inside}</span>}
        {badge && <span class="dnx-g-tag">{badge}</span>}
      </span>
    </div>
  );
}

/** One row of the lanes: what passes, what is used, and the row's own value. */
function Lanes(props: { row: LaneRow; count: number }): VNode {
  const { lane, from, passing, used } = props.row;
  const x = (at: number): number => Math.min(at, MOST_LANES) * LANE + LANE / 2 + 2;
  const middle = ROW / 2;
  let path = "";
  for (const one of passing) {
    if (one !== lane || !from.includes(one)) path += `M${x(one)} 0V${ROW}`;
  }
  if (lane >= 0) {
    for (const one of from) {
      path += one === lane ? `M${x(one)} 0V${middle}` : `M${x(one)} 0Q${x(one)} ${middle} ${x(lane)} ${middle}`;
    }
    if (used) path += `M${x(lane)} ${middle}V${ROW}`;
  }
  return (
    <svg class="dnx-g-lanes" width={props.count * LANE + 6} height={ROW} aria-hidden="true">
      <path d={path} />
      {lane >= 0 && <circle cx={x(lane)} cy={middle} r={3} />}
    </svg>
  );
}
