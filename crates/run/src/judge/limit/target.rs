//! Causes on the target's side.

use samples::{Kind, Limit, Side, Stage};
use units::{Count, Nanos};

use super::{Case, Trouble};

/// A process is out of files a few before its limit: some servers keep a reserve.
const FILES_KEPT: u64 = 32;
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
        let detail = format!("process {pid} ended, and the kernel killed {whom} for want of memory");
        return case.answer(Side::Target, "memory", peak, detail, OUT_OF_MEMORY);
    }
    let detail = format!("process {pid} ended during the run");
    case.answer(Side::Target, "ended", peak, detail, "look at its log and exit status")
}

const OUT_OF_MEMORY: &str = "give it more memory (MemoryMax= of its unit), or hold fewer connections";

/// The memory of all sockets ran out.
pub(super) fn memory(case: &Case) -> Option<Limit> {
    let (here, there) = (case.evidence.here.net, case.evidence.there.unwrap_or_default().net);
    let (side, given_up) = match here.abort_on_memory {
        0 => (Side::Target, there.abort_on_memory),
        n => (Side::Host, n),
    };
    let detail = format!("sockets ran out of memory: {} connections were given up", Count(given_up));
    let cure = "sysctl -w net.ipv4.tcp_mem='1048576 2097152 4194304'";
    let fits = given_up > 0 && case.is_short();
    fits.then(|| case.answer(side, "memory", case.left(), detail, cure))?
}

/// Its files are used up.
pub(super) fn open_files(case: &Case) -> Option<Limit> {
    let target = case.evidence.target.filter(|_| case.is_short())?;
    let files = target.open_files?;
    // The kernel counts one that is about to be opened.
    let used = files.used.min(files.limit);
    let kept = FILES_KEPT.max(files.limit / 100);
    let detail =
        format!("process {} has {} files open of at most {}", target.pid, Count(used), Count(files.limit));
    let most = (files.limit.saturating_mul(2)).max(1 << 20);
    let cure = format!(
        "raise its limit: prlimit --pid {} --nofile={most}, or LimitNOFILE={most} in its unit",
        target.pid
    );
    let at = case.left().min(used);
    (used + kept >= files.limit).then(|| case.answer(Side::Target, "open-files", at, detail, cure))?
}

/// Nobody listens, or no longer.
pub(super) fn refused(case: &Case) -> Option<Limit> {
    if case.trouble != Trouble::Refused {
        return None;
    }
    let (n, c) = (case.faults(), &case.summary.connections);
    if c.opened == 0 {
        let detail = format!("{n} dials were refused: nobody listens there");
        return case.answer(
            Side::Target,
            "refused",
            0,
            detail,
            "start the server, or check address and port",
        );
    }
    let detail = format!("{n} dials were refused after {} had been taken", Count(c.opened));
    case.answer(
        Side::Target,
        "refused",
        case.left(),
        detail,
        "look whether it stopped listening, and at its log",
    )
}

/// It speaks TLS, and throng does not.
pub(super) fn tls_expected(case: &Case) -> Option<Limit> {
    if case.kind != Some(Kind::TlsExpected) {
        return None;
    }
    let n = case.faults();
    let detail = format!("the target speaks TLS: {n} connections that began without were turned away");
    let cure = "use a port without TLS, or put a proxy that ends TLS before it: throng does not speak TLS in this version";
    case.answer(Side::Target, "tls-expected", case.left(), detail, cure)
}

/// Shorter than this is no time that somebody has set: losses at once have other reasons.
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
    // Of one that spoke only at its beginning both are the same. Who cuts the idle closes; who limits ages resets.
    if let Some(time) = silence.filter(|_| age.is_none() || case.kind == Some(Kind::Closed)) {
        let time = told(time);
        let detail = format!("{n} connections were {} after {time} of silence", how(case));
        let cure = format!("raise its idle timeout above {time}, or send something more often");
        return case.answer(Side::Target, "idle-cut", peak, detail, cure);
    }
    let time = told(age?);
    let detail = format!("{n} connections were {} {time} after they were opened", how(case));
    let cure =
        format!("look for a limit of {time} on a connection's life, in it and in what stands before it");
    case.answer(Side::Target, "reset-after", peak, detail, cure)
}

fn how(case: &Case) -> &'static str {
    if case.kind == Some(Kind::Reset) { "reset" } else { "closed" }
}

/// To a tenth of a second, for it is not known better.
fn told(time: Nanos) -> String {
    let tenths = (time.0 + 50_000_000) / 100_000_000;
    if tenths.is_multiple_of(10) {
        format!("{} s", tenths / 10)
    } else {
        format!("{}.{} s", tenths / 10, tenths % 10)
    }
}

/// From some number on, whoever came was turned away, and nobody else was.
pub(super) fn connection_limit(case: &Case) -> Option<Limit> {
    let c = &case.summary.connections;
    if case.trouble != Trouble::Lost || !case.evidence.losses.is_surplus {
        return None;
    }
    let detail = format!("whoever came when {} were open was {} at once", Count(c.held), how(case));
    let cure = "raise its limit on connections (worker_connections, maxconn, --max-open)";
    case.answer(Side::Target, "connection-limit", c.held, detail, cure)
}

const BACKLOG: &str = "see whether a limit of its own on connections (max-connections) keeps it from accepting; \
else raise the backlog that it gives to listen(), and sysctl -w net.core.somaxconn=65535";

/// Its accept queue is full, or was.
pub(super) fn accept_queue(case: &Case) -> Option<Limit> {
    let e = case.evidence;
    if !matches!(case.trouble, Trouble::Waiting | Trouble::Lost) {
        return None;
    }
    let net = e.there?.net;
    let lost = net.listen_overflows + net.listen_drops + net.syn_queue_drops;
    let full = e.accept_queue.filter(|queue| queue.limit > 0 && queue.used >= queue.limit);
    // Resets follow from an overflow too: the peer took itself for connected. Closes do not.
    let fits = case.trouble == Trouble::Waiting || case.kind == Some(Kind::Reset);
    // The counters are of all listeners together: another's overflow is none of this queue, if it can be seen. A burst
    // may be over between two looks; but each of its dials that timed out has overflown a queue.
    let dials = case.summary.faults.iter().filter(|f| f.stage == Stage::Dial && f.kind == Kind::Timeout);
    let timed_out: u64 = dials.map(|f| f.count).sum();
    let may_be_its_own = e.accept_queue.is_none_or(|queue| queue.used * 2 >= queue.limit)
        || timed_out > 0 && net.listen_overflows >= timed_out;
    if !fits || full.is_none() && (lost == 0 || !may_be_its_own) {
        return None;
    }
    let backlog = e.accept_queue.filter(|queue| queue.limit > 0);
    let backlog = backlog.map_or(String::new(), |queue| format!(" of {}", Count(queue.limit)));
    let rate = e.accepts_per_s.map_or(String::new(), |rate| format!("; it accepts a steady {rate:.0}/s"));
    let detail = format!("its accept queue{backlog} was full: it overflowed {} times{rate}", Count(lost));
    case.answer(Side::Target, "accept-queue", case.left(), detail, BACKLOG)
}

/// It has no CPU left.
pub(super) fn cpu(case: &Case) -> Option<Limit> {
    let is_slow = matches!(case.trouble, Trouble::None | Trouble::Waiting);
    let target = case.evidence.target.filter(|_| is_slow)?;
    let thread = target.cpu_thread.filter(|share| *share >= USED_UP);
    let detail = if let Some(share) = thread {
        format!("process {}'s busiest thread had work for {:.0} % of the time", target.pid, share * 100.0)
    } else if target.cpu_share >= USED_UP {
        format!("process {} used {:.0} % of its processors", target.pid, target.cpu_share * 100.0)
    } else {
        return None;
    };
    let cure = "give it more processors or workers, or a lower load";
    case.answer(Side::Target, "cpu", case.left(), detail, cure)
}

/// It accepts at its own pace.
pub(super) fn slow_accept(case: &Case) -> Option<Limit> {
    let rate = case.evidence.accepts_per_s.filter(|_| case.trouble == Trouble::Waiting)?;
    let waiting = case.evidence.accept_queue.map_or(0, |queue| queue.used);
    let detail = format!("it accepts a steady {rate:.0}/s, while up to {} waited", Count(waiting));
    let cure = format!("--ramp {}/s, or let it accept in more threads", (rate * 0.9).floor().max(1.0));
    case.answer(Side::Target, "slow-accept", case.left(), detail, cure)
}

/// Nothing but the kind of fault is known.
pub(super) fn fault(case: &Case) -> Option<Limit> {
    let (n, peak) = (case.faults(), case.summary.connections.peak);
    let kind = case.kind?;
    let (cause, detail, cure) = match (case.trouble, case.stage?) {
        (Trouble::Waiting, Stage::Dial) => (
            "timeout",
            format!("{n} dials and answers did not come in time{}", again(case)),
            "look at the target's accept queue (ss -ltn), and raise its backlog and net.core.somaxconn",
        ),
        (Trouble::Waiting, _) => (
            "timeout",
            format!("{n} answers did not come in time"),
            "look at the target's CPU and open files, or raise --timeout",
        ),
        (Trouble::WrongAnswer, _) => (
            "wrong-answer",
            format!("{n} answers were not right: {}", kind.name()),
            "look at one of them with curl -i",
        ),
        (Trouble::Lost, _) => (
            "closed",
            format!("{n} connections were lost: {} by the peer", kind.name()),
            "look at the target's idle timeout, its connection limit and its log",
        ),
        _ => return None,
    };
    case.answer(Side::Target, cause, peak, detail, cure)
}

/// What a remote target's silence looks like from here.
fn again(case: &Case) -> String {
    match case.evidence.here.net.syn_retrans {
        0 => String::new(),
        n => format!("; {} SYNs were sent again", Count(n)),
    }
}
