import type { Mark } from "./chart";
import type { Entry } from "./fold";
import { grouped } from "./quantity";
import { faultName, type Moment } from "./period";
import type { Run } from "./run";

/** More kinds than these are not told apart in one mark. */
const NAMED = 3;

const found = new WeakMap<Run, Mark[]>();

/** Moments that explain what charts show: stages, commands, experiments, the first faults of each kind, and the end of the target; ascending. */
export function marksOf(run: Run): Mark[] {
  let marks = found.get(run);
  if (!marks) {
    const faults = firstFaults(run.entries);
    marks = [...planned(run), ...faults, ...ends(run, faults)].sort((a, b) => a.x - b.x);
    found.set(run, marks);
  }
  return marks;
}

/** As charts name it: an experiment without its answer, which has no room there. */
function named({ x, kind, what }: Moment): Mark {
  if (kind === "experiment") return { x, kind, what: `asked ${what}`, label: what.split(":")[0] };
  return { x, kind, what: kind === "stage" ? `stage ${what} begins` : what, label: what };
}

/** Stages and commands; of a run that was stored without them, the commands of its summary. */
function planned({ total, summary }: Run): Mark[] {
  const marks = total.marks.map(named);
  const asks = (summary?.asks ?? []).map(({ at_s, what }): Mark => ({ x: at_s ?? 0, kind: "command", what: what ?? "", label: what ?? "" }));
  return marks.some(({ kind }) => kind === "command") ? marks : [...marks, ...asks];
}

/** When each kind of fault occurred first; one mark for those of the same second. */
function firstFaults(entries: readonly Entry[]): Mark[] {
  const seen = new Set<string>();
  const marks: Mark[] = [];
  for (const { period } of entries) {
    const first = period.faults.filter((fault) => fault.count > 0 && !seen.has(faultName(fault))).sort((a, b) => b.count - a.count);
    if (first.length === 0) continue;
    first.forEach((fault) => seen.add(faultName(fault)));
    const named = first.slice(0, NAMED).map((fault) => `${grouped(fault.count)} × ${faultName(fault)}`);
    const more = first.length > NAMED ? `, and ${first.length - NAMED} other kinds` : "";
    const label = [...new Set(first.map(({ kind }) => kind))].slice(0, 2).join(", ");
    marks.push({ x: period.until_s, kind: "fault", what: `first faults: ${named.join(", ")}${more}`, label });
  }
  return marks;
}

/** Faults so near to a limit are how it showed, seconds. */
const SAME_S = 2;

/** When the target's processes were seen to be gone or back; and when what limited it showed, where that is something else. */
function ends({ entries, summary }: Run, faults: Mark[]): Mark[] {
  const marks: Mark[] = [];
  let alive: boolean | null = null;
  for (const { period, looks } of entries) {
    const processes = looks.target?.process?.processes;
    if (processes == null) continue;
    if (processes === 0 && alive) marks.push({ x: period.until_s, kind: "end", what: "the target's process has exited", label: "target exited" });
    if (processes > 0 && alive === false) marks.push({ x: period.until_s, kind: "end", what: "the target's process is back", label: "target is back" });
    alive = processes > 0;
  }
  const limit = summary?.limit;
  const at = limit?.first_seen_s;
  if (at != null && marks.length === 0 && !faults.some(({ x }) => Math.abs(x - at) <= SAME_S)) {
    marks.push({ x: at, kind: "end", what: limit?.sentence || limit?.cause || "limit", label: limit?.cause ?? "limit" });
  }
  return marks;
}
