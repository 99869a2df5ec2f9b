// Makes dist/report.html, dist/live.html and dist/ui.html, each with all of its code and style; with --check only compares them with what
// they would be, and fails if they are not that; with --tests the tests into build/.
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const SHARED = {
  absWorkingDir: import.meta.dirname,
  bundle: true,
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
};

async function bundled(entry) {
  const options = { ...SHARED, entryPoints: [entry], format: "iife", minify: true, target: "es2022", write: false };
  const { outputFiles } = await build(options);
  return outputFiles[0].text.trim();
}

async function page(name) {
  const template = await readFile(new URL(`src/${name}/page.html`, import.meta.url), "utf8");
  // The pages of the runs have more to lay out than the report.
  const style = await bundled(name === "ui" ? "src/ui/page.css" : "src/view/page.css");
  const script = await bundled(`src/${name}/main.tsx`);
  // A script must not hold what ends it, nor what begins a comment of HTML.
  const safe = script.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  // No other script runs, whatever is in the data.
  const hash = `sha256-${createHash("sha256").update(safe).digest("base64")}`;
  const parts = { STYLE: style, SCRIPT: safe, HASH: hash };
  // One pass, and a function: what is put in is not looked at again.
  const html = template.replace(/\/\*(STYLE|SCRIPT|HASH)\*\//g, (_, part) => parts[part]);
  return { path: new URL(`dist/${name}.html`, import.meta.url), html };
}

/** The pages whose files are not what the sources make. */
async function stale() {
  const pages = await Promise.all(["report", "live", "ui"].map(page));
  const built = await Promise.all(pages.map(({ path }) => readFile(path, "utf8").catch(() => null)));
  return pages.filter(({ html }, at) => html !== built[at]);
}

/** Leaves alone what is as it should be: whatever embeds it is not compiled again. */
async function pages() {
  await mkdir(new URL("dist/", import.meta.url), { recursive: true });
  for (const { path, html } of await stale()) await writeFile(path, html);
}

async function check() {
  const names = (await stale()).map(({ path }) => path.pathname.split("/").pop());
  if (names.length > 0) {
    console.error(`not what the sources make: web/dist/{${names}}; run npm run build --prefix web, and commit them`);
    process.exitCode = 1;
  }
}

async function tests() {
  const files = await readdir(new URL("test/", import.meta.url), { recursive: true });
  const entryPoints = files.filter((file) => /\.test\.tsx?$/.test(file)).map((file) => `test/${file}`);
  await build({
    ...SHARED,
    entryPoints,
    format: "esm",
    outbase: "test",
    outdir: "build",
    outExtension: { ".js": ".mjs" },
    packages: "external",
    platform: "node",
    sourcemap: "inline",
  });
}

if (process.argv.includes("--tests")) await tests();
else if (process.argv.includes("--check")) await check();
else await pages();
