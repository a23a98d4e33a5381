/** Dynamo's walk over the bytecode, step by step: what it knew, and what it made of each. */
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { useSignal, useSignalEffect, type Signal } from "@preact/signals";
import { VirtualList } from "../code/VirtualList";
import { breaksOf } from "../facts";
import { compileKey, placeText, type Compile } from "../record";
import { refsIn, type Ref } from "../selection";
import { readable } from "../sources";
import { guardsOf, isChanged, nodesOf, raisedBy, stepRef, Walk } from "../steps";
import { plural } from "../describe";
import { Chip, Empty, Loaded, Place } from "../ui";
import type { View } from "../view";

/** Walks longer than this are linked one step at a time, as one goes. */
const LINKED = 20_000;

export function Steps({ view, compile }: { view: View; compile: Compile }): VNode {
  const key = compileKey(compile);
  if (!view.sizes[key]?.steps) return <Empty>{noSteps(compile)}</Empty>;
  return (
    <Loaded
      part={view.store.steps(compile)}
      what="steps"
      retry={() => view.store.retry("steps", key)}
    >
      {(steps) => <Stepper view={view} compile={compile} walk={walkOf(steps, view)} />}
    </Loaded>
  );
}

const walks = new WeakMap<object, Walk>();

function walkOf(steps: Walk["steps"], view: View): Walk {
  const walk = walks.get(steps) ?? new Walk(steps, view.files);
  walks.set(steps, walk);
  return walk;
}

const noSteps = (compile: Compile): string =>
  compile.cell === null && compile.seen === "whole"
    ? "The steps of this compile were not recorded."
    : "Compiled before: what Dynamo did then was not recorded.";

/** Where one is, and which inlined calls are open. */
interface Position {
  at: Signal<number>;
  open: Signal<ReadonlySet<number>>;
  go(step: number): void;
  toggle(step: number): void;
}

function usePosition(view: View, key: string, walk: Walk): Position {
  const at = useSignal(0);
  const open = useSignal<ReadonlySet<number>>(new Set());
  const { selection } = view;
  useEffect(() => {
    if (walk.length > LINKED) return;
    selection.extend(walk.steps.steps.flatMap((_, step) => walk.links(key, step)));
  }, [walk]);
  const show = (step: number): void => {
    at.value = step;
    const around = [...walk.callersOf(step)].filter((one) => !open.peek().has(one));
    if (around.length) open.value = new Set([...open.peek(), ...around]);
  };
  useSignalEffect(() => {
    const held = selection.pinned.value;
    if (!held) return;
    const lit = refsIn(selection.lit.value, "step").filter((ref) => ref[0] === key);
    const own = lit.find((ref) => ref[2] === held[2] && held[1] === "step") ?? lit[0];
    if (own) show(Number(own[2]));
  });
  const go = (step: number): void => {
    if (step < 0 || step >= walk.length) return;
    if (walk.length > LINKED) selection.extend(walk.links(key, step));
    show(step);
    selection.pin(stepRef(key, step));
  };
  const toggle = (step: number): void => {
    if (!walk.callers.has(step)) return;
    const now = new Set(open.peek());
    if (!now.delete(step)) now.add(step);
    open.value = now;
  };
  return { at, open, go, toggle };
}

function Stepper(props: { view: View; compile: Compile; walk: Walk }): VNode {
  const { view, compile, walk } = props;
  const key = compileKey(compile);
  const position = usePosition(view, key, walk);
  const open = position.open.value;
  const rows = useMemo(() => walk.visible(open), [walk, open]);
  const pointed = view.selection.current.value;
  const shown = pointed?.[1] === "step" && pointed[0] === key ? Number(pointed[2]) : position.at.value;
  return (
    <>
      <Tools walk={walk} position={position} />
      <VirtualList
        label={`steps of ${key}`}
        className="dnx-code dnx-bytecode dnx-steps"
        count={rows.length}
        columns={40 + walk.longest}
        selection={view.selection}
        active={rows.indexOf(position.at.value)}
        refOf={(index) => (index in rows ? stepRef(key, rows[index]!) : null)}
        row={(index) => <Row walk={walk} rows={rows} index={index} position={position} />}
        onKey={(event) => onKey(event, walk, position)}
      />
      <Detail view={view} compile={compile} walk={walk} step={Math.min(shown, walk.length - 1)} />
    </>
  );
}

/** Arrow keys step; with Shift over calls; right opens a call, left leaves it. */
function onKey(event: KeyboardEvent, walk: Walk, { at, open, go, toggle }: Position): boolean {
  const step = at.peek();
  const isOpen = open.peek().has(step);
  const acts: Record<string, () => void> = {
    ArrowDown: () => go(event.shiftKey ? walk.over(step, 1) : step + 1),
    ArrowUp: () => go(event.shiftKey ? walk.over(step, -1) : step - 1),
    ArrowRight: () => (walk.callers.has(step) && !isOpen ? toggle(step) : go(step + 1)),
    ArrowLeft: () => (isOpen ? toggle(step) : go(walk.caller(step))),
    Home: () => go(0),
    End: () => go(walk.length - 1),
    Enter: () => (walk.callers.has(step) ? toggle(step) : go(step)),
  };
  acts[event.key]?.();
  return event.key in acts;
}

function Tools({ walk, position }: { walk: Walk; position: Position }): VNode {
  const { at, go, open } = position;
  const step = at.value;
  const moves: [label: string, sign: string, to: number][] = [
    ["one step back", "◂", step - 1],
    ["one step on, into calls", "▸", step + 1],
    ["one step on, over calls", "▸▸", walk.over(step, 1)],
    ["out of this call", "▴", walk.caller(step)],
  ];
  const all = open.value.size < walk.callers.size;
  return (
    <div class="dnx-bar dnx-tools">
      {moves.map(([label, sign, to]) => (
        <button
          key={sign}
          class="dnx-button"
          title={label}
          aria-label={label}
          disabled={to < 0 || to >= walk.length}
          onClick={() => go(to)}
        >
          {sign}
        </button>
      ))}
      <span>
        step {step + 1} of {walk.length}
        {walk.steps.is_cut && "+"}
      </span>
      <span class="dnx-dim dnx-ellipsis">in {walk.code(step).name}</span>
      <span class="dnx-room" />
      {walk.callers.size > 0 && (
        <button class="dnx-button" onClick={() => (open.value = new Set(all ? walk.callers : []))}>
          {all ? "open calls" : "close calls"}
        </button>
      )}
    </div>
  );
}

function Row(props: { walk: Walk; rows: number[]; index: number; position: Position }): VNode | null {
  const { walk, rows, index, position } = props;
  const step = rows[index];
  if (step === undefined) return null;
  const item = walk.instruction(step);
  const place = item.frame ? placeText(item.frame) : "";
  const above = rows[index - 1];
  const before = above === undefined ? null : walk.instruction(above).frame;
  const calls = walk.callers.has(step);
  const made = [
    nodesOf(walk.at(step)).length && plural(nodesOf(walk.at(step)).length, "node"),
    guardsOf(walk.at(step)).length && plural(guardsOf(walk.at(step)).length, "guard"),
    raisedBy(walk.at(step)),
  ].filter(Boolean);
  return (
    <>
      <span class="dnx-num dnx-c-place">{before && placeText(before) === place ? "" : place}</span>
      <span class="dnx-num">{item.offset < 0 ? "" : item.offset}</span>
      <span style={{ width: `${2 * walk.depth(step)}ch` }} />
      <Fold open={position.open.value.has(step)} calls={calls} toggle={() => position.toggle(step)} />
      <code class="dnx-op">{item.opname}</code>
      <code class="dnx-dim">{item.argument}</code>
      {made.length > 0 && <span class="dnx-made">{made.join(", ")}</span>}
    </>
  );
}

/** The mark before a step whose call was inlined; keys open it from the row itself. */
function Fold(props: { open: boolean; calls: boolean; toggle(): void }): VNode {
  const toggle = (event: Event): void => {
    event.stopPropagation();
    props.toggle();
  };
  return (
    <span class="dnx-fold" aria-hidden="true" {...(props.calls ? { onClick: toggle } : {})}>
      {props.calls ? (props.open ? "▾" : "▸") : ""}
    </span>
  );
}

function Detail(props: { view: View; compile: Compile; walk: Walk; step: number }): VNode {
  const { compile, walk, step } = props;
  const key = compileKey(compile);
  const item = walk.instruction(step);
  const [before, after] = walk.states(step);
  const node = (name: string): Ref => [key, "node", `dynamo/${name}`];
  const value = (text: string | null): ComponentChildren => {
    const name = text && walk.nodeOf(text);
    if (text === null) return <span class="dnx-dim">—</span>;
    return name ? <Chip to={node(name)}>{text}</Chip> : <code title={text}>{readable(text)}</code>;
  };
  const locals = walk.locals(step);
  return (
    <div class="dnx-detail dnx-step" tabIndex={0} role="group" aria-label={`step ${step + 1}`}>
      <div class="dnx-bar">
        <b>{item.opname}</b> <code>{item.argument}</code>
        <Place frame={item.frame} ref_={stepRef(key, step)} />
        <span class="dnx-dim">{walk.code(step).name}</span>
      </div>
      <Stack label="stack before" values={before.stack} value={value} />
      {after && <Stack label="stack after" values={after.stack} value={value} />}
      <Added label="nodes" refs={nodesOf(walk.at(step)).map((name) => [name, node(name)])} />
      <Added
        label="guards"
        refs={guardsOf(walk.at(step)).map((guard) => [guardText(props, guard), [key, "guard", String(guard)]])}
      />
      <Ending compile={compile} walk={walk} step={step} />
      {locals.length > 0 && (
        <table>
          <thead>
            <tr>
              <th>local</th>
              <th>before</th>
              <th>after</th>
            </tr>
          </thead>
          <tbody>
            {locals.map((local) => (
              <tr key={local.name} class={isChanged(local) ? "dnx-changed" : ""}>
                <th scope="row">
                  <code>{local.name}</code>
                </th>
                <td>{value(local.before)}</td>
                <td>{isChanged(local) ? value(local.after) : <span class="dnx-dim">same</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

/** The symbolic stack, its top at the right. */
function Stack(props: {
  label: string;
  values: string[];
  value(text: string): ComponentChildren;
}): VNode {
  return (
    <p class="dnx-stack">
      <span class="dnx-dim">{props.label}</span>{" "}
      <span>
        {props.values.length === 0 && <span class="dnx-dim">empty</span>}
        {props.values.map((text, index) => (
          <span key={index} class="dnx-slot">
            {props.value(text)}
          </span>
        ))}
      </span>
    </p>
  );
}

function Added({ label, refs }: { label: string; refs: [text: string, to: Ref][] }): VNode | null {
  if (!refs.length) return null;
  return (
    <p class="dnx-stack">
      <span class="dnx-dim">{label} added</span>{" "}
      <span>
        {refs.map(([text, to]) => (
          <Chip key={to[2]} to={to}>
            {text}
          </Chip>
        ))}
      </span>
    </p>
  );
}

function guardText({ view, compile }: { view: View; compile: Compile }, index: number): string {
  const part = view.store.guards(compile).value;
  const guard = part.state === "ready" ? part.value.guards[index] : undefined;
  return guard ? `${guard.kind} ${readable(guard.source)}`.trim() : `guard ${index}`;
}

/** Why a step raised, or why the walk went no further. */
function Ending(props: { compile: Compile; walk: Walk; step: number }): VNode | null {
  const { compile, walk, step } = props;
  const raised = raisedBy(walk.at(step));
  const { frame } = walk.instruction(step);
  const found = breaksOf(compile).find(
    (one) => one.frame?.file === frame?.file && one.frame?.line === frame?.line,
  );
  const last = step === walk.length - 1;
  if (last && found) {
    return (
      <p>
        <span class="dnx-err">stopped here</span>{" "}
        <Chip to={[compileKey(compile), "break", String(compile.graph_breaks.indexOf(found))]}>
          graph break
        </Chip>{" "}
        {found.explanation || found.reason}
      </p>
    );
  }
  const why = (last && compile.error?.message) || "";
  if (!raised && !why) return null;
  return (
    <p>
      <span class="dnx-err">{raised ? `raised ${raised}` : "stopped here"}</span> {why}
    </p>
  );
}
