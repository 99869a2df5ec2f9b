import { ownProcess } from "./agents";
import type { Entry } from "./fold";
import { targetHost } from "./host_charts";
import type { Lenient } from "./lenient";
import { bytes, grouped, span, time } from "./quantity";
import type { Gauge, HostSeen } from "./records";
import type { Run } from "./run";
import type { Table } from "./table";

type Row = [string, string | null | undefined];

const known = (rows: Row[]): string[][] => rows.flatMap(([name, value]) => (value ? [[name, value]] : []));
const number = (n: number | null | undefined) => (n == null ? null : grouped(n));
const gauge = (g: Lenient<Gauge<number>> | null | undefined) => (g ? `${grouped(g.max ?? 0)} at most` : null);

/** What the hosts looked like: what there was to use, and how much of it was. */
export function hostTable(run: Run): Table {
  const { host, header } = run.record;
  const { summary } = run;
  const observed = summary?.observed;
  const last = lastLook(run.entries);
  const target = last?.looks.target;
  const there = last && targetHost(last);
  const other = last?.looks.target_host != null;
  const seenHost = observed?.target_host ?? observed?.host;
  const own = ownProcess(run);
  // Threads and stalls are those of the load, which a fleet's coordinator does not send.
  const sender = own === "coordinator" ? "agents'" : "throng's";
  const rows: Row[] = [
    [`${own}'s kernel`, host?.kernel],
    [`${own}'s processors`, number(host?.cores)],
    [`${own}'s memory`, host?.memory_bytes ? bytes.text(host.memory_bytes) : null],
    [`${sender} threads`, header?.threads ? `${grouped(header.threads)}, ${header.io ?? ""}` : null],
    [`${own} used`, use(summary?.generator)],
    [`${sender} longest stall`, summary?.generator?.stall_us ? time.text(summary.generator.stall_us) : null],
    ["target's process", target?.pid ? `${target.pid} ${target.command ?? ""}` : null],
    ["target used", use(summary?.target_cost)],
    ["target's host", other ? "another one, through throng observe" : target ? "this one" : null],
    ["target's open files", gauge(observed?.target?.open_files) ?? number(target?.open_files)],
    ["target's open-file limit", number(observed?.target?.open_files_limit ?? target?.open_files_limit)],
    ["target's accept queue", gauge(observed?.target?.accept_queue) ?? number(target?.accept_queue)],
    ["target's accept backlog", number(observed?.target?.accept_backlog ?? target?.accept_backlog)],
    ["samples with a full accept queue", number(observed?.target?.accept_queue_full || null)],
    ["memory available to the target", target?.memory_available ? bytes.text(target.memory_available) : null],
    ["conntrack entries", gauge(seenHost?.conntrack) ?? number(there?.conntrack)],
    ["conntrack limit", number(seenHost?.conntrack_max ?? there?.conntrack_max)],
    ["socket memory, pages", gauge(seenHost?.tcp_mem_pages) ?? number(there?.sockets?.tcp_mem_pages)],
    ["memory pressure starts at, pages", number(seenHost?.tcp_mem_pressure_pages ?? there?.tcp_mem_pressure_pages)],
    ["processes killed by the OOM killer", number(kills(seenHost) || null)],
    ["observer", observer(run)],
  ];
  return {
    id: "hosts",
    title: "Hosts",
    columns: [{ name: "what" }, { name: "value" }],
    rows: known(rows),
  };
}

/** What the kernel allows: looked up when it is in question, and long. */
export function settingsTable(run: Run): Table {
  const rows: Row[] = (run.record.settings ?? []).map(({ name, value }) => [name ?? "", value]);
  return {
    id: "settings",
    title: "Kernel settings and limits",
    columns: [{ name: "setting" }, { name: "value" }],
    rows: known(rows),
    folded: true,
  };
}

/** `7.3 s of CPU, 28.6 MiB of memory` */
const use = (cost: { cpu_s?: number | null; rss_bytes?: number | null } | null | undefined) =>
  cost?.rss_bytes ? `${span(cost.cpu_s ?? 0)} of CPU, ${bytes.text(cost.rss_bytes)} of memory` : null;

const lastLook = (entries: Entry[]) => entries.findLast(({ looks }) => looks.target) ?? entries.at(-1);

const kills = (seen: Lenient<HostSeen> | null | undefined) => (seen?.oom_kills?.ramp ?? 0) + (seen?.oom_kills?.hold ?? 0);

function observer({ summary }: Run): string | null {
  const seen = summary?.observed?.observer;
  if (!seen) return null;
  const failures = seen.failures ? `, ${grouped(seen.failures)} failure${seen.failures === 1 ? "" : "s"}, the last: ${seen.last_failure ?? ""}` : "";
  return `${seen.address ?? ""}: ${grouped(seen.answers ?? 0)} response${seen.answers === 1 ? "" : "s"}${failures}`;
}

/** TCP's events of which there were any. */
export function tcpTable(run: Run): Table {
  const { host, target_host } = run.summary?.observed ?? {};
  const of = (whose: string, seen: Lenient<HostSeen> | null | undefined) => {
    const names = Object.keys({ ...seen?.tcp_ramp, ...seen?.tcp_hold }) as (keyof HostSeen["tcp_ramp"])[];
    return names.flatMap((name) => {
      const [ramp, hold] = [seen?.tcp_ramp?.[name] ?? 0, seen?.tcp_hold?.[name] ?? 0];
      return ramp + hold > 0 ? [[whose, name.replaceAll("_", " "), grouped(ramp), grouped(hold)]] : [];
    });
  };
  return {
    id: "tcp",
    title: "TCP events",
    says: "By the kernel, in the whole network namespace",
    columns: [{ name: "host" }, { name: "event" }, { name: "ramp", numeric: true }, { name: "full load", numeric: true }],
    rows: [...of("throng's", host), ...of("target's", target_host)],
  };
}
