/** What passes did to the graphs of one compile: the nodes by which before and after differ. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { hueOf, refOfFrame } from "../facts";
import { compileKey, type Compile, type GraphPass, type PassRow } from "../record";
import { Chip, Empty, Place, Table, type TableRow } from "../ui";
import type { View } from "../view";

export function Passes({ view, compile }: { view: View; compile: Compile }): VNode {
  const { passes } = compile;
  if (!passes.length) return <Elsewhere view={view} compile={compile} />;
  const sorted = [...passes].sort((a, b) => Number(!a.error) - Number(!b.error));
  const opened = sorted.find((one) => one.error || one.function) ?? sorted[0];
  return (
    <div class="dnx-scroll" tabIndex={0} role="group" aria-label={`passes of ${compileKey(compile)}`}>
      {sorted.map((one, index) => (
        <Card key={index} pass={one} opened={one === opened || !!one.error} />
      ))}
    </div>
  );
}

function Elsewhere({ view, compile }: { view: View; compile: Compile }): VNode {
  const others = view.record.compiles.filter((one) => one.passes.length).map(compileKey);
  return (
    <Empty>
      No pass changed a graph of {compileKey(compile)}. There are some in{" "}
      {others.map((key) => (
        <Chip key={key} to={[key, "compile", ""]} className={`dnx-hue${hueOf(view.record, key)}`}>
          {key}
        </Chip>
      ))}
    </Empty>
  );
}

function Card({ pass, opened }: { pass: GraphPass; opened: boolean }): VNode {
  const [open, show] = useState(opened);
  return (
    <details class="dnx-card" open={open} onToggle={(event) => show(event.currentTarget.open)}>
      <summary>
        <b>{[pass.name, pass.direction].filter(Boolean).join(".")}</b> {pass.function || "passes"}
        {": "}
        <span class={pass.error ? "dnx-err" : ""}>{effectOf(pass)}</span>
      </summary>
      {open && <Detail pass={pass} />}
    </details>
  );
}

function Detail({ pass }: { pass: GraphPass }): VNode {
  return (
    <div class="dnx-pass">
      <p class="dnx-dim">
        {pass.frame && "defined in "}
        <Place frame={pass.frame} /> {pass.same > 0 && `${pass.same} nodes are the same`}
      </p>
      {pass.rows.length > 0 && (
        <Table
          label={`nodes before and after ${pass.function || pass.name}`}
          columns={["node", "change", "before", "after", "line"]}
          rows={pass.rows.map((row) => ({ cells: cellsOf(row), to: refOfFrame(row.frame) }))}
        />
      )}
    </div>
  );
}

const cellsOf = (row: PassRow): TableRow["cells"] => [
  row.node,
  row.kind,
  row.before && <Side style="dnx-gone" text={row.before} />,
  row.after && <Side style="dnx-new" text={row.after} />,
  row.frame && <Place frame={row.frame} />,
];

const Side = (props: { style: string; text: string }): VNode => (
  <span class={props.style}>
    <code>{props.text}</code>
  </span>
);

/** What a pass did, `1 removed, 2 added`, and what was wrong with it. */
export function effectOf({ rows, error }: GraphPass): string {
  const parts = ["removed", "added", "changed"]
    .map((kind) => [rows.filter((one) => one.kind === kind).length, kind] as const)
    .filter(([count]) => count)
    .map((part) => part.join(" "));
  const effect = parts.join(", ") || "changed nothing";
  return [...(parts.length || !error ? [effect] : []), ...(error ? [error] : [])].join("; ");
}
