//! Connections, or requests on them, that the peer ended.

use samples::{Cause as Name, Certainty, Detail, Kind, Stage};
use units::{Count, Nanos};

use super::{Seen, finish, of_them};
use crate::{
    case::Case,
    closes::{By, how, is_instead, outlast},
    say::{connections, some},
    words::Words,
};
use record::answers::TurnedAway;

const HTTP_1_1_ONLY: &str = "the target serves this path over HTTP/1.1 only: run without --http2";
const FEWER_PINGS: &str = "ping less often than the server allows (--ping)";
const FEWER_PINGS_OF_GRPC: &str = "ping less often than the server allows (--ping; by default once in 5 minutes, during calls), or let it \
allow more (grpc.http2.min_ping_interval_without_data_ms and grpc.keepalive_permit_without_calls; in Go keepalive.EnforcementPolicy)";

/// Connections that the peer ended.
pub(super) fn lost(case: &Case) -> Option<Seen> {
    let (kind, count, e) = (case.kind?, case.count, case.evidence);
    let c = &case.summary.connections;
    if kind == Kind::Reset && c.dropped + c.failed == 0 {
        let error = if case.with_detail() == count { case.detail } else { Detail::NONE };
        return Some(finish(case, Certainty::Seen, Name::WrongAnswer, streams(count, error)));
    }
    let how = how(kind);
    let detail = format!(
        "{} lost{}: {} by the peer{}",
        case.n().were("connection"),
        of_them(case, kind, case.n()),
        kind.name(),
        if kind == Kind::Reset && case.detail.is_of_goaway() { String::new() } else { case.detail.suffix() }
    );
    let seen = |cause, sentence: String, fix: &str| {
        Some(finish(case, Certainty::Seen, cause, [sentence, detail.clone(), fix.to_owned()]))
    };
    if let Some((frame, fix)) = ended_by(case, kind) {
        let n = connections(case.with_detail().min(count));
        let sentence = format!("the target ended {n} with an error ({frame}, {})", case.detail.name());
        return match case.words().is_some_and(Words::are_of_idleness) {
            true => seen(Name::IdleCut, sentence, &outlast(case, Nanos::ZERO)),
            false => seen(Name::Closed, sentence, fix),
        };
    }
    if case.detail == Detail::ANNOUNCED {
        let (when, fix) = announced(case.stage?);
        return seen(Name::Closed, closed(count, how, when), fix);
    }
    if case.stage? == Stage::Tls {
        return seen(Name::Closed, closed(count, how, "in the TLS handshake, but not others"), IN_HANDSHAKES);
    }
    let by = By::of(case);
    if by != By::Target {
        return Some(on_the_path(case, by, detail));
    }
    let asked = matches!(case.stage?, Stage::Exchange | Stage::Handshake);
    let sentence = if asked && e.is_mute {
        format!("the target {how} {} without sending a byte", connections(count))
    } else if is_instead(case) {
        format!("the target {how} {} instead of responding{}", connections(count), one_of(case))
    } else {
        closed(count, how, UNANNOUNCED)
    };
    let fix = match asked {
        _ if e.answers.turned_away(case.left()) == Some(TurnedAway::Broken) => BROKEN,
        // In TLS 1.3 a client finishes its handshake before the target has its certificate (RFC 8446, section 2).
        true if e.subject.has_certificate && case.requests().answered == 0 => CERTIFICATE,
        true => INSTEAD,
        false => LIMITS,
    };
    seen(Name::Closed, sentence, fix)
}

/// Something on the path sent the resets, or their sender is unknown.
fn on_the_path(case: &Case, by: By, detail: String) -> Seen {
    let (reset, at) = (format!("{} reset{}", case.n().were("connection"), from_second(case)), case.peak());
    let (certainty, cause, sentence, detail, fix) = match by.elsewhere() {
        Some((seen, fix)) => {
            (Certainty::Seen, Name::Closed, format!("{reset} by {by}"), format!("{detail}; {seen}"), fix)
        }
        None => (
            Certainty::Guess,
            Name::Unknown,
            format!("{reset}, by the target or by something on the path"),
            detail,
            ASK_WHO,
        ),
    };
    Seen { certainty, of: (by.side(), cause), at, sentence, detail, fix: fix.to_owned() }
}

const ASK_WHO: &str = "run throng as root, which sees how far resets have come, or tcpdump on both hosts, to see which of them sends them";

/// `the target closed 5 connections without notice`
pub(super) fn closed(count: u64, how: &str, when: &str) -> String {
    format!("the target {how} {} {when}", connections(count))
}

/// ` (1 in 10 requests)`, or ` (1 in 5 requests from second 5 on)` if all was well before; empty if more than half failed, because each may
/// have been the only one of its connection.
fn one_of(case: &Case) -> String {
    let (sent, count) = (super::whose::sent(case), case.count);
    let all = later(case).map_or(sent, |begins| (case.answered_from(begins) + count).min(sent));
    let each = (all as f64 / count.max(1) as f64).round() as u64;
    if each < 2 { String::new() } else { format!(" (1 in {}{})", some(each, "request"), from_second(case)) }
}

/// ` from second 5 on`; empty if it began with the run.
fn from_second(case: &Case) -> String {
    later(case).map_or(String::new(), |begins| format!(" from second {begins:.0} on"))
}

/// When the failures began, in seconds of the run, if clearly after its start.
fn later(case: &Case) -> Option<f64> {
    case.failing().map(|(begins, _)| begins).filter(|begins| *begins >= LATER_S)
}

/// Failures that begin before this second began with the run.
const LATER_S: f64 = 2.0;

/// The frame whose code explains the end of connections, and the fix.
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
            // gRPC servers end connections with this code if they receive too many PINGs.
            "ENHANCE_YOUR_CALM" if subject.has_pings && subject.is_grpc => FEWER_PINGS_OF_GRPC,
            "ENHANCE_YOUR_CALM" if subject.has_pings => FEWER_PINGS,
            "HTTP_1_1_REQUIRED" => HTTP_1_1_ONLY,
            _ => A_MISTAKE,
        };
        return Some(("GOAWAY", fix));
    }
    // For WebSocket over HTTP/2 the connection ends with its stream.
    (subject.is_http2 && subject.has_messages).then_some(("RST_STREAM", A_MISTAKE))
}

/// When connections were closed by an announcement that counts as a fault, and the fix.
pub(super) fn announced(stage: Stage) -> (&'static str, &'static str) {
    if stage == Stage::Exchange { (ANNOUNCED, INSTEAD) } else { (EARLY, FEWER_CALLS) }
}

/// The fix for this status code of a WebSocket close.
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
/// For arrivals, which make a number of requests.
const EARLY: &str = "after announcing it, before all of their requests were made";
const FEWER_CALLS: &str = "raise its limit on requests per connection (keepalive_requests, MaxKeepAliveRequests), let it keep connections \
open, or use fewer --calls";
pub(super) const UNANNOUNCED: &str = "without notice";
const LIMITS: &str = "check the target's idle timeout, connection limit and log";
const IN_HANDSHAKES: &str = "check the target's log, and its limits on connections and on handshakes";
const INSTEAD: &str =
    "check the target's log: it closed them instead of responding, because it failed or rejects them";
const CERTIFICATE: &str = "check the target's log: it closed them instead of responding; perhaps it does not accept the client \
certificate (--cert)";
const BROKEN: &str = "check the target's log: its number of connections is not what limits it";
const HANDLER: &str = "check the target's log: its handler failed, or a proxy lost its backend";

/// Requests that the peer ended without ending their connections (RFC 9113, section 6.4).
fn streams(count: u64, error: Detail) -> [String; 3] {
    let code = (!error.is_none()).then(|| error.name());
    let detail = format!("{} reset by the peer; no connection was lost", Count(count).were("stream"));
    let their = Count(count).one_or("its connection", "their connections");
    let with = code.as_ref().map_or(String::new(), |code| format!(", {code}"));
    let sentence =
        format!("the target reset {} (RST_STREAM{with}); {their} stayed open", some(count, "stream"));
    let fix = match code.as_deref() {
        Some("ENHANCE_YOUR_CALM") => {
            "send fewer requests at a time (--streams, --rate), or raise the target's limit on them"
        }
        Some("HTTP_1_1_REQUIRED") => HTTP_1_1_ONLY,
        Some("PROTOCOL_ERROR" | "FLOW_CONTROL_ERROR" | "FRAME_SIZE_ERROR" | "COMPRESSION_ERROR") => A_MISTAKE,
        _ => HANDLER,
    };
    [sentence, detail, fix.to_owned()]
}
