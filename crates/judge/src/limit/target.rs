//! Causes on the target's side.

use samples::{
    Cause,
    Certainty::{Guess, Inferred, Seen},
    Kind, Limit, LogKind, Side, Stage,
};
use units::{Count, Nanos};

use super::{
    Case, Sentence, Trouble,
    closes::SET,
    path::{since, tenths},
    process::logged,
    wrong::{ONE_OF_SOME, others_succeed},
};
use crate::{
    evidence::{TargetSeen, times::USED_UP},
    signs::Sign,
};

/// Its process is gone.
pub(super) fn ended(case: &Case) -> Option<Limit> {
    let target = case.evidence.target.filter(|t| t.ended && case.is_short())?;
    // What it says of its end is why it ended.
    if [LogKind::Heap, LogKind::Memory].iter().any(|kind| logged(case, *kind).is_some()) {
        return None;
    }
    let (pid, peak) = (target.pid, case.peak());
    // The host's counter has those of all its control groups.
    let killed = case.evidence.there.map_or(0, |host| host.oom_kills).max(target.oom_kills);
    if killed > 0 {
        let whom = if killed == 1 { "a process".to_owned() } else { format!("{} processes", Count(killed)) };
        let detail = format!("process {pid} ended: the kernel's OOM killer killed {whom}");
        let sentence = Sentence::OomKilled { at: peak };
        return case.limit(Seen, (Side::Target, Cause::Memory), peak, sentence, detail, more_memory(case));
    }
    let detail = format!("process {pid} ended during the run");
    let sentence = Sentence::Exited { at: peak };
    case.limit(Seen, (Side::Target, Cause::Ended), peak, sentence, detail, "check its log and exit status")
}

/// One of its processes has ended, and with it what it had open.
pub(super) fn worker(case: &Case) -> Option<Limit> {
    let timeline = &case.evidence.timeline;
    let is_lost = case.trouble == Trouble::Lost && case.failing().is_some();
    timeline.first(Sign::Worker, case.failing()).filter(|(_, explains)| *explains && is_lost)?;
    let (pid, lost) = (case.evidence.target?.pid, case.count);
    let detail = format!("one of the processes of process {pid} ended during the run; others are alive");
    let fix = "check its log, and the log of what started it, for why that process ended";
    let sentence = Sentence::WorkerExited { lost };
    case.limit(Inferred, (Side::Target, Cause::Ended), case.peak(), sentence, detail, fix)
}

/// One of several targets is gone.
pub(super) fn deserted(case: &Case) -> Option<Limit> {
    let is_over = matches!(case.trouble, Trouble::Lost | Trouble::Refused);
    let address = case.evidence.deserted.filter(|_| is_over)?.to_string();
    let detail =
        format!("nothing listens on {address} any more: its process has ended, or closed its listener");
    let (peak, sentence) = (case.peak(), Sentence::Deserted { address });
    case.limit(Seen, (Side::Target, Cause::Ended), peak, sentence, detail, "check its log and exit status")
}

pub(super) fn more_memory(case: &Case) -> String {
    case.or_less("give it more memory (MemoryMax= of its unit)", FEWER)
}

/// What needs less memory.
pub(super) const FEWER: &str = "hold fewer connections";

/// The memory of all sockets ran out.
pub(super) fn memory(case: &Case) -> Option<Limit> {
    let (here, there) = (case.evidence.here.net, case.evidence.there.unwrap_or_default().net);
    let (side, given_up) = match here.abort_on_memory {
        0 => (Side::Target, there.abort_on_memory),
        n => (Side::Host, n),
    };
    let detail = format!("socket memory ran out: the kernel aborted {}", Count(given_up).of("connection"));
    let fix = "sysctl -w net.ipv4.tcp_mem='1048576 2097152 4194304'";
    let fits = given_up > 0 && case.is_short();
    let sentence = Sentence::SocketMemory { is_ours: side == Side::Host, aborted: given_up };
    fits.then(|| case.limit(Seen, (side, Cause::Memory), case.left(), sentence, detail, fix))?
}

/// Its files are used up.
pub(super) fn open_files(case: &Case) -> Option<Limit> {
    let TargetSeen { pid, open_files, .. } = case.evidence.target?;
    let files = open_files?;
    // A step of a search does not wait for those that only the kernel has accepted.
    let is_short = case.is_short() || case.evidence.unaccepted > 0 && files.used >= files.limit;
    // The kernel counts one that is about to be opened.
    let used = files.used.min(files.limit);
    let detail = format!("process {pid} has {} of {} files open", Count(used), Count(files.limit));
    let most = (files.limit.saturating_mul(2)).max(1 << 20);
    let fix =
        format!("raise its limit: prlimit --pid {pid} --nofile={most}, or LimitNOFILE={most} in its unit");
    let at = case.left().min(used);
    let (sentence, cause) =
        (Sentence::OpenFiles { used, limit: files.limit }, (Side::Target, Cause::OpenFiles));
    (is_short && files.is_out_of_files()).then(|| case.limit(Seen, cause, at, sentence, detail, fix))?
}

/// Nothing is listening, or no longer.
pub(super) fn refused(case: &Case) -> Option<Limit> {
    if case.trouble != Trouble::Refused {
        return None;
    }
    let losses = &case.evidence.losses;
    if let Some(until) = losses.refused_at_first {
        return started_late(case, until, "before the target had accepted any, and none afterwards");
    }
    if let Some(until) = losses.refused_unheard.filter(|_| case.opened() == 0) {
        return started_late(case, until, "before anything listened there");
    }
    let (were, opened) = (case.faults().were("dial"), case.opened());
    // Whether there is a listener can only be seen on the target's host: resets look the same.
    let is_seen = case.evidence.there.is_some();
    let address = case.evidence.subject.address.clone();
    let c = &case.summary.connections;
    let (certainty, at, sentence, detail, fix) = if opened > 0 {
        let since = since(case);
        let fix = match since.is_empty() && c.redialled > 0 {
            true => "it accepts connections again: check whether it was restarted, and its log",
            false => {
                "check whether it stopped listening, and its log; a firewall that sends resets looks the same"
            }
        };
        let accepted = opened + c.redialled;
        (
            Seen,
            // In a step of a search those before it may all be lost, and none have come since.
            if c.opened + c.held > 0 { case.left() } else { 0 },
            Sentence::StoppedListening { accepted },
            format!("{were} refused after {} had been accepted{since}", Count(accepted)),
            fix,
        )
    } else if is_seen && case.evidence.accept_queue.is_some() {
        let detail =
            format!("{were} refused although there was a listener: perhaps a firewall sent the resets");
        (
            Inferred,
            0,
            Sentence::RefusedByOthers { address },
            detail,
            "check that host's firewall (nft list ruleset)",
        )
    } else {
        let or = if is_seen { "" } else { ", or a firewall on the path sent the resets" };
        let detail = format!("{were} refused: nothing is listening there{or}");
        let fix = "start the server, or check the address and port";
        (Seen, 0, Sentence::NothingListens { address }, detail, fix)
    };
    case.limit(certainty, (Side::Target, Cause::Refused), at, sentence, detail, fix)
}

/// Nothing was listening until then.
fn started_late(case: &Case, until: Nanos, when: &str) -> Option<Limit> {
    let were = case.faults().were("dial");
    let detail = format!("{were} refused in the first {}, {when}", tenths(until));
    let (cause, sentence) =
        ((Side::Target, Cause::Refused), Sentence::StartedLate { dials: case.count, until });
    case.limit(
        Inferred,
        cause,
        case.left(),
        sentence,
        detail,
        "wait until its port accepts connections before the run begins",
    )
}

/// It expects TLS and was spoken to without.
pub(super) fn tls_expected(case: &Case) -> Option<Limit> {
    if case.kind != Some(Kind::TlsExpected) {
        return closed_for_tls(case);
    }
    let were = case.faults().were("plain-text connection");
    let detail = format!("the target speaks TLS: {were} rejected");
    let sentence = Sentence::TlsExpected { connections: case.count };
    case.limit(Seen, (Side::Target, Cause::TlsExpected), case.left(), sentence, detail, NO_TLS)
}

const NO_TLS: &str = "use https:// (wss://, grpcs://, tls://) in the target, or a port without TLS";

/// It does not speak HTTP/2, or does not carry WebSocket over it.
pub(super) fn http2(case: &Case) -> Option<Limit> {
    if (case.stage, case.kind) != (Some(Stage::Handshake), Some(Kind::NothingInCommon)) {
        return None;
    }
    let populations = case.summary.populations.values().map(|population| &population.figures.target);
    let mut targets = [&case.summary.figures.target].into_iter().chain(populations);
    let (what, fix) = if targets.clone().any(|target| target.starts_with("ws")) {
        (
            "does not offer WebSocket over HTTP/2 (RFC 8441)",
            "leave out --http2: WebSocket over HTTP/1.1 needs no such offer",
        )
    } else if targets.any(|target| target.starts_with("grpc")) {
        ("does not speak HTTP/2 without TLS", "check the port, or use grpcs://")
    } else {
        (
            "does not speak HTTP/2 without TLS",
            "leave out --http2, or use https://, where the protocol is negotiated",
        )
    };
    let detail = format!("{} failed: the target {what}", case.faults().of("handshake"));
    let is_of_some = others_succeed(case, case.summary.handshake_us.count);
    let fix = if is_of_some { ONE_OF_SOME } else { fix };
    let sentence = Sentence::NoHttp2 { what, connections: is_of_some.then_some(case.count) };
    case.limit(Seen, (Side::Target, Cause::WrongAnswer), case.left(), sentence, detail, fix)
}

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
    let (certainty, detail, fix) = match e.speaks_tls {
        Some(true) => (
            Seen,
            format!(
                "the target speaks TLS: {} closed without a byte in reply, \
                and a TLS ClientHello received a reply",
                n.were("plain-text connection")
            ),
            NO_TLS,
        ),
        None if at_once => (
            Guess,
            format!(
                "{} closed at {} first request, without a byte in reply: perhaps the target expects TLS",
                n.were("connection"),
                n.one_or("its", "their")
            ),
            "try https:// (wss://, tls://) in the target, or openssl s_client -connect HOST:PORT",
        ),
        _ => return None,
    };
    let sentence = Sentence::MuteClose { connections: case.count };
    case.limit(certainty, (Side::Target, Cause::TlsExpected), case.left(), sentence, detail, fix)
}

/// It has no CPU left.
pub(super) fn cpu(case: &Case) -> Option<Limit> {
    let is_it = |target: &TargetSeen| case.is_waiting() && !target.serves_others;
    let TargetSeen { pid, cpu_thread, cpu_share, .. } = case.evidence.target.filter(is_it)?;
    let from = uses_it_up(case);
    let (sentence, detail) = if let Some(share) = cpu_thread.filter(|share| *share >= USED_UP) {
        let of_time = format!("{:.0} % of the time", share * 100.0);
        let detail = format!("the busiest thread of process {pid} was runnable for {of_time}");
        (Sentence::CpuOfThread { share, from }, detail)
    } else if cpu_share >= USED_UP {
        let detail = format!("process {pid} used {:.0} % of its processors", cpu_share * 100.0);
        (Sentence::CpuOfProcess { share: cpu_share, from }, detail)
    } else {
        return None;
    };
    let fix = case.or_less("give it more processors or workers", "reduce the load");
    case.limit(Seen, (Side::Target, Cause::Cpu), case.left(), sentence, detail, fix)
}

/// The connections whose pauses ask for as many responses as it has CPU for (Little's law, with the time of a response neglected): fewer than
/// are wanted, or else it was something else that used it up.
pub(super) fn uses_it_up(case: &Case) -> Option<u64> {
    let pause = case.evidence.subject.mean_pause?;
    let from = (case.summary.requests.per_s * pause.secs_f64()).round() as u64;
    (1..case.summary.connections.wanted).contains(&from).then_some(from)
}
