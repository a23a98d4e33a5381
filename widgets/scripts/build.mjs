// Bundle src/ into dynamo_nb/static/. `--check` builds in memory and fails when the committed
// bundle is stale or larger than its budget.
import { build } from "esbuild";
import { gzipSync } from "node:zlib";
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const STATIC = join(HERE, "..", "..", "dynamo_nb", "static");
const BUDGET = 80_000; // bytes of the module as it is sent and saved, once per widget: packed

const bundle = async () => {
  const result = await build({
    entryPoints: { explorer: join(HERE, "..", "src", "index.ts") },
    bundle: true,
    format: "esm",
    target: "es2022",
    minify: true,
    charset: "utf8",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    outdir: STATIC,
    write: false,
  });
  return result.outputFiles;
};

const check = (file, problems) => {
  let committed = null;
  try {
    committed = readFileSync(file.path, "utf8");
  } catch {
    // reported as stale below
  }
  if (committed !== file.text) problems.push(`${file.path} is stale: run npm run build`);
};

const size = (file, problems) => {
  const packed = Math.ceil(gzipSync(file.contents, { level: 9 }).length / 4) * 5; // in base 85
  console.log(`${basename(file.path)} ${file.contents.length} bytes, ${packed} packed`);
  if (file.path.endsWith(".js") && packed > BUDGET) {
    problems.push(`the module has ${packed} bytes packed, its budget is ${BUDGET}`);
  }
  // The module also stands inside a <script> element of the standalone page.
  if (/<\/script|<!--/i.test(file.text)) problems.push(`${file.path} would end its script element`);
};

const problems = [];
for (const file of await bundle()) {
  size(file, problems);
  if (process.argv.includes("--check")) {
    check(file, problems);
  } else {
    mkdirSync(STATIC, { recursive: true });
    writeFileSync(file.path, file.contents);
  }
}
for (const problem of problems) console.error(problem);
process.exitCode = problems.length ? 1 : 0;
