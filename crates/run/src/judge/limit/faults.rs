//! The last resort: what follows from the kind of fault alone, and perhaps a number at which things are known to stop.

use samples::{
    Cause, Certainty,
    Certainty::{Guess, Inferred, Seen},
    Errno, FaultCount, Kind, Limit, Side, Stage, Summary,
};
use units::{Bytes, Count, Nanos, Status};

use super::{
    Case, Sentence, Trouble,
    closes::{how, is_instead},
    known_limit,
    path::since,
    sentences::{counted, dials_and_requests, within},
    statuses, trouble_of,
};
use crate::judge::{evidence::Evidence, subject::Subject};

mod plain;

/// Nothing but the kind of fault is known, and perhaps a number at which things are known to stop.
pub(super) fn fault(case: &Case) -> Option<Limit> {
    let peak = case.peak();
    let (certainty, cause, sentence, detail, fix) = match case.trouble {
        Trouble::Waiting => waiting(case)?,
        Trouble::WrongAnswer => wrong(case)?,
        Trouble::Lost => lost(case)?,
        _ => return None,
    };
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

type Finding = (Certainty, Cause, Sentence, String, String);

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
    let (what, fix) = waits(case.stage?);
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
        // It responds to others: perhaps it is only slow.
        let (timeout, or) = match case.summary.requests.answered {
            0 => (Nanos::ZERO, ""),
            _ => (timeout, ", or raise --timeout"),
        };
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
        Stage::Hold => ("idle connection", IS_BUSY),
        _ => ("request", IS_BUSY),
    }
}

/// Whether bytes of responses came, and not one whole response. Of HTTP/2 and of messages bytes belong to no response.
fn is_unended(case: &Case) -> bool {
    let (s, subject) = (case.summary, &case.evidence.subject);
    let began = s.first_byte_us.count > 0 || s.requests.bytes_in > 0 && !subject.is_http2;
    began && s.requests.answered == 0 && !subject.has_messages && !subject.is_grpc
}

/// As of server-sent events, which are a response without an end.
fn unended(case: &Case) -> Finding {
    let (count, timeout) = (case.count, case.evidence.timeout);
    let detail = format!(
        "{} timed out after {} of responses had been received, none of them whole",
        Count(count).of("request"),
        Bytes(case.summary.requests.bytes_in).brief()
    );
    let fix = "throng waits for whole responses: it cannot hold server-sent events as requests; for a long \
    response raise --timeout";
    (Inferred, Cause::Timeout, Sentence::Unended { count, timeout }, detail, fix.to_owned())
}

/// Responses that are not as expected, and refused upgrades.
fn wrong(case: &Case) -> Option<Finding> {
    let (kind, subject) = (case.kind?, &case.evidence.subject);
    if kind == Kind::Refused {
        return Some(refused_streams(case));
    }
    let responses: u64 = case.summary.faults.iter().filter(|f| is_response(f)).map(|f| f.count).sum();
    let count = if responses > 0 { responses } else { case.count };
    let statuses = seen(case);
    let detail = wrong_responses(case, kind, count, &statuses);
    let by_hand = match &subject.curl {
        Some(command) if subject.variables.is_empty() => format!("reproduce it with: {command}"),
        Some(command) => {
            format!("set {} in the shell first, then reproduce it with: {command}", subject.variables)
        }
        None if statuses.first().map_or(subject.is_grpc, |(status, _)| Status(*status).is_grpc()) => {
            "check one of them with grpcurl -v".to_owned()
        }
        None => "check one of them with curl -i".to_owned(),
    };
    let (sentence, fix) = match (kind, case.stage?, statuses.first()) {
        (Kind::WrongStatus, Stage::Handshake, Some((status, _))) => {
            let (reason, fix) = upgrade_advice(subject, *status);
            (Sentence::UpgradeRefused { statuses, reason }, format!("{fix}; {by_hand}"))
        }
        (Kind::WrongStatus, _, Some((status, _))) => {
            let fix = statuses::against(case, &statuses, *status);
            // One more of the same request would most likely be served.
            let is_known = statuses::is_part(case, &statuses) && subject.curl.is_some();
            let fix = if is_known { fix } else { format!("{fix}; {by_hand}") };
            (Sentence::UnexpectedStatus { statuses, step: case.evidence.wrong_step.clone() }, fix)
        }
        (Kind::BadAnswer, ..) if let Some(begins) = &case.evidence.not_allowed => (
            Sentence::UnexpectedResponse { what: unexpected(kind), count },
            format!("it begins with {begins}: check that the port is that of this protocol; {by_hand}"),
        ),
        (Kind::BadAnswer, Stage::Exchange, _) if subject.expects_one_message => (
            Sentence::UnexpectedResponse { what: unexpected(kind), count },
            format!(
                "check that the path is a method of a gRPC service; if it sends more than one message, use --server-streaming or --protoset FILE; {by_hand}"
            ),
        ),
        (Kind::WrongEcho, ..) => (
            Sentence::UnexpectedResponse { what: unexpected(kind), count },
            "if the target is no echo server, use --message '' (control pings, only ws://), or a scenario file whose steps say what \
            it replies"
                .to_owned(),
        ),
        (Kind::WrongBody, ..) if subject.has_messages => (
            Sentence::UnexpectedResponse { what: unexpected(kind), count },
            "if the target also sends messages by itself, add skip = true to the step's expect: it waits for the right one"
                .to_owned(),
        ),
        _ => (Sentence::UnexpectedResponse { what: unexpected(kind), count }, by_hand),
    };
    Some((Seen, Cause::WrongAnswer, sentence, detail, fix))
}

/// Why an upgrade was refused with this status, and what helps.
fn upgrade_advice(subject: &Subject, status: u16) -> (&'static str, &'static str) {
    match status {
        401 | 403 | 407 if subject.sends_credentials => refused_credentials(status),
        401 | 407 if subject.is_scenario => {
            let (reason, _) = refused_upgrade(status);
            (
                reason,
                "send them with the upgrade: -H 'Authorization: …' or -H 'Cookie: …', or log in with a step before it",
            )
        }
        _ => refused_upgrade(status),
    }
}

/// Whether it is a response, and a wrong one. A connection that ends because of a response is counted with that response.
fn is_response(fault: &FaultCount) -> bool {
    let is_other = matches!(fault.stage, Stage::Tls | Stage::Hold) || fault.kind == Kind::Refused;
    !is_other && trouble_of(fault) == Trouble::WrongAnswer
}

/// `34,502 responses were wrong, 34,000 of them: unexpected status, 404 × 34,000`.
fn wrong_responses(case: &Case, kind: Kind, count: u64, statuses: &[(u16, u64)]) -> String {
    let seen = match kind {
        Kind::WrongStatus if !statuses.is_empty() => format!(", {}", counted(statuses)),
        _ => String::new(),
    };
    let all = Count(count);
    format!("{} wrong{}: {}{seen}", all.were("response"), of_them(case, kind, all), wrong_how(kind))
}

/// What is wrong with responses.
fn wrong_how(kind: Kind) -> &'static str {
    match kind {
        Kind::WrongStatus => "unexpected status",
        Kind::WrongLength => "unexpected length of the content",
        Kind::WrongEcho => "not what was sent",
        Kind::WrongHeader => "without the expected header field",
        Kind::WrongBody => "without the expected text",
        Kind::MissingValue => "without the value to capture",
        Kind::ValueTooLong => "with a value too long to capture",
        Kind::Truncated => "cut off in the middle",
        Kind::BadAnswer => "not allowed by the protocol",
        kind => kind.name(),
    }
}

/// A fault as a reason for a verdict: the sentence of its kind, or one of its parts.
pub(in crate::judge) fn reason(fault: &FaultCount, s: &Summary, e: &Evidence) -> String {
    in_words(fault, s, e).unwrap_or_else(|| plain::sentence(fault))
}

fn in_words(fault: &FaultCount, s: &Summary, e: &Evidence) -> Option<String> {
    let (count, timeout) = (fault.count, e.timeout);
    if is_response(fault) {
        return (unexpected(fault.kind) != OTHERWISE).then(|| wrong_response(fault, s, e).to_string());
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

fn wrong_response(fault: &FaultCount, s: &Summary, e: &Evidence) -> Sentence {
    let statuses = match fault.kind {
        Kind::WrongStatus => statuses::unexpected(s, e, fault.stage == Stage::Handshake),
        _ => Vec::new(),
    };
    match fault.kind {
        Kind::WrongStatus if !statuses.is_empty() => Sentence::UnexpectedStatus { statuses, step: None },
        kind => Sentence::UnexpectedResponse { what: unexpected(kind), count: fault.count },
    }
}

/// Unexpected statuses with their counts, the most frequent first.
fn seen(case: &Case) -> Vec<(u16, u64)> {
    statuses::unexpected(case.summary, case.evidence, case.stage == Some(Stage::Handshake))
}

/// What a response was that had the right status, or none.
fn unexpected(kind: Kind) -> &'static str {
    match kind {
        Kind::WrongStatus => "unexpected status",
        Kind::WrongLength => "unexpected length of the content",
        Kind::WrongEcho => "reply that differs from what was sent",
        Kind::WrongHeader => "response without the expected header field",
        Kind::WrongBody => "response without the expected text",
        Kind::MissingValue => "response without the value to capture",
        Kind::ValueTooLong => "response with a value too long to capture",
        Kind::Truncated => "response cut off in the middle",
        Kind::BadAnswer => "response that the protocol does not allow",
        _ => OTHERWISE,
    }
}

/// What a response was whose kind says more than words here do.
const OTHERWISE: &str = "unexpected response";

/// The same of an upgrade: why, and what to do.
fn refused_credentials(status: u16) -> (&'static str, &'static str) {
    match status {
        403 => (
            "the credentials sent were refused, or it requires an Origin that it knows, or there is no WebSocket at this path",
            "check them and the path, and send the Origin of its own clients: -H 'Origin: https://…'",
        ),
        _ => ("the credentials sent were refused", "check the token, the password or the cookie"),
    }
}

/// Why an upgrade was probably refused with this status, and what to do.
fn refused_upgrade(status: u16) -> (&'static str, &'static str) {
    match status {
        200..=299 => ("this path serves plain HTTP, not WebSocket", "check the path of the target"),
        300..=399 => ("the target redirects", "use the address that it redirects to (Location)"),
        400 => (
            "probably it expects another Host, an Origin or a Sec-WebSocket-Protocol",
            "check the target's log, and send with -H which headers its own clients send",
        ),
        401 | 407 => (
            "it requires credentials",
            "send them with the upgrade: -H 'Authorization: …' or -H 'Cookie: …', or log in with a scenario file",
        ),
        // Of a path without a WebSocket, too: Starlette and FastAPI.
        403 => (
            "probably it requires an Origin that it knows, or credentials, or there is no WebSocket at this path",
            "send what its own clients send: -H 'Origin: https://…', -H 'Authorization: …' or -H 'Cookie: …'",
        ),
        404 | 410 => ("there is no WebSocket at this path", "check the path of the target"),
        405 | 501 => ("this path does not take upgrades", "check the path of the target"),
        426 => (
            "it requires another version or sub-protocol; throng offers WebSocket 13",
            "check which it names in its response, and offer it: -H 'Sec-WebSocket-Protocol: …'",
        ),
        429 | 503 => ("the target or a proxy limits connections", "check its limits and its log"),
        502 | 504 => {
            ("a proxy cannot reach its backend", "check the log of the proxy, and its Upgrade headers")
        }
        _ => ("the target's log should say why", "check the target's log"),
    }
}

/// ENHANCE_YOUR_CALM (RFC 9113, section 7), with which servers of gRPC end a connection that sends too many PINGs.
const TOO_MANY: u32 = 0xB;
const FEWER_PINGS: &str = "ping less often than the server allows (--ping)";
const FEWER_PINGS_OF_GRPC: &str = "ping less often than the server allows (--ping; by default once in 5 minutes, during calls), or let it \
allow more (grpc.http2.min_ping_interval_without_data_ms and grpc.keepalive_permit_without_calls; in Go keepalive.EnforcementPolicy)";

/// Connections that the peer ended.
fn lost(case: &Case) -> Option<Finding> {
    let (kind, count, e) = (case.kind?, case.count, case.evidence);
    let c = &case.summary.connections;
    if kind == Kind::Reset && c.dropped + c.failed == 0 {
        return Some(streams(count));
    }
    let how = how(kind);
    let detail = format!(
        "{} lost{}: {} by the peer",
        case.faults().were("connection"),
        of_them(case, kind, case.faults()),
        kind.name()
    );
    if case.errno.is_of_goaway() {
        let sentence = Sentence::SessionsEnded { count, code: case.errno.name() };
        let fix = match e.subject.has_pings && case.errno == Errno::of_goaway(TOO_MANY) {
            true if e.subject.is_grpc => FEWER_PINGS_OF_GRPC,
            true => FEWER_PINGS,
            false => {
                "check the target's log: it limits what a connection may do, or takes what it got for a mistake"
            }
        };
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
        Sentence::ClosedInstead { count, how, sent: case.summary.requests.sent }
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

const UNANNOUNCED: &str = "without an announcement";
const LIMITS: &str = "check the target's idle timeout, connection limit and log";
const IN_HANDSHAKES: &str = "check the target's log, and its limits on connections and on handshakes";
const INSTEAD: &str =
    "check the target's log: it closed them instead of a response, because it failed or rejects them";
const CERTIFICATE: &str = "check the target's log: it closed them instead of a response; perhaps it does not accept the client \
certificate (--cert)";
const HANDLER: &str = "check the target's log: its handler failed, or a proxy lost its backend";

/// Requests that the peer ended, and not their connections (RFC 9113, section 6.4).
fn streams(count: u64) -> Finding {
    let detail = format!("{} reset by the peer; no connection was lost", Count(count).were("stream"));
    (Seen, Cause::WrongAnswer, Sentence::StreamsReset { count }, detail, HANDLER.to_owned())
}

/// Requests that the peer did not act on, and whose connections it keeps (RFC 9113, section 8.7).
fn refused_streams(case: &Case) -> Finding {
    let is_one = |f: &&FaultCount| f.kind == Kind::Refused && trouble_of(f) == case.trouble;
    let count: u64 = case.summary.faults.iter().filter(is_one).map(|f| f.count).sum();
    let stayed = case.summary.connections.dropped + case.summary.connections.failed == 0;
    let lost = if stayed { "; no connection was lost" } else { "" };
    let detail = format!("{} refused by the target (REFUSED_STREAM){lost}", Count(count).were("stream"));
    let fix = "use fewer --streams, or raise the server's limit of concurrent streams".to_owned();
    (Seen, Cause::WrongAnswer, Sentence::StreamsRefused { count, stayed }, detail, fix)
}

/// How many of all that went wrong are of the kind that most are; nothing where all are.
fn of_them(case: &Case, kind: Kind, all: Count) -> String {
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
