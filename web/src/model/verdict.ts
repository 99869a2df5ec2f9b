import type { Lenient } from "./lenient";
import { grouped } from "./quantity";
import type { Limit, Summary } from "./records";

/** How a run stands, by itself and in words. */
export interface Judgement {
  word: string;
  tone: "good" | "bad" | "doubt" | "none";
  /** One sentence: what stopped it and what to do, or what went well. */
  sentence: string;
  /** What was seen, a line each. */
  seen: string[];
}

const TONES: Record<string, Judgement["tone"]> = { pass: "good", fail: "bad", invalid: "doubt", interrupted: "doubt" };

/** Of a run that ended, in the words of the text summary (sinks/summary.rs, `verdict`); of another, how it stands. */
export function judgement(summary: Lenient<Summary> | null | undefined, running: boolean): Judgement {
  if (!summary) {
    const sentence = running ? "what there is so far" : "what there is: killed, or still under way";
    return { word: running ? "running" : "did not come to its end", tone: "none", sentence, seen: [] };
  }
  const word = summary.verdict ?? "pass";
  const reasons = (summary.reasons ?? []).filter((reason) => !reason.startsWith("threshold "));
  const detail = summary.limit?.detail;
  return {
    word,
    tone: TONES[word] ?? "none",
    sentence: closing(summary),
    seen: detail ? [...reasons, detail] : reasons,
  };
}

function closing(s: Lenient<Summary>): string {
  const thresholds = s.thresholds ?? [];
  const met = thresholds.filter((threshold) => threshold.pass).length;
  const judged = thresholds.length > 0 ? `${met} of ${thresholds.length} thresholds met` : "";
  if (s.limit) return [judged, limited(s.limit)].filter(Boolean).join("; ");
  if (judged || s.verdict !== "pass") return judged;
  const { finished = 0, closed = 0, held = 0 } = s.connections ?? {};
  if (finished) return `${grouped(finished)} connections did what they came for, no fault, every answer right`;
  if (closed) {
    const open = `${grouped(held ?? 0)} were open at the end`;
    return `no fault, every answer right; the server closed ${grouped(closed)} connections by announcement, ${open}`;
  }
  return `all ${grouped(held ?? 0)} connections held, no fault, every answer right`;
}

const WHOSE: Record<string, string> = {
  target: "the target's ",
  host: "this machine's ",
  path: "the path's ",
  plan: "the plan's ",
};

/** `limited by the target's open files at 65,536: raise LimitNOFILE` */
function limited(limit: Lenient<Limit>): string {
  const whose = WHOSE[limit.side ?? ""] ?? "something ";
  const cause = (limit.cause ?? "").replaceAll("-", " ");
  return `limited by ${whose}${cause} at ${grouped(limit.at_connections ?? 0)}: ${limit.cure ?? ""}`;
}
