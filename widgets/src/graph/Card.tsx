/** One node: what it is while it is pointed at, all that belongs to it while it is held. */
import type { ComponentChildren, VNode } from "preact";
import {
  CELL,
  type CellRecord,
  isTensor,
  kernelRef,
  lineRef,
  type Node,
  ownFrame,
  placeInGraph,
  placeText,
  type StackFrame,
  type Symbol,
  type TensorValue,
} from "../record";
import type { Ref } from "../selection";
import type { GraphState } from "./state";

const MOST = 6; // names in a row of the card

interface Props {
  state: GraphState;
  record: CellRecord;
  node: number;
  /** Open a stage, to show what a node is there. */
  onStage(name: string): void;
  /** Go to a node of this graph. */
  go(node: number): void;
  held: boolean;
}

export function Card(props: Props): VNode {
  const { state, record, node: at, held } = props;
  const { model } = state.tree;
  const node = model.nodes[at]!;
  const frame = ownFrame(node);
  const module = node.module_stack.at(-1);
  const badge = model.badges[at];
  return (
    <section class="dnx-g-card" aria-label={`node ${node.name}`} data-held={held ? "" : undefined}>
      <header>
        <b>{node.name}</b>
        {badge && <span class="dnx-g-tag">{badge === "saved" ? "saved for backward" : badge}</span>}
        {held && (
          <button aria-label="let go" title="let go (Escape)" onClick={() => state.selection.release()}>
            ×
          </button>
        )}
      </header>
      <dl>
        <Fact name={node.op}>
          <code>{node.target}</code>
        </Fact>
        <Values node={node} />
        <Symbols node={node} symbols={state.compile.symbols} />
        {module && (
          <Fact name="module">
            <code>{module[0]}</code> <span class="dnx-g-op">{module[1]}</span>
          </Fact>
        )}
        {frame && (
          <Fact name="source">
            <Source state={state} record={record} frame={frame} />
          </Fact>
        )}
        {held && (
          <>
            <Nodes name="uses" nodes={model.inputs[at]!} {...props} />
            <Nodes name="used by" nodes={model.users[at]!} {...props} />
            <Kernels state={state} node={node} />
            <Stages {...props} />
          </>
        )}
      </dl>
    </section>
  );
}

const Fact = (props: { name: string; children: ComponentChildren }): VNode => (
  <>
    <dt>{props.name}</dt>
    <dd>{props.children}</dd>
  </>
);

function Values({ node }: { node: Node }): VNode | null {
  const values = Array.isArray(node.value) ? node.value : [node.value];
  const tensors = values.filter(isTensor);
  if (!tensors.length) {
    return typeof node.value === "string" ? <Fact name="value">{node.value}</Fact> : null;
  }
  return (
    <>
      {tensors.map((one, at) => (
        <Fact name={tensors.length > 1 ? `result ${at}` : "tensor"}>
          <Tensor value={one} />
        </Fact>
      ))}
    </>
  );
}

const Tensor = ({ value }: { value: TensorValue }): VNode => (
  <>
    <span class="dnx-g-pair">
      <i>shape</i> <code>[{value.shape.join(", ")}]</code>
    </span>
    {value.stride && (
      <span class="dnx-g-pair">
        <i>stride</i> <code>[{value.stride.join(", ")}]</code>
      </span>
    )}
    <span class="dnx-g-pair">
      <code>{value.dtype}</code>
    </span>
    <span class="dnx-g-pair">
      <code>{value.device}</code>
    </span>
    {value.requires_grad && <span class="dnx-g-pair">requires grad</span>}
  </>
);

/** The symbolic sizes in a node's shapes and strides. */
function Symbols({ node, symbols }: { node: Node; symbols: Symbol[] }): VNode | null {
  const values = (Array.isArray(node.value) ? node.value : [node.value]).filter(isTensor);
  const text = values.flatMap((one) => [...one.shape, ...(one.stride ?? [])]).join(" ");
  const names = [...new Set(text.match(/\b[a-z]+\d+\b/g) ?? [])];
  if (!names.length) return null;
  return (
    <Fact name="symbols">
      {names.map((name) => {
        const symbol = symbols.find((one) => one.name === name);
        const told = symbol && [symbol.sources[0], symbol.hint && `was ${symbol.hint}`, symbol.range];
        return (
          <span class="dnx-g-pair">
            <code>{name}</code> {told?.filter(Boolean).join(", ")}
          </span>
        );
      })}
    </Fact>
  );
}

/** Something of another pane: pointing shows it, clicking holds it. */
function To(props: { state: GraphState; to: Ref; title?: string; then?(): void; children: ComponentChildren }): VNode {
  const { selection } = props.state;
  return (
    <button
      class="dnx-g-link"
      title={props.title}
      onClick={() => {
        props.then?.();
        selection.pin(props.to);
      }}
    >
      {props.children}
    </button>
  );
}

function Source(props: { state: GraphState; record: CellRecord; frame: StackFrame }): VNode {
  const { record, frame } = props;
  const text = frame.file === CELL ? record.source : (record.files[frame.file] ?? "");
  const line = text.split("\n")[frame.line - 1]?.trim() ?? "";
  return (
    <>
      <To state={props.state} to={lineRef(frame.file, frame.line)}>
        {placeText(frame)}
      </To>
      {line && <code class="dnx-g-source">{line}</code>}
    </>
  );
}

function Nodes(props: Props & { name: string; nodes: number[] }): VNode | null {
  const { state, nodes, go } = props;
  if (!nodes.length) return null;
  const { model } = state.tree;
  return (
    <Fact name={props.name}>
      {nodes.slice(0, MOST).map((one) => (
        <button class="dnx-g-link" title={model.nodes[one]!.name} onClick={() => go(one)}>
          {model.shortNames.get(one) ?? model.nodes[one]!.name}
        </button>
      ))}
      {nodes.length > MOST && <span class="dnx-g-op">+{nodes.length - MOST}</span>}
    </Fact>
  );
}

function Kernels({ state, node }: { state: GraphState; node: Node }): VNode | null {
  const names = state.kernelsOf(node.name);
  const kernels = names.flatMap((name) => state.compile.kernels.find((one) => one.name === name) ?? []);
  if (!kernels.length) return null;
  return (
    <Fact name={kernels.length > 1 ? "kernels" : "kernel"}>
      {kernels.slice(0, MOST).map((kernel) => (
        <To state={state} to={kernelRef(state.compile, kernel)} title={kernel.name}>
          {kernel.name}
        </To>
      ))}
    </Fact>
  );
}

/** What the node is in the stages before and after this one. */
function Stages(props: Props): VNode | null {
  const { state, node, onStage } = props;
  const refs = state.counterparts(node);
  const stages = state.compile.graphs.map((graph) => graph.name);
  const here = stages.indexOf(state.graph.name);
  const sides: [string, string[]][] = [
    ["from", stages.slice(0, here).reverse()],
    ["became", stages.slice(here + 1)],
  ];
  const facts = sides.map(([name, order]) => {
    const found = order.flatMap((stage) => {
      const there = refs.filter((ref) => placeInGraph(ref).graph === stage);
      return there.length ? [{ stage, there }] : [];
    });
    if (!found.length) return null;
    return (
      <Fact name={name}>
        {found.map(({ stage, there }) => (
          <span class="dnx-g-pair">
            <i>{stage.replace(".", " ")}</i>{" "}
            {there.slice(0, MOST).map((ref) => (
              <To state={state} to={ref} title={ref[2]} then={() => onStage(stage)}>
                {placeInGraph(ref).name}
              </To>
            ))}
            {there.length > MOST && <span class="dnx-g-op">+{there.length - MOST}</span>}
          </span>
        ))}
      </Fact>
    );
  });
  return <>{facts}</>;
}
