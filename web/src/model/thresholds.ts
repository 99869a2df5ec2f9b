import type { Bound } from "./chart";
import type { Run } from "./run";

/** How a threshold stands. */
export interface Standing {
  expr: string;
  /** Measured, with its unit, or why there is no value. */
  shown: string;
  /** `waits`: nothing to judge yet, or what it demands may still come; `void`: not judged, because throng was late. */
  state: "met" | "failed" | "waits" | "void";
}

/** Thresholds in the user's order: as judged at the end, or by all so far. */
export function standings(run: Run): Standing[] {
  const { summary, record, entries } = run;
  if (summary) return (summary.thresholds ?? []).map((result) => ({ ...named(result), state: result.unreliable ? "void" : result.pass ? "met" : "failed" }));
  const latest = entries.findLast(({ looks }) => (looks.thresholds ?? []).length > 0)?.looks.thresholds ?? [];
  const ramps = entries.at(-1)?.period.phase === "ramp";
  return (record.header?.thresholds ?? []).map(({ expr, figure }) => {
    const result = latest.find((one) => one.expr === expr);
    // Without a value, the share without a response may decide.
    if (!result || (result.value == null && !result.shown)) return { expr: expr ?? "", shown: run.running ? "not measured yet" : "nothing was measured", state: "waits" };
    const state = result.pass ? "met" : ramps && mayCome(expr ?? "", figure ?? "") ? "waits" : "failed";
    return { ...named(result), state };
  });
}

/** What is to be reached, of connections or requests, is not reached before the ramp has ended. */
const mayCome = (expr: string, figure: string) => !expr.includes("<") && /(^|\.)(connections|requests)\./.test(figure);

function named(result: { expr?: string | null; value?: number | null; shown?: string | null }): { expr: string; shown: string } {
  const { expr, value, shown } = result;
  const measured = value == null ? "nothing was measured" : (Math.round(value * 1e3) / 1e3).toLocaleString("en-US");
  return { expr: expr ?? "", shown: shown || measured };
}

/** Bounds of thresholds on figures whose path fits, as lines of a chart; `at` turns a bound into a place, and may have none. */
export function boundsOf(run: Run, path: RegExp, at: (bound: number, share: boolean) => number | null = (bound) => bound): Bound[] {
  const states = new Map(standings(run).map(({ expr, state }) => [expr, state]));
  return (run.record.header?.thresholds ?? []).flatMap(({ expr, figure, bound, is_share }) => {
    const y = path.test(figure ?? "") ? at(bound ?? 0, is_share ?? false) : null;
    return y === null || !Number.isFinite(y) ? [] : [{ name: expr ?? "", y, failed: states.get(expr ?? "") === "failed" }];
  });
}
