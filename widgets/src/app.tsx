/** The explorer: findings on top, the source on the left, two sections on the right. */
import { render, type VNode } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { effect, useSignal, type Signal } from "@preact/signals";
import { counted, describe } from "./describe";
import { hueOf } from "./facts";
import { attach, linked } from "./linked";
import { compileKey, SCHEMA_VERSION, type CellRecord, type Compile, type Link } from "./record";
import { isBefore, parseKey, type Ref, type Selection } from "./selection";
import { Findings } from "./panes/Findings";
import { Source } from "./panes/Source";
import { firstSections, Stage } from "./panes/Stage";
import { Splitter } from "./Splitter";
import type { Core, Part, Store } from "./store";
import { Guarded } from "./ui";
import { View } from "./view";

/** What the surroundings do for the explorer: a notebook, or a page of its own. */
export interface Host {
  /** A sentence on what happened, in numbers. */
  headline: string;
  /** Draw marks over the real cell; return what takes them away. */
  decorate?(view: View): () => void;
  /** Hear of what is held and all that belongs to it. */
  onSelect?(refs: Ref[]): void;
  /** The report as a page of its own; absent where this already is one. */
  savable?: boolean;
  /** Which report came before this one, where it can be asked what is different. */
  before?: string;
}

/** Mount the explorer in an element; return what removes it. */
export function mount(element: HTMLElement, store: Store, host: Host): () => void {
  render(<App store={store} host={host} />, element);
  return () => render(null, element);
}

function App({ store, host }: { store: Store; host: Host }): VNode {
  const core = store.core().value;
  const links = store.links().value;
  if (core.state !== "ready" || links.state === "loading") {
    return <Opening part={core} retry={() => store.retry("core")} />;
  }
  return (
    <Guarded what="The explorer">
      <Explorer
        core={core.value}
        links={links.state === "ready" ? links.value : []}
        unlinked={links.state === "failed" ? links.message : ""}
        store={store}
        host={host}
      />
    </Guarded>
  );
}

function Opening({ part, retry }: { part: Part<Core>; retry: () => void }): VNode {
  const failed = part.state === "failed";
  return (
    <div class="dnx-empty" role={failed ? "alert" : "status"}>
      <p>
        {part.state === "failed" ? part.message : (part.state === "loading" && part.note) || "Opening …"}
      </p>
      {failed && <button onClick={retry}>Try again</button>}
    </div>
  );
}

function Explorer(props: {
  core: Core;
  links: Link[];
  unlinked: string;
  store: Store;
  host: Host;
}): VNode {
  const { core, links, store, host } = props;
  const root = useRef<HTMLDivElement>(null);
  const view = useMemo(() => new View(core, links, store, host.before), [core, links, store]);
  const [left, right] = useMemo(() => firstSections(view), [view]);
  const first = useSignal(left);
  const second = useSignal(right);
  useEffect(() => {
    const element = root.current;
    if (!element) return undefined;
    const stops = [
      attach(element, view.selection),
      reportHeld(view.selection, host),
      host.decorate?.(view),
      () => view.dispose(),
    ];
    return () => stops.forEach((stop) => stop?.());
  }, [view, host]);
  return (
    <div ref={root} class="dnx-root">
      <Head view={view} host={host} />
      <Warnings record={core.record} unlinked={props.unlinked} />
      <Guarded what="The findings">
        <Findings view={view} />
      </Guarded>
      <div class="dnx-body">
        <Guarded what="The source">
          <Source view={view} />
        </Guarded>
        <Splitter label="width of the source" variable="--dnx-left" />
        <div class="dnx-right">
          <Compiles view={view} />
          <Slots view={view} first={first} second={second} />
        </div>
      </div>
      <Status view={view} />
    </div>
  );
}

function Slots(props: { view: View; first: Signal<string>; second: Signal<string> }): VNode {
  const { view, first, second } = props;
  const open = second.value !== "";
  return (
    <div class={`dnx-slots${open ? " dnx-two" : ""}`}>
      <Stage view={view} label="first section" chosen={first} />
      {open ? (
        <>
          <Splitter label="size of the first section" variable="--dnx-first" />
          <Stage view={view} label="second section" chosen={second} close={() => (second.value = "")} />
        </>
      ) : (
        <button
          class="dnx-reopen"
          aria-label="open a second section"
          title="Open a second section"
          onClick={() => (second.value = "kernels")}
        >
          +
        </button>
      )}
    </div>
  );
}

/** Tell the host what is held, with all that belongs to it. */
function reportHeld(selection: Selection, host: Host): () => void {
  let told = false;
  return effect(() => {
    const held = selection.pinned.value;
    const lit = held ? [...selection.lit.value].map(parseKey).filter((ref) => !isBefore(ref)) : [];
    if (held || told) host.onSelect?.(lit);
    told = held !== null;
  });
}

function Head({ view, host }: { view: View; host: Host }): VNode {
  const { record } = view;
  const facts = [
    record.name,
    record.mode && `mode ${record.mode}`,
    record.device,
    record.versions.torch && `torch ${record.versions.torch}`,
  ];
  return (
    <header class="dnx-bar dnx-head">
      <b>{host.headline}</b>
      <span class="dnx-dim" title={record.mode_reason}>
        {facts.filter(Boolean).join(" · ")}
      </span>
      <span class="dnx-room" />
      {host.savable && <SavePage view={view} />}
    </header>
  );
}

/** Save the report as one file that opens anywhere. */
function SavePage({ view }: { view: View }): VNode {
  const said = useSignal("");
  const save = (): void => {
    const page = view.store.page();
    let stop: () => void = () => {};
    stop = effect(() => {
      const part = page.value;
      said.value = part.state === "loading" ? "asking the kernel …" : "";
      if (part.state === "loading") return;
      if (part.state === "ready") download(part.value, `${view.record.name || "dynamo"}.html`);
      else said.value = `not saved: ${part.message}`;
      queueMicrotask(() => stop());
    });
    if (page.peek().state === "failed") view.store.retry("page");
  };
  return (
    <>
      <span class="dnx-dim" role="status">
        {said.value}
      </span>
      <button class="dnx-button" title="Save as one HTML file that needs no kernel" onClick={save}>
        save page
      </button>
    </>
  );
}

function download(text: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/html" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** What the report lacks. */
function Warnings({ record, unlinked }: { record: CellRecord; unlinked: string }): VNode {
  const unparsed = Object.entries(record.unparsed).map(([name, count]) => `${name} (${count})`);
  const newer = record.schema > SCHEMA_VERSION;
  return (
    <>
      {newer && (
        <p class="dnx-warning" role="alert">
          This report was written with schema {record.schema}, this explorer reads up to{" "}
          {SCHEMA_VERSION}: what is new in it is not shown. Upgrade it: pip install --upgrade
          dynamo_nb.
        </p>
      )}
      {unlinked && (
        <p class="dnx-warning" role="alert">
          Nothing lights up together: the links are missing. {unlinked}
        </p>
      )}
      {record.notes.map((note, index) => (
        <p key={index} class="dnx-warning">
          Missing: {note.panel} ({note.hook}: {note.message})
        </p>
      ))}
      {unparsed.length > 0 && (
        <p class="dnx-warning">Not understood here: {unparsed.join(", ")}.</p>
      )}
    </>
  );
}

/** The compiles to choose from; their colours are those of the source's lines. */
function Compiles({ view }: { view: View }): VNode | null {
  const { compiles } = view.record;
  if (!compiles.length) return null;
  return (
    <div class="dnx-bar dnx-compiles" role="group" aria-label="compiles">
      {compiles.map((compile) => {
        const key = compileKey(compile);
        const choose = (): void => {
          view.compile.value = key;
        };
        return (
          <button
            key={key}
            aria-pressed={key === view.compile.value}
            class={`dnx-compile dnx-hue${hueOf(view.record, key)}`}
            title={titleOf(compile)}
            onClick={choose}
            {...linked([key, "compile", ""])}
          >
            <b>{key}</b> {shortName(compile)}
            {compile.status !== "ok" && <span class="dnx-err"> {compile.status}</span>}
          </button>
        );
      })}
    </div>
  );
}

const shortName = (compile: Compile): string => {
  const name = compile.resume_of || compile.name;
  const short = name.split(".").slice(-2).join(".");
  return compile.resume_of ? `… ${short}` : short;
};

function titleOf(compile: Compile): string {
  const lines = [`${compile.name} (${compile.file}:${compile.first_line})`];
  if (compile.resume_of) lines.push(`resumes ${compile.resume_of} after a graph break`);
  if (compile.reason) lines.push(`${compile.status}: ${compile.reason}`);
  return lines.join("\n");
}

/** What is selected, in words. */
function Status({ view }: { view: View }): VNode {
  const { selection, record, store } = view;
  const current = selection.current.value;
  const held = selection.pinned.value !== null;
  const also = current ? counted([...selection.lit.value].map(parseKey), current) : "";
  return (
    <footer class="dnx-bar dnx-status">
      <span aria-live="polite" class="dnx-ellipsis">
        {current ? (
          <>
            <b>{describe(current, record, store)}</b>
            {also && <span class="dnx-dim"> with {also}</span>}
          </>
        ) : (
          <span class="dnx-dim">Point at anything to see what belongs to it; click holds it.</span>
        )}
      </span>
      <span class="dnx-room" />
      {held && (
        <button class="dnx-button" onClick={() => selection.release()}>
          held: release <kbd>Esc</kbd>
        </button>
      )}
    </footer>
  );
}
