import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import type { StoredRun } from "../../src/model/report";
import { storedRun } from "../synthetic";
import { failed } from "../summary";
import { launch, openPage, overflow, overlaps, shoot, type Look, type Opened, until } from "./browser";
import { FakeThrong } from "./fake_throng";

let browser: Browser;
const throngs: FakeThrong[] = [];
before(async () => void (browser = await launch()));
after(async () => {
  await browser.close();
  throngs.forEach((throng) => throng.stop());
});

async function started(run: StoredRun): Promise<{ throng: FakeThrong; address: string }> {
  const throng = new FakeThrong({ ...run, ticks: [] });
  throngs.push(throng);
  return { throng, address: await throng.start() };
}

const run = storedRun(60);
const { ticks } = run;

/** A throng that has come so far, and a page that joins it. */
async function joined(seconds: number, look: Look = {}): Promise<Opened & { throng: FakeThrong; address: string }> {
  const { throng, address } = await started(run);
  ticks.slice(0, seconds).forEach((tick) => throng.tick(tick));
  const opened = await openPage(browser, (asked) => asked.startsWith(address) || asked.startsWith("blob:") || asked.startsWith("data:"), look);
  await opened.page.goto(address);
  return { ...opened, throng, address };
}

const textOf = async (page: Page, where: string) => (await page.locator(where).innerText()).replace(/\s+/g, " ");
/** All figures and tables as text: what two pages must agree on. */
const whole = async (page: Page) => [await textOf(page, "#figures"), await textOf(page, "#now"), await textOf(page, "#times")];

test("one that joins in the middle, or loses the connection, sees what one sees that was there from the beginning", async () => {
  const { page, throng, address, troubles } = await joined(0);
  await until(page, "#link", "following");
  ticks.slice(0, 20).forEach((tick) => throng.tick(tick));
  await until(page, "#progress", "20 s since the start");
  const late = await openPage(browser, (asked) => asked.startsWith(address));
  await late.page.goto(address);
  await until(late.page, "#progress", "20 s since the start");
  assert.deepEqual(await whole(late.page), await whole(page));
  await until(page, "#now", "open 2,981 of 3,000 wanted now");
  await until(page, "#verdict", "running");

  throng.drop();
  await until(page, "#link", "connection lost, reconnecting");
  await until(page, "#link", "following");
  await until(late.page, "#link", "following");
  assert.equal(throng.connects, 4);
  ticks.slice(20, 30).forEach((tick) => throng.tick(tick));
  await until(page, "#progress", "30 s since the start");
  await until(late.page, "#progress", "30 s since the start");
  assert.deepEqual(await whole(late.page), await whole(page));
  await shoot(page, "live");

  throng.finish(failed());
  await until(page, "#link", "the run has ended");
  await until(page, "#verdict", "fail: 2 of 3 thresholds failed");
  assert.equal(await page.locator(".controls").count(), 0);
  const connects = throng.connects;
  throng.drop();
  await page.waitForTimeout(1500);
  assert.equal(throng.connects, connects, "it does not come back after the end");
  const real = troubles.filter((trouble) => !/ERR_(INCOMPLETE_CHUNKED|CONNECTION|EMPTY)/.test(trouble));
  assert.deepEqual(real, []);
});

test("controls ask for what they say, by button and by key, and for what cannot be taken back twice", async () => {
  const { page, throng, troubles } = await joined(5);
  await page.waitForSelector(".controls");
  const expected: string[] = [];
  const check = async (...asks: string[]) => {
    expected.push(...asks);
    // Long enough for what should not come, too; longer for what should.
    await page.waitForTimeout(100);
    for (let i = 0; i < 50 && throng.asked.length < expected.length; i++) await page.waitForTimeout(100);
    assert.deepEqual(throng.asked.map(({ ask }) => ask), expected);
  };
  for (const [key, ask] of [["p", "pause"], ["+", "up"], ["-", "down"]]) {
    await page.keyboard.press(key!);
    await check(ask!);
  }
  await page.keyboard.press("q");
  await check();
  assert.match(await textOf(page, ".controls"), /Stop\? Press again/);
  await page.keyboard.press("Escape");
  await page.keyboard.press("q");
  await check();
  await page.keyboard.press("q");
  await check("stop");
  await page.click(".controls button:has-text('Drain')");
  await check();
  await page.click(".controls button:has-text('Drain')");
  await check("drain");
  await page.click(".controls button:has-text('Pause')");
  await check("pause");
  assert.ok(throng.asked.length > 3 && throng.asked.every(({ header, type }) => header === "1" && type === "application/json"));
  await page.keyboard.press("Control+p");
  await check();
  assert.deepEqual(troubles, []);

  throng.tick({ ...ticks[5]!, tick: { ...ticks[5]!.tick, phase: "pause" } });
  await until(page, ".controls", "Resume");
  await page.keyboard.press("p");
  await check("resume");
  throng.refusal = "the run is draining";
  await page.keyboard.press("+");
  await until(page, ".controls output", "load up: the run is draining");
  throng.refusal = JSON.stringify({ errors: ["the run has ended", "GET /runs lists them"] });
  await page.keyboard.press("-");
  await until(page, ".controls output", "load down: the run has ended. GET /runs lists them");
});

test("a load is typed, as a number of connections or a share, and what is none is said beside it", async () => {
  const { page, throng, troubles } = await joined(20);
  const field = page.locator(".controls input");
  await field.waitFor();
  const type = async (text: string) => {
    await page.keyboard.press("l");
    await page.keyboard.type(text);
    await page.keyboard.press("Enter");
  };
  const taken = async (...loads: unknown[]) => {
    for (let i = 0; i < 50 && throng.asked.length < loads.length; i++) await page.waitForTimeout(100);
    assert.deepEqual(throng.asked.map(({ ask }) => ask), loads);
    await page.waitForFunction(() => document.activeElement === document.body && document.querySelector<HTMLInputElement>(".controls input")!.value === "");
  };
  const isWrong = () => field.getAttribute("aria-invalid");
  assert.equal(await field.getAttribute("placeholder"), "1,500 or 90 %");
  await type("2,400");
  await taken({ connections: 2400 });
  await type("pdq");
  await until(page, ".controls output", 'load: "pdq" is not a load; use 1,500 or 90 %');
  assert.equal(await isWrong(), "true");
  // Another text, and the trouble is gone.
  await page.keyboard.press("Backspace");
  await until(page, ".controls output", "");
  assert.deepEqual([await isWrong(), await field.inputValue()], ["false", "pd"]);
  await page.keyboard.press("Escape");
  await type("4k");
  await until(page, ".controls output", `load: "4k" is more than the plan's 3,000 connections; use at most 100 %`);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".controls output").innerText(), "");
  await type("12.5 %");
  await taken({ connections: 2400 }, { load: 0.125 });
  // Keys are commands again.
  await page.keyboard.press("p");
  await taken({ connections: 2400 }, { load: 0.125 }, "pause");
  throng.tick({ ...ticks[20]!, tick: { ...ticks[20]!.tick, phase: "pause" } });
  await until(page, ".controls", "Resume");
  // It is for the time after the pause.
  await type("40%");
  await taken({ connections: 2400 }, { load: 0.125 }, "pause", { load: 0.4 });
  throng.refusal = JSON.stringify({ errors: ["the run has ended"] });
  await type("50%");
  await until(page, ".controls output", "load: the run has ended");
  assert.equal(await field.inputValue(), "50%", "it may be tried again");
  assert.deepEqual(troubles.filter((trouble) => !trouble.includes("409")), []);
});

test("a run that was removed is gone, and is not asked for again", async () => {
  const { page, throng } = await joined(10);
  await until(page, "#link", "following");
  throng.isRemoved = true;
  throng.drop();
  await until(page, "#link", "this run is gone");
  assert.equal(await page.locator(".controls").count(), 0);
  const { connects } = throng;
  await page.waitForTimeout(2500);
  assert.equal(throng.connects, connects);
  // Also for one that comes later.
  await page.reload();
  await until(page, "#link", "this run is gone");
});

test("charts follow while they are read, and those out of sight too", async () => {
  const { page, throng, troubles } = await joined(10);
  await page.waitForSelector("#connections .canvas svg");
  await page.locator("#connections .canvas").hover();
  await page.waitForFunction(() => document.querySelector("#connections .tip")?.textContent?.includes("open"));
  const ends = (seconds: string) =>
    page.waitForFunction((seconds) => ["connections", "processors", "accept-queue"].every((id) => {
      const marks = [...document.querySelectorAll(`#${id} .canvas svg [aria-label="x-axis tick label"] text`)];
      return marks.at(-1)?.textContent === seconds;
    }), seconds);
  await ends("10 s");
  assert.ok(await page.locator("#accept-queue").evaluate((one) => one.getBoundingClientRect().top > innerHeight + 300), "it is out of sight");
  ticks.slice(10, 30).forEach((tick) => throng.tick(tick));
  await until(page, "#progress", "30 s since the start");
  await ends("30 s");
  assert.match((await page.locator("#connections .tip").textContent())!, /open/);
  await page.mouse.move(0, 0);
  await page.waitForFunction(() => !document.querySelector(".tip"));
  assert.deepEqual(troubles, []);
});

test("a table that is sorted stays so while it is drawn again, and its button has the focus", async () => {
  const { page, throng, troubles } = await joined(10);
  await page.locator("#times th button", { hasText: "count" }).press("Enter");
  const counts = async () => (await page.locator("#times tbody td:nth-child(2)").allInnerTexts()).map((count) => Number(count.replaceAll(",", "")));
  const falls = async () => assert.deepEqual(await counts(), [...(await counts())].sort((a, b) => b - a));
  await falls();
  const [before] = await counts();
  ticks.slice(10, 30).forEach((tick) => throng.tick(tick));
  await until(page, "#progress", "30 s since the start");
  await falls();
  assert.ok((await counts())[0]! > before!);
  assert.equal(await page.locator("#times th[aria-sort=descending] button:focus").count(), 1);
  assert.deepEqual(troubles, []);
});

test("the verdict and thresholds are of what has come so far, and commands are marks at once", async () => {
  const bounds = [{ expr: "latency.p99 < 50ms", figure: "latency_us.p99", bound: 50e3, is_share: false }, { expr: "faults == 0", figure: "faults", bound: 0, is_share: false }];
  const { throng, address } = await started({ ...run, run: { ...run.run, header: { ...run.run.header, thresholds: bounds } } });
  const result = (nth: number, shown: string, pass: boolean) => ({ expr: bounds[nth]!.expr, value: 1, shown, pass, unreliable: false });
  const at = (n: number, thresholds: ReturnType<typeof result>[], faults: (typeof ticks)[0]["tick"]["faults"] = []) =>
    ({ tick: { ...ticks[n]!.tick, open: 3000, wanted: 3000, phase: "hold" as const, faults }, looks: { ...ticks[n]!.looks, thresholds } });
  throng.tick(at(15, [result(0, "3 ms", true), result(1, "0", true)]));
  const { page, troubles } = await openPage(browser, (asked) => asked.startsWith(address));
  await page.goto(address);
  await until(page, "#verdict", "running: 2 of 2 thresholds met so far; 3,000 of 3,000 connections open, no fault");
  await until(page, "#thresholds", "✓ latency.p99 < 50ms 3 ms met");
  assert.match((await page.locator("#verdict").getAttribute("class"))!, /good/);
  const next = at(16, [result(0, "71 ms", false), result(1, "4", false)], [{ side: "target", stage: "hold", kind: "reset", count: 4 }]);
  throng.tick({ ...next, tick: { ...next.tick, marks: [{ at: 16.2e9, kind: "command", what: "load 90 %" }] } });
  await until(page, "#verdict", "running: 2 of 2 thresholds not met so far: latency.p99 < 50ms: 71 ms; 3,000 of 3,000 connections open, 4 faults");
  assert.match((await page.locator("#verdict").getAttribute("class"))!, /bad/);
  await until(page, "#thresholds", "✗ latency.p99 < 50ms 71 ms failed");
  await until(page, "#events", "load 90 %");
  await until(page, "#latency .legend", "latency.p99 < 50ms ✗");
  await page.waitForFunction(() => document.querySelector("#rates .canvas svg")?.textContent?.includes("load 90 %"));
  assert.deepEqual(troubles, []);
  if (process.env.SHOTS) await page.screenshot({ path: "shots/live-first-screen.png" });
});

test("a telephone shows it without scrolling sideways", async () => {
  const { page, troubles } = await joined(30, { width: 360, scheme: "dark" });
  await page.waitForSelector(".canvas svg");
  assert.equal(await overflow(page), 0);
  assert.deepEqual(await overlaps(page), []);
  assert.deepEqual(troubles, []);
  await shoot(page, "live-phone");
});

test("six hundred ticks are drawn again in a tenth of a second", async () => {
  const long = storedRun(600, 1, 100_000);
  const { throng, address } = await started(long);
  long.ticks.slice(0, 590).forEach((tick) => throng.tick(tick));
  const { page } = await openPage(browser, (asked) => asked.startsWith(address));
  await page.addInitScript(() => {
    const updates: number[] = [];
    new PerformanceObserver((seen) => updates.push(...seen.getEntries().map(({ duration }) => duration))).observe({ entryTypes: ["measure"] });
    Object.assign(window, { updates });
  });
  await page.goto(address);
  await page.waitForSelector(".canvas svg");
  const busy = () => page.evaluate(() => (window as unknown as { updates: number[] }).updates);
  for (const tick of long.ticks.slice(590)) {
    throng.tick(tick);
    await page.waitForTimeout(1050);
  }
  const updates = (await busy()).slice(1).sort((a, b) => a - b);
  // The quickest: what else the machine has to do only adds.
  const quick = updates[0] ?? Infinity;
  console.log(`updates: ${updates.map(Math.round).join(" ")} ms`);
  assert.ok(quick < 100, `${updates}`);
});
