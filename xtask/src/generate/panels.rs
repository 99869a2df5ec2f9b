//! The table of dashboard panels, row by row. To add a panel, add a line here and run `cargo xtask gen`.

use super::figure::{
    Figure::{self, Field, FieldRate, Now, Quantile, Rate, Whole},
    Quantile::{Max, P50, P99},
    of,
};

pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) panels: &'static [Panel],
}

pub(super) struct Panel {
    pub(super) title: &'static str,
    /// Description, for the guide and for the panel's tooltip.
    pub(super) says: &'static str,
    /// Grafana's identifier of the unit.
    pub(super) unit: &'static str,
    pub(super) shape: Shape,
    pub(super) lines: &'static [Line],
    /// Text shown if there is no data. `None`: Grafana's "No data".
    pub(super) none: Option<&'static str>,
}

impl Panel {
    const fn or(self, none: &'static str) -> Panel {
        Panel { none: Some(none), ..self }
    }
}

/// A line's name and figure.
pub(super) type Line = (&'static str, Figure);

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Shape {
    /// A graph over time.
    Lines,
    /// One number per run: the maximum.
    Most,
    /// One number per run: the last value.
    Last,
}

const fn lines(title: &'static str, unit: &'static str, says: &'static str, lines: &'static [Line]) -> Panel {
    Panel { title, says, unit, shape: Shape::Lines, lines, none: None }
}

const fn number(
    title: &'static str,
    unit: &'static str,
    shape: Shape,
    says: &'static str,
    lines: &'static [Line],
) -> Panel {
    Panel { title, says, unit, shape, lines, none: None }
}

/// The rows, from top to bottom.
pub(super) const ROWS: &[Row] = &[
    Row { title: "The run in numbers", panels: NUMBERS },
    Row { title: "Connections", panels: CONNECTIONS },
    Row { title: "Latency", panels: LATENCY },
    Row { title: "Traffic", panels: TRAFFIC },
    Row { title: "Both sides", panels: SIDES },
    Row { title: "Agents of a fleet", panels: AGENTS },
    Row { title: "JVM of the target", panels: JVM },
    Row { title: "Server host (Telegraf)", panels: TELEGRAF },
];

const NUMBERS: &[Panel] = &[
    number(
        "Most connections open",
        "short",
        Shape::Most,
        "Maximum of open connections at the end of a second.",
        &[("", Now(of("throng_connections_open")))],
    ),
    number(
        "Most connections on the target's side",
        "short",
        Shape::Most,
        "The same, counted on the target's side, if available.",
        &[("", Now(of("throng_target_connections")))],
    ),
    number(
        "Requests",
        "short",
        Shape::Last,
        "Requests sent since the run began; over WebSocket, messages or pings.",
        &[("", Now(of("throng_requests_total")))],
    ),
    number(
        "p99 latency at full load",
        "s",
        Shape::Last,
        "For the whole run, to the resolution of the buckets (Prometheus), or for its worst second \
        (InfluxDB).",
        &[("", Whole(of("throng_latency_seconds"), P99))],
    ),
    number(
        "Connections lost",
        "short",
        Shape::Last,
        "Connections lost without notice since the run began.",
        &[("", Now(of("throng_connections_dropped_total")))],
    ),
    number(
        "Faults",
        "short",
        Shape::Last,
        "Faults since the run began.",
        &[("", Now(of("throng_faults_total")))],
    )
    .or("0"),
];

const CONNECTIONS: &[Panel] = &[
    lines(
        "Connections, client and server",
        "short",
        "Connections planned, open in throng, and counted on the target's side. If the client's line \
        climbs and the server's does not, the server has reached a limit: open files, accept queue or \
        memory. The target's count is that of all TCP sockets of its host beyond those before the run: \
        if it is not available, or other programs on that host open connections, look at the target's \
        open files, which include its listeners, logs and libraries.",
        &[
            ("wanted", Now(of("throng_connections_wanted"))),
            ("client has open", Now(of("throng_connections_open"))),
            ("server counts", Now(of("throng_target_connections"))),
            ("server's open files", Now(of("throng_target_open_files"))),
        ],
    ),
    lines(
        "Connections opened and lost a second",
        "cps",
        "Connections opened, failed dials, losses, closes announced by the server, and redials, per \
        second.",
        &[
            ("opened", Rate(of("throng_connections_opened_total"))),
            ("failed", Rate(of("throng_connections_failed_total"))),
            ("dropped", Rate(of("throng_connections_dropped_total"))),
            ("closed by the server", Rate(of("throng_connections_closed_total"))),
            ("redialled", Rate(of("throng_connections_redialled_total"))),
        ],
    ),
    lines(
        "Connect time",
        "s",
        "From when a dial was due to the connection; the WebSocket handshake from its request to the 101. A step to one, three or seven seconds is a lost \
         SYN: the accept queue was full.",
        &[
            ("p50", Quantile(of("throng_connect_seconds"), P50)),
            ("p99", Quantile(of("throng_connect_seconds"), P99)),
            ("max", Quantile(of("throng_connect_seconds"), Max)),
            ("handshake p99", Quantile(of("throng_handshake_seconds"), P99)),
        ],
    ),
    lines(
        "Faults by kind",
        "short",
        "Faults since the run began, by side, stage and kind.",
        &[("", Now(of("throng_faults_total").by(&["side", "stage", "kind"])))],
    )
    .or("no faults"),
];

const LATENCY: &[Panel] = &[
    lines(
        "Request or ping latency, at full load",
        "s",
        "From when the request (or ping) was due to its response, at full load: a stall of the server \
        cannot hide. Sharp peaks \
         in max alone, seconds apart, are a garbage collector's: compare with the JVM's pauses below.",
        &[
            ("p50", Quantile(of("throng_latency_seconds"), P50)),
            ("p99", Quantile(of("throng_latency_seconds"), P99)),
            ("max", Quantile(of("throng_latency_seconds"), Max)),
        ],
    ),
    lines(
        "Request or ping latency, during the ramp",
        "s",
        "The same while connections are still being opened.",
        &[
            ("p50", Quantile(of("throng_ramp_latency_seconds"), P50)),
            ("p99", Quantile(of("throng_ramp_latency_seconds"), P99)),
            ("max", Quantile(of("throng_ramp_latency_seconds"), Max)),
        ],
    ),
    lines(
        "What an independent user sees (--probe)",
        "s",
        "Latency of the probe's requests, on kept and on fresh connections. If only fresh connections are \
        slow, accepting is the problem; if both are, the server is busy.",
        &[
            ("p50", Quantile(of("throng_probe_latency_seconds").by(&["connection"]), P50)),
            ("p99", Quantile(of("throng_probe_latency_seconds").by(&["connection"]), P99)),
            ("max", Quantile(of("throng_probe_latency_seconds").by(&["connection"]), Max)),
        ],
    ),
    lines(
        "How late throng itself was",
        "s",
        "Lag: from due until throng sent; stall: the longest delay of a loop iteration. If lag approaches \
        the latency, the latency is throng's, not the target's.",
        &[
            ("lag p50", Quantile(of("throng_lag_seconds"), P50)),
            ("lag p99", Quantile(of("throng_lag_seconds"), P99)),
            ("lag max", Quantile(of("throng_lag_seconds"), Max)),
            ("stall", Now(of("throng_generator_stall_seconds"))),
        ],
    ),
];

const TRAFFIC: &[Panel] = &[
    lines(
        "Requests a second",
        "reqps",
        "Requests sent, and those with a response; missed are slots of an open loop for which no \
        connection was free.",
        &[
            ("sent", Rate(of("throng_requests_total"))),
            ("answered", Rate(of("throng_answers_total"))),
            ("missed", Rate(of("throng_requests_missed_total"))),
        ],
    ),
    lines(
        "Bytes a second",
        "binBps",
        "Bytes received and sent by throng, including headers.",
        &[
            ("received", Rate(of("throng_received_bytes_total"))),
            ("sent", Rate(of("throng_sent_bytes_total"))),
        ],
    ),
];

const SIDES: &[Panel] = &[
    lines(
        "CPU",
        "percentunit",
        "100 % is one processor. A single thread at 100 % is a limit, however idle the rest of the machine. \
        On a fleet, throng is the coordinator; the agents have a row of their own.",
        &[
            ("throng", Rate(of("throng_generator_cpu_seconds_total"))),
            ("throng's busiest thread", Now(of("throng_generator_busiest_thread"))),
            ("target", Rate(of("throng_target_cpu_seconds_total"))),
            ("target's busiest thread", Now(of("throng_target_busiest_thread"))),
        ],
    ),
    lines(
        "Memory",
        "bytes",
        "Memory of the processes, and of each machine's kernel, which holds the sockets. The slope over \
        connections is the cost per connection: `cost` in the summary.",
        &[
            ("throng", Now(of("throng_generator_resident_bytes"))),
            ("target", Now(of("throng_target_resident_bytes"))),
            ("kernel", Now(of("throng_host_kernel_bytes").by(&["host"]))),
        ],
    ),
    lines(
        "TCP sockets of the hosts",
        "short",
        "In use, in TIME_WAIT, and orphaned (held by no program).",
        &[
            ("in use", Now(of("throng_host_tcp_sockets").by(&["host"]))),
            ("TIME_WAIT", Now(of("throng_host_tcp_time_wait").by(&["host"]))),
            ("orphans", Now(of("throng_host_tcp_orphans").by(&["host"]))),
        ],
    ),
    lines(
        "Accept queue of the target",
        "short",
        "Connections waiting to be accepted, and the backlog. When it is full, further connections are \
        dropped: see the overflows beside it.",
        &[
            ("waiting", Now(of("throng_target_accept_queue"))),
            ("limit", Now(of("throng_target_accept_queue_limit"))),
        ],
    ),
    lines(
        "TCP retransmissions and drops per second",
        "cps",
        "Retransmitted segments and SYNs, accept queue overflows, and connections dropped by a listener.",
        &[(
            "",
            Rate(
                of("throng_host_tcp_events_total")
                    .only("event", "retrans_segs|syn_retrans|listen_overflows|listen_drops")
                    .by(&["event", "host"]),
            ),
        )],
    ),
    lines(
        "Open files of the target",
        "short",
        "Descriptors in its fullest file table, and the limit: a common reason for connections to stop at \
        a round number.",
        &[
            ("open", Now(of("throng_target_open_files"))),
            ("limit", Now(of("throng_target_open_files_limit"))),
        ],
    ),
];

const AGENTS: &[Panel] = &[
    lines(
        "Agents by state",
        "short",
        "All agents: up, silent (no report in the second) and lost. The other panels of this row show the \
        first 256.",
        &[("", Now(of("throng_agents").by(&["state"])))],
    ),
    lines(
        "Connections of each agent",
        "short",
        "Open connections. A line ends where the agent sends no report.",
        &[("", Now(of("throng_agent_connections_open").by(&["agent"])))],
    ),
    lines(
        "CPU of each agent",
        "percentunit",
        "100 % is one processor. An agent whose processors are all in use is the limit of its share.",
        &[("", Rate(of("throng_agent_cpu_seconds_total").by(&["agent"])))],
    ),
    lines(
        "Lag p99 of each agent",
        "s",
        "How late each agent sent. If one agent's lag is far above that of the others, its machine is the \
        limit; above 10 ms its latency is its own, not the target's.",
        &[("", Now(of("throng_agent_lag_p99_seconds").by(&["agent"])))],
    ),
    lines(
        "Latency p99 of each agent",
        "s",
        "If agents in one place see another latency than the others, the path differs, not the target.",
        &[("", Now(of("throng_agent_latency_p99_seconds").by(&["agent"])))],
    ),
    lines(
        "Requests a second of each agent",
        "reqps",
        "Requests with a response, and messages sent without a reply expected.",
        &[("", Rate(of("throng_agent_requests_total").by(&["agent"])))],
    ),
    lines(
        "Connects a second of each agent",
        "cps",
        "Successful dials, repeated ones included.",
        &[("", Rate(of("throng_agent_connects_total").by(&["agent"])))],
    ),
    lines(
        "Faults of each agent",
        "short",
        "Faults since the run began.",
        &[("", Now(of("throng_agent_faults_total").by(&["agent"])))],
    )
    .or("no faults"),
];

const JVM: &[Panel] = &[
    lines(
        "JVM heap",
        "bytes",
        "Used and committed heap. What remains after a collection, divided by the connections, is the cost \
        of each.",
        &[
            ("used", Now(of("throng_target_jvm_heap_used_bytes"))),
            ("committed", Now(of("throng_target_jvm_heap_committed_bytes"))),
        ],
    ),
    lines(
        "JVM garbage collection, time",
        "percentunit",
        "Share of the time spent in garbage collections.",
        &[("paused", Rate(of("throng_target_jvm_gc_pause_seconds_total")))],
    ),
    lines(
        "JVM garbage collections a second",
        "cps",
        "Garbage collections per second.",
        &[("collections", Rate(of("throng_target_jvm_gc_total")))],
    ),
];

/// Measurements of the plugins in `deploy/telegraf.conf`; each plugin's README lists its fields.
const TELEGRAF: &[Panel] = &[
    lines(
        "CPU of the host",
        "percent",
        "cpu: of all its processors together. softirq is the network's share.",
        &[
            ("user", Field(of("cpu").only("cpu", "cpu-total"), "usage_user")),
            ("system", Field(of("cpu").only("cpu", "cpu-total"), "usage_system")),
            ("softirq", Field(of("cpu").only("cpu", "cpu-total"), "usage_softirq")),
            ("iowait", Field(of("cpu").only("cpu", "cpu-total"), "usage_iowait")),
        ],
    ),
    lines(
        "Memory of the host",
        "bytes",
        "mem: used by programs, still available, and the kernel's slab, where sockets are.",
        &[
            ("used", Field(of("mem"), "used")),
            ("available", Field(of("mem"), "available")),
            ("slab", Field(of("mem"), "slab")),
        ],
    ),
    lines(
        "Load of the host",
        "short",
        "system: the load average over one minute, and the number of processors.",
        &[("load", Field(of("system"), "load1")), ("processors", Field(of("system"), "n_cpus"))],
    ),
    lines(
        "Connections of the host by state",
        "short",
        "netstat, every 30 s; nstat's is the kernel's own count, which costs nothing.",
        &[
            ("established (nstat)", Field(of("nstat").only("name", "snmp"), "TcpCurrEstab")),
            ("established", Field(of("netstat"), "tcp_established")),
            ("syn received", Field(of("netstat"), "tcp_syn_recv")),
            ("time wait", Field(of("netstat"), "tcp_time_wait")),
            ("close wait", Field(of("netstat"), "tcp_close_wait")),
        ],
    ),
    lines(
        "Target's process: CPU",
        "percent",
        "procstat: 100 % is one processor.",
        &[("", Field(of("procstat").by(&["process_name", "pid"]), "cpu_usage"))],
    ),
    lines(
        "Target's process: memory",
        "bytes",
        "procstat: resident.",
        &[("", Field(of("procstat").by(&["process_name", "pid"]), "memory_rss"))],
    ),
    lines(
        "Target's process: descriptors and threads",
        "short",
        "procstat: open descriptors and their soft limit, threads.",
        &[
            ("descriptors", Field(of("procstat").by(&["process_name", "pid"]), "num_fds")),
            ("limit", Field(of("procstat").by(&["process_name", "pid"]), "rlimit_num_fds_soft")),
            ("threads", Field(of("procstat").by(&["process_name", "pid"]), "num_threads")),
        ],
    ),
    lines(
        "Network of the host",
        "binBps",
        "net: bytes per second of each interface except loopback.",
        &[
            ("received", FieldRate(of("net").by(&["interface"]), "bytes_recv")),
            ("sent", FieldRate(of("net").by(&["interface"]), "bytes_sent")),
        ],
    ),
];
