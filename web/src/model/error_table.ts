import { clockText, sinceText } from "./clock";
import type { ErrorSeen } from "./period";
import type { Run } from "./run";
import type { Table } from "./table";

/** What would not be seen, or would turn the text beside it around: controls, and marks of the direction of writing. */
const UNSEEN = /[\p{Cc}\p{Bidi_Control}]/gu;

/** Bytes as text: UTF-8 where it is some; what has no shape of its own is shown by a sign (Unicode 2400) or its number. */
export const shownBytes = (bytes: Uint8Array): string => shownText(new TextDecoder().decode(bytes));

/** A server's text, with nothing that is not seen. */
function shownText(text: string): string {
  return text.replaceAll("\r", "").replace(UNSEEN, (letter) => {
    const at = letter.codePointAt(0)!;
    if (letter === "\n") return letter;
    return at < 0x20 ? String.fromCodePoint(0x2400 + at) : at === 0x7f ? "\u2421" : `\\u${at.toString(16).padStart(4, "0")}`;
  });
}

const bytesOf = (sample: ErrorSeen) => Uint8Array.from(atob(sample.bytes), (letter) => letter.charCodeAt(0));

/** Wrong responses as they came, a few of each fault. */
export function errorTable(run: Run): Table {
  const began = run.record.began_ms;
  const seen = new Set<string>();
  const different = run.total.errors.filter(({ side, stage, kind, status, bytes }) => {
    const key = [side, stage, kind, status, bytes].join(" ");
    return !seen.has(key) && seen.add(key);
  });
  const rows = different.map((sample) => {
    const text = shownBytes(bytesOf(sample));
    const at = `${sinceText(Math.round(sample.at_s * 10) / 10)}${began ? ` · ${clockText(sample.at_s, began)}` : ""}`;
    const bytes = text ? `${sample.from_start ? "" : "… "}${text}` : "–";
    return [`${sample.side} ${sample.stage} ${sample.kind}`, sample.status ? String(sample.status) : "–", at, bytes];
  });
  return {
    id: "error-samples",
    title: "Samples of errors",
    says: "The first wrong responses of each kind, those that differ; secrets are masked with *",
    columns: [{ name: "fault" }, { name: "status", numeric: true }, { name: "at", numeric: true }, { name: "first bytes", code: true }],
    rows,
  };
}

/** For each fault one exchange as a whole, as `throng try` prints it. */
export function exampleTable(run: Run): Table {
  const rows = run.total.examples.map(({ fault, at_s, text }) => [fault, sinceText(Math.round(at_s * 10) / 10), shownText(text)]);
  return {
    id: "examples",
    title: "Examples of errors",
    says: "One exchange of each fault: > sent, < received, ! what was not as expected; secrets are masked with *",
    columns: [{ name: "fault" }, { name: "at", numeric: true }, { name: "exchange", code: true }],
    rows,
  };
}

/** What happened when: the marks of the charts as text. */
export function eventTable(run: Run, marks: { x: number; what: string; kind?: string }[]): Table {
  const began = run.record.began_ms;
  return {
    id: "events",
    title: "What happened",
    columns: [{ name: "at", numeric: true }, ...(began ? [{ name: "UTC" }] : []), { name: "event" }],
    rows: marks.map(({ x, what }) => [sinceText(Math.round(x * 10) / 10), ...(began ? [clockText(x, began)] : []), what]),
    bad: marks.flatMap(({ kind }, n) => (kind === "end" || kind === "fault" ? [n] : [])),
  };
}
