import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const MOST_BYTES = 700_000;

test("a page is one small file that asks for no other", () => {
  for (const name of ["report", "live", "ui"]) {
    const html = readFileSync(`dist/${name}.html`, "utf8");
    assert.ok(html.length < MOST_BYTES, `${name}: ${html.length}`);
    assert.doesNotMatch(html, /<(script|img|iframe)[^>]*\ssrc=/, name);
    assert.doesNotMatch(html, /@import|url\(\s*["']?https?:/, name);
    assert.deepEqual(html.match(/<link[^>]*>/g), ['<link rel="icon" href="data:,">']);
  }
});

test("there is one place for the data, on a line of its own, before the code", () => {
  const lines = readFileSync("dist/report.html", "utf8").split("\n");
  const places = lines.flatMap((line, n) => (line.includes("/*DATA*/") ? [n] : []));
  assert.equal(places.length, 1);
  assert.equal(lines[places[0]!], '<script id="data" type="application/json">/*DATA*/</script>');
  assert.ok(lines.findIndex((line) => line.startsWith("<script>")) > places[0]!);
});
