//! The last resort: what follows from the kind of fault alone, and perhaps a number at which things are known to stop.

use samples::{
    Cause, Certainty,
    Certainty::{Guess, Inferred, Seen},
    Detail, FaultCount, Kind, Limit, Side, Stage, Summary,
};
use units::{Bytes, Count, Nanos};

use super::{
    Case, Sentence, Trouble,
    closes::{self, how, is_instead},
    known_limit,
    path::since,
    sentences::{dials_and_requests, within},
    statuses, trouble_of, whose, wrong,
};
use crate::{evidence::Evidence, words::Words};

mod plain;

/// Nothing but the kind of fault is known, and perhaps a number at which things are known to stop.
pub(super) fn fault(case: &Case) -> Option<Limit> {
    let peak = case.peak();
    let (certainty, cause, sentence, detail, fix) = match case.trouble {
        Trouble::Waiting => waiting(case)?,
        Trouble::WrongAnswer => wrong::wrong(case)?,
        Trouble::Lost => lost(case)?,
        _ => return None,
    };
    let sentence = whose::name(case, sentence);
    let (sentence, detail, fix) = statuses::beside(case, (sentence, detail, fix));
    match known_limit::hint(case) {
        None => case.limit(certainty, (Side::Target, cause), peak, sentence, detail, fix),
        Some((what, fix)) => {
            let held = case.summary.connections.held;
            let detail = format!("{detail}; it stopped at {}, near a known limit: {what}", Count(held));
            let sentence = Sentence::NearKnownLimit { sentence: Box::new(sentence), held, what };
            case.limit(Guess, (Side::Target, cause), held, sentence, detail, fix)
        }
    }
}

pub(super) type Finding = (Certainty, Cause, Sentence, String, String);

/// Where to look for a target that may only be slow.
const IS_BUSY: &str = "check the target's CPU and open files, or raise --timeout";

/// Where to look where dials have no reply.
const QUEUE: &str =
    "check the target's accept queue (ss -ltn; its limit is the backlog, at most net.core.somaxconn)";
const QUEUE_OR_FIREWALL: &str = "check the target's accept queue (ss -ltn; its limit is the backlog, at most \
net.core.somaxconn), then the firewalls on the path";

/// Dials and requests without a response.
fn waiting(case: &Case) -> Option<Finding> {
    if case.stage == Some(Stage::Exchange) && is_unended(case) {
        return Some(unended(case));
    }
    let (count, timeout) = (case.count, case.evidence.timeout);
    if case.detail == Detail::WINDOW {
        let count = with_detail(case);
        let detail = format!(
            "{} timed out before all of it was sent (RFC 9113, section 5.2)",
            Count(count).of("request")
        );
        return Some((
            Seen,
            Cause::Timeout,
            Sentence::WindowClosed { count, timeout },
            detail,
            READS.to_owned(),
        ));
    }
    let (what, fix) = waits(case.stage?);
    if case.detail == Detail::NO_STREAMS {
        let sentence = Sentence::TimedOut { what, count, timeout };
        let detail = format!("{} timed out: the target allows no streams", Count(count).of(what));
        let fix = "raise its limit on concurrent streams: it allows none (SETTINGS_MAX_CONCURRENT_STREAMS 0)";
        return Some((Seen, Cause::Timeout, sentence, detail, fix.to_owned()));
    }
    let is_dial = |f: &&FaultCount| f.stage == Stage::Dial && trouble_of(f) == Trouble::Waiting;
    let dials: u64 = case.summary.faults.iter().filter(is_dial).map(|f| f.count).sum();
    let others = count - dials;
    let some = Count(others).of(what);
    // Connections in a full accept queue are open, and their requests wait: as many as dials, or more.
    let is_cut_off = dials > 0 && !since(case).is_empty();
    let (certainty, sentence, detail, fix) = if case.stage? == Stage::Dial || is_cut_off {
        let fix = if case.evidence.subject.is_loopback { QUEUE } else { QUEUE_OR_FIREWALL };
        let detail = format!("{} timed out{}", dials_and_requests(count), from(case));
        (Guess, Sentence::DialsTimedOut { count, timeout }, detail, fix)
    } else if is_acknowledged(case) {
        let them = Count(others).one_or("it", "them");
        // It responds to others: perhaps it is only slow. A call has its deadline with it, at which the target ends it too.
        let may_be_slow = case.summary.requests.answered > 0 || case.evidence.subject.is_grpc;
        let (timeout, or) = if may_be_slow { (timeout, ", or raise --timeout") } else { (Nanos::ZERO, "") };
        let detail = format!(
            "{some} timed out; the target's host acknowledged {them}, but its process does not respond{}",
            within(timeout)
        );
        let sentence = Sentence::Acknowledged { what, count: others, timeout };
        return Some((Inferred, Cause::Timeout, sentence, detail, format!("{PROCESS}{or}")));
    } else {
        let (sentence, all) = match dials {
            0 => (Sentence::TimedOut { what, count, timeout }, some),
            _ => (Sentence::DialsTimedOut { count, timeout }, dials_and_requests(count)),
        };
        (Guess, sentence, format!("{all} timed out"), fix)
    };
    Some((certainty, Cause::Timeout, sentence, detail, fix.to_owned()))
}

const PROCESS: &str =
    "check the target's process: CPU, workers or threads, open files, locks (gdb -p, jstack)";

const READS: &str = "check that the target's handler reads the bodies of requests, and the initial window in its settings; or send less \
(--body, --message)";

const SILENT: &str = "check that the target replies to what is sent on idle connections (PINGs of HTTP/2 by --ping, or TCP's own \
keep-alive probes), then its CPU and open files, and the path";

/// What timed out in this stage, and where to look.
fn waits(stage: Stage) -> (&'static str, &'static str) {
    match stage {
        Stage::Dial => ("dial", IS_BUSY),
        Stage::Tls => ("TLS handshake", IS_BUSY),
        Stage::Handshake => (
            "handshake",
            "check that the target speaks this protocol at this port, then its CPU and open files, or raise --timeout",
        ),
        // By PINGs, or by TCP itself.
        Stage::Hold => ("idle connection", SILENT),
        _ => ("request", IS_BUSY),
    }
}

/// Whether responses began and did not end, half of those that are missing or more. Messages have no beginning of their own.
pub(super) fn is_unended(case: &Case) -> bool {
    let subject = &case.evidence.subject;
    let is_most = case.evidence.unended * 2 >= case.count.max(1);
    is_most && !subject.has_messages && !subject.is_grpc
}

/// As of server-sent events, which are a response without an end.
fn unended(case: &Case) -> Finding {
    let timeout = case.evidence.timeout;
    let (count, detail) = if case.summary.requests.answered == 0 {
        let bytes = Bytes(case.summary.requests.bytes_in).brief();
        let requests = Count(case.count).of("request");
        let detail =
            format!("{requests} timed out after {bytes} of responses had been received, none of them whole");
        (case.count, detail)
    } else {
        let count = case.evidence.unended.min(case.count);
        (count, format!("{} timed out after their responses had begun", Count(count).of("request")))
    };
    let fix = "throng waits for whole responses: it cannot hold server-sent events as requests; for a long \
    response raise --timeout";
    (Inferred, Cause::Timeout, Sentence::Unended { count, timeout }, detail, fix.to_owned())
}

/// A fault as a reason for a verdict: the sentence of its kind, or one of its parts.
pub(crate) fn reason(fault: &FaultCount, s: &Summary, e: &Evidence) -> String {
    in_words(fault, s, e).unwrap_or_else(|| plain::sentence(fault))
}

fn in_words(fault: &FaultCount, s: &Summary, e: &Evidence) -> Option<String> {
    let (count, timeout) = (fault.count, e.timeout);
    if wrong::is_response(fault) {
        return wrong::wrong_response(fault, s, e).map(|sentence| sentence.to_string());
    }
    if fault.side == Side::Target && fault.detail == Detail::ANNOUNCED {
        let (when, _) = announced(fault.stage);
        let count = if e.subject.is_http2 { count.min(s.connections.dropped) } else { count };
        return Some(Sentence::Closed { count, how: how(fault.kind), when }.to_string());
    }
    if fault.side != Side::Target || !fault.detail.is_none() {
        return None;
    }
    // Of HTTP/2 each stream has a fault, and their connection is one.
    let is_lost = matches!(fault.stage, Stage::Exchange | Stage::Hold) && !e.subject.is_http2;
    let sentence = match fault.kind {
        Kind::Refused if fault.stage == Stage::Dial => {
            return Some(format!("{} refused", Count(count).were("dial")));
        }
        Kind::Timeout => Sentence::TimedOut { what: waits(fault.stage).0, count, timeout },
        Kind::Closed | Kind::Reset if is_lost => {
            Sentence::Closed { count, how: how(fault.kind), when: UNANNOUNCED }
        }
        _ => return None,
    };
    Some(sentence.to_string())
}

const HTTP_1_1_ONLY: &str = "the target serves this path over HTTP/1.1 only: run without --http2";
const FEWER_PINGS: &str = "ping less often than the server allows (--ping)";
const FEWER_PINGS_OF_GRPC: &str = "ping less often than the server allows (--ping; by default once in 5 minutes, during calls), or let it \
allow more (grpc.http2.min_ping_interval_without_data_ms and grpc.keepalive_permit_without_calls; in Go keepalive.EnforcementPolicy)";

/// Connections that the peer ended.
fn lost(case: &Case) -> Option<Finding> {
    let (kind, count, e) = (case.kind?, case.count, case.evidence);
    let c = &case.summary.connections;
    if kind == Kind::Reset && c.dropped + c.failed == 0 {
        return Some(streams(count, if with_detail(case) == count { case.detail } else { Detail::NONE }));
    }
    let how = how(kind);
    let detail = format!(
        "{} lost{}: {} by the peer{}",
        case.faults().were("connection"),
        of_them(case, kind, case.faults()),
        kind.name(),
        if kind == Kind::Reset && case.detail.is_of_goaway() { String::new() } else { case.detail.suffix() }
    );
    if let Some((frame, fix)) = ended_by(case, kind) {
        let sentence = Sentence::SessionsEnded {
            count: with_detail(case).min(case.count),
            frame,
            code: case.detail.name(),
        };
        return Some(match case.words().is_some_and(Words::are_of_idleness) {
            true => (Seen, Cause::IdleCut, sentence, detail, closes::outlast(case, Nanos::ZERO)),
            false => (Seen, Cause::Closed, sentence, detail, fix.to_owned()),
        });
    }
    if case.detail == Detail::ANNOUNCED {
        let (when, fix) = announced(case.stage?);
        let sentence = Sentence::Closed { count, how, when };
        return Some((Seen, Cause::Closed, sentence, detail, fix.to_owned()));
    }
    if case.stage? == Stage::Tls {
        let sentence = Sentence::Closed { count, how, when: "in the TLS handshake, but not others" };
        return Some((Seen, Cause::Closed, sentence, detail, IN_HANDSHAKES.to_owned()));
    }
    let asked = matches!(case.stage?, Stage::Exchange | Stage::Handshake);
    let sentence = if asked && e.is_mute {
        Sentence::ClosedMute { count, how }
    } else if is_instead(case) {
        Sentence::ClosedInstead { count, how, sent: whose::sent(case) }
    } else {
        Sentence::Closed { count, how, when: UNANNOUNCED }
    };
    let fix = match asked {
        // In TLS 1.3 a client has ended its handshake before the target has its certificate (RFC 8446, section 2).
        true if e.subject.has_certificate && case.summary.requests.answered == 0 => CERTIFICATE,
        true => INSTEAD,
        false => LIMITS,
    };
    Some((Seen, Cause::Closed, sentence, detail, fix.to_owned()))
}

/// The frame whose code says why the peer ended connections, and what helps.
fn ended_by(case: &Case, kind: Kind) -> Option<(&'static str, &'static str)> {
    let subject = &case.evidence.subject;
    if let Some(code) = case.detail.close_code() {
        return Some(("Close", against_close(code)));
    }
    if !case.detail.is_of_goaway() {
        return None;
    }
    if kind == Kind::Closed {
        let fix = match case.detail.name().as_str() {
            // With which servers of gRPC end a connection that sends too many PINGs.
            "ENHANCE_YOUR_CALM" if subject.has_pings && subject.is_grpc => FEWER_PINGS_OF_GRPC,
            "ENHANCE_YOUR_CALM" if subject.has_pings => FEWER_PINGS,
            "HTTP_1_1_REQUIRED" => HTTP_1_1_ONLY,
            _ => A_MISTAKE,
        };
        return Some(("GOAWAY", fix));
    }
    // Of a WebSocket over HTTP/2, whose connection goes with it.
    (subject.is_http2 && subject.has_messages).then_some(("RST_STREAM", A_MISTAKE))
}

/// When connections were closed with an announcement that was a fault, and what helps.
fn announced(stage: Stage) -> (&'static str, &'static str) {
    match stage {
        Stage::Exchange => (ANNOUNCED, INSTEAD),
        _ => (EARLY, FEWER_CALLS),
    }
}

/// Faults of the kind that have its error.
pub(super) fn with_detail(case: &Case) -> u64 {
    let is_one = |f: &&FaultCount| Some(f.kind) == case.kind && f.detail == case.detail;
    case.summary.faults.iter().filter(is_one).map(|f| f.count).sum()
}

/// What helps where WebSockets are closed with this status code.
fn against_close(code: u16) -> &'static str {
    match code {
        1008 => {
            "check the target's log, and what it requires of clients: an Origin, credentials, a maximum message rate"
        }
        1009 => "raise the target's limit on the size of messages, or send shorter ones (--message)",
        1011 | 1014 => HANDLER,
        3000.. => {
            "look up what the application means by this code, often credentials or a limit of its own; check its log"
        }
        1013 => "check the target's log, its CPU and its limits: it reports that it is overloaded",
        _ => A_MISTAKE,
    }
}

const A_MISTAKE: &str =
    "check the target's log: it limits what a connection may do, or sees a protocol error in what it got";
const ANNOUNCED: &str = "after announcing it, without responding";
/// Of connections that arrive, which come for a number of requests.
const EARLY: &str = "after announcing it, before all of their requests were made";
const FEWER_CALLS: &str = "raise its limit on requests per connection (keepalive_requests, MaxKeepAliveRequests), let it keep connections \
open, or use fewer --calls";
const UNANNOUNCED: &str = "without notice";
const LIMITS: &str = "check the target's idle timeout, connection limit and log";
const IN_HANDSHAKES: &str = "check the target's log, and its limits on connections and on handshakes";
const INSTEAD: &str =
    "check the target's log: it closed them instead of responding, because it failed or rejects them";
const CERTIFICATE: &str = "check the target's log: it closed them instead of responding; perhaps it does not accept the client \
certificate (--cert)";
const HANDLER: &str = "check the target's log: its handler failed, or a proxy lost its backend";

/// Requests that the peer ended, and not their connections (RFC 9113, section 6.4).
fn streams(count: u64, error: Detail) -> Finding {
    let code = (!error.is_none()).then(|| error.name());
    let detail = format!("{} reset by the peer; no connection was lost", Count(count).were("stream"));
    let fix = match code.as_deref() {
        Some("ENHANCE_YOUR_CALM") => {
            "send fewer requests at a time (--streams, --rate), or raise the target's limit on them"
        }
        Some("HTTP_1_1_REQUIRED") => HTTP_1_1_ONLY,
        Some("PROTOCOL_ERROR" | "FLOW_CONTROL_ERROR" | "FRAME_SIZE_ERROR" | "COMPRESSION_ERROR") => A_MISTAKE,
        _ => HANDLER,
    };
    (Seen, Cause::WrongAnswer, Sentence::StreamsReset { count, code }, detail, fix.to_owned())
}

/// How many of all that went wrong are of the kind that most are; nothing where all are.
pub(super) fn of_them(case: &Case, kind: Kind, all: Count) -> String {
    let same: u64 = case.summary.faults.iter().filter(|f| f.kind == kind).map(|f| f.count).sum();
    if same < all.0 { format!(", {} of them", Count(same)) } else { String::new() }
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
        (n, 0) => format!("; {}, and no reset or ICMP", Count(n).of("SYN retransmission")),
        (n, _) => format!("; {}", Count(n).of("SYN retransmission")),
    };
    format!("{}{again}", since(case))
}
