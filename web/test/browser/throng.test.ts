import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { launch, openPage, shoot, until } from "./browser";

// Where it was built: `cargo xtask web` says so.
const THRONG = process.env.THRONG_BIN ?? "";

let browser: Browser;
const started: ChildProcess[] = [];
before(async () => {
  assert.ok(THRONG, "THRONG_BIN names no throng: write cargo xtask web");
  browser = await launch();
});
after(async () => {
  started.forEach((child) => child.kill("SIGKILL"));
  await browser.close();
});

const folder = mkdtempSync(join(tmpdir(), "throng-real-"));

/** The count of the target's kernel; its open files where other sockets of this machine come and go. */
const OWN_COUNT = ["on the target's side", "open files of the target"];

/** A throng, and the first of its words that fit. */
async function throng(words: string[], says: RegExp): Promise<{ child: ChildProcess; found: string; ended: Promise<number | null> }> {
  const child = spawn(THRONG, words, { env: { ...process.env, XDG_DATA_HOME: folder }, stdio: ["ignore", "pipe", "pipe"] });
  started.push(child);
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  let said = "";
  const found = await new Promise<string>((resolve, reject) => {
    const hear = (piece: Buffer) => {
      said += piece;
      const match = said.match(says)?.[1];
      if (match) resolve(match);
    };
    child.stdout!.on("data", hear);
    child.stderr!.on("data", hear);
    void ended.then(() => reject(new Error(`ended: ${said}`)));
  });
  return { child, found, ended };
}

test("a run is followed, led by hand to its end, and its report opens with the network off", async () => {
  const server = await throng(["serve", "--listen", "127.0.0.1:0"], /(http:\/\/127\.0\.0\.1:\d+)/);
  const [html, json] = [join(folder, "run.html"), join(folder, "run.json")];
  const words = ["-c", "500", "--think", "200ms..400ms", "-d", "forever", "--probe", "20/s", "--live", "off", "--threshold", "answered > 0", "--threshold", "latency.p99 < 1ms", "--dashboard", "0", "--report", html, "--json", json];
  const run = await throng(["run", `${server.found}/`, ...words], /dashboard at (http:\/\/127\.0\.0\.1:\d+)/);
  const { page, troubles } = await openPage(browser, (asked) => asked.startsWith(run.found));
  await page.goto(run.found);
  await until(page, "#now", "open 500 of 500 wanted now");
  await until(page, "#connections .legend", ...OWN_COUNT);
  await until(page, "#verdict", "running");
  await until(page, "#thresholds", "✓ answered > 0");
  await until(page, "#thresholds", "latency.p99 < 1ms");

  await page.keyboard.press("p");
  await until(page, "#progress", "pause");
  await until(page, "#events", "paused");
  await page.keyboard.press("p");
  await until(page, "#progress", "hold");
  await page.keyboard.press("-");
  await until(page, "#now", "open 450 of 450 wanted now");
  await page.keyboard.press("l");
  await page.keyboard.type("300");
  await page.keyboard.press("Enter");
  await until(page, "#now", "open 300 of 300 wanted now");
  await shoot(page, "throng-live");
  await page.keyboard.press("d");
  await page.keyboard.press("d");
  await until(page, "#link", "the run has ended");
  await until(page, "#verdict", "interrupted");
  assert.equal(await run.ended, 130);
  assert.deepEqual(troubles, []);
  await page.context().close();

  const summary = JSON.parse(readFileSync(json, "utf8"));
  assert.deepEqual(summary.asks.map(({ what }: { what: string }) => what), ["paused", "resumed", "load 90 %", "load 300 of 500 connections (60 %)", "drained"]);
  const report = await openPage(browser, (asked) => asked.startsWith("file:"));
  await report.page.context().setOffline(true);
  await report.page.goto(`file://${html}`);
  await until(report.page, "#verdict", "interrupted by a command");
  for (const chart of ["connections", "rates", "latency", "by-connections", "percentiles", "heat"]) {
    await report.page.waitForSelector(`[id="${chart}"] .canvas svg`);
  }
  const grouped = (n: number) => n.toLocaleString("en-US");
  await until(report.page, "#statuses", grouped(summary.requests.status["200"]));
  await until(report.page, "#connections .legend", ...OWN_COUNT);
  await until(report.page, ".head", `--seed ${summary.seed}`);
  await until(report.page, "#events", "load 90 %");
  assert.deepEqual(report.troubles, []);
  await shoot(report.page, "throng-report");
});

test("the page shows its token to throng alone, and never to the target on another port of the host", async () => {
  // All that the target gets of anybody.
  const got: string[] = [];
  const target = createServer((request, answer) => {
    got.push(JSON.stringify([request.url, request.rawHeaders]));
    answer.setHeader("Content-Type", "text/html").end("<p id=target>the target</p>");
  });
  await new Promise<void>((done) => target.listen(0, "127.0.0.1", done));
  const at = `http://127.0.0.1:${(target.address() as AddressInfo).port}/`;
  const [token, file] = ["s3cret-0123456789abcdef", join(folder, "token")];
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  const words = ["-c", "5", "--think", "100ms", "-d", "forever", "--live", "off", "--dashboard", "0", "--dashboard-token-file", file];
  const run = await throng(["run", at, ...words], /dashboard at (http:\/\/127\.0\.0\.1:\d+)/);
  const { page } = await openPage(browser, (asked) => asked.startsWith(run.found) || asked.startsWith(at));
  await page.goto(run.found);
  await until(page, "#link", "token required");
  for (const address of [`${run.found}/#token=${token}`, `${run.found}/?token=${token}`]) {
    await page.goto("about:blank");
    await page.evaluate(() => undefined);
    await page.goto(address);
    await until(page, "#now", "open 5 of 5 wanted now");
    assert.equal(page.url(), `${run.found}/`, "the address shows it no more");
    assert.deepEqual(await page.context().cookies(), []);
    // The same tab, and the same host: what a browser sends there by itself.
    const before = got.length;
    await page.goto(at);
    await until(page, "#target", "the target");
    assert.ok(got.length > before);
    assert.deepEqual(await page.evaluate(() => [document.cookie, sessionStorage.length, localStorage.length]), ["", 0, 0]);
  }
  // Back on the page the tab still has it, and may ask.
  await page.goto(run.found);
  await until(page, "#now", "open 5 of 5 wanted now");
  await page.keyboard.press("q");
  await page.keyboard.press("q");
  await until(page, "#link", "the run has ended");
  assert.equal(await run.ended, 130);
  assert.ok(got.length > 10);
  assert.deepEqual(got.filter((request) => request.includes(token) || /cookie/i.test(request)), []);
  target.close();
});

test("a run by HTTP is followed and led on its page, which shows the token", async () => {
  const server = await throng(["serve", "--listen", "127.0.0.1:0"], /(http:\/\/127\.0\.0\.1:\d+)/);
  const [token, file] = ["s3cret-fedcba9876543210", join(folder, "api-token")];
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  const api = await throng(["fleet", "serve", "--listen", "127.0.0.1:0", "--token-file", file], /runs on this machine at (http:\/\/127\.0\.0\.1:\d+)/);
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const flags = { connections: 100, think: "200ms..400ms", duration: "10m" };
  const posted = await fetch(`${api.found}/runs`, { method: "POST", headers, body: JSON.stringify({ target: `${server.found}/`, flags }) });
  assert.equal(posted.status, 201, await posted.clone().text());
  const { url } = (await posted.json()) as { url: string };
  const { page, troubles } = await openPage(browser, (asked) => asked.startsWith(api.found));
  await page.goto(`${api.found}${url}/page#token=${token}`);
  await until(page, "#now", "open 100 of 100 wanted now");
  await page.click(".controls >> text=Pause");
  await until(page, "#progress", "pause");
  await page.click(".controls >> text=Resume");
  await until(page, "#progress", "hold");
  await page.click(".controls >> text=Load down");
  await until(page, "#now", "open 90 of 90 wanted now");
  await page.fill(".controls input", "12.5 %");
  await page.click(".controls >> text=Set");
  await until(page, "#now", "open 13 of 13 wanted now");
  await page.keyboard.press("d");
  await page.keyboard.press("d");
  await until(page, "#link", "the run has ended");
  await until(page, "#verdict", "interrupted");
  assert.deepEqual(troubles, []);
  const shown = (await (await fetch(`${api.found}${url}`, { headers })).json()) as { summary: { asks: { what: string }[] } | null };
  assert.deepEqual(shown.summary?.asks.map(({ what }) => what), ["paused", "resumed", "load 90 %", "load 12.5 %", "drained"]);
  await page.context().close();
});
