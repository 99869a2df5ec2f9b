//! Dials and requests without a response.

use samples::{Cause as Name, Certainty, Detail, FaultCount, Stage};
use units::{Bytes, Count};

use super::{Seen, finish};
use crate::{
    case::Case,
    say::{after, dials_and_requests, some, within},
    trouble::{Trouble, trouble_of},
};

/// Advice for a target that may only be slow.
const IS_BUSY: &str = "check the target's CPU and open files, or raise --timeout";

/// Advice if dials get no reply.
const QUEUE: &str =
    "check the target's accept queue (ss -ltn; its limit is the backlog, at most net.core.somaxconn)";
const QUEUE_OR_FIREWALL: &str = "check the target's accept queue (ss -ltn; its limit is the backlog, at most \
net.core.somaxconn), then the firewalls on the path";

pub(super) fn waiting(case: &Case) -> Option<Seen> {
    let (count, timeout) = (case.count, case.evidence.timeout);
    let seen = |certainty, [sentence, detail, fix]: [String; 3]| {
        Some(finish(case, certainty, Name::Timeout, [sentence, detail, fix]))
    };
    if case.stage == Some(Stage::Exchange) && case.is_unended() {
        return seen(Certainty::Inferred, unended(case));
    }
    if case.detail == Detail::WINDOW {
        let requests = some(case.with_detail(), "request");
        let (sentence, detail) = (
            format!(
                "{requests} timed out{}: the target's HTTP/2 flow-control window blocked their bodies",
                after(timeout)
            ),
            format!("{requests} timed out before all of it was sent (RFC 9113, section 5.2)"),
        );
        return seen(Certainty::Seen, [sentence, detail, READS.to_owned()]);
    }
    let (what, fix) = waits(case.stage?);
    let timed_out = |n: String| format!("{n} timed out{}", after(timeout));
    if case.detail == Detail::NO_STREAMS {
        let detail = format!("{} timed out: the target allows no streams", some(count, what));
        let fix = "raise its limit on concurrent streams: it allows none (SETTINGS_MAX_CONCURRENT_STREAMS 0)";
        return seen(Certainty::Seen, [timed_out(some(count, what)), detail, fix.to_owned()]);
    }
    let is_dial = |f: &&FaultCount| f.stage == Stage::Dial && trouble_of(f) == Trouble::Waiting;
    let dials: u64 = case.faults.iter().filter(is_dial).map(|f| f.count).sum();
    let others = count - dials;
    // Connections in a full accept queue are open, and their requests wait: as many as dials, or more.
    let is_cut_off = dials > 0 && !case.since().is_empty();
    if case.stage? == Stage::Dial || is_cut_off {
        let fix = if case.evidence.subject.is_loopback { QUEUE } else { QUEUE_OR_FIREWALL };
        let all = dials_and_requests(count);
        let detail = format!("{all} timed out{}", from(case));
        return seen(Certainty::Guess, [timed_out(all), detail, fix.to_owned()]);
    }
    if is_acknowledged(case) {
        return seen(Certainty::Inferred, acknowledged(case, what, others));
    }
    let (sentence, all) = match dials {
        0 => (timed_out(some(count, what)), some(others, what)),
        _ => (timed_out(dials_and_requests(count)), dials_and_requests(count)),
    };
    seen(Certainty::Guess, [sentence, format!("{all} timed out"), fix.to_owned()])
}

/// The target's host received the requests, and its process does not respond.
fn acknowledged(case: &Case, what: &str, others: u64) -> [String; 3] {
    let (some, them) = (some(others, what), Count(others).one_or("it", "them"));
    // It responds to others, so it may only be slow. A call carries its deadline, at which the target ends it, too.
    let may_be_slow = case.requests().answered > 0 || case.evidence.subject.is_grpc;
    let (within, or) = match may_be_slow {
        true => (within(case.evidence.timeout), ", or raise --timeout"),
        false => (String::new(), ""),
    };
    [
        format!("{some} timed out: the target's host received {them}, its process did not respond{within}"),
        format!(
            "{some} timed out; the target's host acknowledged {them}, but its process does not respond{within}"
        ),
        format!("{PROCESS}{or}"),
    ]
}

const PROCESS: &str =
    "check the target's process: CPU, workers or threads, open files, locks (gdb -p, jstack)";

const READS: &str = "check that the target's handler reads the bodies of requests, and the initial window in its settings; or send less \
(--body, --message)";

const SILENT: &str = "check that the target replies to what is sent on idle connections (PINGs of HTTP/2 by --ping, or TCP's own \
keep-alive probes), then its CPU and open files, and the path";

/// What timed out in this stage, and where to look.
pub(super) fn waits(stage: Stage) -> (&'static str, &'static str) {
    match stage {
        Stage::Dial => ("dial", IS_BUSY),
        Stage::Tls => ("TLS handshake", IS_BUSY),
        Stage::Handshake => (
            "handshake",
            "check that the target speaks this protocol at this port, then its CPU and open files, or raise --timeout",
        ),
        // Detected by PINGs, or by TCP keep-alive.
        Stage::Hold => ("idle connection", SILENT),
        Stage::Exchange | Stage::Close => ("request", IS_BUSY),
    }
}

/// Responses that began and did not end, such as server-sent events.
fn unended(case: &Case) -> [String; 3] {
    let (count, detail) = if case.requests().answered == 0 {
        let bytes = Bytes(case.requests().bytes_in).brief();
        let requests = some(case.count, "request");
        let detail =
            format!("{requests} timed out after {bytes} of responses had been received, none of them whole");
        (case.count, detail)
    } else {
        let count = case.evidence.unended.min(case.count);
        (count, format!("{} timed out after their responses had begun", some(count, "request")))
    };
    let sentence =
        format!("{} began and did not end{}", some(count, "response"), within(case.evidence.timeout));
    let fix = "throng waits for whole responses: it cannot hold server-sent events as requests; for a long \
    response raise --timeout";
    [sentence, detail, fix.to_owned()]
}

/// Whether the target's host acknowledged the requests and its process is silent.
fn is_acknowledged(case: &Case) -> bool {
    let seen = &case.evidence.segments;
    seen.unanswered >= 3.min(seen.connections).max(1) && seen.unanswered > 9 * seen.unacknowledged
}

/// Further evidence for the silence of a remote target.
fn from(case: &Case) -> String {
    let net = case.evidence.here.net;
    let again = match (net.syn_retrans, net.icmp_unreachable) {
        (0, _) => String::new(),
        (n, 0) => format!("; {}, and no reset or ICMP", some(n, "SYN retransmission")),
        (n, _) => format!("; {}", some(n, "SYN retransmission")),
    };
    format!("{}{again}", case.since())
}
