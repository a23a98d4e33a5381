/** The selection in words: for the status line, which is also what a screen reader hears. */
import { changeText, compileOf } from "./facts";
import { kernelsOf, lineOf, placeInGraph, placeText, valueText, ownFrame } from "./record";
import type { Bytecode, CellRecord, Compile, Graph, Instruction, Ref, StackFrame, Steps } from "./record";
import { isBefore, ownRef } from "./selection";
import type { GuardsPart, Store } from "./store";

interface Found {
  record: CellRecord;
  compile: Compile | undefined;
  store: Parts;
  ref: Ref;
}

type Parts = Pick<Store, "peek">;

/** What is at hand of the report before: nothing but what its refs say. */
const NOTHING: Parts = { peek: () => null };

/** What each kind of ref is, in words. */
const WORDS: Record<string, (found: Found) => string> = {
  line: ({ ref }) => placeText(lineOf(ref)),
  node: ({ ref, store }) => {
    const { graph, name } = placeInGraph(ref);
    const node = nodeOf(store, ref);
    const facts = node ? [node.target, valueText(node.value)] : [];
    return [`node ${name}`, ...facts, `${graph} graph of ${ref[0]}`].filter(Boolean).join(" · ");
  },
  guard: ({ ref, store }) => {
    const guard = store.peek<GuardsPart>("guards", ref[0])?.guards[Number(ref[2])];
    return guard ? `guard ${guard.kind} on ${guard.source} of ${ref[0]}` : `guard of ${ref[0]}`;
  },
  break: ({ ref, compile }) => {
    const item = compile?.graph_breaks[Number(ref[2])];
    return `graph break in ${ref[0]}${item ? `: ${item.kind}` : ""}`;
  },
  recompile: ({ ref, compile }) => {
    const reason = compile?.recompile_reasons[Number(ref[2])];
    return `recompile ${ref[0]}${reason ? `: ${changeText(reason)}` : ""}`;
  },
  kernel: ({ ref, compile }) => {
    const { graph, name } = placeInGraph(ref);
    const kernel = compile && kernelsOf(compile).find((one) => one.graph === graph && one.name === name);
    const facts = kernel ? [kernel.language, plural(kernel.nodes.length, "node")] : [];
    return [`kernel ${name}`, ...facts, `${graph} of ${ref[0]}`].join(" · ");
  },
  code: ({ ref }) => `generated code of ${ref[0]}, ${ref[2].replace(/:(\d+)$/, " line $1")}`,
  instruction: ({ ref, store }) => {
    const item = instructionOf(store, ref);
    const what = item ? `${item.opname} ${item.argument}`.trim() : "instruction";
    return `${what} at ${ref[2].replace(":", " ")} of ${ref[0]}`;
  },
  step: ({ ref, store }) => {
    const item = instructionOf(store, ref);
    const what = item ? ` · ${item.opname} ${item.argument}`.trimEnd() : "";
    return `step ${Number(ref[2]) + 1} of ${ref[0]}${what}`;
  },
  compile: ({ ref, compile }) =>
    `compile ${ref[0]}${compile ? ` of ${compile.name}: ${compile.status}` : ""}`,
};

export function describe(ref: Ref, record: CellRecord, store: Parts): string {
  if (isBefore(ref)) return `before: ${describe(ownRef(ref), { ...record, compiles: [] }, NOTHING)}`;
  const words = WORDS[ref[1]];
  const found = { record, compile: compileOf(record, ref[0]), store, ref };
  return words ? words(found) : `${ref[1]} ${ref[2]}`;
}

/** What else is lit, counted: `3 lines, 12 nodes, 1 kernel`; apart from that, what was before. */
export function counted(lit: readonly Ref[], except: Ref): string {
  const others = lit.filter((ref) => ref.join() !== except.join());
  const [here, before] = [nouns(others.filter((ref) => !isBefore(ref))), nouns(others.filter(isBefore))];
  return [here, before && `before: ${before}`].filter(Boolean).join("; ");
}

function nouns(refs: readonly Ref[]): string {
  const counts = new Map<string, number>();
  for (const [, artifact] of refs) counts.set(artifact, (counts.get(artifact) ?? 0) + 1);
  counts.delete("code");
  return [...counts].map(([noun, count]) => plural(count, noun)).join(", ");
}

export const plural = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? "" : noun.endsWith("y") ? "" : "s"}`;

const nodeOf = (store: Parts, ref: Ref): Graph["nodes"][number] | undefined => {
  const { graph, name } = placeInGraph(ref);
  return store.peek<Graph>("graph", ref[0], graph)?.nodes.find((one) => one.name === name);
};

/** What an instruction's ref or a step's stands for, where its part is here. */
function instructionOf(store: Parts, ref: Ref): Instruction | undefined {
  if (ref[1] === "step") {
    const steps = store.peek<Steps>("steps", ref[0]);
    const [frame = -1, at = -1] = steps?.steps[Number(ref[2])] ?? [];
    return steps?.codes[steps.frames[frame]?.code ?? -1]?.instructions[at];
  }
  const [side = "", offset = ""] = ref[2].split(":");
  const bytecode = store.peek<Bytecode>("bytecode", ref[0]);
  return bytecode?.[side as keyof Bytecode].find((one) => one.offset === Number(offset));
}

/** The exact place of a ref, with columns, where it has one and its part is here. */
export function frameOf(ref: Ref, record: CellRecord, store: Store): StackFrame | null {
  const compile = compileOf(record, ref[0]);
  const index = Number(ref[2]);
  switch (ref[1]) {
    case "node": {
      const node = nodeOf(store, ref);
      return (node && ownFrame(node)) ?? null;
    }
    case "guard":
      return store.peek<GuardsPart>("guards", ref[0])?.guards[index]?.frame ?? null;
    case "break":
      return compile?.graph_breaks[index]?.frame ?? null;
    case "recompile":
      return compile?.recompile_reasons[index]?.frame ?? null;
    case "instruction":
    case "step":
      return instructionOf(store, ref)?.frame ?? null;
    default:
      return null;
  }
}

export const placeOf = (frame: StackFrame | null): string => (frame ? placeText(frame) : "");
