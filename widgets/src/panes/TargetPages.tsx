/** A kernel for a GPU that is not there: every stage of its compiler, and what its binary takes. */
import type { VNode } from "preact";
import { useLayoutEffect } from "preact/hooks";
import type { Language } from "../code/tokens";
import { compileKey, nodeRef } from "../record";
import type { Binary, Compile, Kernel, StageText, Target } from "../record";
import { floorOf, floorText, ratesOf, sizeText } from "../quantities";
import type { Link, Ref } from "../selection";
import { plural } from "../describe";
import { Loaded } from "../ui";
import type { View } from "../view";
import { Nodes, workFacts } from "./KernelPages";
import { codePage, factsPage, Pages, type Fact, type Page, type PagesProps } from "./Pages";
import { rooflinePage } from "./Roofline";
import { schedulePages } from "./SchedulePages";

export const PREDICTED = "predicted: not run, not autotuned";

/** What the stages of Triton's compiler are called. */
const STAGES: Record<string, string> = { llir: "LLIR", amdgcn: "AMDGCN" };

export function TargetPages(props: PagesProps & { spec: string }): VNode {
  const { view, compile, spec } = props;
  const retry = (): void => view.store.retry("target", compileKey(compile), spec);
  return (
    <Loaded part={view.store.target(compile, spec)} what={`kernels for ${spec}`} retry={retry}>
      {(target) => <Linked {...props} target={target} />}
    </Loaded>
  );
}

function Linked(props: PagesProps & { target: Target }): VNode {
  const { view, compile, target, kernel } = props;
  useLayoutEffect(() => view.selection.extend(linksOf(compile, target)), [target]);
  const whole = target.kernels.find((one) => one.name === kernel?.name && one.graph === kernel.graph);
  const pages = [
    ...(whole ? ofKernel(props, whole) : []),
    ...rooflinePage(compile, ratesOf(target), floorsOf(target), "at best, by the data sheet"),
    ...schedulePages(compile, target),
    devicePage(target),
  ];
  return <Pages {...props} pages={pages} />;
}

const lineRefOf = (compile: Compile, { name, graph }: Pick<Kernel, "name" | "graph">, line: number | string): Ref => [
  compileKey(compile),
  "code",
  `${graph}/${name}:${line}`,
];

/** Which nodes the lines of a kernel's Triton source compute. */
const linksOf = (compile: Compile, target: Target): Link[] =>
  target.binaries.flatMap(({ kernel: name, graph, source_nodes }) =>
    Object.entries(source_nodes).flatMap(([line, nodes]) =>
      nodes.map((node): Link => {
        const here = lineRefOf(compile, { name, graph }, line);
        return ["code-node", here, nodeRef(compile, graph, node)];
      }),
    ),
  );

export const binaryOf = (compile: Pick<Compile, "targets">, kernel: Kernel): Binary | undefined =>
  compile.targets
    .flatMap((one) => one.binaries)
    .find((one) => one.kernel === kernel.name && one.graph === kernel.graph);

function ofKernel(props: PagesProps & { target: Target }, kernel: Kernel): Page[] {
  const { view, compile, target } = props;
  const binary = binaryOf({ targets: [target] }, kernel);
  const graph = target.graphs.find((one) => one.name === kernel.graph);
  const floor = floorOf(ratesOf(target), kernel);
  return [
    ...codePages(view, compile, kernel, "Triton", kernel.code, "python", binary?.texts ?? []),
    { label: "nodes", count: kernel.nodes.length, show: () => <Nodes {...{ compile, kernel, graph }} /> },
    factsPage("facts", kernel.name, [
      ...(binary ? binaryFacts(binary) : []),
      ...workFacts(compile, kernel, target),
      ["at best, by the data sheet", floor && floorText(floor)],
    ]),
  ];
}

/** A kernel's code, and what each stage of Triton's compiler made of it, where that is known. */
export function codePages(
  view: View,
  compile: Compile,
  kernel: Kernel,
  label: string,
  code: string,
  language: Language,
  texts: StageText[],
): Page[] {
  const here = (line: number): Ref | null => (texts.length ? lineRefOf(compile, kernel, line) : null);
  const head = code.split("\n").indexOf("@triton.jit") + 1;
  const own = codePage(view, kernel.name, label, code, language, here, head);
  return [
    own,
    ...texts.map(({ stage, text, lines }): Page => {
      const refOf = (line: number): Ref | null => (lines[line - 1] ? here(lines[line - 1] ?? 0) : null);
      const first = lines.findIndex((line) => line > 0) + 1;
      const page = codePage(view, kernel.name, stageLabel(stage), text, "ptx", refOf, first);
      return { ...page, show: () => <Beside left={own} right={page} /> };
    }),
  ];
}

/** A stage's text beside the Triton source that it comes from. */
const Beside = ({ left, right }: { left: Page; right: Page }): VNode => (
  <div class="dnx-columns dnx-beside">
    {[left, right].map((page) => (
      <div key={page.label} class="dnx-column">
        {page.show()}
      </div>
    ))}
  </div>
);

export const stageLabel = (stage: string): string => STAGES[stage] ?? stage.toUpperCase();

/** What a kernel's binary takes of the device. */
export function binaryFacts(binary: Binary): Fact[] {
  const { resources, occupancy, limited_by, grid, threads, config, candidates, size, error } = binary;
  if (error) return [["no binary", <span class="dnx-err">{error}</span>]];
  return [
    ["registers", `${resources["registers"] ?? 0} a thread`],
    ["spills", spillsText(resources)],
    ["shared memory", sizeText(binary.shared) || "none"],
    [
      "occupancy",
      occupancy !== null && `${Math.round(100 * occupancy)}%${limited_by && `, limited by ${limited_by}`}`,
    ],
    ["launched as", `${grid.length ? `grid ${grid.join(" × ")} of ` : ""}blocks of ${threads} threads`],
    ["configuration", Object.entries(config).map(([name, value]) => `${name}=${pythonText(value)}`).join(", ")],
    ["candidates", candidates.length > 1 && `${candidates.length}: the first that fits was compiled`],
    ["binary", sizeText(size)],
  ];
}

/** A setting as Python writes it, and as it stands in the cell. */
const pythonText = (value: unknown): string =>
  value === null ? "None" : value === true ? "True" : value === false ? "False" : String(value);

function spillsText(found: Record<string, number>): string {
  const registers = found["spilled_registers"];
  if (registers) return `${plural(registers, "register")} spilled`;
  return sizeText((found["spill_stores"] ?? 0) + (found["spill_loads"] ?? 0)) || "none";
}

/** The least seconds of each kernel, by the data sheet. */
const floorsOf = (target: Target): [Kernel, number][] =>
  target.kernels.flatMap((kernel): [Kernel, number][] => {
    const floor = floorOf(ratesOf(target), kernel);
    return floor ? [[kernel, floor.seconds]] : [];
  });

const devicePage = (target: Target): Page =>
  factsPage("device", target.spec, [
    ["device", target.device],
    ["error", target.error],
    ["figures from", target.sources.join("; ")],
    ...target.unknown.map((text): Fact => ["not known without it", text]),
    ...target.left_behind.map((text): Fact => ["only the notebook knows", text]),
    ...Object.entries(target.properties)
      .filter(([, value]) => typeof value === "number" && value > 0)
      .map(([name, value]): Fact => [name, (value as number).toLocaleString("en")]),
  ]);
