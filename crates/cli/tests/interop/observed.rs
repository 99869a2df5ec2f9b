//! The target observed under load: workers of one server, and another host's.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use crate::{
    namespace::Pair,
    off_loopback,
    program::{Ended, Program, Serving, file, skip, throng, until},
    server::{Server, folder, program},
    summary::{Summary, run},
};

/// nginx with two workers, in a process namespace: the workers of a master that is killed would live on, those of a
/// namespace whose first process is killed do not.
fn with_workers() -> Option<Server> {
    let probe = Program::from(program("unshare", &["--pid", "--fork", "true"])).end();
    if probe.status != Some(0) {
        skip(format_args!("namespaces need root: {}", probe.stderr.trim()));
        return None;
    }
    let folder = folder("nginx-workers");
    Some(Server::at(|address| {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary = temporary.map(|of| format!("{of}_temp_path temporary;")).concat();
        let text = format!(
            "daemon off; pid nginx.pid; error_log stderr warn; user root; worker_processes 2;
            worker_rlimit_nofile 16000; events {{ worker_connections 15000; }}
            http {{ access_log off; {temporary} keepalive_timeout 1h; server {{
                listen {address} backlog=4096 reuseport; location / {{ return 200 'Hello World!'; }}
            }} }}"
        );
        fs::write(folder.join("nginx.conf"), text).unwrap();
        let args = ["--pid", "--fork", "--kill-child", "nginx", "-c", "nginx.conf", "-e", "stderr", "-p"];
        let mut command: Command = program("unshare", &args);
        command.arg(&folder).current_dir(&folder);
        command
    }))
}

/// How many processes a process has started, they among them.
fn descendants(pid: u32) -> usize {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().map(|child| 1 + descendants(child.parse().unwrap())).sum()
}

#[test]
fn all_workers_of_a_server_count() {
    let Some(server) = with_workers() else { return };
    // It listens before it has workers.
    until("a master and two workers", || descendants(server.program.pid()) == 3);
    // The ramp is as fast as the workers accept: at a given rate, workers without a processor would have their accept queues overflow.
    let (ended, s) = run(&server.url("/"), &["-c", "20000", "-d", "2s", "--think", "1m", "--timeout", "1m"]);
    ended.assert_status(0);
    let seen = |path: &str| s.count(&format!("observed.target.{path}"));
    assert_eq!(seen("process.processes.last"), 3, "a master and two workers");
    let name = fs::read_to_string(format!("/proc/{}/cmdline", s.count("target_cost.pid"))).unwrap();
    assert!(name.starts_with("nginx: worker"), "{name}");
    let each = &s.at("target_cost.processes").as_array().unwrap()[..];
    assert!(each.len() == 3 && each[0]["pid"] == *s.at("target_cost.pid"), "{each:?}");
    assert!(ended.stderr.contains(&format!("(process {} and others: ", each[0]["pid"])), "{ended:?}");
    // Each has about half of the connections; the fuller one is reported.
    let files = seen("open_files.max");
    assert!((10_000..16_000).contains(&files), "{files} open");
    assert_eq!(seen("open_files_limit"), 16_000, "what the workers have set themselves");
    assert_eq!(seen("accept_backlog"), 4096);
    let fit = s.at("cost.target_bytes");
    let (bytes, r2) = (fit["value"].as_f64().unwrap(), fit["r2"].as_f64().unwrap());
    assert!((200.0..5_000.0).contains(&bytes) && r2 > 0.8, "{bytes} bytes, R² {r2}: {:#}", s.at("cost"));
    let cpu = s.number("target_cost.cpu_s");
    let by_looks = (seen("process.cpu_user_ns.ramp") + seen("process.cpu_system_ns.ramp")) as f64 / 1e9;
    assert!(by_looks > 0.0 && by_looks <= cpu + 0.05, "{by_looks} s of {cpu} s");
}

/// `throng run` on the client's side while `throng observe` reports the server's.
fn run_observed(pair: &Pair, name: &str, target: &str, args: &[&str]) -> (Ended, Summary) {
    let secret = file(name);
    fs::write(&secret, "a-b-c\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let secret = secret.to_str().unwrap();
    let observe = ["observe", "--listen", "10.77.0.1:0", "--until-stdin-ends", "--token-file", secret];
    let observer = Serving::from(pair.server.enter(&throng(&observe)), &[]);
    let at = format!("http://{}", observer.address);
    let flags = ["--observe", &at, "--observe-token-file", secret];
    off_loopback::run(pair, target, &[args, &flags].concat())
}

#[test]
fn another_host_reports_of_its_target() {
    let Some(pair) = Pair::new() else { return };
    let serving = pair.serve("10.77.0.1");
    let args = ["-c", "500", "-d", "2s", "--think", "100ms"];
    // throng's own server, which is asked how many connections it has: on a busy machine it may not respond in time.
    let mut runs = (0..3).map(|_| run_observed(&pair, "observed-secret", &serving.url("/"), &args));
    let (ended, s) =
        runs.find(|(_, s)| !s.at("connections.seen_by_target").is_null()).expect("one was in time");
    ended.assert_status(0);
    assert_eq!(s.count("observed.observer.failures"), 0, "{ended:?}");
    assert_eq!(s.count("observed.target.pid"), u64::from(serving.program.pid()));
    // The sockets of that namespace, not of this one or of the machine: 500 connections, a listener each, and the request.
    let there = s.count("observed.target_host.tcp_sockets.max");
    assert!((501..=510).contains(&there), "{there}");
    assert_eq!(s.count("connections.seen_by_target"), 500);
    assert!(s.number("target_cost.cpu_s") > 0.0, "{:#}", s.at("observed.target"));
    assert!(s.at("cost.target_bytes").is_null(), "500 are too few for a slope");
}

#[test]
fn another_hosts_open_files_are_reported() {
    let Some(pair) = Pair::new() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/black_box/crippled.py");
    let mut command = pair.server.command("prlimit");
    command.args(["--nofile=300", "python3", script, "512", "0", "0", "0", "10.77.0.1"]);
    let server = Serving::from(command, &[]);
    let load = ["-c", "600", "--ramp", "5k/s", "--think", "1m", "-d", "3s", "--timeout", "2s"];
    let (ended, s) = run_observed(&pair, "observed-files", &server.url("/"), &load);
    ended.assert_status(1);
    assert_eq!((s.text("limit.side"), s.text("limit.cause")), ("target", "open-files"), "{:#}", s.0);
    let texts = [s.text("limit.detail"), s.text("limit.cure")];
    let parts = ["300 of 300 files open", "prlimit --pid "];
    assert!(texts.iter().zip(parts).all(|(text, part)| text.contains(part)), "{texts:?}");
}

#[test]
fn connections_at_the_targets_side_are_what_its_kernel_counts() {
    // A network of its own: sockets of others would count too.
    let Some(pair) = Pair::new() else { return };
    let here = ["serve", "--listen", "127.0.0.1:0", "--until-stdin-ends", "--threads", "1"];
    let server = Serving::from(pair.server.enter(&throng(&here)), &[]);
    let lines = file("side.jsonl");
    let args = [
        "run",
        &server.url("/"),
        "-c",
        "50",
        "--think",
        "100ms",
        "-d",
        "3s",
        "--jsonl",
        lines.to_str().unwrap(),
    ];
    let ended = Program::from(pair.server.enter(&throng(&args))).end();
    ended.assert_status(0);
    let text = fs::read_to_string(&lines).unwrap();
    let seconds = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let seen: Vec<f64> = seconds.filter_map(|second| second["throng_target_connections"].as_f64()).collect();
    assert!(seen.len() >= 3 && seen[1..3] == [50.0, 50.0], "{seen:?}");
}
