import { describe, expect, test } from "vitest";
import { stringLines, tokenize } from "../src/code/tokens";
import { shiftOf } from "../src/editor/overlay";
import { ownersOf } from "../src/panes/Code";
import { compact } from "../src/panes/Kernels";
import { laidOut, seconds } from "../src/panes/Timeline";
import { complete, fileText, type Compile, type Guard } from "../src/record";
import { Kernel, type Model } from "../src/widget";
import { settled } from "./app";

describe("tokens", () => {
  const kinds = (line: string): string[] => tokenize(line).map((one) => `${one.kind}:${one.text}`);

  test("no character is lost, whatever the line", () => {
    for (const line of ['x = f("a\\"b") # c', "'''", "@jit def 1e-5", "", "  \tñ≠ x", "'open"]) {
      for (const language of ["python", "cpp", "ptx"] as const) {
        const text = tokenize(line, language).map((one) => one.text).join("");
        expect(text).toBe(line);
      }
    }
  });
  test("keywords, strings, numbers and comments", () => {
    expect(kinds("return 1 # one")).toEqual(["k:return", ": ", "d:1", ": ", "c:# one"]);
    expect(kinds("x = 'if'")).toEqual([":x = ", "s:'if'"]);
  });
  test("a line inside a kernel's string is code, not string", () => {
    expect(kinds("    tmp0 = tl.load(in_ptr0)").some((one) => one.startsWith("s:"))).toBe(false);
  });
  test("a docstring's lines are strings", () => {
    expect(stringLines(['"""a', "b", 'c"""', "d", '"""e"""', "f"])).toEqual([
      ...[false, true, true],
      ...[false, false, false],
    ]);
  });
});

describe("the cell's text", () => {
  test("is the recorded one, wherever it begins", () => {
    expect(shiftOf("%%dynamo\nx = 1\n", "%%dynamo\nx = 1")).toBe(0);
    expect(shiftOf("\n\n%%dynamo\nx = 1", "%%dynamo\nx = 1\n")).toBe(2);
    expect(shiftOf("  %%dynamo\n  x = 1", "%%dynamo\nx = 1")).toBe(0);
  });
  test("or another one", () => {
    expect(shiftOf("%%dynamo\nx = 2", "%%dynamo\nx = 1")).toBeNull();
    expect(shiftOf(null, "x")).toBeNull();
  });
});

describe("small words", () => {
  test("lines", () => {
    expect(compact([3, 1, 2, 7, 7])).toBe("lines 1-3, 7");
    expect(compact([])).toBe("");
  });
  test("times", () => {
    expect([seconds(2), seconds(0.25), seconds(0.0012)]).toEqual(["2.00 s", "250 ms", "1.2 ms"]);
  });
  test("files", () => {
    expect(["<cell>", "<cell 3>", "a/b.py"].map(fileText)).toEqual(["cell", "cell [3]", "b.py"]);
  });
});

test("stages lie in each other, and a pause is left out", () => {
  const stage = (name: string, start: number, length: number) => ({ name, start, seconds: length });
  const bars = laidOut([stage("b", 1, 1), stage("a", 0, 3), stage("late", 10, 1)]);
  expect(bars.map(({ stage: { name }, depth, at }) => [name, depth, at])).toEqual([
    ["a", 0, 0],
    ["b", 1, 1],
    ["late", 0, 3],
  ]);
});

test("what JSON leaves out is filled in, all the way down", () => {
  const compile = complete<Compile>("Compile", { compile_id: "0/0", guards: [{ kind: "K" }] });
  expect(compile.status).toBe("ok");
  expect(compile.guards[0]).toMatchObject({ kind: "K", code: [], frame: null } satisfies Partial<Guard>);
});

test("a line of output code belongs to the kernel that it defines or calls", () => {
  const kernels = ["cpp_fused_0", "extern_kernels.mm"].map((name) =>
    complete("Kernel", { name, language: "cpp", graph: "g" }),
  );
  const compile = complete<Compile>("Compile", { compile_id: "0/0", kernels });
  const code = ["import x", "cpp_fused_0 = async_compile.cpp('''", "body", "''')", "", "cpp_fused_0(a)"];
  const owners = ownersOf([...code, "extern_kernels.mm(b, c)"].join("\n"), compile, "g");
  expect([...owners].map(([line, kernel]) => [line, kernel.name])).toEqual([
    ...[2, 3, 4, 6].map((line) => [line, "cpp_fused_0"]),
    [7, "extern_kernels.mm"],
  ]);
});

describe("requests to the kernel", () => {
  const model = () => {
    const sent: { id: number; part: string }[] = [];
    let heard: (message: unknown, buffers: DataView[]) => void = () => {};
    const made = {
      get: () => undefined,
      set: () => undefined,
      save_changes: () => undefined,
      send: (message: never) => sent.push(message),
      on: (_: string, listener: never) => (heard = listener),
      off: () => undefined,
    } satisfies Model;
    return { made, sent, hear: (message: unknown, data: DataView[] = []) => heard(message, data) };
  };
  const packed = async (value: unknown): Promise<DataView> => {
    const stream = new Response(JSON.stringify(value)).body!;
    const bytes = await new Response(stream.pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
    return new DataView(bytes);
  };

  test("each answer goes to the request whose id it bears", async () => {
    const { made, sent, hear } = model();
    const kernel = new Kernel(made);
    const answers = [kernel.ask("a", () => {}), kernel.ask("b", () => {})];
    hear({ re: sent[1]!.id }, [await packed("for b")]);
    hear({ re: sent[0]!.id }, [await packed("for a")]);
    hear({ re: 99 }, []);
    expect(await Promise.all(answers)).toEqual(["for a", "for b"]);
  });
  test("an error is told, with what to do", async () => {
    const { made, sent, hear } = model();
    const answer = new Kernel(made).ask("a", () => {});
    hear({ re: sent[0]!.id, error: "This report has no part 'a'" });
    await expect(answer).rejects.toThrow(/no part 'a'.*Run the cell again/);
  });
  test("without a comm the request fails at once", async () => {
    const { made } = model();
    const kernel = new Kernel({
      ...made,
      send: () => {
        throw new Error("no comm");
      },
    });
    await expect(kernel.ask("a", () => {})).rejects.toThrow(/no comm.*Run the cell again/);
  });
  test("what is still open when the explorer goes is let go", async () => {
    const { made } = model();
    const kernel = new Kernel(made);
    const answer = kernel.ask("a", () => {});
    kernel.dispose();
    await expect(answer).rejects.toThrow();
    await settled();
  });
});
