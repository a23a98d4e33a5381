/** The cell, and the files that its work leads to, with what became of each line. */
import type { VNode } from "preact";
import { useComputed } from "@preact/signals";
import { Line, type Span } from "../code/Line";
import { stringLines } from "../code/tokens";
import { longest, VirtualList } from "../code/VirtualList";
import { frameOf } from "../describe";
import { hueOf, LEGEND, type LineFacts } from "../facts";
import { CELL, fileText, lineRef, type StackFrame } from "../record";
import { Copy, Empty, Loaded, Tabs } from "../ui";
import type { View } from "../view";

const NO_FACTS: LineFacts = { graphs: [], guards: 0, marks: [], eager: false };

export function Source({ view }: { view: View }): VNode {
  const file = view.file.value;
  const others = [...new Set([...view.facts.keys(), file])].filter((one) => one !== CELL);
  const tabs = [CELL, ...others.sort()].map((one) => ({
    id: one,
    label: fileText(one),
    title: one === CELL ? "the recorded cell" : one,
  }));
  return (
    <section class="dnx-pane dnx-source" aria-label="source">
      <header class="dnx-bar">
        <Tabs
          label="source files"
          tabs={tabs}
          chosen={file}
          choose={(id) => (view.file.value = id)}
        />
      </header>
      {file === CELL ? (
        <Text view={view} file={file} text={view.record.source} />
      ) : (
        <Loaded part={view.store.files()} what="files" retry={() => view.store.retry("files")}>
          {(files) =>
            file in files ? (
              <Text view={view} file={file} text={files[file] ?? ""} />
            ) : (
              <Empty>The text of {file} was not recorded.</Empty>
            )
          }
        </Loaded>
      )}
    </section>
  );
}

function Text({ view, file, text }: { view: View; file: string; text: string }): VNode {
  const lines = text.replace(/\n$/, "").split("\n");
  const strings = stringLines(lines);
  const facts = view.facts.get(file) ?? new Map<number, LineFacts>();
  const spans = useComputed(() => spansOf(view, file)).value;
  const counts = [...facts.values()].map((one) => String(one.guards || "").length);
  const wide = [Math.max(0, ...counts), String(lines.length).length] as const;
  return (
    <>
      <VirtualList
        key={file}
        label={file === CELL ? "cell source" : file}
        className="dnx-code"
        count={lines.length}
        columns={longest(lines)}
        selection={view.selection}
        refOf={(index) => lineRef(file, index + 1)}
        row={(index) => (
          <>
            <Gutter view={view} facts={facts.get(index + 1) ?? NO_FACTS} line={index + 1} wide={wide} />
            <Line
              text={lines[index] ?? ""}
              language="python"
              string={strings[index] ?? false}
              spans={spans.get(index + 1) ?? []}
            />
            <Note facts={facts.get(index + 1) ?? NO_FACTS} />
          </>
        )}
      />
      <footer class="dnx-foot">
        <Legend facts={facts} />
        <Copy text={() => text} label="copy source" />
      </footer>
    </>
  );
}

function Gutter(props: {
  view: View;
  facts: LineFacts;
  line: number;
  wide: readonly [guards: number, line: number];
}): VNode {
  const { facts, view } = props;
  const first = facts.graphs[0];
  const hue = first === undefined ? "" : ` dnx-hue${hueOf(view.record, first)}`;
  const where = facts.graphs.length ? `in the graph of ${facts.graphs.join(", ")}` : "";
  const what = [where, facts.eager ? "runs outside a graph" : ""].filter(Boolean).join("; ");
  const letters = [...new Set(facts.marks.map((mark) => mark.letter))];
  return (
    <span class="dnx-gutter">
      <span class="dnx-letters" title={facts.marks.map((mark) => mark.text).join("\n")}>
        {letters.map((letter) => (
          <b key={letter} class={`dnx-mark${letter}`}>
            {letter}
          </b>
        ))}
      </span>
      <span
        class="dnx-guards"
        style={{ width: `${props.wide[0]}ch` }}
        title={facts.guards ? `${facts.guards} guards from this line` : ""}
      >
        {facts.guards || ""}
      </span>
      <span class="dnx-num" style={{ width: `${props.wide[1] + 2.5}ch` }}>
        {props.line}
      </span>
      <span class={`dnx-strip${hue}${facts.eager ? " dnx-eager" : ""}`} title={what} />
    </span>
  );
}

const Note = ({ facts }: { facts: LineFacts }): VNode | null =>
  facts.marks.length ? (
    <span class="dnx-note">{facts.marks.map((mark) => mark.text).join("; ")}</span>
  ) : null;

function Legend({ facts }: { facts: Map<number, LineFacts> }): VNode {
  const used = new Set([...facts.values()].flatMap((one) => one.marks.map((mark) => mark.letter)));
  const eager = [...facts.values()].some((one) => one.eager);
  return (
    <span class="dnx-legend">
      {[...used].map((letter) => (
        <span key={letter}>
          <b class={`dnx-mark${letter}`}>{letter}</b> {LEGEND[letter]}
        </span>
      ))}
      {eager && (
        <span>
          <i class="dnx-strip dnx-eager" /> outside a graph
        </span>
      )}
    </span>
  );
}

/** The columns to underline, by line: the exact place of what is selected. */
function spansOf(view: View, file: string): Map<number, Span[]> {
  const spans = new Map<number, Span[]>();
  const current = view.selection.current.value;
  const frame = current && frameOf(current, view.record, view.store);
  if (frame?.file !== file || frame.column === null) return spans;
  for (let line = frame.line; line <= (frame.end_line ?? frame.line); line++) {
    spans.set(line, [spanOn(frame, line)]);
  }
  return spans;
}

const spanOn = (frame: StackFrame, line: number): Span => [
  line === frame.line ? (frame.column ?? 0) : 0,
  line === (frame.end_line ?? frame.line) ? (frame.end_column ?? Infinity) : Infinity,
];
