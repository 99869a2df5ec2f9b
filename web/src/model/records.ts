/** A report: the data embedded in report.html, and what `throng report --format json` prints. */
export interface Report {
  schema: "throng.report/1";
  /** One; several in a comparison. */
  runs: StoredRun[];
  /** Figures of several runs side by side. */
  comparison?: Comparison;
}

export interface Comparison {
  columns: string[];
  rows: string[][];
  notes: string[];
}

export interface StoredRun {
  /** Empty while it is not known. */
  id: string;
  run: RunRecord;
  /** Ticks of a second merged in each of `ticks`, a power of two; the last may hold fewer. */
  width: number;
  /** Ticks of a second in all of `ticks`: says how many the last holds. */
  count?: number;
  ticks: TickRecord[];
  /** None: the run did not come to its end, or has not yet. */
  summary: Summary | null;
}

export interface RunRecord {
  version: string;
  /** The command line, a word each. */
  words: string[];
  began_ms: number;
  host: HostFacts;
  header: Header;
  tags: string[];
  /** The text of the scenario file. */
  scenario?: string | null;
}

export interface HostFacts {
  kernel: string;
  cores: number;
  memory_bytes: number;
  /** Limits and kernel settings. */
  facts?: Fact[];
}

export interface Fact {
  name: string;
  value: string;
}

export interface Header {
  target: string;
  connections: number;
  seed: number;
  io: string;
  threads: number;
  populations: string[];
  /** `users.login`, in the order of `Tick.steps`. */
  steps: string[];
}

export interface TickRecord {
  tick: Tick;
  generator: Generator;
  looks: Looks;
}

export type Phase = "ramp" | "hold" | "drain" | "pause";

/** What happened in one period; times in nanoseconds since the start of the run. */
export interface Tick {
  index: number;
  from: number;
  until: number;
  phase: Phase;
  open: number;
  wanted: number;
  resolved: number;
  waiting: number;
  /** None while a first dial is under way. */
  ramped_at: number | null;
  open_ns: number;
  counts: Counts;
  faults: FaultCount[];
  status: Record<string, number>;
  latency: Latency;
  ramp_latency: Latency;
  populations: Tick[];
  steps: Latency[];
  connect: Latency;
  handshake: Latency;
  first_byte: Latency;
  ramp_first_byte: Latency;
  lag: Latency;
  shard_rates: Rates;
  head_sizes: Moments;
  answer_sizes: Moments;
  probe: Probe | null;
  silence: Latency;
  stalled: number;
}

export interface Counts {
  opened: number;
  failed: number;
  dropped: number;
  closed: number;
  redialled: number;
  finished: number;
  done: number;
  addresses_skipped: number;
  sent: number;
  told: number;
  missed: number;
  answered: number;
  answered_at_load: number;
  kept: number;
  bytes_in: number;
  bytes_out: number;
  body_bytes_in: number;
}

/** A histogram in HdrHistogram's format V2 as base64, and what is known exactly beside it; nanoseconds. */
export interface Latency {
  histogram?: string;
  sum?: number;
  min?: number;
  max?: number;
}

/** A distribution of thousandths per second, in the place of nanoseconds. */
export type Rates = Latency;

export interface Moments {
  count: number;
  sum: number;
  squares: number;
  min?: number;
  max: number;
}

export interface Probe {
  sent: number;
  answered: number;
  failed: number;
  kept: Latency;
  fresh: Latency;
  held: Latency;
  connect: Latency;
}

export type Side = "target" | "path" | "host" | "unknown";

export type Stage = "dial" | "tls" | "handshake" | "exchange" | "hold" | "close";

export interface FaultCount {
  side: Side;
  stage: Stage;
  kind: string;
  count: number;
}

export interface Generator {
  cpu_s: number;
  system_s: number;
  rss_bytes: number;
  user_bytes_per_connection: number;
  cpu_share: number | null;
  stall_us: number;
}

export interface Looks {
  target: TargetLook | null;
  host: HostLook | null;
  target_host: HostLook | null;
  own: ProcessLook | null;
}

export interface TargetLook {
  pid: number;
  command: string;
  process: ProcessLook;
  /** Connections that the target itself counts. */
  connections?: number | null;
  jvm?: JvmLook | null;
  open_files: number | null;
  open_files_limit: number | null;
  accept_queue: number | null;
  accept_backlog: number | null;
  memory_available: number | null;
  group_oom_kills: number;
}

/** The collector's counters count from the start of the process. */
export interface JvmLook {
  heap_used_bytes: number;
  heap_committed_bytes: number;
  gc_count: number;
  gc_pause_ns: number;
}

export interface ProcessLook {
  processes: number;
  threads: number;
  rss_bytes: number;
  cpu_user_ns: number;
  cpu_system_ns: number;
  cores_used: number;
  cores: number | null;
  busiest_thread: number;
  busiest_wanted: number;
  threads_full: number;
  run_queue_wait_ns: number;
  involuntary_switches: number;
}

export interface HostLook {
  sockets: SockStat;
  tcp: NetCounters;
  tcp_mem_pressure_pages: number | null;
  conntrack: number | null;
  conntrack_max: number | null;
  memory_available: number;
  kernel_bytes: number;
  oom_kills: number;
}

export interface SockStat {
  tcp_inuse: number;
  tcp_orphans: number;
  tcp_tw: number;
  tcp_mem_pages: number;
}

export interface NetCounters {
  attempt_fails: number;
  estab_resets: number;
  out_resets: number;
  retrans_segs: number;
  syn_retrans: number;
  tcp_timeouts: number;
  listen_overflows: number;
  listen_drops: number;
  syn_queue_drops: number;
  syn_cookies: number;
  abort_on_memory: number;
  memory_pressures: number;
  pruned: number;
  time_wait_overflow: number;
}

export type Verdict = "pass" | "fail" | "invalid" | "interrupted";

export interface Summary {
  schema: string;
  verdict: Verdict;
  reasons: string[];
  limit: Limit | null;
  target: string;
  seed: number;
  io: string;
  threads: number;
  ramp_s: number;
  duration_s: number;
  elapsed_s: number;
  connections: Connections;
  faults: FaultCount[];
  requests: Requests;
  latency_us: Quantiles;
  ramp_latency_us: Quantiles;
  connect_us: Quantiles;
  handshake_us: Quantiles;
  first_byte_us: Quantiles;
  lag_us: Quantiles;
  populations: Record<string, PopulationSummary>;
  probe: ProbeSummary | null;
  generator: Generator;
  target_cost: ProcessCost | null;
  kernel_bytes_per_connection: KernelCost | null;
  cost: Cost;
  observed: Observation;
  rig: Rig | null;
  thresholds: ThresholdResult[];
  /** What was done by hand during the run. */
  asks?: AskRecord[];
}

export interface AskRecord {
  at_s: number;
  what: string;
}

export interface Limit {
  side: string;
  cause: string;
  at_connections: number;
  detail: string;
  cure: string;
}

export interface Connections {
  wanted: number;
  opened: number;
  failed: number;
  peak: number;
  held: number;
  dropped: number;
  closed: number;
  redialled: number;
  finished: number;
  open_per_s: number;
  seen_by_target: number | null;
}

export interface Requests {
  sent: number;
  answered: number;
  missed: number;
  told: number;
  per_s: number;
  lower_bound: boolean;
  bytes_in: number;
  bytes_out: number;
  body_bytes_in: number;
  status: Record<string, number>;
}

/** A distribution in figures; times in microseconds. */
export interface Quantiles {
  count: number;
  mean: number;
  stdev: number;
  min: number;
  p50: number;
  p75: number;
  p90: number;
  p99: number;
  p999: number;
  p9999: number;
  max: number;
}

export interface PopulationSummary {
  target: string;
  ramp_s: number;
  duration_s: number;
  connections: Connections;
  faults: FaultCount[];
  requests: Requests;
  latency_us: Quantiles;
  ramp_latency_us: Quantiles;
  connect_us: Quantiles;
  handshake_us: Quantiles;
  first_byte_us: Quantiles;
  steps: Record<string, StepSummary>;
}

export interface StepSummary {
  latency_us: Quantiles;
}

export interface ProbeSummary {
  rate: number;
  sent: number;
  answered: number;
  failed: number;
  latency_us: Quantiles;
  kept_us: Quantiles;
  fresh_us: Quantiles;
  held_us: Quantiles;
  connect_us: Quantiles;
  by_connections: ProbePoint[];
}

export interface ProbePoint {
  connections: number;
  latency_p50_us: number;
  latency_p99_us: number;
  connect_p99_us: number;
}

export interface ProcessCost {
  pid: number;
  rss_bytes: number;
  user_bytes_per_connection: number;
  cpu_s: number;
}

export interface KernelCost {
  value: number;
  both_ends: boolean;
}

/** A slope by least squares with its standard error. */
export interface Fit {
  value: number;
  error: number;
  r2: number;
}

export interface Cost {
  target_bytes: Fit | null;
  generator_bytes: Fit | null;
  kernel_bytes: Fit | null;
  target_kernel_bytes: Fit | null;
  target_cpu_us_per_open: Fit | null;
  generator_cpu_us_per_open: Fit | null;
  target_cpu_us_per_request: Fit | null;
  generator_cpu_us_per_request: Fit | null;
  target_cpu_us_per_idle_second: Fit | null;
  generator_cpu_us_per_idle_second: Fit | null;
  ceiling_connections: number | null;
}

export interface ThresholdResult {
  expr: string;
  value: number | null;
  pass: boolean;
}

/** How near a run came to what its machine did when it was calibrated; shares. */
export interface Rig {
  calibrated_at: string;
  open_per_s: number | null;
  requests_per_s: number | null;
  connections: number | null;
}

export interface Observation {
  target: TargetSeen | null;
  host: HostSeen | null;
  target_host: HostSeen | null;
  own: ProcessSeen | null;
  observer: ObserverSeen | null;
}

export interface Gauge {
  first: number;
  min: number;
  max: number;
  last: number;
}

export interface Growth {
  ramp: number;
  hold: number;
}

export interface TargetSeen {
  pid: number;
  process: ProcessSeen;
  open_files: Gauge | null;
  open_files_limit: number | null;
  accept_queue: Gauge | null;
  accept_backlog: number | null;
  accept_queue_full: number;
  memory_available: Gauge | null;
  group_oom_kills: Growth;
}

export interface ProcessSeen {
  processes: Gauge;
  threads: Gauge;
  rss_bytes: Gauge;
  cpu_user_ns: Growth;
  cpu_system_ns: Growth;
  cores_used: Gauge | null;
  cores_used_hold: Gauge | null;
  cores: number | null;
  busiest_thread: Gauge | null;
  busiest_thread_hold: Gauge | null;
  busiest_wanted_hold: Gauge | null;
  threads_full: Gauge;
  run_queue_wait_ns: Growth;
  involuntary_switches: Growth;
}

export interface HostSeen {
  tcp_sockets: Gauge;
  tcp_orphans: Gauge;
  tcp_time_wait: Gauge;
  tcp_mem_pages: Gauge;
  tcp_mem_pressure_pages: number | null;
  tcp_ramp: NetCounters;
  tcp_hold: NetCounters;
  conntrack: Gauge | null;
  conntrack_max: number | null;
  memory_available: Gauge;
  oom_kills: Growth;
}

export interface ObserverSeen {
  address: string;
  answers: number;
  failures: number;
  last_failure: string | null;
}
