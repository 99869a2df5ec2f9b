//! What a run observes of a target on this machine: its queue, its files, its threads, its end.

use std::{
    net::TcpListener,
    sync::{Arc, atomic::AtomicBool, atomic::Ordering::Relaxed},
};

use crate::{
    program::{Program, Serving, Signal},
    scripted::{Scripted, ok},
    summary::{Summary, run},
};

#[test]
fn a_full_accept_queue_is_seen() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 4).unwrap();
    let target = format!("tcp://{}", listener.local_addr().unwrap());
    let (_, s) = run(&target, &["-c", "40", "-d", "1500ms", "--timeout", "1500ms"]);
    let target = |path: &str| s.count(&format!("observed.target.{path}"));
    assert_eq!(target("pid"), u64::from(std::process::id()), "this test listens");
    assert_eq!(target("accept_backlog"), 4);
    // The kernel lets one more wait than the backlog, and another if two processors check the queue at once.
    assert_eq!(target("accept_queue.first"), 0);
    assert!((5..=6).contains(&target("accept_queue.max")), "{}", target("accept_queue.max"));
    assert!(target("accept_queue_full") >= 1);
    let tcp = |event: &str| s.count(&format!("observed.host.tcp_{event}"));
    // Other programs in this network namespace count too; but each of the 35 dials that found no room does.
    let overflows = tcp("ramp.listen_overflows") + tcp("hold.listen_overflows");
    assert!(
        overflows >= 35 && tcp("ramp.listen_drops") + tcp("hold.listen_drops") >= overflows,
        "{overflows}"
    );
    assert!(tcp("ramp.syn_retrans") + tcp("hold.syn_retrans") >= 1);
}

#[test]
fn tables_of_a_servers_threads_are_counted() {
    let server = Serving::start(&["--threads", "1", "--io", "epoll"]);
    let (ended, s) = run(&server.url("/"), &["-c", "300", "-d", "500ms", "--think", "1m"]);
    ended.assert_status(0);
    let files = s.count("observed.target.open_files.max");
    assert!((300..340).contains(&files), "{files}");
    let limit = s.count("observed.target.open_files_limit");
    assert!(limit >= files, "{limit}");
}

#[test]
fn a_target_that_ended_has_no_processes_left() {
    let server = Serving::start(&["--threads", "1"]);
    let target = server.url("/");
    let mut run =
        Program::start(&["run", &target, "-c", "20", "-d", "2500ms", "--think", "1h", "--json", "-"]);
    run.wait_for("hold  open 20 of 20");
    server.program.signal(Signal::KILL);
    let ended = run.end();
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap());
    assert_eq!(s.count("observed.target.process.processes.first"), 1, "{ended:?}");
    assert_eq!(s.count("observed.target.process.processes.last"), 0);
    assert_eq!(s.count("target_cost.pid"), u64::from(server.program.pid()), "it is named all the same");
}

#[test]
fn a_busy_thread_stands_out() {
    let server = Scripted::start(|peer| while peer.request().is_some() && peer.send(&ok("x")) {});
    let done = Arc::new(AtomicBool::new(false));
    let other = done.clone();
    let busy = std::thread::spawn(move || while !other.load(Relaxed) {});
    let (_, s) = run(&server.url("/"), &["-c", "1", "-d", "3s", "--think", "1s"]);
    done.store(true, Relaxed);
    busy.join().unwrap();
    // This process is the target; its thread gets the time that the other tests leave of two processors.
    let process = |path: &str| s.number(&format!("observed.target.process.{path}"));
    let (thread, all) = (process("busiest_thread_hold.max"), process("cores_used_hold.max"));
    assert!((0.02..1.05).contains(&thread) && all >= thread * 0.8, "{thread} of {all}");
    // Whatever they leave, it is never idle; a thread's wait is counted when it is over, in this second or the next.
    assert!(process("busiest_wanted_hold.max") > 0.9 && process("threads_full.max") >= 1.0);
    let used_s = process("cpu_user_ns.hold") / 1e9;
    assert!((0.05..30.0).contains(&used_s), "{used_s} s");
    // throng has almost nothing to do.
    let own_ns = s.count("observed.own.cpu_user_ns.hold") + s.count("observed.own.cpu_system_ns.hold");
    assert!(own_ns > 0 && s.number("observed.own.cores_used_hold.max") < 0.5, "{own_ns} ns");
}
