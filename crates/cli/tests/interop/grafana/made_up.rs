//! Figures that no run here produces, written manually: those of a JVM, of a target that counts its connections, of a
//! fleet's agents, and Telegraf's. A real run against such a target is tested elsewhere.

use std::{
    fmt::Write,
    fs,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::{
    program::{Program, file},
    scripted::{Scripted, ok},
    server::{Server, program},
};

pub(super) const TARGET: &str = "by hand";
pub(super) const SEED: &str = "1";
/// The host name in Telegraf's points.
pub(super) const HOST: &str = "box";
pub(super) const CONNECTIONS: f64 = 1234.0;
pub(super) const HEAP: f64 = 5e8;
/// Of two populations together.
pub(super) const OPEN: f64 = 12.0;
pub(super) const REQUESTS_A_SECOND: f64 = 150.0;
pub(super) const PAUSED: f64 = 0.25;
/// Agents, each with its connections, lag and CPU (processors in use).
pub(super) const AGENTS: [(&str, f64, f64, f64); 2] =
    [("load-1", 7.0, 0.002, 0.5), ("load-2", 5.0, 0.009, 1.5)];
/// The same in `throng_agents`: up, silent, lost.
pub(super) const STATES: [(&str, f64); 3] = [("up", 2.0), ("silent", 0.0), ("lost", 1.0)];
/// Latency: half within 2.5 ms, 48 % within 5 ms, 2 % within 10 ms. Prometheus assumes that they lie evenly between the
/// bounds; InfluxDB is given what it would.
pub(super) const P50: f64 = 0.0025;
pub(super) const P99: f64 = 0.0075;
pub(super) const MAX: f64 = 0.01;

/// Points of ten seconds up to then, in the shapes in which throng and Telegraf write theirs.
pub(super) fn write(influxdb: &Server, until_ms: u64) {
    let mut text = String::new();
    for second in 0..10 {
        // Now a little before its second, now a little after it: one second has two points, the next none.
        let ms = (until_ms / 1000 - 10 + second) * 1000 + if second % 2 == 0 { 1 } else { 0 } - second % 3;
        text += &throngs(second, ms * 1_000_000, ms - (until_ms / 1000 - 11) * 1000);
        text += &telegrafs(second, ms * 1_000_000);
    }
    let points = file("grafana-points.txt");
    fs::write(&points, text).unwrap();
    let (url, points) = (influxdb.url("/write?db=throng"), format!("@{}", points.display()));
    let posted =
        program("curl", &["-sS", "--fail-with-body", "--max-time", "10", &url, "--data-binary", &points]);
    let ended = Program::from(posted).end();
    assert_eq!(ended.status, Some(0), "{ended:?}");
}

/// A measurement for each metric, its field `value`, tags `target` and `seed` (`docs/reference/metrics.md`). Counters
/// grow evenly with `since`, milliseconds.
fn throngs(second: u64, ns: u64, since: u64) -> String {
    let mut text = String::new();
    let mut point = |name: &str, tags: &str, value: f64| {
        writeln!(text, r"throng_{name},target=by\ hand,seed=1{tags} value={value} {ns}").unwrap();
    };
    point("run_info", ",io=uring", 1.0);
    point("connections_open", ",population=a", 10.0);
    point("connections_open", ",population=b", 2.0);
    point("requests_total", ",population=a", since as f64 * 0.1);
    point("requests_total", ",population=b", since as f64 * 0.05);
    point("target_connections", "", CONNECTIONS - 1.0 + (second / 9) as f64);
    point("target_jvm_heap_used_bytes", "", HEAP);
    point("target_jvm_heap_committed_bytes", "", 1e9);
    point("target_jvm_gc_pause_seconds_total", "", since as f64 * PAUSED / 1e3);
    point("target_jvm_gc_total", "", second as f64);
    for (state, n) in STATES {
        point("agents", &format!(",state={state}"), n);
    }
    for (agent, open, lag, cpu) in AGENTS {
        let of = format!(",agent={agent}");
        point("agent_connections_open", &of, open);
        point("agent_lag_p99_seconds", &of, lag);
        point("agent_latency_p99_seconds", &of, 2.0 * lag);
        point("agent_cpu_seconds_total", &of, since as f64 * cpu / 1e3);
        point("agent_requests_total", &of, since as f64 * open / 1e3);
        point("agent_connects_total", &of, since as f64 / 1e3);
        point("agent_faults_total", &of, 3.0);
    }
    let latency = format!(
        "throng_latency_seconds,target=by\\ hand,seed=1 count=9,p50={P50},p99={P99},max={MAX} {ns}\n"
    );
    text + &latency
}

/// Measurements, tags and fields as in "Example Output" of `plugins/inputs/{cpu,mem,system,net,nstat,netstat,procstat}/README.md` of
/// Telegraf 1.37, as `deploy/telegraf.conf` makes them; of the fields those that the dashboard shows.
fn telegrafs(second: u64, ns: u64) -> String {
    let process = "procstat,filter=target,host=box,pid=4711,process_name=java";
    let points = [
        "cpu,cpu=cpu-total,host=box usage_user=20.5,usage_system=10,usage_softirq=3.5,usage_iowait=0".to_owned(),
        "mem,host=box used=3335778304i,available=16818249728i,slab=2081071104i".to_owned(),
        "system,host=box load1=3.72,n_cpus=4i,n_physical_cpus=2i".to_owned(),
        format!("net,host=box,interface=eth0 bytes_recv={0}i,bytes_sent={0}i,drop_in=0i,drop_out=0i", second * 1000),
        "nstat,host=box,name=snmp TcpCurrEstab=14i,TcpPassiveOpens=452i".to_owned(),
        "nstat,host=box,name=netstat TcpExtListenDrops=0i,TcpExtListenOverflows=0i".to_owned(),
        "netstat,host=box tcp_established=14i,tcp_syn_recv=0i,tcp_time_wait=3i,tcp_close_wait=1i,tcp_listen=1i".to_owned(),
        format!("{process} cpu_usage=103.5,memory_rss=148643840i,num_fds=1300i,rlimit_num_fds_soft=4096i,num_threads=18i"),
    ];
    points.map(|point| format!("{point} {ns}\n")).concat()
}

/// The same for Prometheus, in its text format: counters are higher in each scrape.
pub(super) fn endpoint() -> Scripted {
    let scrapes = AtomicU64::new(0);
    Scripted::start(move |peer| {
        while peer.request().is_some() && peer.send(&ok(&scraped(scrapes.fetch_add(1, Relaxed)))) {}
    })
}

fn scraped(n: u64) -> String {
    let mut text = String::new();
    for (state, agents) in STATES {
        writeln!(text, "throng_agents{{state=\"{state}\"}} {agents}").unwrap();
    }
    for (agent, open, lag, cpu) in AGENTS {
        let mut line = |name: &str, value: f64| {
            writeln!(text, "throng_agent_{name}{{agent=\"{agent}\"}} {value}").unwrap()
        };
        line("connections_open", open);
        line("lag_p99_seconds", lag);
        line("latency_p99_seconds", 2.0 * lag);
        line("cpu_seconds_total", n as f64 * cpu);
        line("requests_total", n as f64 * open);
        line("connects_total", n as f64);
        line("faults_total", 3.0);
    }
    text + &format!(
        "throng_run_info{{target=\"{TARGET}\",seed=\"{SEED}\",io=\"uring\"}} 1\n\
         throng_connections_open{{population=\"a\"}} 10\n\
         throng_connections_open{{population=\"b\"}} 2\n\
         throng_target_connections {CONNECTIONS}\n\
         throng_target_jvm_heap_used_bytes {HEAP}\n\
         throng_target_jvm_heap_committed_bytes 1e9\n\
         throng_target_jvm_gc_pause_seconds_total {}\n\
         throng_target_jvm_gc_total {n}\n\
         throng_latency_seconds_bucket{{le=\"0.0025\"}} {}\n\
         throng_latency_seconds_bucket{{le=\"0.005\"}} {}\n\
         throng_latency_seconds_bucket{{le=\"0.01\"}} {}\n\
         throng_latency_seconds_bucket{{le=\"+Inf\"}} {}\n",
        n as f64 / 100.0,
        n * 50,
        n * 98,
        n * 100,
        n * 100,
    )
}
