import { grouped } from "./quantity";

/** The request that sets a load: to a number of connections, or a share (0..=1) of the plan's. */
export type LoadRequest = { connections: number } | { load: number };
/** That of a text; or why it is none, with the fix. */
export type ReadLoad = { request: LoadRequest } | { trouble: string };

/** A share is set in steps of a millionth. */
const ALL = 1e6;
/** Thousands are written as `1,000` or `1_000` (`units::Decimal`). */
const COUNT = /^(\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*)(?:\.(\d+))?\s*([kmg]?)$/i;
const PERCENTAGE = /^(\d+(?:\.\d+)?)\s*%$/;
const ZEROS: Record<string, number> = { "": 0, k: 3, m: 6, g: 9 };

/** Reads `200k` of this many planned connections, none where they come and go, or `90 %`. */
export function readLoad(text: string, planned: number): ReadLoad {
  const typed = `"${text.trim()}"`;
  const example = planned > 0 ? `${examples(planned)[0]} or 90 %` : "90 %";
  const [, percentage] = text.trim().match(PERCENTAGE) ?? [];
  const [, whole, fraction = "", suffix] = text.trim().match(COUNT) ?? [];
  if (percentage !== undefined) {
    const millionths = Math.round((Number(percentage) / 100) * ALL);
    if (millionths > ALL) return { trouble: `${typed} is more than the plan's load; use at most 100 %` };
    return millionths > 0 ? { request: { load: millionths / ALL } } : NOTHING;
  }
  if (whole === undefined || suffix === undefined) return { trouble: `${typed} is not a load; use ${example}` };
  if (planned <= 0) return { trouble: `${typed}: this run has no fixed number of connections; use a percentage, such as 90 %` };
  const [digits, zeros] = [fraction.replace(/0+$/, ""), ZEROS[suffix.toLowerCase()]!];
  if (digits.length > zeros) return { trouble: `${typed} is not a whole number of connections; use ${example}` };
  const connections = Number(whole.replace(/[,_]/g, "") + digits.padEnd(zeros, "0"));
  if (connections > planned) return { trouble: `${typed} is more than the plan's ${grouped(planned)} connections; use at most 100 %` };
  return connections > 0 ? { request: { connections } } : NOTHING;
}

const NOTHING: ReadLoad = { trouble: "a load must be above 0; use Pause" };

/** What may be typed in a run of this many connections: half of them, and nine tenths of the plan's load. */
export function examples(planned: number): string[] {
  const half = Math.ceil(planned / 2);
  const [unit, suffix] = ([[1e6, "m"], [1e3, "k"]] as const).find(([unit]) => half >= unit && half % unit === 0) ?? [1, ""];
  return planned > 0 ? [suffix ? `${half / unit}${suffix}` : grouped(half), "90 %"] : ["90 %"];
}
