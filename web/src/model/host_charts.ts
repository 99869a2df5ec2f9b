import { growth, isSeen, overTime, perSecond, phases, SECONDS, type Axis, type Chart, type Line, type Mark } from "./chart";
import { agentsOf, ownProcess } from "./agents";
import { marksOf } from "./marks";
import type { Entry } from "./fold";
import type { Lenient } from "./lenient";
import * as quantity from "./quantity";
import type { ProcessSample } from "./records";
import type { Run } from "./run";

const CORES: Axis = { label: "cores used", quantity: quantity.count };
const MEMORY: Axis = { label: "memory", quantity: quantity.bytes };
const SOCKETS: Axis = { label: "sockets", quantity: quantity.count };

function chart(run: Run, id: string, title: string, says: string, y: Axis, lines: Line[], marks: Mark[] = []): Chart {
  const { entries } = run;
  return { id, title, says, x: SECONDS, y, lines, bands: phases(entries), marks: [...marksOf(run), ...marks] };
}

/** The host that the target runs on: another one where `throng observe` tells of it. */
export const targetHost = ({ looks }: Entry) => looks.target_host ?? looks.host;

/** CPU time so far, seconds. */
const cpuOf = (process: Lenient<ProcessSample> | null | undefined): number | null =>
  process ? ((process.cpu_user_ns ?? 0) + (process.cpu_system_ns ?? 0)) / 1e9 : null;

export const cpuOfThrong = ({ looks }: Entry) => cpuOf(looks.own);
export const cpuOfTarget = ({ looks }: Entry) => cpuOf(looks.target?.process);

export function processors(run: Run): Chart {
  const { entries } = run;
  const isFleet = agentsOf(run).length > 0;
  const lines = [
    overTime(entries, ownProcess(run), (entry, before) => growth(entry, before, cpuOfThrong)),
    ...(isFleet ? [overTime(entries, "all agents", ({ period }) => perSecond(period, period.cpu_s))] : []),
    overTime(entries, "target", (entry, before) => growth(entry, before, cpuOfTarget)),
  ].filter((line) => isSeen(line));
  const says = isFleet ? "CPU seconds used each second, by the coordinator, all agents together, and the target" : "CPU seconds used each second, by both sides";
  return chart(run, "processors", "Processors", says, CORES, lines);
}

export function memory(run: Run): Chart {
  const { entries } = run;
  const first = entries.find(({ looks }) => looks.host?.kernel_bytes)?.looks.host?.kernel_bytes ?? 0;
  const kernel = overTime(entries, "kernel, since the first sample", ({ looks }) => {
    const now = looks.host?.kernel_bytes;
    return now ? now - first : null;
  });
  const lines = [
    overTime(entries, ownProcess(run), ({ looks }) => looks.own?.rss_bytes || null),
    overTime(entries, "target", ({ looks }) => looks.target?.process?.rss_bytes || null),
    kernel,
  ].filter((line) => isSeen(line));
  const sides = ownProcess(run) === "coordinator" ? "the coordinator and the target" : "both sides";
  return chart(run, "memory", "Memory", `Resident memory of ${sides}, and growth of kernel memory`, MEMORY, lines);
}

export function jvm(run: Run): Chart {
  const { entries } = run;
  const lines = [
    overTime(entries, "heap used", ({ looks }) => looks.target?.jvm?.heap_used_bytes),
    overTime(entries, "heap committed", ({ looks }) => looks.target?.jvm?.heap_committed_bytes),
  ].filter((line) => isSeen(line));
  return chart(run, "jvm", "JVM of the target", "Heap; a vertical line marks a second with a garbage collection pause", MEMORY, lines, pauses(entries));
}

/** More rules than these are no longer told apart: the longest are shown. */
const PAUSES = 40;

function pauses(entries: readonly Entry[]): Mark[] {
  const marks = entries.flatMap((entry, i) => {
    const [now, then] = [entry.looks.target?.jvm, entries[i - 1]?.looks.target?.jvm];
    const ns = (now?.gc_pause_ns ?? 0) - (then?.gc_pause_ns ?? NaN);
    return ns > 0 ? [{ ns, x: entry.period.until_s }] : [];
  });
  const longest = marks.sort((a, b) => b.ns - a.ns).slice(0, PAUSES);
  return longest.map(({ ns, x }) => {
    const what = `GC ${quantity.time.text(ns / 1e3)}`;
    return { x, what, label: what };
  });
}

export function sockets(run: Run): Chart {
  const { entries } = run;
  const lines = [
    overTime(entries, "in use", ({ looks }) => looks.host?.sockets?.tcp_inuse),
    overTime(entries, "TIME_WAIT", ({ looks }) => looks.host?.sockets?.tcp_tw),
    overTime(entries, "orphans", ({ looks }) => looks.host?.sockets?.tcp_orphans),
  ].filter((line) => isSeen(line, false));
  const whose = ownProcess(run) === "coordinator" ? "the coordinator's" : "throng's";
  const says = `TCP sockets of ${whose} network namespace; a connection within it has two`;
  return chart(run, "sockets", "Sockets", says, SOCKETS, lines);
}

/** Pages of the kernel, bytes. */
const PAGE = 4096;

export function socketMemory(run: Run): Chart {
  const { entries } = run;
  const pages = (n: number | null | undefined) => (n ? n * PAGE : null);
  const used = overTime(entries, "in use", (entry) => pages(targetHost(entry)?.sockets?.tcp_mem_pages));
  const limit = overTime(entries, "memory pressure", (entry) => pages(targetHost(entry)?.tcp_mem_pressure_pages));
  const lines = isSeen(used, false) ? [used, { ...limit, limit: true }].filter((line) => isSeen(line)) : [];
  return chart(run, "socket-memory", "Socket memory", "Memory in socket buffers on the target's host", MEMORY, lines);
}

export function acceptQueue(run: Run): Chart {
  const { entries } = run;
  const waiting = overTime(entries, "waiting", ({ looks }) => looks.target?.accept_queue);
  const backlog = overTime(entries, "backlog", ({ looks }) => looks.target?.accept_backlog);
  const lines = isSeen(waiting) ? [waiting, { ...backlog, limit: true }].filter((line) => isSeen(line)) : [];
  const y = { label: "connections", quantity: quantity.count };
  return chart(run, "accept-queue", "Accept queue", "Connections waiting to be accepted by the target, and its backlog", y, lines);
}
