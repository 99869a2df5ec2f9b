import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { fleetRun } from "../fleet";
import { reportOf } from "../synthetic";
import { launch, openPage, openReport, overflow, overlaps, shoot, until } from "./browser";
import { FakeThrong } from "./fake_throng";

let browser: Browser;
let stop = () => {};
before(async () => void (browser = await launch()));
after(async () => {
  await browser.close();
  stop();
});

const selected = (page: Page) => page.locator(".cell[aria-selected=true]").getAttribute("aria-label");

test("agents of a run are a map, and the one that is selected is beside the others", async () => {
  const { page, troubles } = await openReport(browser, reportOf(fleetRun(3, 60)));
  await until(page, "#agent-counts", "2 of 3 agents report · 1 lost: load-1");
  assert.deepEqual(await page.locator(".cells .cell").evaluateAll((cells) => cells.map((cell) => cell.getAttribute("aria-label"))).then((all) => all.map((name) => name!.split(":")[0])), ["load-0", "load-1", "load-2"]);
  assert.equal(await page.locator(".cells .cell.lost").count(), 1);
  await page.click(".cell >> nth=2");
  await until(page, "#agent-selected", "of 1,000 connections");
  await until(page, "#agent-open", "load-2 beside all 3 agents");
  // The first colour is the selected agent's, and its line is over the others.
  assert.equal(await page.locator("#agent-open .canvas [aria-label=line]").last().getAttribute("stroke"), "var(--line-1)");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await selected(page), "load-1: lost");
  // Before it was lost.
  await page.locator(".moment input").fill("10");
  await until(page, "#agent-counts", "3 of 3 agents report");
  await page.click(".choice button:has-text('lag')");
  assert.match((await selected(page))!, /^load-1: \d+ µs$/);
  await page.locator(".moment input").fill("55");
  await shoot(page, "report-fleet");
  await page.locator(".cells").press("Escape");
  await until(page, "#agent-selected", "Select an agent");
  assert.deepEqual(await overlaps(page), []);
  assert.deepEqual(troubles, []);
});

test("a map of a thousand agents is drawn each second", async () => {
  const run = fleetRun(1000, 30);
  const throng = new FakeThrong({ ...run, ticks: [] });
  const address = await throng.start();
  run.ticks.slice(0, 20).forEach((tick) => throng.tick(tick));
  stop = () => throng.stop();
  const { page, troubles } = await openPage(browser, (asked) => asked.startsWith(address));
  await page.goto(address);
  await until(page, "#agent-counts", "999 of 1,000 agents report · 1 lost: load-0001");
  assert.equal(await page.locator(".cells .cell").count(), 1000);
  await page.click("#agent-cell-507");
  await page.keyboard.press("ArrowRight");
  await until(page, "#agent-selected", "load-0508 3 of 3 connections");
  // All agents are sorted, not those that are shown.
  await page.locator("#agent-table th button", { hasText: "lag p99" }).click();
  assert.equal(await page.locator("#agent-table tbody tr").count(), 20);
  for (const id of await page.locator("#agent-table tbody td:first-child").allInnerTexts()) assert.equal(Number(id.slice(5)) % 50, 33, id);
  throng.tick(run.ticks[20]!);
  await until(page, ".moment", "after 21 s, now");
  assert.equal(await page.locator("#agent-table th[aria-sort=descending]").count(), 1);
  await shoot(page, "live-fleet");
  // What comes late amends a second that was shown, here one in which the agent was lost.
  const late = { tick: { from: 18e9, until: 19e9, counts: { answered: 777_000 }, agents: { reports: [0, 1], requests: [0, 50] } } };
  throng.late(late as never);
  await page.locator(".moment input").fill("18");
  await until(page, "#agent-counts", "999 of 1,000");
  await page.locator(".cells").press("Home");
  await page.keyboard.press("ArrowRight");
  await until(page, "#agent-selected", "load-0001 0 of 3 connections · 50/s requests");
  assert.deepEqual(troubles, []);
});

test("a telephone shows a map without scrolling sideways", async () => {
  for (const agents of [3, 100]) {
    const { page, troubles } = await openReport(browser, reportOf(fleetRun(agents, 30)), { width: 360, scheme: "dark" });
    assert.equal(await overflow(page), 0);
    assert.deepEqual(troubles, []);
    await shoot(page, `report-fleet-phone-${agents}`);
  }
});
