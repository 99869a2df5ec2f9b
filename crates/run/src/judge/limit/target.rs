//! Causes on the target's side.

use samples::{
    Cause,
    Certainty::{Guess, Inferred, Seen},
    Kind, Limit, Side, Stage, Summary,
};
use units::{Count, Nanos};

use super::{
    Case, Trouble, known_limit,
    path::{since, tenths},
};

use crate::judge::evidence::Evidence;

/// A processor is used up from here on; the rest is the clock's grain.
pub(crate) const USED_UP: f64 = 0.95;

/// Its process is gone.
pub(super) fn ended(case: &Case) -> Option<Limit> {
    let target = case.evidence.target.filter(|t| t.ended && case.is_short())?;
    let (pid, peak) = (target.pid, case.summary.connections.peak);
    // The host's counter has those of all its control groups.
    let killed = case.evidence.there.map_or(0, |host| host.oom_kills).max(target.oom_kills);
    if killed > 0 {
        let whom = if killed == 1 { "a process".to_owned() } else { format!("{} processes", Count(killed)) };
        let detail = format!("process {pid} ended: the kernel's OOM killer killed {whom}");
        return case.answer(Seen, (Side::Target, Cause::Memory), peak, detail, OUT_OF_MEMORY);
    }
    let detail = format!("process {pid} ended during the run");
    case.answer(Seen, (Side::Target, Cause::Ended), peak, detail, "check its log and exit status")
}

pub(super) const OUT_OF_MEMORY: &str =
    "give it more memory (MemoryMax= of its unit), or hold fewer connections";

/// The memory of all sockets ran out.
pub(super) fn memory(case: &Case) -> Option<Limit> {
    let (here, there) = (case.evidence.here.net, case.evidence.there.unwrap_or_default().net);
    let (side, given_up) = match here.abort_on_memory {
        0 => (Side::Target, there.abort_on_memory),
        n => (Side::Host, n),
    };
    let detail = format!("socket memory ran out: the kernel aborted {} connections", Count(given_up));
    let cure = "sysctl -w net.ipv4.tcp_mem='1048576 2097152 4194304'";
    let fits = given_up > 0 && case.is_short();
    fits.then(|| case.answer(Seen, (side, Cause::Memory), case.left(), detail, cure))?
}

/// Its files are used up.
pub(super) fn open_files(case: &Case) -> Option<Limit> {
    let target = case.evidence.target.filter(|_| case.is_short())?;
    let files = target.open_files?;
    // The kernel counts one that is about to be opened.
    let used = files.used.min(files.limit);
    let detail = format!("process {} has {} of {} files open", target.pid, Count(used), Count(files.limit));
    let most = (files.limit.saturating_mul(2)).max(1 << 20);
    let cure = format!(
        "raise its limit: prlimit --pid {} --nofile={most}, or LimitNOFILE={most} in its unit",
        target.pid
    );
    let at = case.left().min(used);
    files.is_out_of_files().then(|| case.answer(Seen, (Side::Target, Cause::OpenFiles), at, detail, cure))?
}

/// Nothing is listening, or no longer.
pub(super) fn refused(case: &Case) -> Option<Limit> {
    if case.trouble != Trouble::Refused {
        return None;
    }
    let (n, c) = (case.faults(), &case.summary.connections);
    if c.opened == 0 && case.evidence.there.is_some() && case.evidence.accept_queue.is_some() {
        let detail = format!(
            "{n} dials were refused although there is a listener: perhaps a firewall sent the resets, or \
            the target was started later"
        );
        return case.answer(
            Inferred,
            (Side::Target, Cause::Refused),
            0,
            detail,
            "check that host's firewall (nft list ruleset)",
        );
    }
    if c.opened == 0 {
        let detail = format!("{n} dials were refused: nothing is listening there{}", or_a_firewall(case));
        return case.answer(
            Seen,
            (Side::Target, Cause::Refused),
            0,
            detail,
            "start the server, or check the address and port",
        );
    }
    let detail = format!("{n} dials were refused after {} had been accepted{}", Count(c.opened), since(case));
    case.answer(
        Seen,
        (Side::Target, Cause::Refused),
        case.left(),
        detail,
        "check whether it stopped listening, and its log; a firewall that sends resets looks the same",
    )
}

/// Only on the target's host it can be seen whether there is a listener: resets look the same.
fn or_a_firewall(case: &Case) -> &'static str {
    let is_seen = case.evidence.there.is_some();
    if is_seen { "" } else { ", or a firewall on the path sent the resets" }
}

/// It expects TLS, which throng does not speak.
pub(super) fn tls_expected(case: &Case) -> Option<Limit> {
    if case.kind != Some(Kind::TlsExpected) {
        return closed_for_tls(case);
    }
    let n = case.faults();
    let detail = format!("the target speaks TLS: {n} plain-text connections were rejected");
    case.answer(Seen, (Side::Target, Cause::TlsExpected), case.left(), detail, NO_TLS)
}

const NO_TLS: &str = "use a port without TLS, or a TLS-terminating proxy; throng does not speak TLS in \
this version";

/// It closes plain connections without a byte in reply.
fn closed_for_tls(case: &Case) -> Option<Limit> {
    let e = case.evidence;
    let is_closed =
        case.trouble == Trouble::Lost && matches!(case.stage, Some(Stage::Exchange | Stage::Handshake));
    if !is_closed || !e.is_mute {
        return None;
    }
    let n = case.faults();
    let at_once = e.losses.silence.is_none_or(|time| time < SET);
    let (certainty, detail, cure) = match e.speaks_tls {
        Some(true) => (
            Seen,
            format!(
                "the target speaks TLS: {n} plain-text connections were closed without a byte in reply, \
                and a TLS ClientHello received a reply"
            ),
            NO_TLS,
        ),
        None if at_once => (
            Guess,
            format!(
                "{n} connections were closed at their first request, without a byte in reply: perhaps the target expects TLS"
            ),
            "try openssl s_client -connect HOST:PORT; throng does not speak TLS in this version",
        ),
        _ => return None,
    };
    case.answer(certainty, (Side::Target, Cause::TlsExpected), case.left(), detail, cure)
}

/// Shorter times are not configured timeouts: immediate losses have other reasons.
const SET: Nanos = Nanos::from_millis(900);

/// All were lost at the same time of their lives.
pub(super) fn constant_time(case: &Case) -> Option<Limit> {
    if case.trouble != Trouble::Lost {
        return None;
    }
    let (n, peak) = (case.faults(), case.summary.connections.peak);
    let pattern = case.evidence.losses;
    let silence = pattern.silence.filter(|time| *time >= SET);
    let age = pattern.age.filter(|time| *time >= SET);
    // For a connection with traffic only at its start both are the same. An idle timeout closes; a limit on age resets.
    if let Some(time) = silence.filter(|_| age.is_none() || case.kind == Some(Kind::Closed)) {
        let time = tenths(time);
        if case.stage == Some(Stage::Exchange) {
            let detail =
                format!("{n} connections were {} {time} after a request, without a response", how(case));
            let cure =
                format!("look for a request timeout of {time}, in the target and in any proxy before it");
            return case.answer(Inferred, (Side::Target, Cause::RequestTimeout), peak, detail, cure);
        }
        let detail = format!("{n} connections were {} after {time} of inactivity", how(case));
        let cure = format!("raise its idle timeout above {time}, or send more often");
        return case.answer(Inferred, (Side::Target, Cause::IdleCut), peak, detail, cure);
    }
    let time = tenths(age?);
    let detail = format!("{n} connections were {} {time} after they were opened", how(case));
    let cure =
        format!("look for a maximum connection age of {time}, in the target and in any proxy before it");
    case.answer(Inferred, (Side::Target, Cause::ResetAfter), peak, detail, cure)
}

fn how(case: &Case) -> &'static str {
    if case.kind == Some(Kind::Reset) { "reset" } else { "closed" }
}

/// It closes each connection after the same number of responses, and does not announce it.
pub(super) fn responses(case: &Case) -> Option<Limit> {
    let n = case.evidence.losses.responses.filter(|_| case.trouble == Trouble::Lost)?;
    let responses = if n == 1 { "its response".to_owned() } else { format!("{} responses", Count(n)) };
    let detail = format!("it closes each connection after {responses} without announcing it");
    let cure = "raise its limit on requests per connection (keepalive_requests, MaxKeepAliveRequests), or \
    make it announce the close (Connection: close)";
    case.answer(
        Inferred,
        (Side::Target, Cause::RequestsPerConnection),
        case.summary.connections.peak,
        detail,
        cure,
    )
}

/// It closes idle connections to make room for new ones, and others that are silent for longer stay.
pub(super) fn evicted(case: &Case) -> Option<Limit> {
    let losses = case.evidence.losses;
    let silence =
        losses.evicted.filter(|_| case.trouble == Trouble::Lost && case.kind == Some(Kind::Closed))?;
    let (n, c) = (case.faults(), &case.summary.connections);
    let detail = format!(
        "{n} connections were closed as others opened, after {} of inactivity, while others were inactive \
        for {}: the target makes room for new ones, and keeps about {}",
        tenths(silence),
        tenths(losses.others),
        Count(c.held),
    );
    let cure = "raise its limit on connections (worker_connections, maxconn)";
    case.answer(Inferred, (Side::Target, Cause::ConnectionLimit), c.held, detail, cure)
}

/// From some number on new connections were turned away, and no others.
pub(super) fn connection_limit(case: &Case) -> Option<Limit> {
    let c = &case.summary.connections;
    if case.trouble != Trouble::Lost || !case.evidence.losses.is_surplus {
        return None;
    }
    let detail = format!("new connections beyond {} open ones were {} immediately", Count(c.held), how(case));
    let cure = "raise its limit on connections (worker_connections, maxconn, --max-open)";
    case.answer(Inferred, (Side::Target, Cause::ConnectionLimit), c.held, detail, cure)
}

const BACKLOG: &str = "check whether its own limit on connections (max-connections) keeps it from \
accepting; otherwise raise its listen() backlog, and sysctl -w net.core.somaxconn=65535";

/// Its accept queue is full, or was, or connections are stuck in it.
pub(super) fn accept_queue(case: &Case) -> Option<Limit> {
    let e = case.evidence;
    let may_be = matches!(case.trouble, Trouble::Waiting | Trouble::Lost);
    let overflown = overflows(case.summary, e);
    // A few that are in it at the end remain from an overflow: that is why the others were not accepted.
    let is_more = 2 * e.unaccepted >= case.count || overflown.is_none();
    if e.unaccepted > 0 && (may_be && is_more || case.trouble == Trouble::None) {
        return unaccepted(case);
    }
    // Resets follow from an overflow too: the peer took itself for connected. Closes do not.
    let fits = case.trouble == Trouble::Waiting || case.kind == Some(Kind::Reset);
    if !may_be || !fits {
        return None;
    }
    let Some(lost) = overflown else { return standing(case) };
    let rate = e.accepts_per_s.map_or(String::new(), |rate| format!("; it accepts a steady {rate:.0}/s"));
    let detail =
        format!("its accept queue{} was full: it overflowed {} times{rate}", backlog(case), Count(lost));
    // The counters alone are of all listeners together.
    let certainty = if is_full(e) { Seen } else { Inferred };
    case.answer(certainty, (Side::Target, Cause::AcceptQueue), case.served(), detail, BACKLOG)
}

pub(super) fn is_full(e: &Evidence) -> bool {
    e.accept_queue.is_some_and(|queue| queue.limit > 0 && queue.used >= queue.limit)
}

/// ` of 511`, where that is known.
fn backlog(case: &Case) -> String {
    let queue = case.evidence.accept_queue.filter(|queue| queue.limit > 0);
    queue.map_or(String::new(), |queue| format!(" of {}", Count(queue.limit)))
}

/// How often the target's queue overflowed, if it was full or may have been.
fn overflows(s: &Summary, e: &Evidence) -> Option<u64> {
    let net = e.there?.net;
    let lost = net.listen_overflows + net.listen_drops + net.syn_queue_drops;
    // The counters cover all listeners: another one's overflow is not of this queue, if it can be seen. A burst may be over
    // between two samples; but each of its dials that timed out has overflown a queue.
    let dials = s.faults.iter().filter(|f| f.stage == Stage::Dial && f.kind == Kind::Timeout);
    let timed_out: u64 = dials.map(|f| f.count).sum();
    let may_be_its_own = e.accept_queue.is_none_or(|queue| queue.used * 2 >= queue.limit)
        || timed_out > 0 && net.listen_overflows >= timed_out;
    (is_full(e) || lost > 0 && may_be_its_own).then_some(lost)
}

/// The first SYN that is lost is sent again after a second.
const SENT_AGAIN_US: f64 = 0.95e6;

/// The same as a warning, of a run that passes: dials came through when their SYNs were sent again.
pub(super) fn overflow_warning(s: &Summary, e: &Evidence) -> Option<String> {
    let net = e.there?.net;
    let seen = overflows(s, e).filter(|lost| *lost > 0);
    let lost =
        seen.or_else(|| Some(net.listen_overflows).filter(|n| *n > 0 && s.connect_us.max >= SENT_AGAIN_US))?;
    let (p99, max) = (s.connect_us.p99 / 1e6, s.connect_us.max / 1e6);
    Some(format!(
        "warning: the target's accept queue overflowed {} times: dials took up to {max:.1} s (p99 {p99:.1} \
        s), because a dropped SYN is retransmitted after 1 s; raise its listen() backlog, and sysctl -w \
        net.core.somaxconn=65535",
        Count(lost)
    ))
}

/// Connections that only the kernel has accepted.
fn unaccepted(case: &Case) -> Option<Limit> {
    let n = case.evidence.unaccepted;
    let detail = format!(
        "{} connections were accepted by the kernel only: they are in the target's accept queue{}, and its \
        process has not accepted them",
        Count(n),
        backlog(case)
    );
    case.answer(Seen, (Side::Target, Cause::AcceptQueue), case.summary.connections.held, detail, UNACCEPTED)
}

/// Connections that were in the queue, which was not full, as many as those that waited in vain.
fn standing(case: &Case) -> Option<Limit> {
    let e = case.evidence;
    if e.stood == 0 || e.accepts_per_s.is_some() || 2 * e.stood < case.count {
        return None;
    }
    let detail = format!(
        "{} connections were in its accept queue{} and were not accepted although it was not full: the \
        target serves {} at a time",
        Count(e.stood),
        backlog(case),
        Count(case.served()),
    );
    case.answer(Seen, (Side::Target, Cause::AcceptQueue), case.served(), detail, UNACCEPTED)
}

const UNACCEPTED: &str = "raise its own limit on connections (maxconn, max-connections) or threads, or \
find out why it does not call accept()";

/// It has no CPU left.
pub(super) fn cpu(case: &Case) -> Option<Limit> {
    let is_slow = matches!(case.trouble, Trouble::None | Trouble::Waiting);
    let target = case.evidence.target.filter(|_| is_slow)?;
    let thread = target.cpu_thread.filter(|share| *share >= USED_UP);
    let detail = if let Some(share) = thread {
        format!(
            "the busiest thread of process {} was runnable for {:.0} % of the time",
            target.pid,
            share * 100.0
        )
    } else if target.cpu_share >= USED_UP {
        format!("process {} used {:.0} % of its processors", target.pid, target.cpu_share * 100.0)
    } else {
        return None;
    };
    let cure = "give it more processors or workers, or reduce the load";
    case.answer(Seen, (Side::Target, Cause::Cpu), case.left(), detail, cure)
}

/// It accepts at its own pace.
pub(super) fn slow_accept(case: &Case) -> Option<Limit> {
    let rate = case.evidence.accepts_per_s.filter(|_| case.trouble == Trouble::Waiting)?;
    let waiting = case.evidence.accept_queue.map_or(0, |queue| queue.used);
    let detail = format!("it accepts a steady {rate:.0}/s, while up to {} waited", Count(waiting));
    let cure = format!("use --ramp {}/s, or make it accept in more threads", (rate * 0.9).floor().max(1.0));
    case.answer(Inferred, (Side::Target, Cause::SlowAccept), case.left(), detail, cure)
}

/// How many of all that went wrong are of the kind that most are; nothing where all are.
fn of_them(case: &Case, kind: Kind) -> String {
    let same: u64 = case.summary.faults.iter().filter(|f| f.kind == kind).map(|f| f.count).sum();
    if same < case.count { format!(", {} of them", Count(same)) } else { String::new() }
}

/// Nothing but the kind of fault is known, and perhaps a number at which things are known to stop.
pub(super) fn fault(case: &Case) -> Option<Limit> {
    let (n, peak) = (case.faults(), case.summary.connections.peak);
    let kind = case.kind?;
    let (certainty, cause, detail, cure) = match (case.trouble, case.stage?) {
        (Trouble::Waiting, Stage::Dial) => (
            Guess,
            Cause::Timeout,
            format!("{n} dials and requests timed out{}", from(case)),
            "check the target's accept queue (ss -ltn; its limit is the backlog, at most \
            net.core.somaxconn), then the firewalls on the path",
        ),
        (Trouble::Waiting, _) if is_acknowledged(case) => (
            Inferred,
            Cause::Timeout,
            format!(
                "{n} requests timed out; the target's host acknowledged them, but its process does not \
                respond"
            ),
            "check the target's process: CPU, open files, locks (gdb -p, jstack)",
        ),
        (Trouble::Waiting, _) => (
            Guess,
            Cause::Timeout,
            format!("{n} requests timed out"),
            "check the target's CPU and open files, or raise --timeout",
        ),
        (Trouble::WrongAnswer, _) => (
            Seen,
            Cause::WrongAnswer,
            format!("{n} responses were wrong{}: {}", of_them(case, kind), kind.name()),
            "check one of them with curl -i",
        ),
        (Trouble::Lost, _) => (
            Seen,
            Cause::Closed,
            format!("{n} connections were lost{}: {} by the peer", of_them(case, kind), kind.name()),
            "check the target's idle timeout, connection limit and log",
        ),
        _ => return None,
    };
    match known_limit::hint(case) {
        None => case.answer(certainty, (Side::Target, cause), peak, detail, cure),
        Some(hint) => {
            let (held, (what, tell)) = (case.summary.connections.held, hint);
            let detail = format!("{detail}; it stopped at {}, near a known limit: {what}", Count(held));
            case.answer(Guess, (Side::Target, cause), held, detail, tell)
        }
    }
}

/// Whether TCP got through to the target's host, and its process is silent.
fn is_acknowledged(case: &Case) -> bool {
    let seen = &case.evidence.segments;
    seen.unanswered >= 3.min(seen.connections).max(1) && seen.unanswered > 9 * seen.unacknowledged
}

/// Silence of a remote target.
fn from(case: &Case) -> String {
    let net = case.evidence.here.net;
    let again = match (net.syn_retrans, net.icmp_unreachable) {
        (0, _) => String::new(),
        (n, 0) => format!("; {} SYN retransmissions, and no reset or ICMP", Count(n)),
        (n, _) => format!("; {} SYN retransmissions", Count(n)),
    };
    format!("{}{again}", since(case))
}
