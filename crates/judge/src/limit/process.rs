//! What the target's process shows from inside: its managed heap, its threads, and what it logs.

use samples::{
    Cause,
    Certainty::{Guess, Inferred, Seen},
    Kind, Limit, LogKind, LogLine, Side,
};
use units::Bytes;

use super::{
    Case, Sentence, Trouble,
    accept_queue::is_full,
    target::{FEWER, more_memory},
};
use crate::signs::Sign;

/// Its heap is full: according to its log, or nearly all of it is used and collections take the time.
pub(super) fn heap(case: &Case) -> Option<Limit> {
    let line = logged(case, LogKind::Heap);
    let full = case.evidence.heap.filter(|_| case.explains(Sign::Heap));
    if matches!(case.trouble, Trouble::Ours | Trouble::Path) || line.is_none() && full.is_none() {
        return None;
    }
    let pid = case.evidence.target?.pid;
    let used = full.map(|heap| {
        let (used, limit) = (Bytes(heap.used).brief(), Bytes(heap.limit).brief());
        let spent = format!("{:.0} % of the time in garbage collections", heap.collecting * 100.0);
        format!("process {pid} used {used} of its maximum heap of {limit}, and spent {spent}")
    });
    let detail = used.unwrap_or_else(|| format!("the heap of process {pid} is full"));
    let larger = "increase its heap (JVM -Xmx, Node.js --max-old-space-size, SBCL --dynamic-space-size)";
    let fix = case.or_less(larger, FEWER);
    let sentence = match full {
        Some(heap) => Sentence::HeapOf { used: heap.used, limit: heap.limit, collecting: heap.collecting },
        None => Sentence::Heap { at: case.served() },
    };
    case.limit(Seen, (Side::Target, Cause::Heap), case.served(), sentence, detail, fix)
}

/// A thread has ended while the process lives, and nothing accepts any more.
pub(super) fn thread(case: &Case) -> Option<Limit> {
    let e = case.evidence;
    let name = e.threads_gone.first().filter(|_| case.is_waiting() || case.kind == Some(Kind::Reset))?;
    let stands = e.unaccepted > 0 || e.stood > 0 || is_full(e);
    // Where it accepts still, another thread does.
    if !stands || e.accepts_per_s.is_some() || !case.explains(Sign::Thread) {
        return None;
    }
    let pid = e.target.map_or(0, |target| target.pid);
    let detail = format!(
        "thread {name:?} of process {pid} has ended while the process is alive, and connections in its \
        accept queue are not accepted",
    );
    let is_named = name.to_ascii_lowercase().contains("accept") || logged(case, LogKind::Error).is_some();
    let at = if e.unaccepted > 0 { case.summary.connections.held } else { case.served() };
    let fix = "check its log for what ended that thread; an accept loop must survive an error on one \
    connection";
    let (certainty, sentence) =
        (if is_named { Seen } else { Inferred }, Sentence::ThreadEnded { name: name.clone() });
    case.limit(certainty, (Side::Target, Cause::Thread), at, sentence, detail, fix)
}

/// According to its log it could get no file, no memory or no thread.
pub(super) fn short(case: &Case) -> Option<Limit> {
    if matches!(case.trouble, Trouble::Ours | Trouble::Path | Trouble::None) {
        return None;
    }
    let kinds = [LogKind::OpenFiles, LogKind::Threads, LogKind::Memory];
    let kind = kinds.into_iter().find(|kind| logged(case, *kind).is_some())?;
    let pid = case.evidence.target?.pid;
    let at = case.served();
    let (cause, sentence, what, fix) = match kind {
        LogKind::OpenFiles => (
            Cause::OpenFiles,
            Sentence::LoggedOpenFiles { at },
            "could not open another file",
            format!(
                "raise its limit: prlimit --pid {pid} --nofile=1048576, or LimitNOFILE=1048576 in its unit"
            ),
        ),
        LogKind::Threads => (
            Cause::Threads,
            Sentence::LoggedThreads { at },
            "could not start another thread",
            "raise its limit on threads (ulimit -u, TasksMax= of its unit, pids.max), or serve more \
            connections per thread"
                .to_owned(),
        ),
        _ => {
            let sentence = Sentence::LoggedMemory { at };
            (Cause::Memory, sentence, "could not allocate memory", more_memory(case))
        }
    };
    case.limit(Seen, (Side::Target, cause), at, sentence, format!("process {pid} {what}"), fix)
}

/// According to its log its own limit on connections was reached.
pub(super) fn connections(case: &Case) -> Option<Limit> {
    logged(case, LogKind::Connections).filter(|_| case.is_short())?;
    let held = case.summary.connections.held;
    let fix =
        "raise its limit on connections (worker_connections, maxconn, MaxRequestWorkers, pm.max_children)";
    let detail = "its own limit on connections was reached".to_owned();
    let sentence = Sentence::LoggedConnections { at: held };
    case.limit(Seen, (Side::Target, Cause::ConnectionLimit), held, sentence, detail, fix)
}

/// Adds the target's log line for this cause, which makes it certain.
pub(super) fn quote(case: &Case, mut limit: Limit) -> Limit {
    use Cause::{AcceptQueue, Closed, Ended, Refused, Stall, Thread, Timeout};
    let kinds: &[LogKind] = match limit.cause {
        _ if limit.side != Side::Target => &[],
        Cause::Heap => &[LogKind::Heap],
        Cause::OpenFiles => &[LogKind::OpenFiles],
        Cause::Threads => &[LogKind::Threads],
        Cause::ConnectionLimit => &[LogKind::Connections],
        Cause::Memory => &[LogKind::Memory, LogKind::Heap],
        Cause::WrongAnswer => &[LogKind::Connections, LogKind::Error],
        Ended | Thread | Closed | Timeout | Refused | AcceptQueue | Stall => {
            &[LogKind::Heap, LogKind::Error, LogKind::Memory]
        }
        _ => &[],
    };
    let Some(line) = kinds.iter().find_map(|kind| logged(case, *kind)) else { return limit };
    limit.detail += &format!("; its log: {} ({})", line.line, line.file);
    limit.certainty = match line.kind {
        // An error of any kind, at the time: one explanation of several no more.
        LogKind::Error if limit.certainty == Guess => Inferred,
        LogKind::Error => limit.certainty,
        _ => Seen,
    };
    limit
}

/// A line of this kind that was there when things began to fail.
pub(super) fn logged<'a>(case: &Case<'a>, kind: LogKind) -> Option<&'a LogLine> {
    let line = case.evidence.log.iter().find(|line| line.kind == kind)?;
    case.explains(kind.into()).then_some(line)
}
