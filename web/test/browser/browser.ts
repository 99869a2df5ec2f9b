import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { chromium, type Browser, type Page } from "playwright-core";
import type { Report } from "../../src/model/report";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell", args: FLAGS });

/** A page, and what went wrong in it. */
export interface Opened {
  page: Page;
  /** Errors of the console, exceptions, and requests that should not have been made. */
  troubles: string[];
}

export interface Look {
  width?: number;
  scheme?: "light" | "dark";
  /** What is there when the page is. */
  awaits?: string;
}

export async function openPage(browser: Browser, allowed: (address: string) => boolean, look: Look = {}): Promise<Opened> {
  const context = await browser.newContext({
    viewport: { width: look.width ?? 1280, height: 900 },
    colorScheme: look.scheme ?? "light",
    acceptDownloads: true,
  });
  const page = await context.newPage();
  const troubles: string[] = [];
  page.on("console", (message) => message.type() === "error" && troubles.push(message.text()));
  page.on("pageerror", (error) => troubles.push(String(error.stack ?? error)));
  await context.route("**/*", (route) => {
    const address = route.request().url();
    if (allowed(address)) return route.continue();
    troubles.push(`asked for ${address}`);
    return route.abort();
  });
  return { page, troubles };
}

/** The built page with data in it, packed as Rust packs it (`view::report_html`). */
export function writeReport(report: Report): string {
  const data = gzipSync(JSON.stringify(report)).toString("base64");
  const html = readFileSync("dist/report.html", "utf8");
  const file = join(mkdtempSync(join(tmpdir(), "throng-web-")), "report.html");
  writeFileSync(file, html.replace("/*DATA*/", data));
  return `file://${file}`;
}

/** Opens a report with the network off. */
export async function openReport(browser: Browser, report: Report, look: Look = {}): Promise<Opened> {
  const address = writeReport(report);
  const opened = await openPage(browser, (asked) => asked.startsWith("file:") || asked.startsWith("blob:") || asked.startsWith("data:"), look);
  await opened.page.context().setOffline(true);
  await opened.page.goto(address);
  await opened.page.waitForSelector(look.awaits ?? ".canvas svg");
  return opened;
}

/** Waits for a text in a place, or for one of several. */
export const until = (page: Page, where: string, ...texts: string[]) =>
  page.waitForFunction(([where, ...texts]) => {
    const shown = document.querySelector<HTMLElement>(where!)?.innerText.replace(/\s+/g, " ");
    return texts.some((text) => shown?.includes(text));
  }, [where, ...texts]);

/** For people to look at, where SHOTS is set: no test reads them, and a picture of a whole page takes as long as the page. */
export async function shoot(page: Page, name: string): Promise<void> {
  if (!process.env.SHOTS) return;
  await mkdir("shots", { recursive: true });
  await page.screenshot({ path: `shots/${name}.png`, fullPage: true });
}

export const overflow = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** Where text of a chart lies over other text, or outside of its drawing: `a / b`. */
export const overlaps = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const found: string[] = [];
    for (const svg of document.querySelectorAll(".canvas svg")) {
      const name = svg.closest("figure")!.id;
      const frame = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent).map((text) => ({ text: text.textContent!, at: text.getBoundingClientRect() }));
      texts.forEach(({ text, at }, i) => {
        if (at.left < frame.left - 1 || at.right > frame.right + 1) found.push(`${name}: ${text} is cut off`);
        for (const other of texts.slice(i + 1)) {
          const apart = at.right <= other.at.left || other.at.right <= at.left || at.bottom <= other.at.top + 2 || other.at.bottom <= at.top + 2;
          if (!apart) found.push(`${name}: ${text} / ${other.text}`);
        }
      });
    }
    return found;
  });
