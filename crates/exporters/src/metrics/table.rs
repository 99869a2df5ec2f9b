//! Every metric. A new figure is a row here, and every exporter has it.

use samples::{
    Destination, Fault, HostSample, JvmSample, Latency, Phase, Probe, ProcessSample, TargetSample, Tick,
};

use super::{Kind, Metric, Moment, POPULATION, Series, Value};

type Read = fn(&Moment, &mut Series);
type Labels = &'static [&'static str];

const fn metric(kind: Kind, name: &'static str, labels: Labels, help: &'static str, read: Read) -> Metric {
    Metric { name, kind, labels, is_open: false, help, read }
}

const fn counter(name: &'static str, labels: Labels, help: &'static str, read: Read) -> Metric {
    metric(Kind::Counter, name, labels, help, read)
}

const fn gauge(name: &'static str, labels: Labels, help: &'static str, read: Read) -> Metric {
    metric(Kind::Gauge, name, labels, help, read)
}

const fn histogram(name: &'static str, labels: Labels, help: &'static str, read: Read) -> Metric {
    metric(Kind::Histogram, name, labels, help, read)
}

const fn open(metric: Metric) -> Metric {
    Metric { is_open: true, ..metric }
}

const EACH: Labels = &[POPULATION];
const MODE: Labels = &["mode"];
const HOST: Labels = &["host"];
const AT: Labels = &["destination"];

/// In the order in which they are written.
pub(crate) const TABLE: &[Metric] = &[
    gauge(
        "throng_run_info",
        &["target", "seed", "io"],
        "constant 1, with the target, seed and backend of \
    the run as labels",
        |m, s| {
            let (target, seed, io) = (&m.header.target, m.header.seed.to_string(), &m.header.io);
            s.number(&[target, &seed, io], Some(1.0));
        },
    ),
    gauge("throng_phase", &["phase"], "1 for the current phase", |m, s| {
        for phase in Phase::ALL {
            s.number(&[phase.name()], Some(f64::from(u8::from(m.last.phase == *phase))));
        }
    }),
    gauge("throng_connections_open", EACH, "open connections", |m, s| now(m, s, |t| t.open)),
    gauge("throng_connections_wanted", EACH, "connections that the plan requires now", |m, s| {
        now(m, s, |t| t.wanted)
    }),
    counter("throng_connections_opened_total", EACH, "successful first dials", |m, s| {
        sum(m, s, |t| t.counts.opened)
    }),
    counter("throng_connections_failed_total", EACH, "failed dials", |m, s| sum(m, s, |t| t.counts.failed)),
    counter("throng_connections_dropped_total", EACH, "connections lost without an announcement", |m, s| {
        sum(m, s, |t| t.counts.dropped)
    }),
    counter(
        "throng_connections_closed_total",
        EACH,
        "connections closed by the server with an announcement",
        |m, s| sum(m, s, |t| t.counts.closed),
    ),
    counter(
        "throng_connections_redialled_total",
        EACH,
        "connections dialled again after a close or a loss",
        |m, s| sum(m, s, |t| t.counts.redialled),
    ),
    counter("throng_connections_finished_total", EACH, "connections closed by throng as planned", |m, s| {
        sum(m, s, |t| t.counts.finished)
    }),
    counter(
        "throng_requests_total",
        EACH,
        "requests sent (WebSocket, TCP: messages); a request sent again because it crossed an announced \
        close counts twice",
        |m, s| sum(m, s, |t| t.counts.sent),
    ),
    gauge("throng_requests_waiting", EACH, "outstanding requests", |m, s| now(m, s, |t| t.waiting)),
    counter(
        "throng_requests_missed_total",
        EACH,
        "requests that were due but for which no connection became free in time",
        |m, s| sum(m, s, |t| t.counts.missed),
    ),
    counter(
        "throng_requests_without_response_total",
        EACH,
        "requests that ended without a response, including missed ones; not in the histograms",
        |m, s| sum(m, s, |t| t.latency.censored() + t.ramp_latency.censored()),
    ),
    counter(
        "throng_requests_unanswered_total",
        EACH,
        "requests outstanding when the run ended; 0 until then",
        |m, s| sum(m, s, |t| t.counts.unanswered),
    ),
    counter("throng_messages_told_total", EACH, "messages sent without a reply expected", |m, s| {
        sum(m, s, |t| t.counts.told)
    }),
    counter("throng_answers_total", EACH, "complete responses, correct or not", |m, s| {
        sum(m, s, |t| t.counts.answered)
    }),
    open(counter("throng_statuses_total", &[POPULATION, "status"], "HTTP responses by status", |m, s| {
        m.populations(|population, total, _| {
            for (status, n) in total.status.iter().enumerate().filter(|(_, n)| **n > 0) {
                s.number(&[population, &[&status.to_string()]].concat(), Some(*n as f64));
            }
        });
    })),
    counter("throng_received_bytes_total", EACH, "bytes received, including headers", |m, s| {
        sum(m, s, |t| t.counts.bytes_in)
    }),
    counter("throng_received_body_bytes_total", EACH, "content bytes of complete responses", |m, s| {
        sum(m, s, |t| t.counts.body_bytes_in)
    }),
    counter("throng_sent_bytes_total", EACH, "bytes sent", |m, s| sum(m, s, |t| t.counts.bytes_out)),
    open(counter(
        "throng_faults_total",
        &[POPULATION, "side", "stage", "kind"],
        "faults by side, stage and kind",
        |m, s| {
            m.populations(|population, total, _| {
                for (Fault { side, stage, kind, .. }, n) in total.faults.by_kind() {
                    let place = [side.name(), stage.name(), kind.name()];
                    s.number(&[population, &place].concat(), Some(n as f64));
                }
            });
        },
    )),
    histogram(
        "throng_latency_seconds",
        EACH,
        "time from due to the response, for requests due at full load",
        |m, s| {
            m.populations(|label, total, last| s.times(label, &total.latency, &last.latency));
        },
    ),
    histogram(
        "throng_ramp_latency_seconds",
        EACH,
        "time from due to the response, for requests due during \
    the ramp",
        |m, s| {
            m.populations(|label, total, last| s.times(label, &total.ramp_latency, &last.ramp_latency));
        },
    ),
    histogram(
        "throng_first_byte_seconds",
        EACH,
        "time from due to the first byte of the response, at full load",
        |m, s| {
            m.populations(|label, total, last| s.times(label, &total.first_byte, &last.first_byte));
        },
    ),
    histogram(
        "throng_connect_seconds",
        EACH,
        "time from when a dial was due until it was connected",
        |m, s| {
            m.populations(|label, total, last| s.times(label, &total.connect, &last.connect));
        },
    ),
    histogram(
        "throng_handshake_seconds",
        EACH,
        "time from sending the WebSocket upgrade to receiving the \
    101",
        |m, s| {
            m.populations(|label, total, last| s.times(label, &total.handshake, &last.handshake));
        },
    ),
    gauge("throng_destination_connections_open", AT, "open connections to the destination", |m, s| {
        at_each(m, s, |own| own.open())
    }),
    counter("throng_destination_requests_total", AT, "requests sent to the destination", |m, s| {
        at_each(m, s, |own| own.sent)
    }),
    counter("throng_destination_answers_total", AT, "complete responses from the destination", |m, s| {
        at_each(m, s, |own| own.answered)
    }),
    counter("throng_destination_faults_total", AT, "faults at the destination", |m, s| {
        at_each(m, s, |own| own.faults.total())
    }),
    counter(
        "throng_destination_without_response_total",
        AT,
        "requests to the destination due at full load that ended without a response; not in the histogram",
        |m, s| at_each(m, s, |own| own.latency.censored()),
    ),
    histogram(
        "throng_destination_latency_seconds",
        AT,
        "time from due to the response from the destination, for requests due at full load, to two \
        significant digits",
        |m, s| m.destinations(|name, total, last| s.times(&[name], &total.latency, &last.latency)),
    ),
    histogram("throng_lag_seconds", &[], "time from due until throng sent", |m, s| {
        s.times(&[], &m.total.lag, &m.last.lag);
    }),
    counter("throng_probe_requests_total", &[], "probe requests", |m, s| probe(m, s, |p| p.sent)),
    counter("throng_probe_answers_total", &[], "correct responses to the probe", |m, s| {
        probe(m, s, |p| p.answered)
    }),
    counter("throng_probe_failed_total", &[], "probe requests without a correct response", |m, s| {
        probe(m, s, |p| p.failed)
    }),
    histogram(
        "throng_probe_latency_seconds",
        &["connection"],
        "time from due to the response of the probe, on kept and on fresh connections",
        |m, s| {
            thread(m, s, "kept", |probe| &probe.kept);
            thread(m, s, "fresh", |probe| &probe.fresh);
        },
    ),
    counter("throng_generator_cpu_seconds_total", MODE, "CPU time used by throng", |m, s| {
        let seconds = |of: fn(&ProcessSample) -> u64| m.samples.own.as_ref().map(|own| of(own) as f64 / 1e9);
        s.number(&["user"], seconds(|own| own.cpu_user_ns));
        s.number(&["system"], seconds(|own| own.cpu_system_ns));
    }),
    gauge("throng_generator_resident_bytes", &[], "resident memory of throng", |m, s| {
        s.number(&[], m.samples.own.as_ref().map(|own| own.rss_bytes as f64));
    }),
    gauge(
        "throng_generator_stall_seconds",
        &[],
        "longest delay of an iteration of throng's event loop in the period",
        |m, s| {
            s.number(&[], Some(m.last.stalled.secs_f64()));
        },
    ),
    gauge(
        "throng_generator_busiest_thread",
        &[],
        "share of a processor used by throng's busiest thread",
        |m, s| {
            s.number(&[], m.samples.own.as_ref().map(|own| own.busiest_thread));
        },
    ),
    gauge(
        "throng_target_connections",
        &[],
        "connections on the target's side, from its kernel's socket count",
        |m, s| s.number(&[], m.samples.connections.map(|n| n as f64)),
    ),
    gauge("throng_target_processes", &[], "processes of the target", |m, s| {
        target(m, s, |t| Some(t.process.processes))
    }),
    gauge("throng_target_threads", &[], "threads of the target", |m, s| {
        target(m, s, |t| Some(t.process.threads))
    }),
    gauge("throng_target_resident_bytes", &[], "resident memory of the target", |m, s| {
        target(m, s, |t| Some(t.process.rss_bytes))
    }),
    counter(
        "throng_target_cpu_seconds_total",
        MODE,
        "CPU time used by the target since its processes started",
        |m, s| {
            let seconds =
                |of: fn(&TargetSample) -> u64| m.samples.target.as_ref().map(|t| of(t) as f64 / 1e9);
            s.number(&["user"], seconds(|t| t.process.cpu_user_ns));
            s.number(&["system"], seconds(|t| t.process.cpu_system_ns));
        },
    ),
    gauge(
        "throng_target_busiest_thread",
        &[],
        "share of a processor used by the target's busiest thread",
        |m, s| {
            s.number(&[], m.samples.target.as_ref().map(|target| target.process.busiest_thread));
        },
    ),
    gauge("throng_target_open_files", &[], "open descriptors in the target's fullest file table", |m, s| {
        target(m, s, |t| t.open_files)
    }),
    gauge("throng_target_open_files_limit", &[], "limit of that table", |m, s| {
        target(m, s, |t| t.open_files_limit)
    }),
    gauge(
        "throng_target_jvm_heap_used_bytes",
        &[],
        "used heap of the target's Java virtual machines",
        |m, s| jvm(m, s, |jvm| jvm.heap_used_bytes as f64),
    ),
    gauge(
        "throng_target_jvm_heap_committed_bytes",
        &[],
        "committed heap of the target's Java virtual \
    machines",
        |m, s| jvm(m, s, |jvm| jvm.heap_committed_bytes as f64),
    ),
    counter(
        "throng_target_jvm_gc_total",
        &[],
        "garbage collections of the target since it started",
        |m, s| jvm(m, s, |jvm| jvm.gc_count as f64),
    ),
    counter(
        "throng_target_jvm_gc_pause_seconds_total",
        &[],
        "time that the target spent in garbage \
    collections",
        |m, s| jvm(m, s, |jvm| jvm.gc_pause_ns as f64 / 1e9),
    ),
    gauge("throng_target_accept_queue", &[], "connections in the target's fullest accept queue", |m, s| {
        target(m, s, |t| t.accept_queue)
    }),
    gauge("throng_target_accept_queue_limit", &[], "backlog of that queue", |m, s| {
        target(m, s, |t| t.accept_backlog)
    }),
    gauge("throng_host_tcp_sockets", HOST, "TCP sockets in use", |m, s| {
        hosts(m, s, |h| Some(h.sockets.tcp_inuse))
    }),
    gauge("throng_host_tcp_orphans", HOST, "orphaned TCP sockets", |m, s| {
        hosts(m, s, |h| Some(h.sockets.tcp_orphans))
    }),
    gauge("throng_host_tcp_time_wait", HOST, "connections in TIME_WAIT", |m, s| {
        hosts(m, s, |h| Some(h.sockets.tcp_tw))
    }),
    gauge("throng_host_tcp_memory_pages", HOST, "pages used by socket buffers", |m, s| {
        hosts(m, s, |h| Some(h.sockets.tcp_mem_pages))
    }),
    counter(
        "throng_host_tcp_events_total",
        &["host", "event"],
        "TCP events since the network namespace was created, named as in the summary's observed.host.tcp",
        |m, s| {
            let none = HostSample::default();
            for (host, sample) in both(m) {
                for (event, n) in sample.unwrap_or(&none).tcp.named() {
                    s.number(&[host, event], sample.map(|_| n as f64));
                }
            }
        },
    ),
    gauge("throng_host_conntrack", HOST, "conntrack entries", |m, s| hosts(m, s, |h| h.conntrack)),
    gauge("throng_host_conntrack_limit", HOST, "maximum number of conntrack entries", |m, s| {
        hosts(m, s, |h| h.conntrack_max)
    }),
    gauge("throng_host_available_bytes", HOST, "available memory", |m, s| {
        hosts(m, s, |h| Some(h.memory_available))
    }),
    gauge("throng_host_kernel_bytes", HOST, "kernel memory, without the page cache", |m, s| {
        hosts(m, s, |h| Some(h.kernel_bytes))
    }),
    counter("throng_host_oom_kills_total", HOST, "processes killed by the OOM killer since boot", |m, s| {
        hosts(m, s, |h| Some(h.oom_kills))
    }),
];

/// What each population has counted since the run began.
fn sum(m: &Moment, s: &mut Series, of: fn(&Tick) -> u64) {
    m.populations(|label, total, _| s.number(label, Some(of(total) as f64)));
}

/// What each destination has counted since the run began.
fn at_each(m: &Moment, s: &mut Series, of: fn(&Destination) -> u64) {
    m.destinations(|name, total, _| s.number(&[name], Some(of(total) as f64)));
}

/// The series of each population.
fn now(m: &Moment, s: &mut Series, of: fn(&Tick) -> u64) {
    m.populations(|label, _, last| s.number(label, Some(of(last) as f64)));
}

fn probe(m: &Moment, s: &mut Series, of: fn(&Probe) -> u64) {
    s.number(&[], Some(m.total.probe.as_deref().map_or(0, of) as f64));
}

fn thread(m: &Moment, s: &mut Series, connection: &str, of: fn(&Probe) -> &Latency) {
    match (&m.total.probe, &m.last.probe) {
        (Some(total), Some(last)) => s.times(&[connection], of(total), of(last)),
        _ => s.add(&[connection], Value::Times(Box::default())),
    }
}

fn target(m: &Moment, s: &mut Series, of: fn(&TargetSample) -> Option<u64>) {
    s.number(&[], m.samples.target.as_ref().and_then(of).map(|n| n as f64));
}

fn jvm(m: &Moment, s: &mut Series, of: fn(&JvmSample) -> f64) {
    s.number(&[], m.samples.target.as_ref().and_then(|target| target.jvm.as_ref()).map(of));
}

/// throng's own host, and the target's where it is another one.
fn both<'a>(m: &Moment<'a>) -> [(&'static str, Option<&'a HostSample>); 2] {
    [("generator", m.samples.host.as_ref()), ("target", m.samples.target_host.as_ref())]
}

fn hosts(m: &Moment, s: &mut Series, of: fn(&HostSample) -> Option<u64>) {
    for (host, sample) in both(m) {
        s.number(&[host], sample.and_then(of).map(|n| n as f64));
    }
}
