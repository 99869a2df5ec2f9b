//! Wrong responses and refused upgrades.

use samples::{Cause as Name, Certainty, FaultCount, Kind, Rule, Stage};
use units::{Count, Status};

use super::{Seen, against, finish, of_them};
use crate::{
    case::Case,
    say::some,
    statuses::{self, counted},
    subject::Subject,
    trouble::{is_response, trouble_of},
    words::Words,
};

/// Describes wrong responses and refused upgrades.
pub(super) fn wrong(case: &Case) -> Option<Seen> {
    let (kind, subject) = (case.kind?, &case.evidence.subject);
    if kind == Kind::Refused {
        return Some(finish(case, Certainty::Seen, Name::WrongAnswer, refused_streams(case)));
    }
    let (count, others) = by_kind(case);
    let statuses = seen(case);
    let all = count + others.iter().map(|(_, n)| n).sum::<u64>();
    let detail = wrong_responses(case, kind, all, &statuses);
    let by_hand = match &subject.curl {
        Some(command) if subject.variables.is_empty() => format!("reproduce it with: {command}"),
        Some(command) => {
            format!("set {} in the shell first, then reproduce it with: {command}", subject.variables)
        }
        None if statuses.first().map_or(subject.is_grpc, |(status, _)| Status(*status).is_grpc()) => {
            "check one of them with grpcurl -v".to_owned()
        }
        None if subject.has_messages => "check one of them with nc or a WebSocket client".to_owned(),
        None => "check one of them with curl -i".to_owned(),
    };
    let unexpected_response = || {
        let rule = broken(case, count);
        let what = if case.detail.rule().is_some_and(Rule::is_own) { TOO_MUCH } else { unexpected(kind) };
        unexpected_of(what, &rule, count)
    };
    let (sentence, fix) = match (kind, case.stage?, statuses.first()) {
        (Kind::WrongStatus, Stage::Handshake, Some((status, _))) => {
            let (reason, fix) = match case.others_succeed(case.summary.handshake_us.count) {
                true => REFUSES_SOME,
                false => upgrade_advice(subject, *status),
            };
            let sentence = format!("WebSocket upgrade refused with status {}: {reason}", counted(&statuses));
            (sentence, format!("{fix}; {by_hand}"))
        }
        (Kind::WrongStatus, _, Some((status, _))) => {
            let fix = against::status(case, &statuses, *status);
            // One more identical request would most likely be answered correctly.
            let is_known = statuses::is_part(case, &statuses) && subject.curl.is_some();
            let fix = if is_known { fix } else { format!("{fix}; {by_hand}") };
            (format!("unexpected status: {}", counted(&statuses)), fix)
        }
        // If other responses were correct, the protocol is the right one.
        (Kind::BadAnswer, ..) if let Some(words) = case.words().filter(|words| {
            let (r, handshakes) = (case.requests(), case.summary.handshake_us.count);
            let is_alone = r.answered + r.messages + handshakes == 0;
            is_alone && is_of_another(case, words)
        }) => (
            unexpected_response(),
            format!(
                "it begins with {}: check that the port is that of this protocol; {by_hand}",
                words.text
            ),
        ),
        (Kind::BadAnswer, ..) if let Some(fix) = case.detail.rule().and_then(against) => {
            (unexpected_response(), format!("{fix}; {by_hand}"))
        }
        (Kind::WrongEcho, ..) => (unexpected_response(), NO_ECHO.to_owned()),
        (Kind::WrongBody, ..) if case.evidence.wrong_messages => (
            unexpected_response(),
            "if the target also pushes messages, add skip = true to the step's expect, to wait for the right one"
                .to_owned(),
        ),
        _ => (unexpected_response(), by_hand),
    };
    // The sentence starts with the most frequent kind.
    let others: Vec<String> = others.iter().map(|(what, n)| format!("{what} × {}", Count(*n))).collect();
    let sentence = match others.is_empty() {
        true => sentence,
        false => format!("{sentence}, and {}", others.join(", ")),
    };
    Some(finish(case, Certainty::Seen, Name::WrongAnswer, [sentence, detail, fix]))
}

/// What was wrong, the broken rule if known, and the count: `truncated response × 5`.
fn unexpected_of(what: &str, rule: &str, count: u64) -> String {
    let rule = if rule.is_empty() { String::new() } else { format!(" ({rule})") };
    format!("{what}{rule} × {}", Count(count))
}

/// The rule that most responses of this kind broke.
fn broken(case: &Case, count: u64) -> String {
    let Some(rule) = case.detail.rule() else { return String::new() };
    if case.with_detail() < count { format!("mostly {}", rule.name()) } else { rule.name().to_owned() }
}

/// Whether the text does not begin like a response of this protocol.
fn is_of_another(case: &Case, words: &Words) -> bool {
    match case.detail.rule() {
        Some(Rule::Unrequested) => !words.is_http,
        rule => matches!(rule, None | Some(Rule::Version | Rule::Http2Frame | Rule::FrameSize)),
    }
}

/// The fix for a broken rule, if there is a better one than to reproduce it.
fn against(rule: Rule) -> Option<&'static str> {
    let known = AGAINST.iter().find(|(own, _)| *own == rule).map(|(_, fix)| *fix);
    known.or_else(|| rule.is_own().then_some("reduce what it sends"))
}

/// Fixes for broken rules.
const AGAINST: &[(Rule, &str)] = &[
    (
        Rule::GrpcMessages,
        "if the method sends more than one message, use --server-streaming or --protoset FILE",
    ),
    (
        Rule::GrpcType,
        "what responds there is not gRPC (gRPC-Web is another protocol): check the port and the path",
    ),
    (Rule::GrpcStatus, "check that the path is a method of a gRPC service, and that no proxy drops trailers"),
    (Rule::GrpcNoMessage, "check that the path is a method that responds with a message"),
    (Rule::LongerThanSent, NO_ECHO),
];

const NO_ECHO: &str = "if the target does not echo, use --message '' (control pings, only ws://), or a scenario file whose steps say \
what it replies";

/// Number of responses with the most frequent kind of error; and the other kinds with their counts, the most frequent first.
fn by_kind(case: &Case) -> (u64, Vec<(&'static str, u64)>) {
    let kind_of = |f: &FaultCount| (f.stage == Stage::Handshake, f.kind);
    let most = (case.stage == Some(Stage::Handshake), case.kind.unwrap_or(Kind::Other));
    let (mut count, mut others) = (0, Vec::<((bool, Kind), u64)>::new());
    for fault in case.faults.iter().filter(|f| !f.fault().follows_response()) {
        match others.iter_mut().find(|(kind, _)| *kind == kind_of(fault)) {
            _ if kind_of(fault) == most => count += fault.count,
            _ if !is_response(fault) => {}
            Some((_, n)) => *n += fault.count,
            None => others.push((kind_of(fault), fault.count)),
        }
    }
    others.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let what = |((of_upgrade, kind), n)| {
        let is_upgrade = of_upgrade && kind == Kind::WrongStatus;
        (if is_upgrade { "refused upgrade" } else { unexpected(kind) }, n)
    };
    (count, others.into_iter().map(what).collect())
}

const REFUSES_SOME: (&str, &str) = (
    "it accepted others at the same time",
    "check the log of the target, and of any proxy before it, and their limits",
);

/// Why an upgrade was refused with this status, and the fix, considering the plan.
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

/// `34,502 responses were wrong, 34,000 of them: unexpected status, 404 × 34,000`.
fn wrong_responses(case: &Case, kind: Kind, count: u64, statuses: &[(u16, u64)]) -> String {
    let has_statuses = kind == Kind::WrongStatus && !statuses.is_empty();
    let seen = if has_statuses { format!(", {}", counted(statuses)) } else { String::new() };
    let all = Count(count);
    format!("{} wrong{}: {}{seen}", all.were("response"), of_them(case, kind, all), wrong_how(kind))
}

/// Kinds of wrong responses: how they were wrong, and the name of such a response.
const WRONG: &[(Kind, &str, &str)] = &[
    (Kind::WrongStatus, "unexpected status", "unexpected status"),
    (Kind::WrongLength, "unexpected content length", "unexpected content length"),
    (Kind::WrongEcho, "not what was sent", "reply that differs from what was sent"),
    (Kind::WrongHeader, "without the expected header field", "response without the expected header field"),
    (Kind::WrongBody, "without the expected text", "response without the expected text"),
    (Kind::MissingValue, "without the value to capture", "response without the value to capture"),
    (Kind::ValueTooLong, "with a value too long to capture", "response with a value too long to capture"),
    (Kind::Truncated, "cut off in the middle", "truncated response"),
    (Kind::BadAnswer, "not allowed by the protocol", "response that the protocol does not allow"),
    (
        Kind::TlsAlert,
        "ended by the target with a TLS alert",
        "connection that the target ended with a TLS alert",
    ),
];

/// How responses were wrong.
pub(super) fn wrong_how(kind: Kind) -> &'static str {
    WRONG.iter().find(|(own, ..)| *own == kind).map_or(kind.name(), |(_, how, _)| how)
}

/// The sentence for a fault that [is a response](is_response); `None` if its kind says more than these words.
pub(super) fn wrong_response(fault: &FaultCount, case: &Case) -> Option<String> {
    if unexpected(fault.kind) == OTHERWISE {
        return None;
    }
    if fault.kind == Kind::WrongStatus {
        let statuses = statuses::unexpected(case, fault.stage == Stage::Handshake);
        if !statuses.is_empty() {
            return Some(format!("unexpected status: {}", counted(&statuses)));
        }
    }
    let rule = fault.detail.rule().map(Rule::name).unwrap_or_default();
    Some(unexpected_of(unexpected(fault.kind), rule, fault.count))
}

/// Unexpected statuses with their counts, the most frequent first.
fn seen(case: &Case) -> Vec<(u16, u64)> {
    statuses::unexpected(case, case.stage == Some(Stage::Handshake))
}

/// Name of a response with this error.
fn unexpected(kind: Kind) -> &'static str {
    WRONG.iter().find(|(own, ..)| *own == kind).map_or(OTHERWISE, |(.., name)| name)
}

/// Name of a response whose kind says more than these words.
const OTHERWISE: &str = "unexpected response";
/// Name of a response that exceeds what throng reads.
const TOO_MUCH: &str = "response too long for throng";

/// Why an upgrade with credentials was refused, and the fix.
fn refused_credentials(status: u16) -> (&'static str, &'static str) {
    match status {
        403 => (
            "the credentials sent were refused, or it requires an Origin that it knows, or there is no WebSocket at this path",
            "check them and the path, and send the Origin of its own clients: -H 'Origin: https://…'",
        ),
        _ => ("the credentials sent were refused", "check the token, the password or the cookie"),
    }
}

/// The probable reason why an upgrade was refused with this status, and the fix.
fn refused_upgrade(status: u16) -> (&'static str, &'static str) {
    match status {
        200..=299 => ("this path serves plain HTTP, not WebSocket", "check the path of the target"),
        300..=399 => ("the target redirects", "use the address that it redirects to (Location)"),
        400 => (
            "probably it expects another Host, an Origin or a Sec-WebSocket-Protocol",
            "check the target's log, and use -H to send the headers that its own clients send",
        ),
        401 | 407 => (
            "it requires credentials",
            "send them with the upgrade: -H 'Authorization: …' or -H 'Cookie: …', or log in with a scenario file",
        ),
        // Also sent for paths without a WebSocket: Starlette and FastAPI.
        403 => (
            "probably it requires an Origin that it knows, or credentials, or there is no WebSocket at this path",
            "send what its own clients send: -H 'Origin: https://…', -H 'Authorization: …' or -H 'Cookie: …'",
        ),
        404 | 410 => ("there is no WebSocket at this path", "check the path of the target"),
        405 | 501 => ("this path does not take upgrades", "check the path of the target"),
        426 => (
            "it requires another version or sub-protocol; throng offers WebSocket 13",
            "offer the one that its response names: -H 'Sec-WebSocket-Protocol: …'",
        ),
        429 | 503 => ("the target or a proxy limits connections", "check its limits and its log"),
        502 | 504 => {
            ("a proxy cannot reach its backend", "check the log of the proxy, and its Upgrade headers")
        }
        _ => ("the target's log should say why", "check the target's log"),
    }
}

/// Requests that the peer did not act on, and whose connections it keeps (RFC 9113, section 8.7).
fn refused_streams(case: &Case) -> [String; 3] {
    let is_one = |f: &&FaultCount| f.kind == Kind::Refused && trouble_of(f) == case.trouble;
    let count: u64 = case.faults.iter().filter(is_one).map(|f| f.count).sum();
    let stayed = case.summary.connections.dropped + case.summary.connections.failed == 0;
    let lost = if stayed { "; no connection was lost" } else { "" };
    let detail = format!("{} refused by the target (REFUSED_STREAM){lost}", Count(count).were("stream"));
    let raise = "raise the server's limit of concurrent streams";
    let fix = match case.evidence.subject.has_streams {
        true => format!("use fewer --streams, or {raise}"),
        false => format!("{raise} and check its log: each connection had one request at a time"),
    };
    let open = if stayed { "; the connections stayed open" } else { "" };
    [format!("the target refused {} (REFUSED_STREAM){open}", some(count, "stream")), detail, fix]
}
