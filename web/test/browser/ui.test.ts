import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { launch, openPage, overflow, overlaps, shoot, until } from "./browser";

// Where it was built: `cargo xtask web` says so.
const THRONG = process.env.THRONG_BIN ?? "";
const folder = mkdtempSync(join(tmpdir(), "throng-ui-"));
const started: ChildProcess[] = [];

let browser: Browser;
let address = "";
before(async () => {
  assert.ok(THRONG, "THRONG_BIN names no throng: write cargo xtask web");
  browser = await launch();
  const server = await throng(["serve", "--listen", "127.0.0.1:0", "--threads", "1"], /(http:\/\/127\.0\.0\.1:\d+)/);
  for (const [n, tag] of ["before", "before", "after", "after", "before"].entries()) {
    const words = ["-c", String(5 + n), "-d", "400ms", "--think", "20ms", "--live", "off", "--tag", tag, "--tag", "all"];
    await throng(["run", `${server}/?length=${n + 1}`, ...words], /(repeat with)/);
  }
  await throng(["run", `${server}/nothing`, "-c", "5", "-d", "300ms", "--think", "20ms", "--live", "off", "--threshold", "errors < 1%"], /(repeat with)/);
  address = await throng(["ui", "--listen", "127.0.0.1:0"], /(http:\/\/127\.0\.0\.1:\d+)/);
});
after(async () => {
  started.forEach((child) => child.kill("SIGKILL"));
  await browser.close();
});

/** The first of its words that fit; one that ends has ended. */
async function throng(words: string[], says: RegExp): Promise<string> {
  const child = spawn(THRONG, words, { env: { ...process.env, XDG_DATA_HOME: folder }, stdio: ["ignore", "pipe", "pipe"] });
  started.push(child);
  let said = "";
  return new Promise<string>((resolve, reject) => {
    const hear = (piece: Buffer) => {
      said += piece;
      const match = said.match(says)?.[1];
      if (match && words[0] !== "run") resolve(match);
    };
    child.stdout!.on("data", hear);
    child.stderr!.on("data", hear);
    child.on("close", () => (says.test(said) ? resolve(said) : reject(new Error(`ended: ${said}`))));
  });
}

const rows = (page: Page) => page.locator("#runs tbody tr").count();
const ids = (page: Page): Promise<string[]> => page.locator("#runs tbody td:nth-child(2)").allInnerTexts();

/** Waits for this many runs in the list. */
const has = (page: Page, count: number) =>
  page.waitForFunction((count) => document.querySelectorAll("#runs tbody tr").length === count, count);

async function opened(path: string, width = 1280) {
  const own = await openPage(browser, (asked) => asked.startsWith(address), { width });
  await own.page.goto(address + path);
  return own;
}

test("runs are listed, narrowed down, and each opens its report", async () => {
  const { page, troubles } = await opened("/");
  await until(page, "#runs", "/nothing");
  assert.equal(await rows(page), 6);
  await shoot(page, "ui-list");
  const all = await ids(page);
  assert.deepEqual(all, [...all].sort().reverse(), "the latest first");

  // On a busy machine a verdict may be another one than the test's author saw.
  const verdicts = await page.locator("#runs .badge").allInnerTexts();
  const alike = verdicts.filter((own) => own === verdicts[0]).length;
  await page.selectOption("#filter-verdict", verdicts[0]!);
  await has(page, alike);
  assert.equal(new URL(page.url()).search, `?verdict=${verdicts[0]}`);
  await page.reload();
  await has(page, alike);
  await page.click("#clear");
  await has(page, 6);
  await page.fill("#filter-target", "length=2");
  await page.press("#filter-target", "Enter");
  await has(page, 1);
  await page.click("#clear");
  await has(page, 6);
  await page.locator("#runs .tag", { hasText: "after" }).first().click();
  await has(page, 2);
  await page.fill("#filter-target", "no such target");
  await page.press("#filter-target", "Enter");
  await until(page, "#nothing", "No stored run matches");

  await page.click("#clear");
  await page.waitForSelector("#runs");
  await page.click(`#runs a >> text=${all[5]}`);
  await until(page, "#figures", "held 5");
  assert.equal(new URL(page.url()).pathname, `/run/${all[5]}`);
  await page.waitForSelector('[id="connections"] .canvas svg');
  await until(page, "#verdict", verdicts[5]!);
  assert.deepEqual(troubles, []);
});

test("the list is sorted by a column, also when it is narrowed down", async () => {
  const { page, troubles } = await opened("/");
  await page.waitForSelector("#runs");
  const latest = await ids(page);
  const held = async () => (await page.locator("#runs tbody td:nth-child(8)").allInnerTexts()).map((text) => Number.parseInt(text));
  await page.locator("#runs th button", { hasText: "held" }).press("Enter");
  await page.waitForSelector("#runs th[aria-sort=descending]");
  assert.deepEqual(await held(), [...(await held())].sort((a, b) => b - a));
  await page.locator("#runs .tag", { hasText: "before" }).first().click();
  await has(page, 3);
  assert.equal(await page.locator("#runs th[aria-sort=descending]").count(), 1);
  assert.deepEqual(await held(), [...(await held())].sort((a, b) => b - a));
  await page.click("#clear");
  await has(page, 6);
  await page.locator("#runs th button", { hasText: "held" }).press("Enter");
  await page.waitForSelector("#runs th[aria-sort=ascending]");
  await page.locator("#runs th button", { hasText: "held" }).press("Enter");
  await page.waitForFunction(() => !document.querySelector("#runs th[aria-sort]"));
  assert.deepEqual(await ids(page), latest);
  assert.deepEqual(troubles, []);
});

test("a list that cannot be read again stays, and says so until it can", async () => {
  const { page } = await opened("/run/nothing");
  let isAway = false;
  await page.route("**/api/runs*", async (route) => {
    if (isAway) return route.abort();
    const response = await route.fetch();
    const listing = (await response.json()) as { runs: { is_under_way: boolean }[] };
    // One that is under way is what a list is read again for.
    listing.runs[0]!.is_under_way = true;
    return route.fulfill({ response, json: listing });
  });
  await page.goto(address);
  await has(page, 6);
  isAway = true;
  await until(page, "#state", "throng ui does not respond");
  await until(page, "#state", "trying again");
  assert.equal(await rows(page), 6);
  isAway = false;
  await page.waitForFunction(() => !document.querySelector("#state"));
  assert.equal(await rows(page), 6);
});

test("two runs and two tags are compared as `throng compare` does", async () => {
  const { page, troubles } = await opened("/");
  await page.waitForSelector("#runs");
  const all = await ids(page);
  await until(page, "#choose", "Choose two runs");
  await page.click(`#run-${all[1]} input`);
  await page.click(`#run-${all[5]} input`);
  // The earlier one is the base, in whichever order they were chosen.
  await until(page, "#compare", `Compare ${all[5]} with ${all[1]}`);
  await page.click("#compare");
  await until(page, "h1", `${all[1]} against ${all[5]}`);
  await until(page, "main", "connections held 5 9 +80.0 %");
  await until(page, "main", "the noise of a single run is not known");
  await page.waitForSelector('[id="connections"] .canvas svg');

  await page.goBack();
  await page.selectOption("#tag-0", "before");
  await page.selectOption("#tag-1", "after");
  await page.click("#compare-tags");
  await until(page, "h1", "tag:after against tag:before");
  await until(page, "main", "3 runs");
  await until(page, "main", "95 % interval");
  await shoot(page, "ui-compare");
  assert.deepEqual(troubles, []);
});

test("the trend of a tag has a chart for each figure, and the sentence of what it says", async () => {
  const { page, troubles } = await opened("/?tag=all");
  await page.click("#to-trend");
  await until(page, "#about", "5 runs, oldest first");
  // 5, 6, 7, 8 and 9 connections.
  await until(page, "#trend-connections-held", "rises by 1 a run (p = 0.027)");
  await page.waitForSelector("#trend-latency_us-p99 .canvas svg");
  assert.equal(await page.locator('#trend-connections-held .canvas svg [aria-label="dot"] path').count(), 5);
  assert.deepEqual(await overlaps(page), []);
  await shoot(page, "ui-trend");
  await page.goto(`${address}/trend/before`);
  await until(page, "#trend-connections-held", "trend unknown: 3 runs have a value, and at least 5 are needed");
  assert.deepEqual(troubles, []);
});

test("what is not there is said, and nothing is wider than the screen", async () => {
  const { page } = await opened("/run/nothing", 390);
  await until(page, "#state", "no run nothing; list runs with `throng runs`");
  for (const path of ["/", "/trend/all"]) {
    await page.goto(address + path);
    await page.waitForSelector(path === "/" ? "#runs" : ".canvas svg");
    assert.ok((await overflow(page)) <= 0, path);
  }
  await page.goto(`${address}/compare/latest/tag:none`);
  await until(page, "#state", "no run has the tag none");
});

test("with a token the address takes it, and keeps where it leads", async () => {
  const [token, file] = ["s3cret-0123456789abcdef", join(folder, "token")];
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  const guarded = await throng(["ui", "--listen", "127.0.0.1:0", "--token-file", file], /(http:\/\/127\.0\.0\.1:\d+)/);
  const { page } = await openPage(browser, (asked) => asked.startsWith(guarded));
  await page.goto(`${guarded}/run/latest`);
  await until(page, "#state", "token required");
  await page.goto("about:blank");
  await page.goto(`${guarded}/run/latest#token=${token}`);
  await until(page, "#figures", "held 5");
  assert.equal(page.url(), `${guarded}/run/latest`, "the address shows it no more");
  await page.click("text=All runs");
  await page.waitForSelector("#runs");
});
