// Bundle the measures for Node and for the browser into a folder: node build.mjs FOLDER
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const { build } = createRequire(join(HERE, "..", "package.json"))("esbuild");
const folder = process.argv[2];
const options = {
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "error",
};

await build({
  ...options,
  entryPoints: [join(HERE, "layouts.ts")],
  outfile: join(folder, "layouts.mjs"),
  platform: "node",
  banner: {
    js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
  },
});
await build({ ...options, entryPoints: [join(HERE, "page.tsx")], outfile: join(folder, "page.js") });
