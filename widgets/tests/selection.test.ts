import { describe, expect, test } from "vitest";
import { Selection, refKey, type Link, type Ref } from "../src/selection";

const line = (n: number): Ref => ["", "line", `<cell>:${n}`];
const node = (graph: string, name: string): Ref => ["0/0", "node", `${graph}/${name}`];
const kernel: Ref = ["0/0", "kernel", "post/k"];
const code: Ref = ["0/0", "code", "post:12"];
const guard: Ref = ["0/0", "guard", "0"];
const [a, b] = [node("dynamo", "a"), node("dynamo", "b")];
const [pa, pb] = [node("post", "pa"), node("post", "pb")];

// Lines 1 and 2 hold a and b; both are lowered and fused into one kernel.
const LINKS: Link[] = [
  ["node-line", a, line(1)],
  ["node-line", b, line(2)],
  ["guard-line", guard, line(1)],
  ["node-node", pa, a],
  ["node-node", pb, b],
  ["kernel-node", kernel, pa],
  ["kernel-node", kernel, pb],
  ["kernel-code", kernel, code],
];

// A compile of both lines, made again because the guard failed; its bytecode; a step that made b.
const [compile, again]: Ref[] = [["0/0", "compile", ""], ["0/1", "compile", ""]];
const reason: Ref = ["0/1", "recompile", "0"];
const call: Ref = ["0/0", "instruction", "after:2"];
const step: Ref = ["0/0", "step", "7"];
const WHOLE: Link[] = [
  ...LINKS,
  ["compile-line", compile!, line(1)],
  ["compile-line", compile!, line(2)],
  ["compile-line", again!, line(2)],
  ["recompile-line", reason, line(1)],
  ["recompile-compile", reason, again!],
  ["recompile-guard", reason, guard],
  ["instruction-compile", call, compile!],
  ["step-line", step, line(2)],
  ["step-node", step, b],
];
const litOf = (ref: Ref): Set<string> => new Selection(WHOLE).related(ref);

const litBy = (ref: Ref): Set<string> => new Selection(LINKS).related(ref);
const keys = (...refs: Ref[]): Set<string> => new Set(refs.map(refKey));

describe("what belongs together", () => {
  test("a line: its nodes in every stage, their kernel and its code, what else is on it", () => {
    expect(litBy(line(1))).toEqual(keys(line(1), a, pa, kernel, code, guard));
  });
  test("a node: its line, its counterparts, its kernel; not the kernel's other nodes", () => {
    expect(litBy(a)).toEqual(keys(a, line(1), pa, kernel, code));
    expect(litBy(pa)).toEqual(keys(pa, a, line(1), kernel, code));
  });
  test("a kernel: all its nodes, where they came from, and their lines", () => {
    expect(litBy(kernel)).toEqual(keys(kernel, code, pa, pb, a, b, line(1), line(2)));
  });
  test("a line of output code lights what its kernel lights", () => {
    expect(litBy(code)).toEqual(keys(code, kernel, pa, pb, a, b, line(1), line(2)));
  });
  test("a guard: its line, and not the line's nodes", () => {
    expect(litBy(guard)).toEqual(keys(guard, line(1)));
  });
  test("a compile: its lines, and the bytecode that calls its graph", () => {
    expect(litOf(compile!)).toEqual(keys(compile!, line(1), line(2), call));
  });
  test("a recompile: the guard that failed, the line that reads the value, its compile's lines", () => {
    expect(litOf(reason)).toEqual(keys(reason, guard, line(1), again!, line(2)));
  });
  test("modified bytecode: the compile that it calls, with its lines", () => {
    expect(litOf(call)).toEqual(keys(call, compile!, line(1), line(2)));
  });
  test("a step: its line, what it added, and what became of that", () => {
    expect(litOf(step)).toEqual(keys(step, line(2), b, pb, kernel, code));
  });
  test("a kernel lights the steps that made its nodes", () => {
    expect(litOf(kernel)).toContain(refKey(step));
  });
  test("a line lights the compiles that it is in, and not their other lines", () => {
    expect(litOf(line(1))).toContain(refKey(compile!));
    expect(litOf(line(1))).not.toContain(refKey(line(2)));
  });
  test("something without links lights itself", () => {
    expect(litBy(["9/9", "node", "x/y"])).toEqual(keys(["9/9", "node", "x/y"]));
  });
});

describe("pointing and holding", () => {
  test("pointing shows, clicking holds, Escape lets go", () => {
    const selection = new Selection(LINKS);
    selection.set(a, "hover");
    expect(selection.current.value).toEqual(a);
    selection.set(kernel, "pin");
    selection.set(b, "hover");
    expect(selection.current.value).toEqual(kernel);
    selection.release();
    expect(selection.current.value).toBeNull();
    expect(selection.lit.value.size).toBe(0);
  });
  test("pinning the pinned thing lets it go", () => {
    const selection = new Selection(LINKS);
    selection.set(a, "pin");
    selection.set([...a] as Ref, "pin");
    expect(selection.pinned.value).toBeNull();
  });
  test("lit refs of one kind, and links that come later", () => {
    const selection = new Selection([]);
    selection.set(kernel, "pin");
    expect(selection.refsOf("line")).toEqual([]);
    selection.extend(LINKS);
    expect(selection.refsOf("line")).toEqual([line(1), line(2)]);
  });
});
