/** The few controls that panes are made of. */
import { Component, type ComponentChildren, type VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ReadonlySignal } from "@preact/signals";
import { refOfFrame } from "./facts";
import { linked } from "./linked";
import { placeText, type StackFrame } from "./record";
import type { Ref } from "./selection";
import type { Part } from "./store";

/** A part of the record: its content once it is here, else why it is not. */
export function Loaded<T>(props: {
  part: ReadonlySignal<Part<T>>;
  what: string;
  retry?: () => void;
  children: (value: T) => ComponentChildren;
}): VNode {
  const part = props.part.value;
  if (part.state === "ready") return <>{props.children(part.value)}</>;
  if (part.state === "loading") return <Empty>{part.note || `Loading ${props.what} …`}</Empty>;
  return (
    <div class="dnx-empty" role="alert">
      <p>
        No {props.what}: {part.message}
      </p>
      {props.retry && <button onClick={props.retry}>Try again</button>}
    </div>
  );
}

export const Empty = (props: { children: ComponentChildren }): VNode => (
  <div class="dnx-empty" role="status">
    <p>{props.children}</p>
  </div>
);

/** What a pane shows when it fails: itself only, the others go on. */
export class Guarded extends Component<
  { what: string; children: ComponentChildren },
  { error: Error | null }
> {
  override state = { error: null as Error | null };

  static override getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ComponentChildren {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <div class="dnx-empty" role="alert">
        <p>
          {this.props.what} can't be shown: {error.message}. The other panes work; please report
          this with the saved record (%dynamo save FILE).
        </p>
      </div>
    );
  }
}

export interface Tab {
  id: string;
  label: string;
  count?: number | undefined;
  title?: string;
  hue?: number;
}

/** Tabs with one stop for the Tab key; arrows move between them. */
export function Tabs(props: {
  label: string;
  tabs: readonly Tab[];
  chosen: string;
  choose(id: string): void;
  className?: string;
  panel?: string;
}): VNode {
  const { tabs, chosen, choose } = props;
  const at = tabs.findIndex((tab) => tab.id === chosen);
  const steps: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 };
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLElement }): void => {
    const step = steps[event.key];
    const next = step === undefined ? undefined : tabs.at(step % tabs.length);
    if (!next) return;
    event.preventDefault();
    choose(next.id);
    const buttons = event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]");
    buttons[tabs.indexOf(next)]?.focus();
  };
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = list.current;
    const tab = element?.querySelector<HTMLElement>("[aria-selected=true]");
    if (element && tab) element.scrollLeft = scrollFor(element, tab);
  }, [chosen]);
  return (
    <div
      ref={list}
      role="tablist"
      aria-label={props.label}
      class={`dnx-tabs ${props.className ?? ""}`}
      onKeyDown={onKeyDown}
    >
      {tabs.map((tab) => (
        <button
          key={tab.id}
          role="tab"
          aria-selected={tab.id === chosen}
          tabIndex={tab.id === chosen ? 0 : -1}
          title={tab.title}
          class={tab.hue === undefined ? "" : `dnx-hue${tab.hue}`}
          onClick={() => choose(tab.id)}
          {...(props.panel ? { "aria-controls": props.panel } : {})}
        >
          {tab.label}
          {tab.count !== undefined && <span class="dnx-count">{tab.count}</span>}
        </button>
      ))}
    </div>
  );
}

/** Where a strip of tabs has to be scrolled to, to show one of them whole. */
function scrollFor(list: HTMLElement, tab: HTMLElement): number {
  const [from, to] = [tab.offsetLeft - list.offsetLeft, tab.offsetLeft - list.offsetLeft + tab.offsetWidth];
  if (from < list.scrollLeft) return from - 20;
  return to > list.scrollLeft + list.clientWidth ? to - list.clientWidth + 20 : list.scrollLeft;
}

/** A place in the source: pointing shows it, clicking holds it. */
export function Place(props: { frame: StackFrame | null | undefined; ref_?: Ref }): VNode | null {
  const { frame } = props;
  if (!frame) return null;
  return (
    <button class="dnx-chip" {...linked(props.ref_ ?? refOfFrame(frame))}>
      {placeText(frame)}
    </button>
  );
}

export interface TableRow {
  cells: ComponentChildren[];
  to?: Ref | null;
}

const PAGE = 500; // rows of a table that are drawn at a time

/**
 * A small table; the first cell of a row with a ref is a button for it. Empty columns are left out,
 * long tables are leafed through.
 */
export function Table(props: { label: string; columns: string[]; rows: TableRow[] }): VNode {
  const [wanted, turn] = useState(0);
  const count = props.rows.length;
  const page = Math.min(wanted, Math.max(0, Math.ceil(count / PAGE) - 1)); // rows may have become fewer
  const from = page * PAGE;
  const rows = props.rows.slice(from, from + PAGE);
  const kept = props.columns.map((_, index) => props.rows.some(({ cells }) => !!cells[index]));
  return (
    <div class="dnx-wide" tabIndex={0} role="group" aria-label={props.label}>
      <table aria-rowcount={count + 1}>
        <thead>
          <tr>{props.columns.map((title, index) => kept[index] && <th key={index}>{title}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map(({ cells, to }, row) => (
            <tr key={from + row} aria-rowindex={from + row + 2} {...linked(to)}>
              {cells.map((cell, index) => {
                const shown = index === 0 && to ? <Chip to={to}>{cell}</Chip> : cell;
                return kept[index] && <td key={index}>{shown}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {count > PAGE && (
        <div class="dnx-bar dnx-turn" role="group" aria-label={`pages of ${props.label}`}>
          <Turn sign="◂" label="earlier rows" to={page - 1} last={from === 0} turn={turn} />
          <span role="status">
            rows {from + 1}–{from + rows.length} of {count}
          </span>
          <Turn sign="▸" label="later rows" to={page + 1} last={from + PAGE >= count} turn={turn} />
        </div>
      )}
    </div>
  );
}

/** A button to another page of a table; it stays where there is none, so that focus does too. */
const Turn = (props: {
  sign: string;
  label: string;
  to: number;
  last: boolean;
  turn(page: number): void;
}): VNode => (
  <button
    class="dnx-button"
    aria-label={props.label}
    aria-disabled={props.last}
    onClick={() => props.last || props.turn(props.to)}
  >
    {props.sign}
  </button>
);

/** Anything with a ref, as a small button. */
export const Chip = (props: { to: Ref; className?: string; children: ComponentChildren }): VNode => (
  <button class={`dnx-chip ${props.className ?? ""}`} {...linked(props.to)}>
    {props.children}
  </button>
);

/** Copy text with one click, and say that it was done. */
export function Copy(props: { text: () => string; label?: string; title?: string }): VNode {
  const [said, say] = useState("");
  const copy = async (): Promise<void> => {
    const done = await writeClipboard(props.text());
    say(done ? "copied" : "can't copy here");
    setTimeout(() => say(""), 1500);
  };
  return (
    <button
      class="dnx-copy"
      title={props.title ?? "Copy"}
      {...(props.label ? {} : { "aria-label": props.title ?? "Copy" })}
      onClick={() => void copy()}
    >
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d="M5 5V2h9v9h-3M2 5h9v9H2z" />
      </svg>
      <span aria-live="polite">{said || props.label}</span>
    </button>
  );
}

/** The clipboard, or the older way where a frame may not use it. */
async function writeClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.cssText = "position:fixed;opacity:0";
    document.body.append(area);
    area.select();
    const done = document.execCommand?.("copy") ?? false;
    area.remove();
    return done;
  }
}
