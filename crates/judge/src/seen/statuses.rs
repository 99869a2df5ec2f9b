//! Statuses that are not expected: which, and what helps against them, alone and beside another failure.

use samples::{Detail, FaultCount, Kind, Stage};
use units::{Count, Status};

use crate::{
    case::{Case, Trouble},
    evidence::Evidence,
    say::tenths,
    subject::Subject,
};

/// More statuses are not named.
const MAX_STATUSES: usize = 3;

/// `404 × 208,232, 503 × 12`
pub(super) fn counted(statuses: &[(u16, u64)]) -> String {
    let shown =
        statuses.iter().take(MAX_STATUSES).map(|(status, n)| format!("{} × {}", Status(*status), Count(*n)));
    let others = statuses.len().saturating_sub(MAX_STATUSES);
    let more = if others > 0 { format!(" and {}", Count(others as u64).of("other")) } else { String::new() };
    shown.collect::<Vec<_>>().join(", ") + &more
}

/// Unexpected statuses with their counts, the most frequent first. `is_upgrade`: those of refused upgrades, whatever they are; where
/// requests are counted with them, without the statuses that these expect.
pub(super) fn unexpected(case: &Case, is_upgrade: bool) -> Vec<(u16, u64)> {
    let refused = |f: &&FaultCount| (f.stage, f.kind) == (Stage::Handshake, Kind::WrongStatus);
    let refused: u64 = case.faults.iter().filter(refused).map(|f| f.count).sum();
    let has_only_upgrades = is_upgrade && case.statuses().map(|(_, n)| n).sum::<u64>() <= refused;
    let is_one = |(status, _): &(u16, u64)| has_only_upgrades || case.evidence.subject.is_unexpected(*status);
    let mut statuses: Vec<(u16, u64)> = case.statuses().filter(is_one).collect();
    statuses.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    statuses
}

/// Whether other responses had the right status: more than a tenth. In a step of a search only new connections may have sent anything.
pub(super) fn is_part(case: &Case, unexpected: &[(u16, u64)]) -> bool {
    let all: u64 = case.statuses().map(|(_, n)| n).sum();
    let wrong: u64 = unexpected.iter().map(|(_, n)| n).sum();
    case.evidence.has_passed || wrong * 10 < all * 9
}

/// What helps against one of these statuses.
pub(super) fn against(case: &Case, statuses: &[(u16, u64)], status: u16) -> String {
    match status {
        _ if case.detail.is_of_redirect() => not_followed(case.detail).to_owned(),
        429 => case.or_less(LIMITS_RATE, "send fewer requests"),
        503 if let Some(limit) = logged_limit(case.evidence) => limit.to_owned(),
        // Throng sends its timeout with each call (grpc-timeout), and target and throng end it at about the same time.
        4 if case.evidence.subject.is_grpc => format!(
            "the target did not complete these calls within the {} that each has (--timeout): raise --timeout, or find out \
            what the target waits for",
            tenths(case.evidence.timeout)
        ),
        503 if is_part(case, statuses) => rejects_part(&case.evidence.program),
        status => advice(&case.evidence.subject, status).to_owned(),
    }
}

/// What helps where a redirect was to be followed, and was not.
fn not_followed(detail: Detail) -> &'static str {
    match detail {
        Detail::OTHER_ORIGIN => "use the address that it redirects to (Location) as the target",
        Detail::TOO_MANY_REDIRECTS => "raise redirects in the step, unless it redirects in a circle",
        Detail::LAST_RESPONSE => {
            "let connections be dialled again (reconnect), or let the target keep them open"
        }
        _ => "check the Location of its response",
    }
}

/// The limit of nginx that its log names.
fn logged_limit(e: &Evidence) -> Option<&'static str> {
    let has = |what: &str| e.log.iter().any(|logged| logged.line.contains(what));
    if has("limiting connections") {
        Some("the target limits connections: raise that limit (limit_conn)")
    } else if has("limiting requests") {
        Some("the target limits the rate of requests: raise that limit and its burst (limit_req)")
    } else {
        None
    }
}

/// What a 429 says.
const LIMITS_RATE: &str = "the target limits the rate of requests: raise its limit";

/// Where to look for a 503 among right responses, by the name of the target's process.
fn rejects_part(program: &str) -> String {
    let limit = match program {
        "nginx" | "openresty" => "a rate or connection limit (limit_req, limit_conn)",
        "haproxy" => "requests queue for too long for its servers (maxconn of a server, timeout queue)",
        "envoy" => "a circuit breaker (max_connections, max_pending_requests)",
        _ => "a rate or connection limit, its own or that of a proxy",
    };
    format!("the target rejects part of the requests: {limit}, or overload; check its log")
}

/// Unexpected statuses that about as many responses had as went wrong otherwise: they say why, and not what became of connections.
pub(crate) fn explaining(case: &Case) -> Option<Vec<(u16, u64)>> {
    let statuses = unexpected(case, false);
    let count = total(&statuses);
    (count > 0 && count >= case.count / 2).then_some(statuses)
}

fn total(statuses: &[(u16, u64)]) -> u64 {
    statuses.iter().map(|(_, n)| n).sum()
}

/// A sentence with its detail and its fix, and unexpected statuses where about as many other requests had one.
pub(super) fn beside(case: &Case, [sentence, detail, fix]: [String; 3]) -> [String; 3] {
    let is_other = matches!(case.trouble, Trouble::Waiting | Trouble::Lost);
    let Some(statuses) = explaining(case).filter(|_| is_other) else { return [sentence, detail, fix] };
    let fix = format!("{}; then {fix}", against(case, &statuses, statuses[0].0));
    let responses = Count(total(&statuses)).of("response");
    let detail = format!("{detail}; {responses} had an unexpected status, {}", counted(&statuses));
    // Without a colon, after which it would be said to be probable.
    let sentence = format!("{sentence}, and {responses} had an unexpected status ({})", counted(&statuses));
    [sentence, detail, fix]
}

/// What helps against a status that is not expected.
fn advice(subject: &Subject, status: u16) -> &'static str {
    match status {
        401 | 407 | 16 if subject.sends_credentials => CHECK_CREDENTIALS,
        403 | 7 if subject.sends_credentials => CHECK_PERMISSIONS,
        426 => "the target speaks WebSocket at this path: use ws://, or wss:// for https://",
        304 => {
            "if that is right, expect it (--expect status=304); else send no If-None-Match and no If-Modified-Since"
        }
        300..=399 if subject.is_scenario => {
            "use the address that it redirects to (Location), or redirects = 5 in the step"
        }
        401 | 407 if subject.is_scenario => {
            "check the credentials that the step sends, and whether a step before it logs in"
        }
        _ => usual_advice(status),
    }
}

/// Where to look for a status that was not expected.
fn usual_advice(status: u16) -> &'static str {
    match status {
        // Of gRPC (grpc/doc/statuscodes.md).
        8 | 14 => "the target is overloaded, or cannot reach what it needs: check its log",
        7 | 16 => "send credentials with each call: -H 'Authorization: …'",
        12 => "check the names of service and method",
        0..=16 => "check the message, and the target's log",
        300..=399 => {
            "use the address that it redirects to (Location), or redirects = 5 in a step of a scenario file"
        }
        401 | 407 => {
            "send credentials with each request: -H 'Authorization: …' or http://USER:PASSWORD@HOST/, or log in with a scenario file"
        }
        403 => "check what the target allows this path, this address and this client",
        404 | 410 => "check the path of the target",
        405 => "check the method",
        408 => "the target did not receive the whole request in time: check its CPU and its request timeout",
        400..=499 => "check the request",
        502 => "a proxy cannot reach its backend: check the log of both",
        503 => {
            "the target or a proxy limits connections or requests, is overloaded, or has no backend: check the log of both"
        }
        504 => {
            "a proxy waited too long for its backend (proxy_read_timeout, timeout server): check what that is busy with"
        }
        500..=599 => "check the target's log",
        _ => "add --expect status=N if that is right",
    }
}

/// Where to look where credentials were sent, and did not suffice.
const CHECK_CREDENTIALS: &str =
    "the credentials sent were refused: check the token, the password or the cookie";
const CHECK_PERMISSIONS: &str =
    "the credentials sent were refused, or are not sufficient: check their user's permissions for this path";
