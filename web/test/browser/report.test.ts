import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import type { Report, StoredRun } from "../../src/model/report";
import { latency, reportOf, storedRun } from "../synthetic";
import { failed } from "../summary";
import { openReport, overflow, overlaps, shoot, until, type Opened } from "./browser";
import { launch } from "./browser";

let browser: Browser;
before(async () => void (browser = await launch()));
after(() => browser.close());

/** A run with something in every part of the page. */
function full(): StoredRun {
  const run = storedRun(40);
  run.summary = failed();
  run.run.header.populations = ["idle", "users"];
  run.run.tags = ["kernel=6.12"];
  for (const { tick } of run.ticks) {
    const share = (part: number) => ({ ...tick, populations: [], open: Math.round(tick.open * part), wanted: Math.round(tick.wanted * part) });
    tick.populations = [share(0.8), share(0.2)];
  }
  return run;
}

const textOf = async (page: Page, where: string) => (await page.locator(where).innerText()).replace(/\s+/g, " ");

/** Whether each text stands in a part of the page. */
async function check(page: Page, where: string, ...expected: string[]): Promise<void> {
  const text = await textOf(page, where);
  for (const one of expected) assert.ok(text.includes(one), `${where} lacks “${one}”: ${text}`);
}

// One page for tests that leave it as they found it: to draw it takes two seconds of a processor.
let drawn: Promise<Opened> | undefined;
const shared = () => (drawn ??= openReport(browser, reportOf(full())));

test("a report shows every part, and asks for nothing", async () => {
  const { page, troubles } = await shared();
  await check(page, "#verdict", "fail: 2 of 3 thresholds failed, the first held >= 99.9%: 98.7 %", "the target ran out of open files: 65,536 of 65,536 used; raise LimitNOFILE",
    "2,961 of 3,000 connections held", "the target holds 65,536 of 65,536 files");
  assert.ok(!(await textOf(page, "#verdict")).includes("faults == 0"), "a threshold is not told twice");
  await check(page, "#figures", "held 2,961 of 3,000 wanted, peak 2,999", "connects 598/s over a ramp of 5.1 s", "requests ≥ 1,487/s",
    "latency p50 891 µs", "latency p99 3.57 ms", "latency p99.9 7.13 ms", "latency max 8.91 ms",
    "no response 12 % 130 requests, in no percentile; p99 falls among them", "lag p99 1.98 ms",
    "faults 139 130 × target · exchange · timeout", "memory of target 941 B", "memory of throng 51 B", "memory of kernel 8.32 KiB per connection, both ends");
  await check(page, "#thresholds", "✗ held >= 99.9% 98.7 % failed", "✓ latency.p99 < 50ms 3.57 ms met", "✗ handshake.p99 < 1ms nothing was measured failed");
  await check(page, "#fault-table", "target exchange timeout 130 path hold reset 9");
  await check(page, "#statuses", "200 23,400 503 42");
  await check(page, "#populations", "idle ws://10.0.0.1:8000/ws 2,370 2,400 500/s 741/s 863 µs 2.59 ms 3.45 ms 12 % 30", "861 µs 2.58 ms 3.44 ms – 9");
  await check(page, "#steps", "users.login 1,000 2.07 ms 1.72 ms");
  await check(page, "#times", "latency at full load 1,000 1.07 ms 891 µs", "probe, fresh connections");
  await check(page, "#cost", "memory per connection target 941 B ± 18.8 B 0.987", "memory of the target's host exhausted target 2,877,533 connections");
  await check(page, "#rig", "requests 93 %", "connects 40 %", "connections that would fit 0.40 %", "calibrated 2026-11-20");
  await check(page, "#hosts", "throng's kernel 6.12.0", "target's open-file limit 65,536", "conntrack limit 262,144",
    "throng used 7.3 s of CPU, 28.6 MiB of memory", "throng's longest stall 6.24 ms", "target used 2.2 s of CPU, 6.68 MiB of memory",
    "observer 10.0.0.1:9100: 17 responses, 1 failure, the last: timed out");
  await check(page, "#tcp", "throng's retrans segs 0 77", "throng's listen overflows 1,234 0");
  await check(page, ".head", "throng run 'http://10.0.0.1:8000/?q={rand 1 9}' -c 3000 --think 20s..40s --seed 42", "2026-11-21 20:45:31 UTC", "kernel=6.12", "uring, 4 threads");
  await check(page, ".plan", "</script><b>not markup</b>");
  assert.deepEqual(await page.locator("figure.chart").evaluateAll((all) => all.map((one) => one.id)), [
    "connections", "rates", "latency", "faults", "by-connections", "percentiles", "heat", "population-0", "population-1", "processors", "memory",
    "jvm", "sockets", "socket-memory", "accept-queue",
  ]);
  assert.equal(await page.locator(".canvas svg[aria-label]").count(), 15);
  await check(page, "#connections", "open wanted by the plan on the target's side");
  await check(page, "#faults .legend", "target exchange timeout path hold reset");
  assert.deepEqual(await overlaps(page), []);
  assert.deepEqual(troubles, []);
  await shoot(page, "report-light");
});

test("what there is no data of is left out", async () => {
  const run = storedRun(5);
  for (const record of run.ticks) {
    record.looks = { target: null, host: null, target_host: null, own: null, connections: null, thresholds: [] };
    record.tick.probe = null;
  }
  run.run.scenario = null;
  const { page, troubles } = await openReport(browser, reportOf(run));
  await check(page, "#verdict", "unfinished");
  for (const id of ["memory", "jvm", "sockets", "socket-memory", "accept-queue", "faults", "thresholds", "populations", "cost", "rig", "tcp"]) {
    assert.equal(await page.locator(`[id="${id}"]`).count(), 0, id);
  }
  assert.equal(await page.locator(".scenario").count(), 0);
  assert.deepEqual(troubles, []);
});

test("a report of nearly nothing is a page all the same", async () => {
  for (const report of [{}, { runs: [] }, { runs: [{}] }, { runs: [{ ticks: [{}], summary: {} }] }]) {
    const { page, troubles } = await openReport(browser, report as Report, { awaits: "h1" });
    assert.ok(!(await textOf(page, "#page")).includes("cannot be read"));
    assert.deepEqual(troubles, []);
  }
});

test("what is in the data does not run", async () => {
  const run = full();
  run.run.scenario = "</script><script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">";
  run.run.header.target = "<script>document.title = 'run'</script>";
  const { page, troubles } = await openReport(browser, reportOf(run));
  assert.equal(await page.title(), "gq2synth · throng report");
  await check(page, "h1", "<script>document.title = 'run'</script>");
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "document.title = 'run'";
    document.body.append(script);
  });
  assert.equal(await page.title(), "gq2synth · throng report", "no other script does");
  assert.ok(troubles.length === 1 && troubles[0]!.includes("Content Security Policy"), `${troubles}`);
});

test("what is no report says so", async () => {
  const { page } = await openReport(browser, { runs: 5 } as unknown as Report, { awaits: "text=cannot be read" });
  await page.close();
});

test("a telephone shows it without scrolling sideways, dark as well", async () => {
  for (const scheme of ["light", "dark"] as const) {
    const run = full();
    // Names of one long word each.
    const word = "x".repeat(90);
    run.run.header.steps = [`users.${word}`];
    run.run.tags = [word];
    run.ticks.forEach(({ tick }) => (tick.steps = [latency([[2e6, 10]])]));
    const { page, troubles } = await openReport(browser, reportOf(run), { width: 360, scheme });
    assert.ok(await page.locator("#step-latency .legend button").first().isVisible());
    assert.equal(await overflow(page), 0);
    assert.deepEqual(await overlaps(page), []);
    assert.deepEqual(troubles, []);
    await shoot(page, `report-phone-${scheme}`);
  }
});

test("dark", async () => {
  const { page, troubles } = await openReport(browser, reportOf(full()), { scheme: "dark" });
  assert.deepEqual(troubles, []);
  await shoot(page, "report-dark");
});

test("a chart is saved as SVG and as PNG, with title, legend and colours of its own", async () => {
  const { page, troubles } = await shared();
  const saved = async (kind: string) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(`#latency .save button:text("${kind}")`)]);
    return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
  };
  const svg = await saved("SVG");
  assert.equal(svg.name, "latency.svg");
  const text = svg.bytes.toString();
  assert.match(text, /^<svg[^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"/);
  for (const part of ["Latency over time", "probe p99", "#0072b2"]) assert.ok(text.includes(part), part);
  assert.ok(!text.includes("var("), "no variable is left");
  const png = await saved("PNG");
  assert.equal(png.name, "latency.png");
  assert.deepEqual([...png.bytes.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
  const wide = png.bytes.readUInt32BE(16);
  assert.ok(wide > 800, `${wide} pixels`);
  assert.deepEqual(troubles, []);
});

test("mouse and keys read the values, in all charts over time at once", async () => {
  const { page, troubles } = await shared();
  const crosses = (id: string) => page.locator(`#${id} .cross`).count();
  await page.locator("#connections .canvas").hover();
  await page.waitForFunction(() => document.querySelector("#connections .tip")?.textContent?.includes("wanted by the plan"));
  await until(page, "#connections .tip", "UTC · hold");
  assert.deepEqual([await crosses("connections"), await crosses("latency"), await crosses("faults"), await crosses("memory"), await crosses("percentiles")], [1, 1, 1, 1, 0]);
  assert.equal(await page.locator(".tip").count(), 1, "the others have their values in their heads");
  await until(page, "#rates .says", "responses");
  await shoot(page, "report-tip");
  await page.mouse.move(0, 0);
  await page.waitForFunction(() => document.querySelectorAll(".cross").length === 0);
  await page.locator("#connections .readable").focus();
  for (let i = 0; i < 10; i++) await page.keyboard.press("ArrowRight");
  await until(page, "#connections .reading", "10 s · 20:45:41 UTC, hold · open 2,991 · wanted by the plan 3,000 · on the target's side 2,988");
  assert.equal(await crosses("latency"), 1);
  await page.keyboard.press("Home");
  await until(page, "#connections .reading", "1 s · 20:45:32 UTC, ramp · open 375");
  await page.locator("#heat .canvas").hover();
  await until(page, "#heat .tip", "responses");
  await page.locator("#percentiles .canvas").hover();
  await until(page, "#percentiles .tip", "latency at full load");
  assert.equal(await crosses("connections"), 0, "another axis");
  assert.deepEqual(troubles, []);
});

test("a column's name sorts its table, by mouse and by key, and the rows keep what they are", async () => {
  const { page, troubles } = await shared();
  const column = (id: string, at: number) => page.locator(`#${id} tbody td:nth-child(${at})`).allInnerTexts();
  const head = (id: string, name: string) => page.locator(`#${id}`).getByRole("columnheader", { name, exact: true });
  const sorted = (id: string, name: string) => head(id, name).getAttribute("aria-sort");
  const came = await column("times", 1);
  assert.deepEqual(came.slice(0, 2), ["latency at full load", "ramp latency"]);
  await page.locator("#times th button", { hasText: "p99.9" }).click();
  const falling = await column("times", 1);
  assert.deepEqual(falling.slice(0, 2), ["latency at full load", "time to first byte"]);
  assert.equal(await page.locator("#times th[aria-sort]").count(), 1);
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#times th[aria-sort=ascending]").count(), 1);
  assert.equal((await column("times", 1)).at(-1), "latency at full load");
  await page.keyboard.press("Space");
  assert.equal(await page.locator("#times th[aria-sort]").count(), 0);
  assert.deepEqual(await column("times", 1), came);
  // A row that is bad is bad in each order.
  await head("statuses", "responses").locator("button").press("Enter");
  assert.deepEqual([await sorted("statuses", "responses"), await column("statuses", 1)], ["descending", ["200", "503"]]);
  await head("statuses", "responses").locator("button").press("Enter");
  assert.deepEqual(await column("statuses", 1), ["503", "200"]);
  assert.equal(await page.locator("#statuses tr.wrong td").first().innerText(), "503");
  await shoot(page, "report-sorted");
  await head("statuses", "responses").locator("button").press("Enter");
  assert.deepEqual(troubles, []);
});

test("everything that can be done can be reached by key", async () => {
  const { page } = await shared();
  // What is folded is reached once it is open.
  await page.click("#settings summary");
  const wanted = await page.locator("button, summary, [tabindex='0']").count();
  await page.evaluate(() => (document.activeElement as HTMLElement).blur());
  const seen = new Set<string>();
  for (let i = 0; i < wanted + 5; i++) {
    await page.keyboard.press("Tab");
    const focus = await page.evaluate(() => {
      const at = document.activeElement!;
      const all = [...document.querySelectorAll("button, summary, [tabindex='0']")];
      return [String(all.indexOf(at)), getComputedStyle(at).outlineStyle];
    });
    if (focus[0] !== "-1") {
      assert.notEqual(focus[1], "none", "the focus is visible");
      seen.add(focus[0]!);
    }
  }
  assert.equal(seen.size, wanted);
});

test("several runs are laid over one another", async () => {
  const runs = [0, 1, 2].map((n) => ({ ...full(), id: `gq2abc${n}` }));
  runs[1]!.summary = null;
  runs[2]!.run = { ...runs[2]!.run, tags: ["name=slow"] };
  const report: Report = {
    ...reportOf(...runs),
    comparison: {
      facts: [["gq2abc0", "1 run gq2abc0: the base"], ["gq2abc1", "1 run gq2abc1"]],
      tables: [{ head: ["", "gq2abc0", "gq2abc1", "change", "95 % interval", "difference"], rows: [["p99", "3.6 ms", "4.0 ms", "+12 %", "–", "not known"]] }],
      remarks: ["another kernel"],
    },
  };
  const { page, troubles } = await openReport(browser, report);
  await check(page, "#compared", "another kernel", "gq2abc1 1 run gq2abc1");
  await check(page, "#comparison-1", "gq2abc1 against gq2abc0", "p99 3.6 ms 4.0 ms +12 % – not known");
  await check(page, "#overview", "gq2abc0 kernel=6.12 fail 2,961 of 3,000 598/s 1,487/s 891 µs 2.67 ms 3.57 ms 12 % 139", "gq2abc1 kernel=6.12 unfinished");
  assert.deepEqual(await page.locator("figure.chart").evaluateAll((all) => all.map((one) => one.id)), [
    "connections", "rates", "latency", "by-connections", "percentiles",
  ]);
  await check(page, "#percentiles .legend", "gq2abc0 kernel=6.12 gq2abc1 kernel=6.12 gq2abc2 name=slow");
  assert.deepEqual(await overlaps(page), []);
  assert.deepEqual(troubles, []);
  await shoot(page, "comparison");
  await page.setViewportSize({ width: 360, height: 800 });
  await page.waitForTimeout(300);
  assert.equal(await overflow(page), 0);
});

/** CPU time of the page's thread, which another load on the machine does not lengthen; a fifth of it is needed. */
const DRAWN_S = 3;

test("an hour of a million connections opens in a moment", async () => {
  const run = storedRun(600, 6, 1_000_000);
  run.summary = failed();
  const { page, troubles } = await openReport(browser, reportOf(run));
  const meter = await page.context().newCDPSession(page);
  await meter.send("Performance.enable", { timeDomain: "threadTicks" });
  const used = async () => (await meter.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration")?.value ?? Infinity;
  const before = await used();
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll("figure.chart").length === document.querySelectorAll(".canvas svg").length && document.querySelector(".canvas svg"));
  const s = (await used()) - before;
  console.log(`drawn in ${s.toFixed(2)} s, ${((await page.content()).length / 1e6).toFixed(1)} MB`);
  assert.ok(s > 0 && s < DRAWN_S, `${s} s`);
  assert.deepEqual(await overlaps(page), []);
  assert.deepEqual(troubles, []);
  await shoot(page, "report-hour");
});

test("it can be printed", async () => {
  const { page } = await shared();
  await page.emulateMedia({ media: "print" });
  const pdf = await page.pdf({ format: "A4" });
  assert.ok(pdf.length > 20_000);
  await shoot(page, "report-print");
});

test("a search has a page with its curve and its steps", async () => {
  const step = (step: number, load: number, pass: boolean, p99: number) =>
    ({ step, load, pass, latency_p50_us: p99 / 2, latency_p99_us: p99, errors: pass ? 0 : 0.125, target_cores: load / 400, target_cores_limit: 2, reasons: pass ? [] : ["it is full"] });
  const curve = [step(1, 10, true, 2_000), step(2, 100, true, 2_500), step(4, 400, true, 4_000), step(3, 500, false, 90_000)];
  const found = { by: "rate", unit: "requests/s", target: "http://t/", outcome: "found", max: 400, failed: 500, seed: 7, curve };
  const search = { began_ms: 1_700_000_000_250, sentence: "max 400 ± 8 requests/s; 500 did not pass: it is full", found };
  const { page, troubles } = await openReport(browser, { schema: "throng.report/1", runs: [], search } as unknown as Report);
  await check(page, "header", "search", "http://t/", "2023-11-14", "by rate", "seed 7");
  await check(page, "#verdict", "found: max 400 ± 8 requests/s; 500 did not pass: it is full");
  await check(page, "#search-latency", "max 400", "p99");
  await check(page, "#search-steps", "3 500 45 ms 90 ms – – 13 % 1.25 of 2 fail it is full");
  assert.deepEqual([await overflow(page), await overlaps(page), troubles], [0, [], []]);
  await shoot(page, "search");
});
