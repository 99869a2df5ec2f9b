import type { Latency, TickRecord } from "../src/model/records";
import type { Report, StoredRun } from "../src/model/report";

const NO_PUSHES = {
  count: 0, bytes: 0, bytes_max: 0, unread: 0, ahead: 0, numbered: 0, skipped: 0, late: 0, duplicates: 0, restarts: 0, broadcasts: 0, complete: 0, fresh: 0, receipts: [],
};

// The layout of throng's histograms; see model/distribution.ts.
const HALF = 1024;
const LOWEST = 64;
const HIGHEST = 3_600_000_000_000;

function indexOf(ns: number): number {
  let doubled = 0;
  while (ns >= LOWEST * 2 * HALF * 2 ** doubled) doubled++;
  return doubled * HALF + Math.floor(ns / (LOWEST * 2 ** doubled));
}

function pushNumber(bytes: number[], value: number): void {
  let rest = value >= 0 ? value * 2 : -value * 2 - 1;
  while (rest >= 128) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
}

/** A record of nothing leaves everything out. */
const NONE = {} as Latency;

/** Times in nanoseconds with how often each, as throng writes them down. */
export function latency(times: [ns: number, n: number][]): Latency {
  if (times.length === 0) return NONE;
  const counts = new Map<number, number>();
  for (const [ns, n] of times) counts.set(indexOf(ns), (counts.get(indexOf(ns)) ?? 0) + n);
  const payload: number[] = [];
  let next = 0;
  for (const [index, n] of [...counts].sort(([a], [b]) => a - b)) {
    if (index > next) pushNumber(payload, next - index);
    pushNumber(payload, n);
    next = index + 1;
  }
  const bytes = Buffer.alloc(40 + payload.length);
  bytes.writeUInt32BE(0x1c849313, 0);
  bytes.writeUInt32BE(payload.length, 4);
  bytes.writeUInt32BE(3, 12);
  bytes.writeBigUInt64BE(BigInt(LOWEST), 16);
  bytes.writeBigUInt64BE(BigInt(HIGHEST), 24);
  bytes.writeDoubleBE(1, 32);
  bytes.set(payload, 40);
  return {
    histogram: bytes.toString("base64"),
    sum: times.reduce((sum, [ns, n]) => sum + ns * n, 0),
    min: Math.min(...times.map(([ns]) => ns)),
    max: Math.max(...times.map(([ns]) => ns)),
    censored: 0,
    stalled: 0,
    taken_off: 0,
  };
}

/** A generator of pseudo-random numbers below 1 (mulberry32): the same page each time. */
export function random(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** About log-normal, around so many nanoseconds. */
function spread(draw: () => number, around_ns: number, places: number, n: number): [number, number][] {
  return Array.from({ length: places }, () => {
    const normal = draw() + draw() + draw() + draw() - 2;
    return [Math.floor(around_ns * Math.exp(normal * 1.6)), n];
  });
}

interface Moment {
  /** Its place and its length, seconds. */
  n: number;
  seconds: number;
  most: number;
  ramp_s: number;
  end_s: number;
}

/** A stored tick of a run that holds many connections, with everything that a page can show. */
export function tickRecord({ n, seconds, most, ramp_s, end_s }: Moment): TickRecord {
  const draw = random(n + 1);
  const [from_s, until_s] = [n * seconds, (n + 1) * seconds];
  const share = Math.min(1, until_s / ramp_s);
  const open = Math.round(most * share) - (until_s > ramp_s ? n % 50 : 0);
  const phase = until_s <= ramp_s ? "ramp" : until_s > end_s ? "drain" : n === Math.round(end_s / seconds / 2) ? "pause" : "hold";
  const opened = Math.round((most / ramp_s) * seconds * (phase === "ramp" ? 1 : 0));
  const times = latency(spread(draw, 1e6 * (1 + share), 900, Math.max(1, Math.round((open * seconds) / 27e3))));
  const answered = Math.round((open * seconds) / 30);
  const late = n % 60 === 30 ? 17 : 0;
  const few = (around: number) => latency(spread(draw, around, 40, 1));
  return {
    tick: {
      index: n, from: from_s * 1e9, until: until_s * 1e9, phase, open, most_open: 0, wanted: Math.round(most * share), resolved: open, waiting: 12, unsettled: 12, owed: 0, keep_alive_s: 0,
      ramped_at: null, open_ns: open * seconds * 1e9,
      counts: {
        opened, failed: 0, dropped: late, closed: 0, forced: 0, ended_after: 0, redialled: 0, finished: 0, done: 0, left: 0, addresses_skipped: 0, dialled: opened, given_up: 0,
        undialled: 0, connection_faults: 0, due: answered, sent: answered, withdrawn: 0, revoked: 0, failed_requests: late, wrong: 0, unanswered: 0, told: 0, pushed: 0, messages: 0,
        missed: 0, answered, answered_at_load: phase === "hold" ? answered : 0, kept: answered, bytes_in: answered * 77,
        bytes_out: answered * 41, body_bytes_in: answered * 12,
      },
      faults: late ? [
        { side: "target", stage: "exchange", kind: "timeout", count: late },
        { side: "path", stage: "hold", kind: "reset", count: 5 },
      ] : [],
      status: { "200": answered },
      latency: phase === "ramp" ? NONE : times,
      ramp_latency: phase === "ramp" ? times : NONE,
      populations: [], steps: [], ramp_steps: [], step_faults: [],
      connect: phase === "ramp" ? few(6e5) : NONE, tls: NONE, tls_resumed: NONE, handshake: NONE, gap: NONE, delay: NONE, spread: NONE, ping_rtt: NONE, pushes: NO_PUSHES,
      first_byte: phase === "ramp" ? NONE : times, ramp_first_byte: phase === "ramp" ? times : NONE,
      lag: few(3e5), shard_rates: NONE,
      head_sizes: { count: 0, sum: 0, squares: 0, min: 0, max: 0 }, answer_sizes: { count: 0, sum: 0, squares: 0, min: 0, max: 0 },
      probe: { sent: 60, answered: 60, failed: 0, unanswered: 0, faults: [], status: {}, kept: few(1e6), fresh: few(2e6), held: NONE, connect: few(8e5) },
      destinations: [], agents: null, cpu_ns: 0, silence: NONE, stalled: 1e6, late_dials: 0, dial_lag: 0, longest_silence: 0, served: 0,
      congestion: { dialled: 0, lost: 0, paced: 0, reached: 0, straight: 0, bent: 0 },
    responses_at_close: { count: 0, sum: 0, squares: 0, min: 0, max: 0 },
      error_samples: [], examples: [], marks: [], streams_allowed: null, imbalance: { due: 0, sent: 0, dials: 0, connections: 0 },
    },
    looks: {
      target: {
        pid: 77, command: "java", 
        jvm: {
          heap_used_bytes: 4e8 + open * 300 + (n % 7) * 3e7, heap_committed_bytes: 2 ** 30, heap_max_bytes: 2 ** 30, gc_count: Math.floor(n / 7),
          gc_pause_ns: Math.floor(n / 7) * 23e6,
        },
        processes: [],
        process: {
          processes: 1, threads: 40, rss_bytes: 5e8 + open * 900, cpu_user_ns: until_s * 6e8, cpu_system_ns: until_s * 3e8, cores_used: 0.9,
          cores: 8, busiest_thread: 0.5, busiest_wanted: 0.6, threads_full: 0, run_queue_wait_ns: 0, involuntary_switches: 0,
          stopped: 0, blocked: 0, cpus: "",
        },
        open_files: open + 40, open_files_limit: 1_048_576, accept_queue: n % 9, accept_backlog: 4096, memory_available: null, group_oom_kills: 0, cpu_quota: null,
      },
      host: {
        sockets: { tcp_inuse: 2 * open, tcp_orphans: n % 3, tcp_tw: 300 + (n % 40), tcp_mem_pages: 2000 + n },
        tcp: {
          attempt_fails: 0, estab_resets: 0, out_resets: 0, retrans_segs: n * 3, syn_retrans: 0, tcp_timeouts: 0, retrans_fails: 0, listen_overflows: 0,
          listen_drops: 0, syn_queue_drops: 0, syn_cookies: 0, abort_on_memory: 0, memory_pressures: 0, pruned: 0, time_wait_overflow: 0, icmp_unreachable: 0,
        },
        tcp_mem_pressure_pages: 383_870, conntrack: 2 * open, conntrack_max: 4_194_304, memory_available: 9e9, slab_reclaimable_bytes: 4e8, kernel_bytes: 7e8 + open * 7800,
        oom_kills: 0, conntrack_drops: null,
      },
      target_host: null,
      own: {
        processes: 1, threads: 3, rss_bytes: 3e7 + open * 60, cpu_user_ns: until_s * 2e8, cpu_system_ns: until_s * 6e8, cores_used: 0.8,
        cores: 8, busiest_thread: 0.8, busiest_wanted: 0.8, threads_full: 0, run_queue_wait_ns: 0, involuntary_switches: 0,
        stopped: 0, blocked: 0, cpus: "",
      },
      connections: open - 3,
      thresholds: [],
    },
  };
}

/** A run of so many stored ticks, not ended. */
export function storedRun(moments: number, seconds = 1, most = 3000): StoredRun {
  const end_s = moments * seconds * 0.97;
  const ramp_s = moments * seconds * 0.2;
  return {
    id: "gq2synth",
    run: {
      version: "0.1.0",
      words: ["run", "http://10.0.0.1:8000/?q={rand 1 9}", "-c", String(most), "--think", "20s..40s"],
      began_ms: 1_795_293_931_987,
      host: {
        kernel: "6.12.0", cores: 4, memory_bytes: 16 * 2 ** 30,
      },
      settings: [{ name: "net.ipv4.ip_local_port_range", value: "1024 65535" }, { name: "open files", value: "1,048,576" }],
      header: { hold_s: null, ramp_deadline_s: null, target: "http://10.0.0.1:8000/", connections: most, seed: 42, io: "uring", threads: 4, populations: ["main"], steps: ["main.get"], destinations: [], agents: [], thresholds: [] },
      tags: [],
      scenario: "target = \"http://10.0.0.1:8000/\" # </script><b>not markup</b>\n",
      api_id: null,
      fleet_run: null,
      fleet_term: 0,
    },
    width: seconds,
    count: moments * seconds,
    ticks: Array.from({ length: moments }, (_, n) => tickRecord({ n, seconds, most, ramp_s, end_s })),
    summary: null,
  };
}

export const reportOf = (...runs: StoredRun[]): Report => ({ schema: "throng.report/1", runs });
