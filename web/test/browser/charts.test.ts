import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import type { StoredRun } from "../../src/model/report";
import { failed } from "../summary";
import { latency, reportOf, storedRun } from "../synthetic";
import { launch, openReport, overlaps, shoot, until, type Opened } from "./browser";

let browser: Browser;
before(async () => void (browser = await launch()));
after(() => browser.close());

const base64 = (text: string) => Buffer.from(text).toString("base64");

/** A failed run of two stages and two steps, whose target ends, with thresholds and samples of errors. */
function eventful(): StoredRun {
  const run = storedRun(40);
  run.summary = failed();
  const bound = (expr: string, figure: string, bound: number, is_share = false) => ({ expr, figure, bound, is_share });
  run.run.header.thresholds = [bound("held >= 99.9%", "connections.held", 99.9, true), bound("latency.p99 < 50ms", "latency_us.p99", 50_000), bound("latency.max < 9m", "latency_us.max", 540e6)];
  run.run.header.steps = ["users.login", "users.look"];
  run.ticks.forEach(({ tick, looks }, n) => {
    tick.steps = [latency([[2e6, 10]]), latency([[5e6, 20]])];
    tick.ping_rtt = latency([[1e6, 9], [3e6, 1]]);
    if (n === 3) tick.marks = [{ at: 3e9, kind: "stage", what: "first stage" }];
    if (n === 20) tick.marks = [{ at: 20e9, kind: "command", what: "load 60 %" }];
    if (n >= 35) looks.target!.process.processes = 0;
    if (n === 30) {
      tick.error_samples = [
        { side: "target", stage: "exchange", kind: "wrong-status", at: 30.4e9, status: 503, from_start: true, bytes: base64("HTTP/1.1 503 No\r\n\r\n<script>document.title = 'run'</script>") },
        { side: "target", stage: "exchange", kind: "bad-answer", at: 30.2e9, status: null, from_start: false, bytes: base64("\u0000\u0001rest") },
      ];
    }
  });
  run.summary.limit = null;
  return run;
}

// One page for all tests that leave it as they found it: to draw it takes two seconds of a processor.
let drawn: Promise<Opened> | undefined;
const shared = () => (drawn ??= openReport(browser, reportOf(eventful())));

/** Names of the marks on the x axis of a chart. */
const times = (page: Page, id: string) => page.locator(`#${id} .canvas svg [aria-label="x-axis tick label"] text`).allTextContents();

/** Drags over a chart, from one share of its width to another. */
async function drag(page: Page, id: string, from: number, to: number): Promise<void> {
  const canvas = page.locator(`#${id} .canvas`);
  await canvas.scrollIntoViewIfNeeded();
  const box = (await canvas.boundingBox())!;
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + from * box.width, y);
  await page.mouse.down();
  await page.mouse.move(box.x + ((from + to) / 2) * box.width, y);
  await page.mouse.move(box.x + to * box.width, y);
  await page.mouse.up();
}

test("a drag zooms all charts over time, and no other; Escape, a double click and buttons take that back", async () => {
  const { page, troubles } = await shared();
  const whole = await times(page, "connections");
  const [others, far] = [await times(page, "percentiles"), await times(page, "memory")];
  assert.deepEqual([whole[0], whole.at(-1)], ["0 s", "40 s"]);
  const isZoomed = (id: string) => page.waitForFunction((id) => {
    const first = document.querySelector(`#${id} .canvas svg [aria-label="x-axis tick label"] text`)?.textContent ?? "0 s";
    return Number.parseFloat(first) > 8;
  }, id);
  const isWhole = (id: string) => page.waitForFunction((id) => document.querySelector(`#${id} .canvas svg [aria-label="x-axis tick label"] text`)?.textContent === "0 s", id);
  await drag(page, "connections", 0.4, 0.7);
  // Charts out of sight too.
  for (const id of ["connections", "rates", "latency", "heat", "memory", "population-0"].filter((id) => id !== "population-0")) await isZoomed(id);
  assert.deepEqual(await times(page, "percentiles"), others);
  assert.ok((await page.locator("#connections .cross").count()) <= 1);
  await shoot(page, "report-zoomed");
  await page.keyboard.press("Escape");
  await isWhole("connections");
  await isWhole("memory");
  assert.deepEqual(await times(page, "memory"), far);
  await drag(page, "memory", 0.5, 0.8);
  await isZoomed("connections");
  await page.locator("#memory .canvas").dblclick();
  await isWhole("connections");
  await drag(page, "latency", 0.7, 0.5);
  await isZoomed("rates");
  await page.click("#tools .reset");
  await isWhole("rates");
  // A chart with an axis of its own is zoomed by itself.
  await drag(page, "percentiles", 0.3, 0.6);
  await page.waitForFunction((before) => document.querySelector('#percentiles [aria-label="x-axis tick label"]')?.textContent !== before, others.join(""));
  assert.deepEqual(await times(page, "connections"), whole);
  await page.click("#percentiles .reset");
  await page.waitForFunction((before) => document.querySelector('#percentiles [aria-label="x-axis tick label"]')?.textContent === before, others.join(""));
  // A click is no drag.
  await drag(page, "connections", 0.5, 0.502);
  assert.equal(await page.locator("#tools .reset").count(), 0);
  assert.deepEqual(troubles, []);
});

test("a name in the legend hides its line, and with Shift all others", async () => {
  const { page, troubles } = await shared();
  const lines = () => page.locator("#latency .canvas svg [aria-label=line]").count();
  const all = await lines();
  const names = page.locator("#latency .legend button");
  assert.equal(all, await names.count());
  await names.filter({ hasText: "max" }).click();
  await page.waitForFunction((n) => document.querySelectorAll("#latency .canvas svg [aria-label=line]").length === n, all - 1);
  assert.equal(await names.filter({ hasText: "max" }).getAttribute("aria-pressed"), "false");
  await names.filter({ hasText: "max" }).click();
  await names.filter({ hasText: "lag p99" }).click({ modifiers: ["Shift"] });
  await page.waitForFunction(() => document.querySelectorAll("#latency .canvas svg [aria-label=line]").length === 1);
  await names.filter({ hasText: "lag p99" }).click({ modifiers: ["Shift"] });
  await page.waitForFunction((n) => document.querySelectorAll("#latency .canvas svg [aria-label=line]").length === n, all);
  // What is not shown at first is shown once it is pressed.
  const steps = page.locator("#step-latency .legend button");
  assert.deepEqual(await steps.evaluateAll((all) => all.map((one) => [one.textContent!.trim(), one.getAttribute("aria-pressed")])), [
    ["users.login p99", "true"], ["users.look p99", "true"], ["users.login p95", "false"], ["users.look p95", "false"], ["users.login p50", "false"],
    ["users.look p50", "false"],
  ]);
  await steps.nth(2).focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll("#step-latency .canvas svg [aria-label=line]").length === 3);
  assert.deepEqual(troubles, []);
});

test("the time is that since the start, or the clock's", async () => {
  const { page, troubles } = await shared();
  await page.click("#tools button:has-text('clock')");
  await page.waitForFunction(() => /^20:4\d:\d\d/.test(document.querySelector('#memory [aria-label="x-axis tick label"] text')?.textContent ?? ""));
  const [first] = await times(page, "connections");
  assert.match(first!, /^20:45:(3[2-9]|40)$/, "the run began at 20:45:31.987");
  assert.deepEqual(await overlaps(page), []);
  await shoot(page, "report-clock");
  await page.click("#tools button:has-text('since')");
  await page.waitForFunction(() => document.querySelector('#memory [aria-label="x-axis tick label"] text')?.textContent === "0 s");
  assert.deepEqual(troubles, []);
});

test("stages, commands, faults and the end of the target are marks on every chart over time, and a list", async () => {
  const { page, troubles } = await shared();
  const marks = await page.locator("figure.chart").evaluateAll((all) =>
    all.map((one) => ({ id: one.id, rules: [...one.querySelectorAll('.canvas svg [aria-label="rule"] line')].filter((rule) => rule.getAttribute("x1") === rule.getAttribute("x2")).length })),
  );
  for (const { id, rules } of marks) {
    const expected = ["by-connections", "percentiles"].includes(id) ? 0 : 4;
    assert.ok(expected === 0 ? rules === 0 : rules >= expected, `${id}: ${rules} marks`);
  }
  await until(page, "#events", "3 s 20:45:34 stage first stage begins");
  await until(page, "#events", "20 s 20:45:51 load 60 %");
  await until(page, "#events", "31 s 20:46:02 first faults: 17 × target exchange timeout, 5 × path hold reset");
  await until(page, "#events", "36 s 20:46:07 the target's process has exited");
  for (const id of ["connections", "memory", "heat"]) assert.match((await page.locator(`#${id} .canvas svg`).textContent())!, /target exited/, id);
  assert.deepEqual(await overlaps(page), []);
  await shoot(page, "report-events");
  assert.deepEqual(troubles, []);
});

test("thresholds are lines in the charts of their figures, and no limit squashes a chart", async () => {
  const run = eventful();
  run.ticks.forEach(({ looks }) => (looks.host!.tcp_mem_pressure_pages = 50_000_000));
  const { page, troubles } = await openReport(browser, reportOf(run));
  await until(page, "#connections .legend", "held >= 99.9% ✗");
  const text = await page.locator("#latency .legend").innerText();
  assert.match(text.replace(/\s+/g, " "), /latency\.p99 < 50ms .*latency\.max < 9m beyond the chart/);
  assert.doesNotMatch(text, /50ms ✗/);
  const rules = (id: string) => page.locator(`#${id} .canvas svg [aria-label="rule"] line[y1]`).evaluateAll((all) => all.filter((rule) => rule.getAttribute("y1") === rule.getAttribute("y2")).length);
  assert.deepEqual([await rules("connections"), await rules("latency"), await rules("by-connections")], [1, 1, 1]);
  const marks = await page.locator('#socket-memory [aria-label="y-axis tick label"] text').allTextContents();
  assert.ok(marks.some((mark) => mark.endsWith(" MiB")) && !marks.some((mark) => mark.endsWith(" GiB")), `${marks}`);
  const steepness = await page.locator("#socket-memory .canvas svg [aria-label=line] path").first().evaluate((path) => (path as SVGPathElement).getBBox().y);
  assert.ok(steepness < 80, `the line of what is used reaches up to ${steepness} pixels below the top`);
  assert.deepEqual(troubles, []);
});

test("percentiles have p95 between p50 and p99, and steps and PINGs have charts of their own", async () => {
  const { page } = await shared();
  const names = (id: string) => page.locator(`#${id} .legend button`).allInnerTexts().then((all) => all.map((name) => name.trim()));
  assert.deepEqual((await names("latency")).slice(0, 4), ["p50", "p95", "p99", "max"]);
  assert.deepEqual((await names("by-connections")).slice(0, 3), ["p50", "p95", "p99"]);
  assert.deepEqual(await names("ping-rtt"), ["p50", "p95", "p99", "max"]);
  assert.deepEqual(await names("step-rates"), ["users.login", "users.look"]);
  // The same figure has the same colour in each.
  const colour = (id: string) => page.locator(`#${id} .legend button:text-is("p95") svg > *`).getAttribute("stroke");
  for (const id of ["latency", "by-connections", "ping-rtt"]) assert.equal(await colour(id), "var(--line-2)", id);
  assert.equal(await page.locator("#latency .canvas svg [aria-label=line]").nth(1).getAttribute("stroke"), "var(--line-2)");
  for (const id of ["messages", "gap", "delay"]) assert.equal(await page.locator(`#${id}`).count(), 0, id);
  await page.locator("#step-rates .readable").focus();
  await page.keyboard.press("Home");
  await until(page, "#step-rates .reading", "users.login 10/s · users.look 20/s");
  await page.evaluate(() => (document.activeElement as HTMLElement).blur());
});

test("latency against connections is points; the heat map has a key", async () => {
  const { page } = await shared();
  assert.ok((await page.locator("#by-connections .canvas svg [aria-label=dot] :is(circle, path)").count()) > 8);
  assert.equal(await page.locator("#by-connections .canvas svg [aria-label=line]").count(), 0);
  assert.equal(await page.locator("#heat-title").innerText().then((text) => text.replace(/\s+/g, " ")), "Latency heat map time, log scale");
  await until(page, "#heat .heat-key", "responses in a cell");
  assert.equal(await page.locator("#heat .heat-key .scale").count(), 1);
});

test("samples of errors are text, whatever they contain", async () => {
  const { page, troubles } = await shared();
  await until(page, "#error-samples", "target exchange wrong-status 503 30.4 s · 20:46:02 HTTP/1.1 503 No <script>document.title = 'run'</script>");
  await until(page, "#error-samples", "target exchange bad-answer – 30.2 s · 20:46:02 … ␀␁rest");
  assert.equal(await page.locator("#error-samples script").count(), 0);
  assert.equal(await page.title(), "gq2synth · throng report");
  assert.deepEqual(troubles, []);
});

test("the first screen has what was run, the verdict, thresholds, figures, three charts and what happened", async () => {
  const { page } = await shared();
  const bottom = (where: string) => page.locator(where).first().evaluate((one) => one.getBoundingClientRect().bottom + scrollY);
  for (const where of [".head .command", "#verdict", "#thresholds", "#figures", "#connections", "#rates", "#latency"]) {
    assert.ok((await bottom(where)) <= 900, `${where} ends at ${await bottom(where)}`);
  }
  const top = await page.locator("#events").evaluate((one) => one.getBoundingClientRect().top + scrollY);
  assert.ok(top < 850, `the list of events begins at ${top}`);
  if (process.env.SHOTS) await page.screenshot({ path: "shots/report-first-screen.png" });
});

test("the kernel's settings are folded, and what is wrong is red", async () => {
  const { page } = await shared();
  const settings = page.locator("#settings");
  assert.equal(await settings.getAttribute("open"), null);
  assert.equal(await page.locator("#settings table").isVisible(), false);
  await page.click("#settings summary");
  await until(page, "#settings", "net.ipv4.ip_local_port_range 1024 65535");
  const colour = (where: string) => page.locator(where).first().evaluate((one) => getComputedStyle(one).color);
  const red = await page.evaluate(() => {
    const sample = document.createElement("i");
    sample.style.color = "var(--bad)";
    document.body.append(sample);
    return getComputedStyle(sample).color;
  });
  for (const where of ["#verdict", "#thresholds .failed", "#figures .wrong .value", "#fault-table tbody td", "#statuses tr.wrong td"]) assert.equal(await colour(where), red, where);
  assert.notEqual(await colour("#thresholds .met b"), red);
  assert.deepEqual(await page.locator("#figures .wrong dt").allInnerTexts(), ["held", "no response", "faults"]);
  assert.deepEqual(await page.locator("#statuses tr.wrong td:first-child").allInnerTexts(), ["503"]);
});
