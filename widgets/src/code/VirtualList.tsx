/**
 * A list of rows of one height of which only those on screen exist. It is a listbox: arrow keys
 * move, Enter holds; pointing and clicking come through `linked`.
 *
 * Where rows bear buttons it is a grid, since nothing within an option can be reached: the right
 * arrow goes to the row's button, the left one back.
 */
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSignal, useSignalEffect } from "@preact/signals";
import { linked } from "../linked";
import { refKey, type Ref, type Selection } from "../selection";

const OVERSCAN = 12;
const ASSUMED = 480; // the height before the first layout

export interface VirtualListProps {
  label: string;
  count: number;
  rowHeight?: number;
  selection: Selection;
  refOf(index: number): Ref | null;
  row(index: number): ComponentChildren;
  className?: string;
  /** Characters of the longest row, for rows of code. */
  columns?: number;
  /** The row to bring into view at first. */
  start?: number;
  /** Follow the held selection to its first lit row. */
  follow?: boolean;
  /** The active row, for a list that moves by itself. */
  active?: number;
  /** Rows may have a button, made by `row`. */
  buttons?: boolean;
  /** Take a key before the list does, on the active row; say whether it was taken. */
  onKey?(event: KeyboardEvent, row: number): boolean;
}

export function VirtualList(props: VirtualListProps): VNode {
  const { count, selection, refOf, rowHeight = 19, follow = true } = props;
  const viewport = useRef<HTMLDivElement>(null);
  const id = useId();
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(ASSUMED);
  const at = useSignal(-1); // read at once by the next key, before anything is drawn
  const active = props.active ?? at.value;

  useLayoutEffect(() => {
    const element = viewport.current;
    if (!element) return undefined;
    const measure = (): void => setHeight(element.clientHeight || ASSUMED);
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);

  const reveal = (index: number): void => {
    const element = viewport.current;
    if (!element) return;
    const [y, room] = [index * rowHeight, element.clientHeight || ASSUMED];
    const hidden = y < element.scrollTop || y + rowHeight > element.scrollTop + room;
    if (hidden) element.scrollTop = Math.max(0, y - room / 3);
  };

  useEffect(() => {
    if (props.start !== undefined && props.start >= 0) reveal(props.start);
  }, [props.start]);

  useEffect(() => {
    if (props.active !== undefined && props.active >= 0) reveal(props.active);
  }, [props.active]);

  useSignalEffect(() => {
    const held = selection.pinned.value;
    const lit = selection.lit.value;
    if (!held || !follow) return;
    const first = firstLit(count, refOf, lit, refKey(held));
    if (first >= 0) reveal(first);
  });

  const move = (index: number): void => {
    const next = Math.max(0, Math.min(count - 1, index));
    at.value = next;
    reveal(next);
    selection.set(refOf(next), "hover");
  };
  const page = Math.max(1, Math.floor(height / rowHeight) - 1);
  const moves: Record<string, () => void> = {
    ArrowDown: () => move(at.peek() + 1),
    ArrowUp: () => move(at.peek() - 1),
    PageDown: () => move(at.peek() + page),
    PageUp: () => move(at.peek() - page),
    Home: () => move(0),
    End: () => move(count - 1),
    Enter: () => hold(),
    " ": () => hold(),
    ...(props.buttons ? { ArrowRight: () => focusButton(), ArrowLeft: () => viewport.current?.focus() } : {}),
  };
  const focusButton = (): void => {
    viewport.current?.querySelector<HTMLElement>("[aria-selected=true] button")?.focus();
  };
  const hold = (): void => {
    const ref = at.peek() >= 0 ? refOf(at.peek()) : null;
    if (ref) selection.set(ref, "pin");
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const onButton = event.target !== viewport.current;
    if (onButton && PRESSING.has(event.key)) return;
    const act = props.onKey?.(event, at.peek()) ? () => {} : moves[event.key];
    if (!act) return;
    act();
    event.preventDefault();
  };

  const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + OVERSCAN);
  const rows = [];
  for (let index = first; index < last; index++) {
    rows.push(
      <div
        key={index}
        id={`${id}-${index}`}
        role={props.buttons ? "row" : "option"}
        aria-selected={index === active}
        {...(props.buttons
          ? { "aria-rowindex": index + 1 }
          : { "aria-posinset": index + 1, "aria-setsize": count })}
        class="dnx-row"
        style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
        onPointerDown={() => (at.value = index)}
        {...linked(refOf(index))}
      >
        {props.buttons ? (
          <div role="gridcell" class="dnx-gridcell">
            {props.row(index)}
          </div>
        ) : (
          props.row(index)
        )}
      </div>,
    );
  }
  const shown = active >= first && active < last;
  return (
    <div
      ref={viewport}
      class={`dnx-list ${props.className ?? ""}`}
      role={props.buttons ? "grid" : "listbox"}
      aria-label={props.label}
      {...(props.buttons ? { "aria-rowcount": count } : {})}
      tabIndex={0}
      {...(shown ? { "aria-activedescendant": `${id}-${active}` } : {})}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
    >
      <div
        role={props.buttons ? "rowgroup" : "presentation"}
        class="dnx-list-all"
        style={{ height: `${count * rowHeight}px`, width: widthOf(props.columns) }}
      >
        {rows}
      </div>
    </div>
  );
}

/** The keys that press a button: they are its own while it has the focus. */
const PRESSING = new Set(["Enter", " "]);

const GUTTER = 20; // characters beside the code, at most

/** As wide as the longest row, so that all rows scroll as one. */
const widthOf = (columns: number | undefined): string =>
  columns === undefined ? "100%" : `max(100%, ${columns + GUTTER}ch)`;

/** The length of the longest line. */
export const longest = (lines: readonly string[]): number =>
  lines.reduce((most, line) => Math.max(most, line.length), 0);

/** The row of the held ref itself, else the first that is lit. */
function firstLit(
  count: number,
  refOf: (index: number) => Ref | null,
  lit: Set<string>,
  held: string,
): number {
  let found = -1;
  for (let index = 0; index < count; index++) {
    const ref = refOf(index);
    const key = ref && refKey(ref);
    if (key === held) return index;
    if (found < 0 && key && lit.has(key)) found = index;
  }
  return found;
}
