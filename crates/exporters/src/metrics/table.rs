//! The table of all metrics. A new figure needs only a row here; then all exporters write it.

use samples::{Fault, HostSample, Phase};
use units::Status;

use super::{
    Kind, Metric, POPULATION,
    read::{
        AGENT, AT, Labels,
        Read::{self, At, Each, Host, Jvm, Now, OfAgent, OfProbe, One, Sum, Target, Times},
        cpu, hosts, probe_times, reported, seconds, value,
    },
};

const fn counter(name: &'static str, help: &'static str, read: Read) -> Metric {
    Metric { name, kind: Kind::Counter, is_open: false, help, read }
}

const fn gauge(name: &'static str, help: &'static str, read: Read) -> Metric {
    Metric { name, kind: Kind::Gauge, is_open: false, help, read }
}

const fn histogram(name: &'static str, help: &'static str, read: Read) -> Metric {
    Metric { name, kind: Kind::Histogram, is_open: false, help, read }
}

const fn open(metric: Metric) -> Metric {
    Metric { is_open: true, ..metric }
}

const MODE: Labels = &["mode"];

/// The metrics, in the order in which they are written.
pub(crate) const TABLE: &[Metric] = &[
    gauge(
        "throng_run_info",
        "constant 1, with the target, seed and backend of the run as labels",
        Each(&["target", "seed", "io"], |m, s| {
            let (target, seed, io) = (&m.header.target, m.header.seed.to_string(), &m.header.io);
            s.number(&[target, &seed, io], Some(1.0));
        }),
    ),
    gauge(
        "throng_phase",
        "1 for the current phase",
        Each(&["phase"], |m, s| {
            for phase in Phase::ALL {
                s.number(&[phase.name()], Some(f64::from(u8::from(m.last.phase == *phase))));
            }
        }),
    ),
    gauge("throng_connections_open", "open connections", Now(|t| t.open)),
    gauge("throng_connections_wanted", "connections that the plan requires now", Now(|t| t.wanted)),
    counter("throng_connections_opened_total", "successful first dials", Sum(|t| t.counts.opened)),
    counter("throng_connections_failed_total", "failed dials", Sum(|t| t.counts.failed)),
    counter(
        "throng_connections_given_up_total",
        "dials under way when the run ended; 0 until then",
        Sum(|t| t.counts.given_up),
    ),
    counter("throng_connections_dropped_total", "connections lost without notice", Sum(|t| t.counts.dropped)),
    counter(
        "throng_connections_closed_total",
        "connections closed by the server with an announcement",
        Sum(|t| t.counts.closed),
    ),
    counter(
        "throng_connections_redialled_total",
        "connections dialled again after a close or a loss",
        Sum(|t| t.counts.redialled),
    ),
    counter(
        "throng_connections_finished_total",
        "connections closed by throng as planned",
        Sum(|t| t.counts.finished),
    ),
    counter(
        "throng_requests_due_total",
        "requests due, sent or not; the summary's `requests.due` is this without those revoked",
        Sum(|t| t.counts.due),
    ),
    counter(
        "throng_requests_total",
        "requests sent (WebSocket, TCP: messages); a request sent again because it crossed an announced \
        close counts twice; the summary's `requests.sent` is this without those withdrawn and revoked",
        Sum(|t| t.counts.sent),
    ),
    counter(
        "throng_requests_withdrawn_total",
        "requests sent that crossed an announced close: each is sent again, or missed",
        Sum(|t| t.counts.withdrawn),
    ),
    counter(
        "throng_requests_revoked_total",
        "requests that throng ended with the load, such as calls that stay open",
        Sum(|t| t.counts.revoked),
    ),
    gauge("throng_requests_waiting", "outstanding requests", Now(|t| t.waiting)),
    counter(
        "throng_requests_missed_total",
        "requests that were due but for which no connection became free, or was dialled, in time",
        Sum(|t| t.counts.missed),
    ),
    counter("throng_requests_failed_total", "requests ended by a fault", Sum(|t| t.counts.failed_requests)),
    counter("throng_responses_wrong_total", "unexpected responses", Sum(|t| t.counts.wrong)),
    counter(
        "throng_requests_without_response_total",
        "requests that ended without a response: failed, unanswered and missed ones; not in the histograms",
        Sum(|t| t.counts.without_response()),
    ),
    counter(
        "throng_requests_unanswered_total",
        "requests outstanding when the run ended; 0 until then",
        Sum(|t| t.counts.unanswered),
    ),
    counter("throng_messages_told_total", "messages sent without a reply expected", Sum(|t| t.counts.told)),
    counter(
        "throng_messages_received_total",
        "messages in gRPC responses, and messages pushed by servers on WebSockets",
        Sum(|t| t.counts.messages),
    ),
    counter("throng_pushes_total", "messages pushed by servers", Sum(|t| t.pushes.count)),
    counter("throng_push_bytes_total", "bytes of the payloads of pushes", Sum(|t| t.pushes.bytes)),
    counter("throng_pushes_unread_total", "pushes without time or number", Sum(|t| t.pushes.unread)),
    counter("throng_pushes_ahead_total", "pushes with a future timestamp", Sum(|t| t.pushes.ahead)),
    counter("throng_pushes_numbered_total", "pushes with a number", Sum(|t| t.pushes.numbered)),
    counter("throng_push_numbers_skipped_total", "skipped sequence numbers", Sum(|t| t.pushes.skipped)),
    counter("throng_pushes_late_total", "out-of-order pushes", Sum(|t| t.pushes.late)),
    counter("throng_pushes_duplicate_total", "duplicate pushes", Sum(|t| t.pushes.duplicates)),
    counter("throng_push_restarts_total", "restarts of sequences of pushes", Sum(|t| t.pushes.restarts)),
    counter("throng_broadcasts_total", "broadcasts with an outcome", Sum(|t| t.pushes.broadcasts)),
    counter(
        "throng_broadcasts_complete_total",
        "broadcasts that all receivers received",
        Sum(|t| t.pushes.complete),
    ),
    counter("throng_answers_total", "complete responses, correct or not", Sum(|t| t.counts.answered)),
    open(counter(
        "throng_statuses_total",
        "responses by status: an HTTP code, or the name of a gRPC status",
        Each(&[POPULATION, "status"], |m, s| {
            m.populations(|population, total, _| {
                for (status, n) in (0..).zip(total.status.iter()).filter(|(_, n)| **n > 0) {
                    s.number(&[population, &[&Status(status).to_string()]].concat(), Some(*n as f64));
                }
            });
        }),
    )),
    counter("throng_received_bytes_total", "bytes received, including headers", Sum(|t| t.counts.bytes_in)),
    counter(
        "throng_received_body_bytes_total",
        "content bytes of complete responses",
        Sum(|t| t.counts.body_bytes_in),
    ),
    counter("throng_sent_bytes_total", "bytes sent", Sum(|t| t.counts.bytes_out)),
    open(counter(
        "throng_faults_total",
        "faults by side, stage and kind",
        Each(&[POPULATION, "side", "stage", "kind"], |m, s| {
            m.populations(|population, total, _| {
                for (Fault { side, stage, kind, .. }, n) in total.faults.by_kind() {
                    let place = [side.name(), stage.name(), kind.name()];
                    s.number(&[population, &place].concat(), Some(n as f64));
                }
            });
        }),
    )),
    histogram(
        "throng_latency_seconds",
        "time from due to the response, for requests due at full load",
        Times(|t| &t.latency),
    ),
    histogram(
        "throng_ramp_latency_seconds",
        "time from due to the response, for requests due during the ramp",
        Times(|t| &t.ramp_latency),
    ),
    histogram(
        "throng_first_byte_seconds",
        "time from due to the first byte of the response, at full load",
        Times(|t| &t.first_byte),
    ),
    histogram(
        "throng_connect_seconds",
        "time from when a dial was due until it was connected",
        Times(|t| &t.connect),
    ),
    histogram(
        "throng_tls_seconds",
        "time of a full TLS handshake, from when the transport was open",
        Times(|t| &t.tls),
    ),
    histogram(
        "throng_tls_resumed_seconds",
        "time of a TLS handshake that resumed a session, from when the transport was open",
        Times(|t| &t.tls_resumed),
    ),
    histogram(
        "throng_handshake_seconds",
        "time from sending the WebSocket upgrade to receiving the 101",
        Times(|t| &t.handshake),
    ),
    histogram(
        "throng_gap_seconds",
        "time between consecutive messages of a server: in a gRPC server-streaming response, or pushed on a WebSocket",
        Times(|t| &t.gap),
    ),
    histogram(
        "throng_delay_seconds",
        "time from the timestamp in a pushed message to its receipt",
        Times(|t| &t.delay),
    ),
    histogram(
        "throng_spread_seconds",
        "broadcasts: time from the first receiver's receipt to the last's",
        Times(|t| &t.spread),
    ),
    histogram(
        "throng_ping_rtt_seconds",
        "time from an HTTP/2 PING, sent in addition to requests, to its acknowledgement",
        Times(|t| &t.ping_rtt),
    ),
    gauge("throng_destination_connections_open", "open connections to the destination", At(|d| d.open())),
    counter("throng_destination_requests_total", "requests sent to the destination", At(|d| d.sent)),
    counter(
        "throng_destination_answers_total",
        "complete responses from the destination",
        At(|d| d.answered),
    ),
    counter("throng_destination_faults_total", "faults at the destination", At(|d| d.faults.total())),
    counter(
        "throng_destination_without_response_total",
        "requests to the destination due at full load that ended without a response; not in the histogram",
        At(|d| d.latency.censored()),
    ),
    histogram(
        "throng_destination_latency_seconds",
        "time from due to the response from the destination, for requests due at full load, to two \
        significant digits",
        Each(AT, |m, s| m.destinations(|name, total, last| s.times(&[name], &total.latency, &last.latency))),
    ),
    histogram(
        "throng_lag_seconds",
        "time from due until throng sent",
        Each(&[], |m, s| s.times(&[], &m.total.lag, &m.last.lag)),
    ),
    counter("throng_probe_requests_total", "probe requests", OfProbe(|p| p.sent)),
    counter("throng_probe_answers_total", "correct responses to the probe", OfProbe(|p| p.answered)),
    counter("throng_probe_failed_total", "probe requests without a correct response", OfProbe(|p| p.failed)),
    counter(
        "throng_probe_unanswered_total",
        "probe requests outstanding when the run ended; 0 until then",
        OfProbe(|p| p.unanswered),
    ),
    histogram(
        "throng_probe_latency_seconds",
        "time from due to the response of the probe, on kept and on fresh connections",
        Each(&["connection"], |m, s| {
            probe_times(m, s, "kept", |probe| &probe.kept);
            probe_times(m, s, "fresh", |probe| &probe.fresh);
        }),
    ),
    gauge(
        "throng_agents",
        "agents of the fleet by state: up (reported in the second), silent (no report in the second), lost",
        Each(&["state"], |m, s| {
            m.agent_states().iter().for_each(|(state, n)| s.number(&[state], Some(*n as f64)))
        }),
    ),
    gauge(
        "throng_agent_up",
        "0 while the agent is lost, else 1",
        OfAgent(|total, _, at| Some(f64::from(u8::from(value(&total.lost.0, at) == 0)))),
    ),
    gauge(
        "throng_agent_processors",
        "processors that the agent may use",
        Each(AGENT, |m, s| {
            for agent in m.exported_agents() {
                s.number(&[&agent.id], Some(f64::from(agent.cores)));
            }
        }),
    ),
    gauge(
        "throng_agent_connections_open",
        "open connections of the agent; absent in a second without a report",
        OfAgent(|_, last, at| reported(last, at).then(|| value(&last.open.0, at) as f64)),
    ),
    counter(
        "throng_agent_connects_total",
        "successful dials of the agent, repeated ones included",
        OfAgent(|total, _, at| Some(value(&total.connects, at) as f64)),
    ),
    counter(
        "throng_agent_requests_total",
        "requests of the agent with a complete response, and messages sent without a reply expected",
        OfAgent(|total, _, at| Some(value(&total.requests, at) as f64)),
    ),
    counter(
        "throng_agent_faults_total",
        "faults at the agent",
        OfAgent(|total, _, at| Some(value(&total.faults, at) as f64)),
    ),
    gauge(
        "throng_agent_latency_p99_seconds",
        "99th percentile of the agent's latency in the second; absent if it had no response",
        OfAgent(|_, last, at| seconds(value(&last.latency_p99_us.0, at))),
    ),
    gauge(
        "throng_agent_lag_p99_seconds",
        "99th percentile of the agent's lag in the second; absent if nothing was due at full load",
        OfAgent(|_, last, at| seconds(value(&last.lag_p99_us.0, at))),
    ),
    counter(
        "throng_agent_cpu_seconds_total",
        "CPU time used by the agent's process",
        OfAgent(|total, _, at| Some(value(&total.cpu_ms, at) as f64 / 1e3)),
    ),
    counter(
        "throng_generator_cpu_seconds_total",
        "CPU time used by throng; on a fleet, by the coordinator",
        Each(MODE, |m, s| cpu(s, m.samples.own.as_ref())),
    ),
    gauge(
        "throng_generator_resident_bytes",
        "resident memory of throng; on a fleet, of the coordinator",
        One(|m| m.samples.own.as_ref().map(|own| own.rss_bytes as f64)),
    ),
    gauge(
        "throng_generator_stall_seconds",
        "longest delay of an iteration of throng's event loop in the period",
        One(|m| Some(m.last.stalled.secs_f64())),
    ),
    gauge(
        "throng_generator_busiest_thread",
        "share of a processor used by throng's busiest thread; on a fleet, the coordinator's",
        One(|m| m.samples.own.as_ref().map(|own| own.busiest_thread)),
    ),
    gauge(
        "throng_target_connections",
        "connections on the target's side: TCP sockets of its host beyond those before the run, of any program",
        One(|m| m.samples.connections.map(|n| n as f64)),
    ),
    gauge("throng_target_processes", "processes of the target", Target(|t| Some(t.process.processes))),
    gauge("throng_target_threads", "threads of the target", Target(|t| Some(t.process.threads))),
    gauge(
        "throng_target_resident_bytes",
        "resident memory of the target",
        Target(|t| Some(t.process.rss_bytes)),
    ),
    counter(
        "throng_target_cpu_seconds_total",
        "CPU time used by the target since its processes started",
        Each(MODE, |m, s| cpu(s, m.samples.target.as_ref().map(|target| &target.process))),
    ),
    gauge(
        "throng_target_busiest_thread",
        "share of a processor used by the target's busiest thread",
        One(|m| m.samples.target.as_ref().map(|target| target.process.busiest_thread)),
    ),
    gauge(
        "throng_target_open_files",
        "open descriptors in the target's fullest file table",
        Target(|t| t.open_files),
    ),
    gauge("throng_target_open_files_limit", "limit of that table", Target(|t| t.open_files_limit)),
    gauge(
        "throng_target_jvm_heap_used_bytes",
        "used heap of the target's Java virtual machines",
        Jvm(|jvm| jvm.heap_used_bytes as f64),
    ),
    gauge(
        "throng_target_jvm_heap_committed_bytes",
        "committed heap of the target's Java virtual machines",
        Jvm(|jvm| jvm.heap_committed_bytes as f64),
    ),
    counter(
        "throng_target_jvm_gc_total",
        "garbage collections of the target since it started",
        Jvm(|jvm| jvm.gc_count as f64),
    ),
    counter(
        "throng_target_jvm_gc_pause_seconds_total",
        "time that the target spent in garbage collections",
        Jvm(|jvm| jvm.gc_pause_ns as f64 / 1e9),
    ),
    gauge(
        "throng_target_accept_queue",
        "connections in the target's fullest accept queue",
        Target(|t| t.accept_queue),
    ),
    gauge("throng_target_accept_queue_limit", "backlog of that queue", Target(|t| t.accept_backlog)),
    gauge("throng_host_tcp_sockets", "TCP sockets in use", Host(|h| Some(h.sockets.tcp_inuse))),
    gauge("throng_host_tcp_orphans", "orphaned TCP sockets", Host(|h| Some(h.sockets.tcp_orphans))),
    gauge("throng_host_tcp_time_wait", "connections in TIME_WAIT", Host(|h| Some(h.sockets.tcp_tw))),
    gauge(
        "throng_host_tcp_memory_pages",
        "pages used by socket buffers",
        Host(|h| Some(h.sockets.tcp_mem_pages)),
    ),
    counter(
        "throng_host_tcp_events_total",
        "TCP events since the network namespace was created, named as in the summary's observed.host.tcp",
        Each(&["host", "event"], |m, s| {
            let none = HostSample::default();
            for (host, sample) in hosts(m) {
                for (event, n) in sample.unwrap_or(&none).tcp.named() {
                    s.number(&[host, event], sample.map(|_| n as f64));
                }
            }
        }),
    ),
    gauge("throng_host_conntrack", "conntrack entries", Host(|h| h.conntrack)),
    gauge("throng_host_conntrack_limit", "maximum number of conntrack entries", Host(|h| h.conntrack_max)),
    gauge("throng_host_available_bytes", "available memory", Host(|h| Some(h.memory_available))),
    gauge(
        "throng_host_kernel_bytes",
        "kernel memory, without the page cache",
        Host(|h| Some(h.kernel_bytes)),
    ),
    counter(
        "throng_host_oom_kills_total",
        "processes killed by the OOM killer since boot",
        Host(|h| Some(h.oom_kills)),
    ),
];
