// Made from the types of crates/samples by its test `typescript`: UPDATE_GOLDEN=1 writes it.

/**
 * A run, known before its first tick.
 */
export type RunRecord = { 
/**
 * throng's own version.
 */
version: string, 
/**
 * Its command-line arguments.
 */
words: Array<string>, 
/**
 * When it began.
 */
began_ms: number, 
/**
 * Where it ran.
 */
host: HostFacts, 
/**
 * The header given to the sinks.
 */
header: Header, 
/**
 * What the user calls it, each once.
 */
tags: Array<string>, 
/**
 * The scenario file, if it ran one.
 */
scenario: string | null, 
/**
 * Its id in the HTTP API that it was started by, if it was.
 */
api_id: string | null, 
/**
 * Its name among the agents, if it ran on a fleet.
 */
fleet_run: string | null, 
/**
 * How often another process of its coordinator has taken it up.
 */
fleet_term: number, 
/**
 * Limits and settings of the host that throng ran on, by their names.
 */
settings: Array<Setting>, };

/**
 * What makes the figures of two runs comparable: the host that throng ran on.
 */
export type HostFacts = { 
/**
 * The kernel's release, as `uname -r` has it.
 */
kernel: string, 
/**
 * Processors that throng may use.
 */
cores: number, 
/**
 * Memory in all, or as much of it as the control group allows, bytes.
 */
memory_bytes: number, };

/**
 * A limit or a setting of a host.
 */
export type Setting = { 
/**
 * `net.core.somaxconn`, `open files (soft)`.
 */
name: string, 
/**
 * As the kernel writes it.
 */
value: string, };

/**
 * What is known before the first tick.
 */
export type Header = { 
/**
 * The target as the user wrote it.
 */
target: string, 
/**
 * Connections to hold.
 */
connections: number, 
/**
 * How long all stages together are to hold their loads, seconds; none, where there is no end.
 */
hold_s: number | null, 
/**
 * The longest time that an adaptive ramp has, seconds, until it dials at a fixed rate; none without one.
 */
ramp_deadline_s: number | null, 
/**
 * The seed that repeats the run.
 */
seed: number, 
/**
 * `uring` or `epoll`.
 */
io: string, 
/**
 * Shards.
 */
threads: number, 
/**
 * The plan's populations by name, in the order in which [`Tick::populations`] has them.
 */
populations: Array<string>, 
/**
 * All steps, `users.login`, in the order in which [`Tick::steps`] has them.
 */
steps: Array<string>, 
/**
 * Destinations, or groups of neighbouring ones, in the order in which [`Tick::destinations`] has them; empty where there is
 * only one.
 */
destinations: Array<string>, 
/**
 * The agents of a fleet, in the order in which [`Tick::agents`] has them; none on one machine.
 */
agents: Array<AgentShare>, 
/**
 * Thresholds, in the user's order.
 */
thresholds: Array<ThresholdBound>, };

/**
 * A threshold as it is known before it is judged.
 */
export type ThresholdBound = { 
/**
 * As written.
 */
expr: string, 
/**
 * The path of its figure in the summary: `latency_us.p99`.
 */
figure: string, 
/**
 * In the unit of that figure, or percent.
 */
bound: number, 
/**
 * Whether the bound is a percentage of another figure.
 */
is_share: boolean, };

/**
 * One period of a run, all shards merged. Borrowed to be written: a tick holds a megabyte of histograms.
 */
export type TickRecord = { 
/**
 * What happened.
 */
tick: Tick, 
/**
 * What was seen last of hosts and processes.
 */
looks: Samples, };

/**
 * One period of one shard, or of several merged.
 */
export type Tick = { 
/**
 * Which period, counted from the start of the run.
 */
index: number, 
/**
 * When it began and ended.
 */
from: number, 
/**
 * When it ended.
 */
until: number, 
/**
 * The phase at its end; merged: the earliest phase.
 */
phase: Phase, 
/**
 * Connections open at its end.
 */
open: number, 
/**
 * The most connections that were open at once in it, of a worker; merged: of one of them. 0 in what sinks are shown.
 */
most_open: number, 
/**
 * Connections planned at its end; set by the conductor, zero in a shard's tick.
 */
wanted: number, 
/**
 * Connections dialled at least once, with the outcome known, since the start.
 */
resolved: number, 
/**
 * Outstanding requests at its end.
 */
waiting: number, 
/**
 * Requests due whose outcome is not known at its end: those, and all that wait for a connection.
 */
unsettled: number, 
/**
 * Of those, the ones that were due at a full load that is over.
 */
owed: number, 
/**
 * When the outcome of the last first dial was known; [`Nanos::NEVER`] while one is not.
 */
ramped_at: number | null, 
/**
 * Connections times the nanoseconds that they were open in it.
 */
open_ns: number, 
/**
 * What was counted.
 */
counts: Counts, 
/**
 * What went wrong.
 */
faults: FaultCount[], 
/**
 * Responses by status, those that refused a WebSocket upgrade among them.
 */
status: Record<string, number>, 
/**
 * Each population by itself, of a plan that has several; in what a shard hands over, none.
 */
populations: Array<Tick>, 
/**
 * [`Tick::latency`] by step of the plan's program, of populations that have several.
 */
steps: Array<Latency>, 
/**
 * [`Tick::ramp_latency`] by step, of the same populations.
 */
ramp_steps: Array<Latency>, 
/**
 * What went wrong with requests by step, of the same populations: also part of [`Tick::faults`], where a response that lacks
 * what its connection needs counts as the end of that.
 */
step_faults: Array<FaultCount[]>, 
/**
 * Each destination of the plan by itself, where there are several; see [`crate::row_of`].
 */
destinations: Array<Destination>, 
/**
 * Responses per second of each shard in each of its ticks at full load.
 */
shard_rates: Rates, 
/**
 * Bytes of each HTTP response's head.
 */
head_sizes: Moments, 
/**
 * Bytes of each response, head and content, without the framing of chunks and messages.
 */
answer_sizes: Moments, 
/**
 * What the probe did; in what a shard hands over, none.
 */
probe: Probe | null, 
/**
 * By how much a turn of a shard came later than it was due at the latest; the most. Beyond [`Tick::STALL`] it is taken
 * off the latency of what was under way, and is lag.
 */
stalled: number, 
/**
 * Dials of connections that were opened, which a stall of the shard had delayed.
 */
late_dials: number, 
/**
 * The longest of these delays: connect times count from when the dial was due.
 */
dial_lag: number, 
/**
 * For how long the connection had been silent, of those open when full load ended, that was silent for longest.
 */
longest_silence: number, 
/**
 * After how long the server closes idle connections, as its responses announced (Keep-Alive, RFC 2068 section 19.7.1.1): the longest,
 * seconds; 0 if none did.
 */
keep_alive_s: number, 
/**
 * Connections that had their first response before the load ended; of those that are dialled again only the first counts.
 */
served: number, 
/**
 * CPU time that the process of an agent used, nanoseconds; 0 in what a shard hands over.
 */
cpu_ns: number, 
/**
 * The agents of a fleet each by itself; only in what sinks are shown, and in what comes late.
 */
agents: AgentTicks | null, 
/**
 * Responses that connections had received when the target closed them without notice; of a sample.
 */
responses_at_close: Moments, 
/**
 * What first dials of an adaptive ramp have met.
 */
congestion: Congestion, 
/**
 * A few wrong responses of each kind.
 */
error_samples: ErrorSample[], 
/**
 * The first exchange of each fault that was looked at as a whole.
 */
examples: Example[], 
/**
 * Stages and commands; only in what sinks are shown.
 */
marks: Mark[], 
/**
 * Messages that servers sent by themselves.
 */
pushes: Pushes, 
/**
 * By how much the books do not balance.
 */
imbalance: Imbalance, 
/**
 * The fewest concurrent streams that a server allowed on a connection, where that was fewer than wanted.
 */
streams_allowed: number | null, 
/**
 * From due to the complete response, of requests due at full load.
 */
latency: Latency, 
/**
 * The same, of requests due during the ramp.
 */
ramp_latency: Latency, 
/**
 * From when a dial was due to the connection.
 */
connect: Latency, 
/**
 * From when the transport was open to TLS, by a full handshake.
 */
tls: Latency, 
/**
 * The same, by resuming an earlier session.
 */
tls_resumed: Latency, 
/**
 * From when the WebSocket upgrade was sent to its 101.
 */
handshake: Latency, 
/**
 * HTTP and TCP: from due to the first byte of the response, of requests due at full load. gRPC: to its first message; of
 * server streaming, of calls due during the ramp too.
 */
first_byte: Latency, 
/**
 * The same, of requests due during the ramp.
 */
ramp_first_byte: Latency, 
/**
 * From due to when the loop was able to send.
 */
lag: Latency, 
/**
 * From one message of a server to the next: of a response of gRPC, of server streaming; of a WebSocket, those of
 * [`Tick::pushes`].
 */
gap: Latency, 
/**
 * From the time in such a message to its receipt.
 */
delay: Latency, 
/**
 * Broadcasts: from the first receiver's receipt to the last's; censored where one of them got none.
 */
spread: Latency, 
/**
 * HTTP/2: from when a PING was sent beside requests to its acknowledgement; censored where none came in time.
 */
ping_rtt: Latency, 
/**
 * How long each connection that was lost had been silent.
 */
silence: Latency, };

/**
 * The phase of a run.
 */
export type Phase = "ramp" | "pause" | "hold" | "drain";

/**
 * Things counted in a period.
 */
export type Counts = { 
/**
 * Dials that led to a connection for the first time.
 */
opened: number, 
/**
 * Dials that did not.
 */
failed: number, 
/**
 * Connections lost without notice.
 */
dropped: number, 
/**
 * Connections closed by the server with an announcement.
 */
closed: number, 
/**
 * Dialled again successfully, after that or after a loss.
 */
redialled: number, 
/**
 * Connections that throng closed as planned: their calls were done, or fewer are wanted.
 */
finished: number, 
/**
 * Of those, the ones that have nothing more to do, and are not dialled again.
 */
done: number, 
/**
 * Of those, too, the ones that are dialled again if there is more to do.
 */
left: number, 
/**
 * Idle connections that ended after the load had, while responses to others were awaited: by the server, or by throng, so
 * that the others have their turn.
 */
ended_after: number, 
/**
 * First dials after an adaptive ramp gave up: no dial had succeeded for a whole timeout.
 */
forced: number, 
/**
 * Local addresses that turned out to be taken; the next was used.
 */
addresses_skipped: number, 
/**
 * Dials that began; see [`crate::books`] for what becomes of them.
 */
dialled: number, 
/**
 * Those whose outcome was not known when the run ended.
 */
given_up: number, 
/**
 * Connections that were to arrive and were not dialled: the load ended before throng came to them.
 */
undialled: number, 
/**
 * Faults of connections that no request was due on; each other one is a request's.
 */
connection_faults: number, 
/**
 * Requests due: each is sent, or missed, and stands in one account at any time; see [`crate::books`].
 */
due: number, 
/**
 * Requests sent; one that was withdrawn and is sent again, twice.
 */
sent: number, 
/**
 * Sent, and due again: the server ended the connection with an announcement before it acted on them.
 */
withdrawn: number, 
/**
 * Sent, and ended by throng without a fault: calls that stay open, and messages listened for, when the load ends.
 */
revoked: number, 
/**
 * Sent, and ended by a fault without a complete response.
 */
failed_requests: number, 
/**
 * Sent, with neither a response nor a fault when the run ended.
 */
unanswered: number, 
/**
 * Fire-and-forget messages; not among the requests.
 */
told: number, 
/**
 * Messages that the server sent without a request; bytes without framing are none.
 */
pushed: number, 
/**
 * Messages that servers send without a request for each: of responses of gRPC, and of WebSockets those of
 * [`Tick::pushes`].
 */
messages: number, 
/**
 * Due and never sent: no connection was free in time, or none could be dialled.
 */
missed: number, 
/**
 * Complete responses, correct or not.
 */
answered: number, 
/**
 * Of those, the ones that are not as expected, or lack what their connection needs.
 */
wrong: number, 
/**
 * Of those, the ones that came at full load.
 */
answered_at_load: number, 
/**
 * Responses after which the connection was kept.
 */
kept: number, 
/**
 * Bytes received, heads included.
 */
bytes_in: number, 
/**
 * Bytes sent.
 */
bytes_out: number, 
/**
 * Bytes of complete responses without their heads.
 */
body_bytes_in: number, };

/**
 * One fault and how often.
 */
export type FaultCount = { 
/**
 * Whose doing it was.
 */
side: string, 
/**
 * In which part of a connection's life.
 */
stage: string, 
/**
 * What went wrong.
 */
kind: string, 
/**
 * How often.
 */
count: number, 
/**
 * The kernel's error, `EADDRNOTAVAIL`; the code of a GOAWAY, `ENHANCE_YOUR_CALM`, or of a WebSocket close; of a `bad-answer`, what is wrong with it. Of the same fault with another detail there is a count of its own.
 */
detail?: string, };

/**
 * An [`ErrorSample`] as records have it.
 */
export type ErrorSample = { 
/**
 * Whose doing.
 */
side: string, 
/**
 * When in the connection's life.
 */
stage: string, 
/**
 * What was wrong.
 */
kind: string, 
/**
 * When it was read, by the clock of the ticks.
 */
at: number, 
/**
 * Of HTTP or gRPC.
 */
status: number | null, 
/**
 * Whether `bytes` are the first of the response.
 */
from_start: boolean, 
/**
 * At most 240, base64; secrets are masked.
 */
bytes: string, };

/**
 * An exchange that went wrong.
 */
export type Example = { 
/**
 * Whose doing.
 */
side: string, 
/**
 * When in the connection's life.
 */
stage: string, 
/**
 * What was wrong.
 */
kind: string, 
/**
 * When it ended, by the clock of the ticks.
 */
at: number, 
/**
 * What was sent and received, in lines; secrets are masked. At most 16 KiB.
 */
text: string, };

/**
 * A moment with a name.
 */
export type Mark = { 
/**
 * When, by the clock of the ticks.
 */
at: number, 
/**
 * What happened.
 */
kind: MarkKind, 
/**
 * The stage's name; `paused`, `load 90 %`; an experiment with its answer.
 */
what: string, };

/**
 * What happened at a moment.
 */
export type MarkKind = "stage" | "command" | "experiment";

/**
 * What happened at a destination in a period, or at a group of neighbouring ones where there are more than
 * [`MAX_DESTINATIONS`]; merges as a tick does.
 */
export type Destination = { 
/**
 * Dials that led to a connection for the first time.
 */
opened: number, 
/**
 * Dials that did not.
 */
failed: number, 
/**
 * Connections lost without notice.
 */
dropped: number, 
/**
 * Connections closed by the server with an announcement.
 */
closed: number, 
/**
 * Dialled again successfully, after that or after a loss.
 */
redialled: number, 
/**
 * Connections that throng closed as planned.
 */
finished: number, 
/**
 * Requests sent; one that was withdrawn and is sent again, twice.
 */
sent: number, 
/**
 * Of those, the ones that the server has not acted on, or that throng has revoked.
 */
withdrawn: number, 
/**
 * Right and wrong responses, complete ones.
 */
answered: number, 
/**
 * What went wrong.
 */
faults: FaultCount[], 
/**
 * From due to the whole response, of requests due at full load, to two significant digits; those that ended without a
 * response are censored.
 */
latency: Latency, };

/**
 * An agent as it is known before the first tick.
 */
export type AgentShare = { 
/**
 * Its name in the fleet.
 */
id: string, 
/**
 * Connections that are its share of the plan.
 */
wanted: number, 
/**
 * Processors that it may use.
 */
cores: number, };

/**
 * What each agent of a fleet did in a period. A column for each figure has the agents by their places in
 * [`Header::agents`](crate::Header::agents); those beyond its end have 0. Columns, since a record of a thousand agents is
 * stored, and sent to pages, each second.
 */
export type AgentTicks = { 
/**
 * How often each has reported: once a second and when its load ends, never while it is away.
 */
reports: Array<number>, 
/**
 * 1: lost at the end of the period.
 */
lost: Latest, 
/**
 * Connections open at the end of the period.
 */
open: Latest, 
/**
 * Dials that led to a connection, repeated ones included.
 */
connects: Array<number>, 
/**
 * Complete responses, and messages sent without a reply expected.
 */
requests: Array<number>, 
/**
 * Faults.
 */
faults: Array<number>, 
/**
 * 99th percentile of latency, microseconds, at least 1; of several reports the highest. 0: without a response.
 */
latency_p99_us: Highest, 
/**
 * 99th percentile of how late it sent, microseconds, at least 1; the same. 0: nothing was due at full load.
 */
lag_p99_us: Highest, 
/**
 * CPU time of its process, milliseconds.
 */
cpu_ms: Array<number>, };

/**
 * What each agent is at the end of a period: a later period's takes its place.
 */
export type Latest = Array<number>;

/**
 * The highest value of each agent in a period.
 */
export type Highest = Array<number>;

/**
 * What first dials of an adaptive ramp have met, in a period; counted once their results are due, a little later.
 */
export type Congestion = { 
/**
 * First dials.
 */
dialled: number, 
/**
 * Of those, the ones that were not open within a few round trips: their SYN was lost.
 */
lost: number, 
/**
 * Of those dialled, the ones of a shard that paces its dials, because SYNs were lost before.
 */
paced: number, 
/**
 * Of those, the ones of a time in which its pace was reached.
 */
reached: number, 
/**
 * First dials of a shard before it met a limit: SYNs that were lost, or first responses that came too late for more of them.
 * Counted when they are made, as those after it are.
 */
straight: number, 
/**
 * First dials of a shard after that.
 */
bent: number, };

/**
 * By how much the books of a shard, since its start, do not balance; zeros if they do. Merged: the worst shard's.
 */
export type Imbalance = { 
/**
 * Requests due that stand in no account, or in two.
 */
due: number, 
/**
 * Requests sent, of which the same is true.
 */
sent: number, 
/**
 * Dials.
 */
dials: number, 
/**
 * Connections.
 */
connections: number, };

/**
 * Messages of WebSockets that are no reply to one of ours, in a period.
 */
export type Pushes = { 
/**
 * Messages: unsolicited ones, and those that a step waited for.
 */
count: number, 
/**
 * Bytes of their payloads.
 */
bytes: number, 
/**
 * Bytes of the largest one.
 */
bytes_max: number, 
/**
 * Unsolicited ones that lack a time or a number which the scenario names, and for which it has no rule.
 */
unread: number, 
/**
 * Those with a time that is later than the clock of this host: their delay counts as zero.
 */
ahead: number, 
/**
 * Those with a number.
 */
numbered: number, 
/**
 * Numbers that were left out when a higher one came on the same WebSocket.
 */
skipped: number, 
/**
 * Numbers of these that came after all: late, and out of order.
 */
late: number, 
/**
 * Messages with a number that had come before on the same WebSocket.
 */
duplicates: number, 
/**
 * Messages whose number is so far below the last one that the sequence has begun anew.
 */
restarts: number, 
/**
 * Broadcasts: numbers that were sent to all receivers, with the outcome known.
 */
broadcasts: number, 
/**
 * Of those, the ones that all of them received.
 */
complete: number, 
/**
 * Connections open at its end that were opened so lately that what they receive may be history: they receive no broadcast yet.
 */
fresh: number, 
/**
 * Broadcasts whose outcome is not known: who received which number, and when; in what sinks are shown, none.
 */
receipts: [number, number, number, number][], };

/**
 * The distribution of one time, of what came to its end; what never did is counted beside it as [censored](Latency::censor).
 * 8 KiB for each factor of two that the times span, 220 KiB at the most (a bucket of 32 bits would be full after a day and
 * a half at 30,000 a second); one a shard, never one a connection.
 */
export type Latency = { histogram: string, 
/**
 * Exact sum, nanoseconds: the mean does not suffer from the buckets.
 */
sum: number, 
/**
 * Exact, and `u64::MAX` where nothing is recorded.
 */
min: number, max: number, 
/**
 * Times that have no end: right-censored observations.
 */
censored: number, 
/**
 * Those among the recorded that are lower bounds.
 */
stalled: number, 
/**
 * The most that was taken off one of them, nanoseconds.
 */
taken_off: number, };

/**
 * How many, their sum, their squares' sum and their extremes: enough for a mean and its deviation, exactly.
 */
export type Moments = { count: number, sum: number, squares: number, 
/**
 * `u64::MAX` where nothing is recorded.
 */
min: number, max: number, };

/**
 * The distribution of a rate, to three digits from a thousandth per second on.
 */
export type Rates = Latency;

/**
 * Counts and times of the probe in a period; merges like a tick.
 */
export type Probe = { 
/**
 * Requests that were sent, or given up before.
 */
sent: number, 
/**
 * Requests with a correct response.
 */
answered: number, 
/**
 * Failed: not dialled, lost, timed out, or with a wrong response.
 */
failed: number, 
/**
 * Without a response or a fault when the run ended.
 */
unanswered: number, 
/**
 * What went wrong, with requests and with their connections.
 */
faults: FaultCount[], 
/**
 * Responses by status.
 */
status: Record<string, number>, 
/**
 * From due to the complete correct response, on kept connections.
 */
kept: Latency, 
/**
 * The same on a fresh connection each, its dial and handshake included.
 */
fresh: Latency, 
/**
 * Of both, those that were due at full load.
 */
held: Latency, 
/**
 * From when a dial of the probe was due until it was connected.
 */
connect: Latency, };

/**
 * Resources used by throng; of several machines, figures known only per machine are none.
 */
export type Generator = { 
/**
 * CPU time, seconds.
 */
cpu_s: number, 
/**
 * The time in which it was used, from the first sample to the last, seconds; of several machines the longest.
 */
over_s: number, 
/**
 * The part of it that the kernel took, seconds.
 */
system_s: number, 
/**
 * Resident memory, bytes.
 */
rss_bytes: number, 
/**
 * Slope of resident memory against open connections over the ramp; none where the points do not carry one.
 */
user_bytes_per_connection: number | null, 
/**
 * CPU time over the hold, as a share of what its threads could have had; none where the hold was too short.
 */
cpu_share: number | null, 
/**
 * Longest delay of an iteration of its event loop, microseconds.
 */
stall_us: number, };

/**
 * What was seen last, named as in [`Observation`].
 */
export type Samples = { 
/**
 * The target's processes.
 */
target: TargetSample | null, 
/**
 * The host that throng runs on.
 */
host: HostSample | null, 
/**
 * The target's host, if `throng observe` reports it.
 */
target_host: HostSample | null, 
/**
 * throng itself.
 */
own: ProcessSample | null, 
/**
 * Connections on the target's side: TCP sockets that its kernel counts in the network namespace beyond those before
 * the first dial, half of them if both ends are there. `None`: that side is not observed.
 */
connections: number | null, 
/**
 * Thresholds, judged by all that was measured so far; without those on what only the end of a run has.
 */
thresholds: Array<ThresholdResult>, };

/**
 * The target's processes: those that hold its listener, and their children that run the same program.
 */
export type TargetSample = { 
/**
 * The process that listens; with a master and workers, the first worker.
 */
pid: number, 
/**
 * Its command, as the kernel has it: 15 letters at most.
 */
command: string, 
/**
 * All of them together.
 */
process: ProcessSample, 
/**
 * Each individually, `pid` first, then by number; at most 64 ([`TargetSample::MAX_PROCESSES`]). Not stored per second.
 */
processes: Array<ProcessMemory>, 
/**
 * Open descriptors in their fullest file table, without direct descriptors of io_uring. `None`: not readable, or too
 * expensive to read.
 */
open_files: number | null, 
/**
 * The limit of that table (soft RLIMIT_NOFILE).
 */
open_files_limit: number | null, 
/**
 * Connections in the fullest accept queue of the target's listeners. `None`: netlink is not permitted.
 */
accept_queue: number | null, 
/**
 * The backlog of that queue.
 */
accept_backlog: number | null, 
/**
 * Bytes left in its control group, if that differs from the observer's and the machine's.
 */
memory_available: number | null, 
/**
 * Processes in its control group killed by the OOM killer.
 */
group_oom_kills: number, 
/**
 * The smallest CPU quota of its control groups, where one has a quota.
 */
cpu_quota: CpuQuota | null, 
/**
 * Counters of its Java virtual machines, summed, if there are any.
 */
jvm: JvmSample | null, 
/**
 * Names of threads that ran at the first sample and have ended since, in a process that still runs: each name once,
 * and only if no thread of that name is left; at most 8 ([`TargetSample::MAX_THREADS_GONE`]). Not stored per second.
 */
threads_gone?: Array<string>, 
/**
 * Errors it has logged since the first sample, the first line of each kind. Only read by a run on the same machine;
 * not stored per second.
 */
log?: Array<LogLine>, };

/**
 * The memory of one process.
 */
export type ProcessMemory = { 
/**
 * Process.
 */
pid: number, 
/**
 * Resident memory, bytes: what it shares with others is in it.
 */
rss_bytes: number, };

/**
 * What a control group leaves of the processors (kernel document `scheduler/sched-bwc`).
 */
export type CpuQuota = { 
/**
 * How many: 0.2 is a fifth of one.
 */
cores: number, 
/**
 * Periods since the group was created in which it had something to run (`nr_periods`).
 */
periods: number, 
/**
 * Those of them in which it used up its quota, and waited (`nr_throttled`).
 */
throttled: number, };

/**
 * A line of a target's log that names an error.
 */
export type LogLine = { 
/**
 * Which error.
 */
kind: LogKind, 
/**
 * The file, as its process names it.
 */
file: string, 
/**
 * The line, cut off, with control characters escaped.
 */
line: string, };

/**
 * The event that a line of a log reports.
 */
export type LogKind = "heap" | "memory" | "open-files" | "threads" | "ports" | "connections" | "error";

/**
 * Java virtual machines, by their own counters; those of G1 are as of its last pause.
 */
export type JvmSample = { 
/**
 * Of the heap, in use.
 */
heap_used_bytes: number, 
/**
 * Of the heap, taken from the system.
 */
heap_committed_bytes: number, 
/**
 * The most that the heap may grow to (`-Xmx`); 0 where that is not known.
 */
heap_max_bytes: number, 
/**
 * Garbage collections since it was started.
 */
gc_count: number, 
/**
 * Time in them since it was started, nanoseconds.
 */
gc_pause_ns: number, };

/**
 * Some processes, taken together.
 */
export type ProcessSample = { 
/**
 * Alive.
 */
processes: number, 
/**
 * Their threads.
 */
threads: number, 
/**
 * Resident memory in bytes, summed: what they share counts for each.
 */
rss_bytes: number, 
/**
 * CPU time in user space, nanoseconds, in steps of a clock tick (10 ms as a rule).
 */
cpu_user_ns: number, 
/**
 * CPU time in the kernel, the same.
 */
cpu_system_ns: number, 
/**
 * Processors used since the previous sample: 1.5 is one and a half.
 */
cores_used: number, 
/**
 * Processors that the first of them may use, by affinity and control group.
 */
cores: number | null, 
/**
 * Share of a processor that the busiest of their threads (the first 64) used since the previous sample.
 */
busiest_thread: number, 
/**
 * The same with the time for which it was ready to run and had none: 1 is a thread that could not have done more.
 */
busiest_wanted: number, 
/**
 * Threads among those that used or waited for a processor 95 % of the time or more.
 */
threads_full: number, 
/**
 * Time for which those threads were ready to run and had no processor, nanoseconds.
 */
run_queue_wait_ns: number, 
/**
 * Times that a thread was put off its processor before it was done; counted for throng itself only.
 */
involuntary_switches: number, 
/**
 * Processes that a signal or a debugger has stopped (state `T` or `t`).
 */
stopped: number, 
/**
 * Threads (of the first 64) in a wait that no signal ends (state `D`): a disk, as a rule.
 */
blocked: number, 
/**
 * Processors that the first of them may run on, as `Cpus_allowed_list` has them; empty where that is not known.
 */
cpus: string, };

/**
 * A host, as far as connections feel it.
 */
export type HostSample = { 
/**
 * TCP sockets of the network namespace.
 */
sockets: SockStat, 
/**
 * Events of TCP in the network namespace.
 */
tcp: NetCounters, 
/**
 * Pages of socket memory from which on the kernel is under pressure (`tcp_mem`, second number), whole machine.
 */
tcp_mem_pressure_pages: number | null, 
/**
 * Connections that the firewall tracks.
 */
conntrack: number | null, 
/**
 * The most that it can.
 */
conntrack_max: number | null, 
/**
 * Packets that it dropped because it could track no further connection.
 */
conntrack_drops: number | null, 
/**
 * Memory that may still be taken, bytes; the control group's where that is less.
 */
memory_available: number, 
/**
 * Memory that the kernel holds for itself, bytes, page cache not counted.
 */
kernel_bytes: number, 
/**
 * The part of it that the kernel calls reclaimable, and counts as available: the inodes of sockets are there too.
 */
slab_reclaimable_bytes: number, 
/**
 * Processes killed by the OOM killer, whole machine.
 */
oom_kills: number, };

/**
 * TCP sockets of a network namespace now, from `/proc/net/sockstat`.
 */
export type SockStat = { 
/**
 * Sockets in use; a connection within the namespace has two.
 */
tcp_inuse: number, 
/**
 * Closed by their program, but not yet by the peer.
 */
tcp_orphans: number, 
/**
 * Connections in TIME_WAIT.
 */
tcp_tw: number, 
/**
 * Memory that socket buffers of the whole machine hold, in pages; the limit is `tcp_mem`.
 */
tcp_mem_pages: number, };

/**
 * TCP events since the network namespace was created; a counter that the kernel does not have is zero (kernel document
 * `networking/snmp_counter`). [`NetCounters::since`] is the difference of two samples.
 */
export type NetCounters = { 
/**
 * Dials that failed: refused, or reset while opening (`AttemptFails`, RFC 4022).
 */
attempt_fails: number, 
/**
 * Open connections that were reset (`EstabResets`).
 */
estab_resets: number, 
/**
 * Resets sent (`OutRsts`).
 */
out_resets: number, 
/**
 * Segments sent again (`RetransSegs`).
 */
retrans_segs: number, 
/**
 * Retransmitted SYNs and SYN-ACKs (`TCPSynRetrans`).
 */
syn_retrans: number, 
/**
 * Retransmission timers that fired (`TCPTimeouts`).
 */
tcp_timeouts: number, 
/**
 * Connections that found a listener's accept queue full (`ListenOverflows`).
 */
listen_overflows: number, 
/**
 * Connections that a listener dropped for any reason (`ListenDrops`).
 */
listen_drops: number, 
/**
 * SYNs dropped because the queue of half-open connections was full (`TCPReqQFullDrop`).
 */
syn_queue_drops: number, 
/**
 * SYNs to which a SYN cookie was sent for the same reason (`TCPReqQFullDoCookies`).
 */
syn_cookies: number, 
/**
 * Connections ended because socket memory ran out (`TCPAbortOnMemory`).
 */
abort_on_memory: number, 
/**
 * Times that socket memory came under pressure (`TCPMemoryPressures`).
 */
memory_pressures: number, 
/**
 * Receive queues cut down because a socket had too much memory (`PruneCalled`).
 */
pruned: number, 
/**
 * Connections that skipped TIME_WAIT because `tcp_max_tw_buckets` was reached (`TCPTimeWaitOverflow`).
 */
time_wait_overflow: number, 
/**
 * ICMP and ICMPv6 messages *unreachable* or *prohibited* (`InDestUnreachs`, `Icmp6InDestUnreachs`).
 */
icmp_unreachable: number, 
/**
 * Segments that this machine itself did not let out when they were sent again (`TCPRetransFail`).
 */
retrans_fails: number, };

/**
 * A run in figures, in the order in which they are written.
 */
export type Summary = { 
/**
 * `throng.summary/1`.
 */
schema: string, 
/**
 * Whether it passed.
 */
verdict: Verdict, 
/**
 * The last line of the output: the verdict in one sentence, with the limit and its fix.
 */
headline: string, 
/**
 * Why it did not pass, and notes (`note: …`), which change nothing.
 */
reasons: Array<string>, 
/**
 * Why times, and what is judged by them, are not the target's, if throng was late or could not dial; absent otherwise. The verdict is
 * `invalid`, or `fail` if something else failed.
 */
unreliable: string | null, 
/**
 * Which error in throng ended the run, and where: message, place in the source, thread; absent otherwise. The verdict is `invalid`, and
 * the figures are those until then.
 */
failure: string | null, 
/**
 * What stopped the target, the path or this machine, if a limit was reached.
 */
limit: Limit | null, 
/**
 * The seed of the random numbers: `--seed` with it repeats the run.
 */
seed: number, 
/**
 * The I/O backend: `uring`, `epoll` or `tun`.
 */
io: string, 
/**
 * Commands of the user during the run.
 */
asks: Array<UserCommand>, 
/**
 * What the target was asked after the load; absent where nothing was.
 */
experiments: Array<ExperimentSummary>, 
/**
 * Each destination separately, if there are several; if there are more than 64, neighbours are combined.
 */
destinations: Array<DestinationSummary>, 
/**
 * What the slow, the wrong and the missing have in common: for each of the three the clearest, if there is any.
 */
in_common: Array<InCommon>, 
/**
 * From due to sent: how late throng was.
 */
lag_us: Quantiles, 
/**
 * Each population separately, by name, in the order of the scenario.
 */
populations: { [key in string]: PopulationSummary }, 
/**
 * The probe, if there is one.
 */
probe: ProbeSummary | null, 
/**
 * What throng cost.
 */
generator: Generator, 
/**
 * What the target cost, where it can be seen.
 */
target_cost: ProcessCost | null, 
/**
 * What a connection cost the kernel.
 */
kernel_bytes_per_connection: KernelCost | null, 
/**
 * Costs by regression, with their errors.
 */
cost: Cost, 
/**
 * What target, hosts and throng itself showed meanwhile.
 */
observed: Observation, 
/**
 * The run's figures as shares of this machine's calibration (`throng calibrate`); null if it was not calibrated.
 */
rig: CalibrationShare | null, 
/**
 * Thresholds, in the user's order.
 */
thresholds: Array<ThresholdResult>, 
/**
 * How long full load was to last, seconds, if the run ended before because no connection was left; absent otherwise.
 */
planned_s: number | null, 
/**
 * The agents of a fleet; absent without one.
 */
agents: Array<AgentSummary>, 
/**
 * As the user wrote it.
 */
target: string, 
/**
 * Shards.
 */
threads: number, 
/**
 * How long the ramps took, in which connections are opened; of several populations the longest.
 */
ramp_s: number, 
/**
 * How long full load lasted; of several populations the longest.
 */
duration_s: number, 
/**
 * From the first dial to the end of full load; of one of several populations to its last response, if that came before.
 */
elapsed_s: number, 
/**
 * Connections.
 */
connections: Connections, 
/**
 * What went wrong.
 */
faults: Array<FaultCount>, 
/**
 * Requests.
 */
requests: Requests, 
/**
 * The error rate.
 */
errors: Errors, 
/**
 * From due to the response, of requests due at full load.
 */
latency_us: Quantiles, 
/**
 * The same of the ramps.
 */
ramp_latency_us: Quantiles, 
/**
 * From due to connected.
 */
connect_us: Quantiles, 
/**
 * From when the transport was open to TLS, by a full handshake.
 */
tls_us: Quantiles, 
/**
 * The same, by resuming an earlier session.
 */
tls_resumed_us: Quantiles, 
/**
 * From when the WebSocket upgrade was sent to its 101.
 */
handshake_us: Quantiles, 
/**
 * From due to the first byte of the response, of gRPC to its first message, of requests due at full load; HTTP and TCP.
 */
first_byte_us: Quantiles, 
/**
 * Between consecutive messages of a server: in a gRPC server-streaming response, or pushed on a
 * WebSocket.
 */
gap_us: Quantiles, 
/**
 * Messages that servers pushed on WebSockets.
 */
pushes: PushFigures, 
/**
 * From the timestamp in a pushed message to its receipt.
 */
delay_us: Quantiles, 
/**
 * Broadcasts: from the first receiver's receipt to the last's.
 */
spread_us: Quantiles, 
/**
 * HTTP/2: from a PING, sent in addition to requests, to its acknowledgement.
 */
ping_rtt_us: Quantiles, 
/**
 * HTTP/2: how many of the wanted streams per connection the server allowed; absent if it allowed all. With several
 * populations, of the one with the fewest.
 */
streams: StreamLimit | null, };

/**
 * What a run means.
 */
export type Verdict = "pass" | "fail" | "invalid" | "interrupted";

/**
 * What kept a run from reaching its load.
 */
export type Limit = { 
/**
 * The side that the limit is on.
 */
side: string, 
/**
 * The cause.
 */
cause: string, 
/**
 * Connections open when it showed.
 */
at_connections: number, 
/**
 * How sure that is.
 */
certainty: Certainty, 
/**
 * Second of the run at which it was first seen, to a second; none where that is not known.
 */
first_seen_s: number | null, 
/**
 * What it is, in one sentence without the fix: `connection refused: nothing listens on 127.0.0.1:81`.
 */
sentence: string, 
/**
 * What was seen.
 */
detail: string, 
/**
 * What to do.
 */
cure: string, };

/**
 * How sure a limit is.
 */
export type Certainty = "guess" | "inferred" | "seen";

/**
 * Connections over the whole run.
 */
export type Connections = { 
/**
 * Planned.
 */
wanted: number, 
/**
 * Those of them that arrive at a rate, and are closed after their requests; absent if there are none.
 */
arriving: number, 
/**
 * Dialled successfully for the first time.
 */
opened: number, 
/**
 * Failed dials.
 */
failed: number, 
/**
 * Dials under way when the run ended; absent if there are none.
 */
given_up: number, 
/**
 * Most open at once.
 */
peak: number, 
/**
 * Open at the end of the hold.
 */
held: number, 
/**
 * Lost without notice.
 */
dropped: number, 
/**
 * Those of them that were lost after the end of the load, while the last responses were waited for: not from `held`.
 */
dropped_in_drain: number, 
/**
 * Closed by the server with an announcement.
 */
closed: number, 
/**
 * Dialled again after that, or after a loss.
 */
redialled: number, 
/**
 * Closed by throng as planned: its calls were done, or fewer connections were wanted.
 */
finished: number, 
/**
 * Of agents of a fleet that were lost, those that they had open by their last reports; absent if there are none.
 */
lost: number, 
/**
 * Opened per second over the ramp.
 */
open_per_s: number, 
/**
 * Dialled in an adaptive ramp before the target limited it, because SYNs were lost, or first responses came too late for more
 * connections; absent if it did not.
 */
bent_at: number | null, 
/**
 * Opened per second by an adaptive ramp while SYNs were lost, which is what the target, or a firewall before it, accepts; absent if
 * there was no whole second of that.
 */
accept_per_s: number, 
/**
 * Dialled at a fixed rate after an adaptive ramp had reached its deadline, or had got nowhere for one timeout; absent if there are
 * none.
 */
forced: number, 
/**
 * Open at the end of the hold as the target's host counts them; none where that cannot be seen.
 */
seen_by_target: number | null, 
/**
 * Established at the end of the hold by the kernel only: they were in the target's accept queue, and are not among
 * those `held`; none if its queue cannot be read.
 */
unaccepted: number | null, 
/**
 * Seconds from the last packet of the target, if only an acknowledgement, on any of a sample of the connections held,
 * to the end of the hold; null if this cannot be seen.
 */
quiet_s: number | null, };

/**
 * Requests over the whole run; `per_s` at full load.
 */
export type Requests = { 
/**
 * Due: the sum of `answered`, `failed`, `unanswered` and `missed`, and on a fleet `lost`.
 */
due: number, 
/**
 * Sent. A request or message that met an announced close, and is sent again, counts once.
 */
sent: number, 
/**
 * Complete responses.
 */
answered: number, 
/**
 * Of those, the ones that were not as expected, or lacked a value that their connection needed.
 */
wrong: number, 
/**
 * Of `answered`, those after which the connection stayed open for another request.
 */
kept: number, 
/**
 * Sent, and ended by a fault without a complete response.
 */
failed: number, 
/**
 * Outstanding when the run ended.
 */
unanswered: number, 
/**
 * Due and not sent: no connection was free within the timeout, or none could be dialled.
 */
missed: number, 
/**
 * Due on agents of a fleet that were lost before its outcome was reported; absent if there are none.
 */
lost: number, 
/**
 * Fire-and-forget messages.
 */
told: number, 
/**
 * Messages in gRPC responses, including calls that were cancelled when the load ended, and messages pushed by servers
 * on WebSockets.
 */
messages: number, 
/**
 * Responses per second at full load; of several populations, each at its own.
 */
per_s: number, 
/**
 * A closed loop that left throng's threads no time: the target may be able to do more than `per_s`.
 */
lower_bound: boolean, 
/**
 * Bytes received.
 */
bytes_in: number, 
/**
 * Bytes sent.
 */
bytes_out: number, 
/**
 * Content bytes of complete responses; those of a truncated one are only in `bytes_in`.
 */
body_bytes_in: number, 
/**
 * `bytes_in` per second of `elapsed_s`.
 */
bytes_in_per_s: number, 
/**
 * `bytes_out` per second of `elapsed_s`.
 */
bytes_out_per_s: number, 
/**
 * Responses by status, those that refused a WebSocket upgrade among them.
 */
status: Record<string, number>, };

/**
 * Messages that a server pushed on WebSockets, over the whole run.
 */
export type PushFigures = { 
/**
 * Unsolicited messages, and those that a step waited for.
 */
count: number, 
/**
 * The same per second of `elapsed_s`.
 */
per_s: number, 
/**
 * Bytes of their payloads.
 */
bytes: number, 
/**
 * Bytes of the largest one.
 */
bytes_max: number, 
/**
 * Messages without a time or a number that the scenario names.
 */
unread: number, 
/**
 * Messages with a time later than this host's clock: their delay counts as zero.
 */
ahead: number, 
/**
 * 0 if their timestamps are from this host's clock; null if that is not known, because the target is on another host.
 */
clock_offset_us: number | null, 
/**
 * Those with a number.
 */
numbered: number, 
/**
 * Numbers that were left out, and did not come later.
 */
lost: number, 
/**
 * Messages with a number that had come before on the same WebSocket.
 */
duplicates: number, 
/**
 * Messages that came after one with a higher number.
 */
out_of_order: number, 
/**
 * Sequences of numbers that restarted.
 */
restarts: number, 
/**
 * Broadcasts whose outcome is known.
 */
broadcasts: number, 
/**
 * Of those, the ones that all receivers have received.
 */
complete: number, };

/**
 * What failed, and of how much: the error rate.
 */
export type Errors = { 
/**
 * Requests due without a right response, and what failed of connections on which none was due.
 */
count: number, 
/**
 * Requests due, and what failed of connections on which none was due; where no request was due at all, dials.
 */
of: number, };

/**
 * A distribution in figures; times in microseconds.
 */
export type Quantiles = { 
/**
 * How many times.
 */
count: number, 
/**
 * Arithmetic mean, exact.
 */
mean: number, 
/**
 * Standard deviation, from the histogram.
 */
stdev: number, 
/**
 * The shortest, exact.
 */
min: number, 
/**
 * Median.
 */
p50: number, 
/**
 * 75th percentile.
 */
p75: number, 
/**
 * 90th percentile.
 */
p90: number, 
/**
 * 95th percentile.
 */
p95: number, 
/**
 * 99th percentile.
 */
p99: number, 
/**
 * 99.9th percentile.
 */
p999: number, 
/**
 * 99.99th percentile.
 */
p9999: number, 
/**
 * The longest, exact.
 */
max: number, 
/**
 * Requests without a response, or dials without a connection, which the figures above do not include; null if there
 * are none.
 */
censored: Censored | null, 
/**
 * Times that are lower bounds because throng stalled; null if there are none.
 */
stalled: Stalled | null, };

/**
 * Requests without a response, or dials without a connection, and the percentiles if these count as longer than every measured
 * time, as in thresholds. Microseconds; null if the percentile falls among them.
 */
export type Censored = { 
/**
 * How many never ended.
 */
count: number, 
/**
 * As a share (0..=1) of all.
 */
share: number, 
/**
 * Median.
 */
p50: number | null, 
/**
 * 75th percentile.
 */
p75: number | null, 
/**
 * 90th percentile.
 */
p90: number | null, 
/**
 * 95th percentile.
 */
p95: number | null, 
/**
 * 99th percentile.
 */
p99: number | null, 
/**
 * 99.9th percentile.
 */
p999: number | null, 
/**
 * 99.99th percentile.
 */
p9999: number | null, };

/**
 * Times whose end was noticed only after a stall of throng. The stall is subtracted: the result is a lower bound, and with
 * the stall added an upper one.
 */
export type Stalled = { 
/**
 * How many.
 */
count: number, 
/**
 * As a share (0..=1) of the times measured.
 */
share: number, 
/**
 * The most that was taken off one of them, microseconds.
 */
most: number, };

/**
 * A load in figures: one population's, or all of them together.
 */
export type Figures = { 
/**
 * As the user wrote it.
 */
target: string, 
/**
 * Shards.
 */
threads: number, 
/**
 * How long the ramps took, in which connections are opened; of several populations the longest.
 */
ramp_s: number, 
/**
 * How long full load lasted; of several populations the longest.
 */
duration_s: number, 
/**
 * From the first dial to the end of full load; of one of several populations to its last response, if that came before.
 */
elapsed_s: number, 
/**
 * Connections.
 */
connections: Connections, 
/**
 * What went wrong.
 */
faults: Array<FaultCount>, 
/**
 * Requests.
 */
requests: Requests, 
/**
 * The error rate.
 */
errors: Errors, 
/**
 * From due to the response, of requests due at full load.
 */
latency_us: Quantiles, 
/**
 * The same of the ramps.
 */
ramp_latency_us: Quantiles, 
/**
 * From due to connected.
 */
connect_us: Quantiles, 
/**
 * From when the transport was open to TLS, by a full handshake.
 */
tls_us: Quantiles, 
/**
 * The same, by resuming an earlier session.
 */
tls_resumed_us: Quantiles, 
/**
 * From when the WebSocket upgrade was sent to its 101.
 */
handshake_us: Quantiles, 
/**
 * From due to the first byte of the response, of gRPC to its first message, of requests due at full load; HTTP and TCP.
 */
first_byte_us: Quantiles, 
/**
 * Between consecutive messages of a server: in a gRPC server-streaming response, or pushed on a
 * WebSocket.
 */
gap_us: Quantiles, 
/**
 * Messages that servers pushed on WebSockets.
 */
pushes: PushFigures, 
/**
 * From the timestamp in a pushed message to its receipt.
 */
delay_us: Quantiles, 
/**
 * Broadcasts: from the first receiver's receipt to the last's.
 */
spread_us: Quantiles, 
/**
 * HTTP/2: from a PING, sent in addition to requests, to its acknowledgement.
 */
ping_rtt_us: Quantiles, 
/**
 * HTTP/2: how many of the wanted streams per connection the server allowed; absent if it allowed all. With several
 * populations, of the one with the fewest.
 */
streams: StreamLimit | null, };

/**
 * A server that allowed fewer concurrent streams on a connection than wanted (RFC 9113 section 6.5.2,
 * SETTINGS_MAX_CONCURRENT_STREAMS).
 */
export type StreamLimit = { 
/**
 * `--streams`.
 */
wanted: number, 
/**
 * The fewest that it allowed, of all connections.
 */
allowed: number, };

/**
 * One population in figures.
 */
export type PopulationSummary = { 
/**
 * By step, if it has several, those of which a request was due, in the order of the scenario.
 */
steps: { [key in string]: StepSummary }, 
/**
 * As the user wrote it.
 */
target: string, 
/**
 * Shards.
 */
threads: number, 
/**
 * How long the ramps took, in which connections are opened; of several populations the longest.
 */
ramp_s: number, 
/**
 * How long full load lasted; of several populations the longest.
 */
duration_s: number, 
/**
 * From the first dial to the end of full load; of one of several populations to its last response, if that came before.
 */
elapsed_s: number, 
/**
 * Connections.
 */
connections: Connections, 
/**
 * What went wrong.
 */
faults: Array<FaultCount>, 
/**
 * Requests.
 */
requests: Requests, 
/**
 * The error rate.
 */
errors: Errors, 
/**
 * From due to the response, of requests due at full load.
 */
latency_us: Quantiles, 
/**
 * The same of the ramps.
 */
ramp_latency_us: Quantiles, 
/**
 * From due to connected.
 */
connect_us: Quantiles, 
/**
 * From when the transport was open to TLS, by a full handshake.
 */
tls_us: Quantiles, 
/**
 * The same, by resuming an earlier session.
 */
tls_resumed_us: Quantiles, 
/**
 * From when the WebSocket upgrade was sent to its 101.
 */
handshake_us: Quantiles, 
/**
 * From due to the first byte of the response, of gRPC to its first message, of requests due at full load; HTTP and TCP.
 */
first_byte_us: Quantiles, 
/**
 * Between consecutive messages of a server: in a gRPC server-streaming response, or pushed on a
 * WebSocket.
 */
gap_us: Quantiles, 
/**
 * Messages that servers pushed on WebSockets.
 */
pushes: PushFigures, 
/**
 * From the timestamp in a pushed message to its receipt.
 */
delay_us: Quantiles, 
/**
 * Broadcasts: from the first receiver's receipt to the last's.
 */
spread_us: Quantiles, 
/**
 * HTTP/2: from a PING, sent in addition to requests, to its acknowledgement.
 */
ping_rtt_us: Quantiles, 
/**
 * HTTP/2: how many of the wanted streams per connection the server allowed; absent if it allowed all. With several
 * populations, of the one with the fewest.
 */
streams: StreamLimit | null, };

/**
 * One step of a population.
 */
export type StepSummary = { 
/**
 * From due to the response, of requests due at full load.
 */
latency_us: Quantiles, 
/**
 * The same, of requests due during the ramp.
 */
ramp_latency_us: Quantiles, 
/**
 * What went wrong with its requests.
 */
faults: Array<FaultCount>, };

/**
 * A destination in the summary.
 */
export type DestinationSummary = { 
/**
 * Address and port; of a group the first.
 */
destination: string, 
/**
 * The last of a group; the same as the first where it is no group.
 */
last: string, 
/**
 * Dials that led to a connection for the first time.
 */
opened: number, 
/**
 * Dials that did not.
 */
failed: number, 
/**
 * Connections lost without notice.
 */
dropped: number, 
/**
 * Connections closed by the server with an announcement.
 */
closed: number, 
/**
 * Dialled again successfully.
 */
redialled: number, 
/**
 * Open at the end of the run.
 */
open: number, 
/**
 * Requests sent; one that met an announced close, and is sent again, counts twice.
 */
sent: number, 
/**
 * Responses, right and wrong ones.
 */
answered: number, 
/**
 * What went wrong.
 */
faults: Array<FaultCount>, 
/**
 * From due to the response, of requests due at full load, to two significant digits; `censored`: those that had none.
 */
latency_us: Quantiles, };

/**
 * What is bad about a share of requests.
 */
export type Bad = "slow" | "wrong" | "missing";

/**
 * What a share of requests has in common, and the others have not.
 */
export type InCommon = { 
/**
 * What is bad about them.
 */
of: Bad, 
/**
 * How many there are.
 */
count: number, 
/**
 * Their share of all requests that ended.
 */
share: number, 
/**
 * By what they differ from the others: `destination`, `source`, `connection`, `moment`, `open` (connections), `number` (of the
 * request on its connection), `pause` (before it), `step`, `size` (of the response) or `part` (of the response).
 */
dimension: string, 
/**
 * How likely a difference like this is by chance, before the correction for the number of dimensions that were tested.
 */
p: number, 
/**
 * It in one sentence: `all of the 33 % that took 301 ms went to 127.0.0.3:80`.
 */
sentence: string, 
/**
 * The buckets of the dimension, those with the largest shares of bad ones first; moments in the order of time.
 */
rows: Array<InCommonRow>, };

/**
 * A bucket of a dimension.
 */
export type InCommonRow = { 
/**
 * `127.0.0.3:80`.
 */
name: string, 
/**
 * Bad requests in it.
 */
bad: number, 
/**
 * All others in it.
 */
others: number, };

/**
 * The probe in the summary; times in microseconds.
 */
export type ProbeSummary = { 
/**
 * Requests per second as configured.
 */
rate: number, 
/**
 * Begun.
 */
sent: number, 
/**
 * Requests with a correct response.
 */
answered: number, 
/**
 * Requests without a correct response.
 */
failed: number, 
/**
 * Without a response when the run ended.
 */
unanswered: number, 
/**
 * What those without a correct response met, the most frequent first.
 */
failures: Array<ProbeFailure>, 
/**
 * Of all with a response.
 */
latency_us: Quantiles, 
/**
 * Of those on kept connections.
 */
kept_us: Quantiles, 
/**
 * Of those on fresh ones.
 */
fresh_us: Quantiles, 
/**
 * Of those that were due at full load, kept and fresh.
 */
held_us: Quantiles, 
/**
 * Dial to connection.
 */
connect_us: Quantiles, 
/**
 * The probe's times by the number of open connections, ascending.
 */
by_connections: Array<ProbePoint>, };

/**
 * What requests of the probe met instead of a correct response.
 */
export type ProbeFailure = { 
/**
 * `status 503`, `timeout`, `connection reset`, `dial refused`.
 */
what: string, 
/**
 * How often.
 */
count: number, };

/**
 * The probe while this many connections were open.
 */
export type ProbePoint = { 
/**
 * Connections of the population, on average over the requests that ended.
 */
connections: number, 
/**
 * Median time to a response, kept and fresh together.
 */
latency_p50_us: number, 
/**
 * 99th percentile of it.
 */
latency_p99_us: number, 
/**
 * The share (0..=1) of the requests that had no response: in neither of these.
 */
no_response: number, 
/**
 * 99th percentile of the connect time.
 */
connect_p99_us: number, };

/**
 * What the target's process cost, where it runs on this machine.
 */
export type ProcessCost = { 
/**
 * Process.
 */
pid: number, 
/**
 * Resident memory of all its processes, bytes.
 */
rss_bytes: number, 
/**
 * Slope of resident memory against open connections over the ramp; none where the points do not carry one.
 */
user_bytes_per_connection: number | null, 
/**
 * CPU time since the run began, seconds.
 */
cpu_s: number, 
/**
 * The time in which it was used, from the first sample to the last, seconds.
 */
over_s: number, 
/**
 * Each process individually at the last sample at full load, `pid` first; at most 64.
 */
processes: Array<ProcessMemory>, };

/**
 * What a connection costs the kernel.
 */
export type KernelCost = { 
/**
 * Bytes.
 */
value: number, 
/**
 * One figure for the pair: both ends are on this machine.
 */
both_ends: boolean, };

/**
 * Costs by regression; `None`: too little data.
 */
export type Cost = { 
/**
 * Memory of the target's processes, bytes per connection, over the ramp.
 */
target_bytes: Fit | null, 
/**
 * Memory of throng, bytes per connection, over the ramp.
 */
generator_bytes: Fit | null, 
/**
 * Memory of the kernel on this machine, bytes per connection, over the ramp; for the pair if both ends are here.
 */
kernel_bytes: Fit | null, 
/**
 * Memory of the kernel on the target's host, if `throng observe` reports it.
 */
target_kernel_bytes: Fit | null, 
/**
 * CPU of the target, microseconds for each connection opened, its first request included.
 */
target_cpu_us_per_open: Fit | null, 
/**
 * CPU of throng, the same.
 */
generator_cpu_us_per_open: Fit | null, 
/**
 * CPU of the target, microseconds for each connection opened with a TLS handshake, over the ramp; its first request is included.
 * None where other connections are opened too: their CPU time cannot be separated.
 */
target_cpu_us_per_handshake: Fit | null, 
/**
 * CPU of throng, the same.
 */
generator_cpu_us_per_handshake: Fit | null, 
/**
 * CPU of the target at full load, microseconds per response.
 */
target_cpu_us_per_request: Fit | null, 
/**
 * CPU of throng at full load, microseconds per response.
 */
generator_cpu_us_per_request: Fit | null, 
/**
 * CPU of the target at full load, microseconds per second that a connection stays open; only if each sends less than
 * one request in 20 s, whose cost is included.
 */
target_cpu_us_per_idle_second: Fit | null, 
/**
 * CPU of throng, the same.
 */
generator_cpu_us_per_idle_second: Fit | null, 
/**
 * Connections at which the memory of the target's host would be used up, by these slopes, less a reserve. Of a target on a managed
 * runtime only with its live heap, since its resident memory grows with requests too.
 */
ceiling_connections: number | null, 
/**
 * The runtime with a heap of its own that the target runs on (`JVM`, `Node.js`, …): its resident memory is not what lives in it.
 */
target_runtime: string | null, 
/**
 * Live heap of the target's Java virtual machines for each connection, bytes: the slope of what was left after full
 * collections before the first dial, during the ramp and at full load (`--target-gc`), where they lie on a line.
 */
target_live_bytes: number | null, 
/**
 * The same with its error.
 */
target_live_fit: Fit | null, 
/**
 * Each of those collections: connections open, and bytes left.
 */
target_live_points: Array<[number, number]>, 
/**
 * Why there is no such figure although it was requested.
 */
target_live_failure: string | null, 
/**
 * Slopes of memory that are rejected because the fit is too poor ([`Fit::is_carried`]).
 */
discarded: Array<Discarded>, };

/**
 * A slope that the points do not carry.
 */
export type Discarded = { 
/**
 * Of which figure of [`Cost`].
 */
figure: string, 
/**
 * As it was fitted.
 */
fit: Fit, };

/**
 * The slope of a line through what was measured, by least squares.
 */
export type Fit = { 
/**
 * The slope.
 */
value: number, 
/**
 * Its standard error, from the scatter about the line.
 */
error: number, 
/**
 * Share of the variance that the line explains (R²); 1 is a perfect line.
 */
r2: number, };

/**
 * All that was seen, from before the first dial to the end of the hold, about once a second.
 */
export type Observation = { 
/**
 * The target's processes, where they could be seen: on this machine, or through `throng observe`.
 */
target: TargetSeen | null, 
/**
 * The host that throng runs on, and its network namespace. The target's too where `target_host` is `None` and the
 * target is here.
 */
host: HostSeen | null, 
/**
 * The target's host, if `throng observe` reported it.
 */
target_host: HostSeen | null, 
/**
 * throng itself.
 */
own: ProcessSeen | null, 
/**
 * How `throng observe` responded, if it was used.
 */
observer: ObserverSeen | null, 
/**
 * The message of ICMP that dials were rejected with, where one was seen.
 */
rejection: RejectionSeen | null, };

/**
 * A gauge, over all samples of a run.
 */
export type Gauge<N> = { 
/**
 * At the first sample, before the first dial.
 */
first: N, 
/**
 * Least.
 */
min: N, 
/**
 * Most.
 */
max: N, 
/**
 * At the last sample, at the end of the hold.
 */
last: N, };

/**
 * Something that is counted, by the phase in which it grew.
 */
export type Growth = { 
/**
 * While connections were dialled for the first time.
 */
ramp: number, 
/**
 * At full load.
 */
hold: number, };

/**
 * The processes that serve the target.
 */
export type TargetSeen = { 
/**
 * The process that listens; with a master and workers, the first worker.
 */
pid: number, 
/**
 * All of them together. `processes.min` of 0: they ended.
 */
process: ProcessSeen, 
/**
 * Open descriptors in the fullest table of theirs; see [`TargetSample::open_files`].
 */
open_files: Gauge<number> | null, 
/**
 * What that table may hold (soft RLIMIT_NOFILE).
 */
open_files_limit: number | null, 
/**
 * Connections waiting in the fullest accept queue.
 */
accept_queue: Gauge<number> | null, 
/**
 * How many may wait there.
 */
accept_backlog: number | null, 
/**
 * Samples at which that queue was full.
 */
accept_queue_full: number, 
/**
 * Bytes that its control group left it; `None`: it has none of its own.
 */
memory_available: Gauge<number> | null, 
/**
 * Processes of its control group that the kernel killed for lack of memory.
 */
group_oom_kills: Growth, 
/**
 * The CPU quota of its control group, cores; `None`: it has none.
 */
cpu_quota: number | null, 
/**
 * Periods of that quota in which it had something to run.
 */
quota_periods: Growth, 
/**
 * Those of them in which it used up its quota, and waited for the next.
 */
quota_throttled: Growth, 
/**
 * Its Java virtual machines' heap, bytes in use; the most it may grow to is `jvm_heap_max_bytes`.
 */
jvm_heap_used_bytes: Gauge<number> | null, 
/**
 * The most that heap may grow to, bytes.
 */
jvm_heap_max_bytes: number | null, 
/**
 * Threads that have ended; see [`TargetSample::threads_gone`].
 */
threads_gone: Array<string>, 
/**
 * Lines of its logs that name an error; see [`TargetSample::log`].
 */
log: Array<LogLine>, };

/**
 * Some processes, taken together; see [`ProcessSample`] for what each means.
 */
export type ProcessSeen = { 
/**
 * Alive.
 */
processes: Gauge<number>, 
/**
 * Their threads.
 */
threads: Gauge<number>, 
/**
 * Resident memory, bytes.
 */
rss_bytes: Gauge<number>, 
/**
 * CPU time in user space, nanoseconds.
 */
cpu_user_ns: Growth, 
/**
 * CPU time in the kernel, nanoseconds.
 */
cpu_system_ns: Growth, 
/**
 * Processors used between two samples; from the second one on.
 */
cores_used: Gauge<number> | null, 
/**
 * The same at full load only; `None`: the hold was too short for two samples.
 */
cores_used_hold: Gauge<number> | null, 
/**
 * Processors that they may use.
 */
cores: number | null, 
/**
 * Share of a processor that the busiest thread used between two samples.
 */
busiest_thread: Gauge<number> | null, 
/**
 * The same at full load only.
 */
busiest_thread_hold: Gauge<number> | null, 
/**
 * The most that a thread used or waited for a processor at full load: 1 is one that could not have done more.
 */
busiest_wanted_hold: Gauge<number> | null, 
/**
 * Threads that used or waited for one 95 % of the time or more.
 */
threads_full: Gauge<number>, 
/**
 * Time ready to run, without a processor, nanoseconds, all threads.
 */
run_queue_wait_ns: Growth, 
/**
 * Times put off the processor; throng itself only.
 */
involuntary_switches: Growth, };

/**
 * Figures of a host that affect connections.
 */
export type HostSeen = { 
/**
 * TCP sockets of the network namespace in use.
 */
tcp_sockets: Gauge<number>, 
/**
 * Closed by their program, not by the peer.
 */
tcp_orphans: Gauge<number>, 
/**
 * In TIME_WAIT.
 */
tcp_time_wait: Gauge<number>, 
/**
 * Pages of socket memory, whole machine.
 */
tcp_mem_pages: Gauge<number>, 
/**
 * Pages from which on the kernel is under memory pressure.
 */
tcp_mem_pressure_pages: number | null, 
/**
 * Events of TCP during the ramp.
 */
tcp_ramp: NetCounters, 
/**
 * Events of TCP at full load.
 */
tcp_hold: NetCounters, 
/**
 * Connections that the firewall tracks.
 */
conntrack: Gauge<number> | null, 
/**
 * The most that it can.
 */
conntrack_max: number | null, 
/**
 * Packets that it dropped because it could track no further connection; `None`: the kernel does not count them.
 */
conntrack_drops: Growth | null, 
/**
 * Memory that may still be taken, bytes.
 */
memory_available: Gauge<number>, 
/**
 * Processes killed by the OOM killer, whole machine.
 */
oom_kills: Growth, };

/**
 * How `throng observe` responded.
 */
export type ObserverSeen = { 
/**
 * Its address.
 */
address: string, 
/**
 * Its responses.
 */
answers: number, 
/**
 * Failed or invalid responses.
 */
failures: number, 
/**
 * The last of those.
 */
last_failure: string | null, };

/**
 * An ICMP message to a dial made to find out what rejects them.
 */
export type RejectionSeen = { 
/**
 * What was dialled.
 */
at: string, 
/**
 * The sender of the message, if the kernel reports it.
 */
by: string | null, 
/**
 * Whether that is an address of throng's own host.
 */
own: boolean, 
/**
 * Its meaning, as `administratively prohibited`.
 */
message: string, 
/**
 * Its type and its code (RFC 792, RFC 1812), or those of ICMPv6 (RFC 4443).
 */
icmp_type: number, 
/**
 * As above.
 */
icmp_code: number, 
/**
 * It is of ICMPv6.
 */
icmp6: boolean, };

/**
 * A run's figures as shares of its machine's calibration; 1 is as much.
 */
export type CalibrationShare = { 
/**
 * When that was.
 */
calibrated_at: string, 
/**
 * Of the connection rate; none if the ramp was too short.
 */
open_per_s: number | null, 
/**
 * Of the responses per second at full load; none without any, or if the hold was too short.
 */
requests_per_s: number | null, 
/**
 * The most connections open, of those that would fit.
 */
connections: number | null, };

/**
 * A figure, and what limited it.
 */
export type Measurement = { 
/**
 * The figure.
 */
value: number, 
/**
 * `processors`, `other programs` (that had them), `memory`, `ports`, `file table` or `unknown`.
 */
limited_by: string, 
/**
 * Processors that both ends used for it; `None`: not measured, or not the point.
 */
cores_used: number | null, 
/**
 * Threads of both ends that were ready to run and had none, on average; `None` as above.
 */
cores_waited: number | null, };

/**
 * A threshold and how it went.
 */
export type ThresholdResult = { 
/**
 * As written.
 */
expr: string, 
/**
 * Measured, in the unit of the summary's figure, or in percent where the bound is; none where there was nothing to
 * measure, or where requests without a response decide, and then it has failed.
 */
value: number | null, 
/**
 * The same with its unit, as people read it: `141 µs`, `99.9 %`. Without a value, the share that decides: `2.3 % had no
 * response in time`; empty where nothing was measured. Of a time that failed, with throng's own lag where `--max-lag` allows
 * much of it: `45.0 ms, including throng's own lag (p99 14.0 ms)`.
 */
shown: string, 
/**
 * Met.
 */
pass: boolean, 
/**
 * Not judged: throng was late or could not dial, and may be why it is met or not (`unreliable` of the run); absent otherwise.
 */
unreliable: boolean, };

/**
 * A command of the user that was carried out.
 */
export type UserCommand = { 
/**
 * When, since the first dial.
 */
at_s: number, 
/**
 * `paused`, `resumed`, `load 90 %`, `drained`, `stopped`.
 */
what: string, };

/**
 * A question to the target, asked after the load by one connection more, because two causes look alike in what the load saw.
 */
export type ExperimentSummary = { 
/**
 * What was done: `pause`, `other-source`, `other-address`, `alone`, `half`, `small-segments`, `silent`, `busy`, `tls`.
 */
what: string, 
/**
 * The causes that it distinguishes: `a full target, or a broken target`.
 */
why: string, 
/**
 * The outcome: `served after 0.4 ms, with 50 connections open`.
 */
answer: string, 
/**
 * How long it took, seconds.
 */
took_s: number, };

/**
 * What became of an agent.
 */
export type AgentState = "ready" | "done" | "lost" | "refused";

/**
 * An agent of a fleet.
 */
export type AgentSummary = { 
/**
 * Its name in the fleet.
 */
id: string, 
/**
 * What became of it.
 */
state: AgentState, 
/**
 * Connections that it was to hold.
 */
wanted: number, 
/**
 * Processors that it may use.
 */
cores: number, 
/**
 * Connections that it held at the end of the load; 0 if it was lost before.
 */
held: number, 
/**
 * Connections that it had when it was lost; absent if there are none.
 */
lost_with: number, 
/**
 * If it was lost: requests due whose outcome was not known as of its last report. Those of all agents are the run's `requests.lost`;
 * absent if there are none.
 */
requests_lost: number, 
/**
 * How much later than the run it began, milliseconds; null if it did not begin.
 */
began_late_ms: number | null, 
/**
 * The possible error of that figure, milliseconds: its clock is estimated from the round trip of messages.
 */
clock_error_ms: number | null, 
/**
 * How late it sent, 99th percentile, microseconds; null if unknown.
 */
lag_p99_us: number | null, 
/**
 * CPU time of its process as a share of what its processors could have provided during the run; null if unknown.
 */
cpu_share: number | null, 
/**
 * Longest delay of an iteration of its event loop, microseconds; absent if none did.
 */
stall_us: number, 
/**
 * For how long it sent no report while it held its part, seconds; absent if it was never away.
 */
away_s: number, 
/**
 * The longest time for which no agent carried its part, seconds: from its last sign of life until others had taken it over; absent if none has.
 */
gap_s: number, 
/**
 * Connections that it closed because its lease had expired, which are among the run's `finished`; absent if there are none.
 */
closed_by_lease: number, 
/**
 * What it sent and what did not arrive; absent if there is none.
 */
missing_ticks: number, 
/**
 * Its final message arrived, and its counts match the totals there.
 */
sealed: boolean, 
/**
 * Why it ended before its time; absent if it did not.
 */
why: string | null, 
/**
 * Agents that have taken over its part after it was lost; absent if there are none.
 */
taken_over_by: Array<string>, };

/**
 * A search in figures, in the order in which they are written.
 */
export type FindSummary = { 
/**
 * `throng.find/1`.
 */
schema: string, 
/**
 * What was made larger, as `--by` names it: `connections`.
 */
by: string, 
/**
 * What a load is counted in: `connections/s`.
 */
unit: string, 
/**
 * As the user wrote it.
 */
target: string, 
/**
 * Repeats the search's random choices.
 */
seed: number, 
/**
 * The largest load that passed; 0 where none did.
 */
max: number, 
/**
 * What the target sustains is within this of `max`, with a probability of 95 %; 0 if no load failed because of the target.
 */
error: number, 
/**
 * How it ended.
 */
outcome: FindOutcome, 
/**
 * Throng itself, or with `--by rate` its number of connections, was the limit at each load that did not pass:
 * none shows a limit of the target.
 */
invalid: boolean, 
/**
 * The smallest load above `max` that did not pass, of those that show a limit of the target if there is one; none where all did.
 */
failed: number | null, 
/**
 * What that load did not meet.
 */
criterion: string | null, 
/**
 * Ended early: `max` passed; above it, nothing is known except `failed`.
 */
interrupted: boolean, 
/**
 * What ended it early, where that was no signal: `agent g2 was lost`, or `its time was over`; or which load was refused, and why, where all
 * smaller ones passed; absent otherwise.
 */
ended: string | null, 
/**
 * What stopped it.
 */
limit: Limit | null, 
/**
 * The load that showed the limit: not always that which failed first; null without a limit.
 */
limit_load: number | null, 
/**
 * What the probe's p99 was compared with; null with thresholds, and where no step had one.
 */
baseline: Baseline | null, 
/**
 * Requests per second of the probe; 0 without one. By rate they are part of each load, otherwise beside it.
 */
probe_per_s: number, 
/**
 * After what time the target closes idle connections, where pauses became shorter for that; null otherwise.
 */
idle: IdleTimeout | null, 
/**
 * The thresholds at `max`.
 */
thresholds: Array<ThresholdResult>, 
/**
 * Every load that was tried, ascending.
 */
curve: Array<Point>, };

/**
 * How a search ended.
 */
export type FindOutcome = "found" | "not-reached" | "unsettled" | "impossible";

/**
 * What the probe's p99 of a step is compared with where there are no thresholds: the lowest of those that passed.
 */
export type Baseline = { 
/**
 * The load that had it.
 */
load: number, 
/**
 * The 99th percentile of the probe's latency at full load of it, microseconds.
 */
probe_p99_us: number, 
/**
 * The most that a step may have, microseconds.
 */
allowed_us: number, };

/**
 * The target closes connections that are idle, and pauses between requests became shorter.
 */
export type IdleTimeout = { 
/**
 * After this many seconds, as it announced, or as connections were closed.
 */
timeout_s: number, 
/**
 * The shortest and the longest pause since then, seconds.
 */
think_s: [number, number], };

/**
 * One load that was tried.
 */
export type Point = { 
/**
 * Connections, or connections/s, or requests/s, those of the probe among them.
 */
load: number, 
/**
 * Whether the thresholds were met.
 */
pass: boolean, 
/**
 * Throng itself, or by rate its number of connections, was the limit, so that the step shows nothing about the target; it does not `pass`.
 */
invalid: boolean, 
/**
 * Connections open at the end of the step.
 */
held: number, 
/**
 * Responses per second.
 */
requests_per_s: number, 
/**
 * The median time from due to the response, microseconds; null where no request due at full load had one.
 */
latency_p50_us: number | null, 
/**
 * The 95th percentile of it.
 */
latency_p95_us: number | null, 
/**
 * The 99th percentile of it.
 */
latency_p99_us: number | null, 
/**
 * The share (0..=1) of the requests due at full load that had no response: in none of these percentiles.
 */
no_response: number, 
/**
 * The 99th percentile of the probe's latency at full load, `probe.held.p99` of a threshold; null without a probe.
 */
probe_p99_us: number | null, 
/**
 * The share (0..=1) of the probe's requests at full load that had no response.
 */
probe_no_response: number, 
/**
 * The 99th percentile of the time to connect; null where no dial became a connection.
 */
connect_p99_us: number | null, 
/**
 * The share (0..=1) of the dials that did not become a connection.
 */
connect_no_response: number, 
/**
 * The share (0..=1) that failed: of the requests due, and of the connections on which none was; of dials where no request was due. Null
 * where nothing was attempted.
 */
errors: number | null, 
/**
 * Processors that the target's processes used at full load, the most between two samples; null where they were not seen.
 */
target_cores: number | null, 
/**
 * Processors that they may use, by affinity and control group; null where that is not known.
 */
target_cores_limit: number | null, 
/**
 * The most that one of their threads used of a processor, or waited for one, at full load: 1 is a thread that could not have done more.
 */
target_thread: number | null, 
/**
 * Its place in the order in which loads were tried, from 1.
 */
step: number, 
/**
 * From the first dial to the end of full load, seconds.
 */
elapsed_s: number, 
/**
 * Why it did not pass; of one that passes, why it did not when it was measured before.
 */
reasons: Array<string>, };
