import type { Gauge, HostSeen, NetCounters, PopulationSummary, ProcessSeen, Quantiles, Summary } from "../src/model/records";

const NO_PUSHES = {
  count: 0, per_s: 0, bytes: 0, bytes_max: 0, unread: 0, ahead: 0, clock_offset_us: null, numbered: 0, lost: 0, duplicates: 0, out_of_order: 0,
  restarts: 0, broadcasts: 0, complete: 0,
};

const gauge = (first: number, max: number): Gauge<number> => ({ first, min: first, max, last: max });
const none = { ramp: 0, hold: 0 };

/** The 130 requests that timed out, among a thousand that did not. */
const without = (q: Quantiles): Quantiles => ({
  ...q,
  censored: { count: 130, share: 130 / 1130, p50: q.p50 * 1.1, p75: q.p75 * 1.3, p90: null, p95: null, p99: null, p999: null, p9999: null },
});

const times = (p50: number): Quantiles => ({
  count: 1000, mean: p50 * 1.2, stdev: p50 / 2, min: p50 / 10, p50, p75: p50 * 1.5, p90: p50 * 2, p95: p50 * 3, p99: p50 * 4, p999: p50 * 8,
  p9999: p50 * 9, max: p50 * 10, censored: null, stalled: null,
});

const QUIET: NetCounters = {
  attempt_fails: 0, estab_resets: 0, out_resets: 0, retrans_segs: 0, syn_retrans: 0, tcp_timeouts: 0, retrans_fails: 0, listen_overflows: 0, listen_drops: 0,
  syn_queue_drops: 0, syn_cookies: 0, abort_on_memory: 0, memory_pressures: 0, pruned: 0, time_wait_overflow: 0, icmp_unreachable: 0,
};

const process: ProcessSeen = {
  processes: gauge(1, 1), threads: gauge(4, 4), rss_bytes: gauge(6e6, 7e6), cpu_user_ns: none, cpu_system_ns: none, cores_used: null,
  cores_used_hold: null, cores: 8, busiest_thread: null, busiest_thread_hold: null, busiest_wanted_hold: null, threads_full: gauge(0, 0),
  run_queue_wait_ns: none, involuntary_switches: none,
};

const host: HostSeen = {
  tcp_sockets: gauge(3, 6005), tcp_orphans: gauge(0, 2), tcp_time_wait: gauge(0, 173), tcp_mem_pages: gauge(1433, 1945),
  tcp_mem_pressure_pages: 383_870, tcp_ramp: { ...QUIET, listen_overflows: 1234 }, tcp_hold: { ...QUIET, retrans_segs: 77 },
  conntrack: gauge(0, 6000), conntrack_max: 262_144, memory_available: gauge(2e10, 2e10), oom_kills: none, conntrack_drops: null,
};

const population = (target: string, wanted: number, held: number, p50: number): PopulationSummary => ({
  target, threads: 2, ramp_s: 1, duration_s: 9, elapsed_s: 10,
  connections: {
    wanted, opened: wanted, failed: 0, given_up: 0, peak: wanted, held, dropped: wanted - held, dropped_in_drain: 0, closed: 0, redialled: 0, finished: 0, lost: 0, open_per_s: 500, bent_at: null, accept_per_s: 0, forced: 0,
    seen_by_target: null, unaccepted: null, quiet_s: null, arriving: 0,
  },
  faults: [{ side: "target", stage: "exchange", kind: "timeout", count: wanted - held }],
  errors: { count: wanted - held, of: 10 },
  requests: {
    due: 10, sent: 10, answered: 9, wrong: 0, kept: 9, failed: 1, unanswered: 0, missed: 0, lost: 0, told: 0, messages: 0, per_s: 741, lower_bound: false, bytes_in: 1, bytes_out: 1, bytes_in_per_s: 1000, bytes_out_per_s: 500, body_bytes_in: 1, status: {},
  },
  latency_us: wanted > 1000 ? without(times(p50)) : times(p50), ramp_latency_us: times(p50), connect_us: times(p50), tls_us: times(p50), tls_resumed_us: times(p50), handshake_us: times(p50), gap_us: times(p50), pushes: NO_PUSHES, delay_us: times(p50), spread_us: times(p50), ping_rtt_us: times(p50), first_byte_us: times(p50), streams: null,
  steps: {
    login: { latency_us: times(2 * p50), ramp_latency_us: times(p50), faults: [] },
    look: { latency_us: times(3 * p50), ramp_latency_us: times(p50), faults: [] },
  },
});

const fit = (value: number) => ({ value, error: value / 50, r2: 0.987 });

/** A summary with something in each of its fields. */
export const failed = (): Summary => ({
  schema: "throng.summary/1",
  verdict: "fail",
  headline: "fail: 2 of 3 thresholds failed, the first held >= 99.9%: 98.7 %; the target ran out of open files: 65,536 of 65,536 used; raise LimitNOFILE",
  reasons: ["threshold faults == 0 not met", "2,961 of 3,000 connections held"],
  limit: {
    side: "target", cause: "open-files", at_connections: 65_536, first_seen_s: null, sentence: "the target ran out of open files: 65,536 of 65,536 used",
    detail: "the target holds 65,536 of 65,536 files", cure: "raise LimitNOFILE",
    certainty: "seen",
  },
  target: "http://10.0.0.1:8000/", seed: 42, io: "uring", threads: 4, ramp_s: 5.1, duration_s: 12, planned_s: null, unreliable: null, failure: null, elapsed_s: 17.2,
  connections: {
    wanted: 3000, opened: 3000, failed: 0, given_up: 0, peak: 2999, held: 2961, dropped: 39, dropped_in_drain: 0, closed: 0, redialled: 0, finished: 0, lost: 0, open_per_s: 598.4, bent_at: null, accept_per_s: 0, forced: 0,
    seen_by_target: 2961, unaccepted: null, quiet_s: null, arriving: 0,
  },
  errors: { count: 139, of: 23_500 },
  in_common: [{
    of: "slow", count: 1_000, share: 0.043, dimension: "destination", p: 1e-9, sentence: "all of the 4.3 % that took 301 ms went to 10.0.0.3:8000",
    rows: [{ name: "10.0.0.3:8000", bad: 1_000, others: 0 }, { name: "10.0.0.1:8000", bad: 0, others: 22_000 }],
  }],
  faults: [
    { side: "path", stage: "hold", kind: "reset", count: 9 },
    { side: "target", stage: "exchange", kind: "timeout", count: 130 },
  ],
  requests: {
    due: 23_500, sent: 23_500, answered: 23_442, wrong: 0, kept: 23_400, failed: 58, unanswered: 0, missed: 0, lost: 0, told: 0, messages: 0, per_s: 1486.8, lower_bound: true, bytes_in: 1_805_034, bytes_out: 961_122,
    bytes_in_per_s: 104_943, bytes_out_per_s: 55_879, body_bytes_in: 281_304, status: { "200": 23_400, "503": 42 },
  },
  latency_us: without(times(891.4)), ramp_latency_us: times(308), connect_us: times(500), tls_us: times(57), tls_resumed_us: times(57), handshake_us: times(57), gap_us: times(57), pushes: NO_PUSHES, delay_us: times(57), spread_us: times(57), ping_rtt_us: times(57), first_byte_us: times(890), streams: null, lag_us: times(494),
  destinations: [],
  populations: { idle: population("ws://10.0.0.1:8000/ws", 2400, 2370, 863), users: population("http://10.0.0.1:8000/", 600, 591, 861) },
  probe: {
    rate: 20, sent: 345, answered: 344, unanswered: 0, failed: 1, failures: [{ what: "timeout", count: 1 }], latency_us: times(663), kept_us: times(680), fresh_us: times(637), held_us: times(628), connect_us: times(496),
    by_connections: [500, 1000, 2000, 3000].map((connections) => ({
      connections, latency_p50_us: 300 + connections, latency_p99_us: 3000 + connections, no_response: connections === 3000 ? 0.12 : 0, connect_p99_us: 900,
    })),
  },
  generator: { cpu_s: 7.3, over_s: 61.2, system_s: 5.7, rss_bytes: 30e6, user_bytes_per_connection: 51, cpu_share: 0.219, stall_us: 6236 },
  target_cost: { pid: 77, rss_bytes: 7e6, user_bytes_per_connection: 40, cpu_s: 2.2, over_s: 61, processes: [{ pid: 77, rss_bytes: 7e6 }] },
  kernel_bytes_per_connection: { value: 8515, both_ends: true },
  cost: {
    target_bytes: fit(941), generator_bytes: fit(51), kernel_bytes: fit(8515), target_kernel_bytes: null, target_cpu_us_per_open: fit(192.6),
    generator_cpu_us_per_open: fit(669), target_cpu_us_per_handshake: null, generator_cpu_us_per_handshake: null, target_cpu_us_per_request: fit(86.6), generator_cpu_us_per_request: fit(297),
    target_cpu_us_per_idle_second: null, generator_cpu_us_per_idle_second: null, ceiling_connections: 2_877_533,
    target_runtime: null, target_live_bytes: null, target_live_fit: null, target_live_points: [], target_live_failure: null, discarded: [],
  },
  observed: {
    target: {
      pid: 77, process, open_files: gauge(13, 3013), open_files_limit: 65_536, accept_queue: gauge(0, 12), accept_backlog: 4096,
      accept_queue_full: 0, memory_available: null, group_oom_kills: none, cpu_quota: null, quota_periods: none, quota_throttled: none, jvm_heap_used_bytes: null, jvm_heap_max_bytes: null,
      threads_gone: [], log: [],
    },
    host, target_host: null, own: process,
    rejection: null,
    observer: { address: "10.0.0.1:9100", answers: 17, failures: 1, last_failure: "timed out" },
  },
  rig: { calibrated_at: "2026-11-20T01:02:03Z", open_per_s: 0.4, requests_per_s: 0.931, connections: 0.004 },
  agents: [],
  thresholds: [
    { expr: "held >= 99.9%", value: 98.7, shown: "98.7 %", pass: false, unreliable: false },
    { expr: "latency.p99 < 50ms", value: 3565.6, shown: "3.57 ms", pass: true, unreliable: false },
    { expr: "handshake.p99 < 1ms", value: null, shown: "", pass: false, unreliable: false },
  ],
  asks: [{ at_s: 6, what: "paused" }, { at_s: 9, what: "load 60 %" }],
  experiments: [],
});
