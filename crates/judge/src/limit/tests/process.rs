//! Causes that the inside of a process shows: its log, heap and threads.

use samples::{Certainty, LogKind, LogLine};

use super::*;
use record::signs::FullHeap;

fn log(kind: LogKind, line: &str) -> Vec<LogLine> {
    vec![LogLine { kind, file: "/var/log/x.log".to_owned(), line: line.to_owned() }]
}

fn seen() -> Evidence {
    target(TargetSeen::default())
}

fn sure(s: &Summary, evidence: &Evidence) -> (&'static str, Certainty) {
    let limit = limit(s, evidence).expect("something stopped it");
    (limit.cause.name(), limit.certainty)
}

#[test]
fn a_full_heap_is_reported() {
    const OOM: &str = "Exception in thread \"http-3\" java.lang.OutOfMemoryError: Java heap space";
    let logged = Evidence { log: log(LogKind::Heap, OOM), ..seen() };
    let expected =
        ("target", "heap", 300, "its log: Exception in thread \"http-3\" java.lang.OutOfMemory", "-Xmx");
    for trouble in [waiting(), closed(), vec![fault(Stage::Exchange, Kind::WrongStatus, 9)]] {
        check(&stopped(300, trouble), &logged, expected);
    }
    let full = FullHeap { used: 15 << 20, limit: 16 << 20, collecting: 0.83 };
    let thrashing = Evidence { heap: Some(full), ..seen() };
    let expected =
        ("target", "heap", 300, "used 15.0 MiB of its maximum heap of 16.0 MiB, and spent 83 %", "");
    check(&stopped(300, waiting()), &thrashing, expected);
    // The heap is exhausted before the symptom, a full queue.
    let queue = Evidence { accept_queue: Some(Fill { used: 9, limit: 8 }), ..logged };
    assert_eq!(sure(&stopped(300, waiting()), &queue), ("heap", Certainty::Seen));
}

#[test]
fn a_dead_accept_thread_is_reported_if_connections_wait() {
    let gone = |name: &str| Evidence { threads_gone: vec![name.to_owned()], ..seen() };
    let queue = Some(Fill { used: 51, limit: 50 });
    let expected = ("target", "thread", 300, "thread \"my-acceptor\" of process 81 has ended", "accept loop");
    let dead = Evidence { accept_queue: queue, ..gone("my-acceptor") };
    check(&stopped(300, waiting()), &dead, expected);
    assert_eq!(sure(&stopped(300, waiting()), &dead), ("thread", Certainty::Seen));
    let other = Evidence { accept_queue: queue, ..gone("main") };
    assert_eq!(sure(&stopped(300, waiting()), &other), ("thread", Certainty::Inferred));
    let with_log = Evidence { log: log(LogKind::Error, "Exception in thread \"main\" x"), ..other.clone() };
    assert_eq!(sure(&stopped(300, waiting()), &with_log), ("thread", Certainty::Seen));
    // The target still accepts, or the queue is empty: an idle worker ended.
    let accepts = Evidence { accepts_per_s: Some(50.0), ..other };
    assert_eq!(sure(&stopped(300, waiting()), &accepts).0, "accept-queue");
    assert_eq!(sure(&stopped(300, waiting()), &gone("pool-1-thread-2")), ("timeout", Certainty::Guess));
    // They seem to be held, but only the kernel has accepted them.
    let mut idle = stopped(300, Vec::new());
    idle.verdict = Verdict::Fail;
    let held = Evidence { unaccepted: 90, ..gone("Acceptor") };
    check(&idle, &held, ("target", "thread", 300, "", ""));
}

#[test]
fn log_lines_name_or_confirm_the_cause() {
    let logged = |kind, line| Evidence { log: log(kind, line), ..seen() };
    let check =
        |trouble: Vec<FaultCount>, evidence: &Evidence, cause: &str, certainty: Certainty, line: &str| {
            let limit = limit(&stopped(300, trouble), evidence).expect("something stopped it");
            assert_eq!((limit.cause.name(), limit.certainty), (cause, certainty), "{limit:?}");
            assert!(limit.detail.ends_with(&format!("its log: {line} (/var/log/x.log)")), "{limit:?}");
        };
    let files = logged(LogKind::OpenFiles, "accept4() failed (24: Too many open files)");
    check(waiting(), &files, "open-files", Certainty::Seen, "accept4() failed (24: Too many open files)");
    let threads = logged(LogKind::Threads, "unable to create native thread");
    check(closed(), &threads, "threads", Certainty::Seen, "unable to create native thread");
    let memory = logged(LogKind::Memory, "fork: Cannot allocate memory");
    check(closed(), &memory, "memory", Certainty::Seen, "fork: Cannot allocate memory");
    let full = logged(LogKind::Connections, "4 worker_connections are not enough");
    check(closed(), &full, "connection-limit", Certainty::Seen, "4 worker_connections are not enough");
    // With and without a pattern that shows it.
    let surplus = Evidence { losses: Pattern { is_surplus: true, ..Pattern::default() }, ..full };
    check(closed(), &surplus, "connection-limit", Certainty::Seen, "4 worker_connections are not enough");
    // Any error in the log turns a guess into an inference.
    let panic = logged(LogKind::Error, "thread 'a' panicked at src/x.rs:3");
    check(waiting(), &panic, "timeout", Certainty::Inferred, "thread 'a' panicked at src/x.rs:3");
    check(closed(), &panic, "closed", Certainty::Seen, "thread 'a' panicked at src/x.rs:3");
    let gone = target(TargetSeen { ended: true, ..TargetSeen::default() });
    let ended = Evidence { log: panic.log, ..gone };
    check(closed(), &ended, "ended", Certainty::Seen, "thread 'a' panicked at src/x.rs:3");
}
