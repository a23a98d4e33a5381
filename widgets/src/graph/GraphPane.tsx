/** An FX graph: drawn, or as an outline, with search, legend and the card of one node. */
import "./graph.css";
import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { effect, useComputed, useSignal, type Signal } from "@preact/signals";
import type { CellRecord, Compile, Graph } from "../record";
import type { Selection } from "../selection";
import { Card } from "./Card";
import type { Colour } from "./colour";
import { describe } from "./describe";
import { GraphView } from "./graphview";
import { Outline } from "./Outline";
import type { NodeSet } from "./marks";
import { GraphState, type Mode } from "./state";
import { type Box, isGroup, shownBox } from "./tree";

export interface GraphPaneProps {
  record: CellRecord;
  compile: Compile;
  graph: Graph;
  selection: Selection;
  colour: Colour;
  onStage(name: string): void;
}

const HELP =
  "Arrow keys move between boxes, Enter opens a module or holds a node, Backspace closes the module " +
  "around, slash searches, plus and minus zoom, 0 shows all, Shift with arrows moves the drawing.";
const LEGEND = 8;

export function GraphPane(props: GraphPaneProps): VNode {
  const { graph, compile, selection, colour, record, onStage } = props;
  const state = useMemo(() => new GraphState(graph, compile, selection), [graph, compile, selection]);
  useLayoutEffect(() => {
    state.colour.value = colour;
  }, [state, colour]);
  const host = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const view = useRef<GraphView | null>(null);
  const scale = useSignal(1);
  const search = (): void => field.current?.focus();

  useLayoutEffect(() => {
    const made = drawingFor(host.current!, state, scale, search);
    view.current = made.view;
    return () => {
      made.stop();
      view.current = null;
    };
  }, [state]);
  useEffect(() => effect(() => followPin(state, view.current)), [state]);
  useEffect(() => effect(() => bringOne(state.foundSet.value, state, view.current)), [state]);

  const mode = state.mode.value;
  const go = (node: number): void => {
    const box = state.leafFor(node);
    selection.pin(state.refOf(node));
    if (box) goTo(box, state, view.current);
  };
  return (
    <div class="dnx-g" data-mode={mode}>
      <Tools state={state} view={view} scale={scale} field={field} />
      <div class="dnx-g-body">
        <div
          ref={host}
          class="dnx-g-stage"
          tabIndex={0}
          role="group"
          aria-roledescription="drawing"
          aria-label={`${graph.name} graph. ${HELP}`}
          hidden={mode !== "drawing"}
        />
        {mode === "outline" && <Outline state={state} search={search} />}
        <Shown state={state} record={record} onStage={onStage} go={go} />
      </div>
      <Legend state={state} />
      <Said state={state} />
    </div>
  );
}

/** Make the drawing and keep it in step with the state; return what ends it. */
function drawingFor(
  host: HTMLElement,
  state: GraphState,
  scale: Signal<number>,
  search: () => void,
): { view: GraphView; stop(): void } {
  let changed: Box | null = null;
  let begun = 0;
  const toggle = (group: Box): void => {
    changed = group;
    state.toggle(group);
  };
  const view: GraphView = new GraphView(host, {
    point: (box) => state.point(box),
    choose: (box) => (isGroup(box) ? toggle(box) : state.pin(box.node)),
    close: (group) => {
      toggle(group);
      view.moveFocus(group);
    },
    jump: (box) => goTo(box, state, view),
    search,
    release: () => state.selection.release(),
    zoomed: (now) => (scale.value = now),
  });
  const stops = [
    effect(() => {
      state.version.value;
      view.show(state.tree, changed);
      changed = null;
      if (state.begun.value > begun) view.home();
      begun = state.begun.value;
    }),
    effect(() => view.setMarks({ hue: state.colouring.value.hue })),
    effect(() => view.setMarks({ lit: state.lit.value, found: state.foundSet.value })),
    effect(() => view.setMarks({ chosen: state.chosen.value })),
  ];
  const stop = (): void => {
    for (const one of stops) one();
    view.dispose();
  };
  return { view, stop };
}

function goTo(box: Box, state: GraphState, view: GraphView | null): void {
  state.reveal(box);
  view?.setMarks({ focus: box });
  view?.reveal(box);
}

/** Bring what is held to the screen: a node of this graph itself, else the first that is lit. */
function followPin(state: GraphState, view: GraphView | null): void {
  const pinned = state.selection.pinned.value;
  if (!pinned || !view) return;
  const own = state.boxOf(pinned);
  if (own) {
    state.reveal(own);
    view.reveal(own);
    return;
  }
  bringOne(state.lit.value, state, view);
}

/** Bring one of some nodes to the screen when none is there, opening nothing. */
function bringOne(nodes: NodeSet | null, state: GraphState, view: GraphView | null): void {
  if (!nodes || !view) return;
  const { order, leafOf } = state.tree;
  const leaves = order.map((node) => leafOf[node]!).filter((box) => nodes.countIn(box));
  const boxes = [...new Set(leaves.map(shownBox))];
  if (boxes[0] && !boxes.some((box) => view.isSeen(box))) view.reveal(boxes[0]);
}

function Tools(props: {
  state: GraphState;
  view: { current: GraphView | null };
  scale: Signal<number>;
  field: { current: HTMLInputElement | null };
}): VNode {
  const { state, view, scale, field } = props;
  const modes: [Mode, string][] = [
    ["drawing", "drawing"],
    ["outline", "outline"],
  ];
  const on = (act: (view: GraphView) => void) => (): void => {
    if (view.current) act(view.current);
  };
  return (
    <div class="dnx-g-tools" role="toolbar" aria-label="graph">
      <SearchField state={state} view={view} field={field} />
      <span class="dnx-g-buttons" role="group" aria-label="form">
        {modes.map(([mode, label]) => (
          <button aria-pressed={state.mode.value === mode} onClick={() => (state.mode.value = mode)}>
            {label}
          </button>
        ))}
      </span>
      <span class="dnx-g-buttons" role="group" aria-label="modules">
        <button title="open all modules" onClick={() => state.setAll(true)}>
          open all
        </button>
        <button title="close all modules" onClick={() => state.setAll(false)}>
          close all
        </button>
      </span>
      {state.mode.value === "drawing" && (
        <span class="dnx-g-buttons" role="group" aria-label="zoom">
          <button aria-label="zoom out" title="zoom out (−)" onClick={on((one) => one.camera.zoom(0.8))}>
            −
          </button>
          <button title="reading size (1)" onClick={on((one) => one.home())}>
            {Math.round(scale.value * 100)}%
          </button>
          <button aria-label="zoom in" title="zoom in (+)" onClick={on((one) => one.camera.zoom(1.25))}>
            +
          </button>
          <button title="show all (0)" onClick={on((one) => one.camera.fit())}>
            fit
          </button>
        </span>
      )}
    </div>
  );
}

function SearchField(props: {
  state: GraphState;
  view: { current: GraphView | null };
  field: { current: HTMLInputElement | null };
}): VNode {
  const { state, view, field } = props;
  const found = state.foundSet.value;
  const last = useRef<Box | null>(null);
  const next = (step: 1 | -1): void => {
    const box = state.nextFound(last.current, step);
    last.current = box;
    if (box) goTo(box, state, view.current);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter") next(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape" && state.query.value) {
      state.query.value = "";
      event.stopPropagation();
    }
  };
  return (
    <span class="dnx-g-search">
      <input
        ref={field}
        type="search"
        placeholder="search nodes  /"
        aria-label="search nodes: name, operator, module, shape, line"
        value={state.query.value}
        onInput={(event) => {
          last.current = null;
          state.query.value = event.currentTarget.value;
        }}
        onKeyDown={onKeyDown}
      />
      <span role="status">{found ? `${found.size} found` : ""}</span>
    </span>
  );
}

/** The card of the node that is pointed at or held. */
function Shown(props: {
  state: GraphState;
  record: CellRecord;
  onStage(name: string): void;
  go(node: number): void;
}): VNode | null {
  const { state } = props;
  const node = useComputed(() => {
    const held = state.nodeOf(state.selection.pinned.value);
    return held >= 0 ? held : (state.pointed.value?.node ?? -1);
  }).value;
  if (node < 0) return null;
  const held = state.nodeOf(state.selection.pinned.value) === node;
  return <Card {...props} node={node} held={held} />;
}

function Legend({ state }: { state: GraphState }): VNode {
  const { legend } = state.colouring.value;
  return (
    <div class="dnx-g-legend">
      <span>{state.tree.model.nodes.length} nodes</span>
      {legend.slice(0, LEGEND).map(({ name, hue, count }) => (
        <span class={`dnx-g-key dnx-g-hue-${hue}`} title={`${name}: ${count} nodes`}>
          {name}
        </span>
      ))}
      {legend.length > LEGEND && <span>+{legend.length - LEGEND}</span>}
    </div>
  );
}

/** Says where pointer or keyboard are. */
const Said = ({ state }: { state: GraphState }): VNode => (
  <div class="dnx-g-said" aria-live="polite">
    {state.mode.value === "drawing" && state.pointed.value ? describe(state.pointed.value, state) : ""}
  </div>
);
