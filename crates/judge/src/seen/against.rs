//! Fixes for unexpected statuses, alone and beside another failure.

use samples::Detail;
use units::Count;

use crate::{
    case::Case,
    evidence::Evidence,
    say::tenths,
    statuses::{counted, explaining, is_part, total},
    subject::Subject,
    trouble::Trouble,
};

/// The fix for one of these statuses.
pub(super) fn status(case: &Case, statuses: &[(u16, u64)], status: u16) -> String {
    match status {
        _ if case.detail.is_of_redirect() => not_followed(case.detail).to_owned(),
        429 => case.or_less(LIMITS_RATE, "send fewer requests"),
        503 if let Some(limit) = logged_limit(case.evidence) => limit.to_owned(),
        // throng sends its timeout with each call (grpc-timeout), and target and throng end the call at about the same time.
        4 if case.evidence.subject.is_grpc => format!(
            "the target did not complete these calls within the {} that each has (--timeout): raise --timeout, or find out \
            what the target waits for",
            tenths(case.evidence.timeout)
        ),
        503 if is_part(case, statuses) => rejects_part(&case.evidence.program),
        status => advice(&case.evidence.subject, status).to_owned(),
    }
}

/// The fix if a redirect should have been followed and was not.
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

/// The fix for a limit of nginx that its log names.
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

/// The fix for 429.
const LIMITS_RATE: &str = "the target limits the rate of requests: raise its limit";

/// Where to look for a 503 among correct responses, by name of the target's process.
fn rejects_part(program: &str) -> String {
    let limit = match program {
        "nginx" | "openresty" => "a rate or connection limit (limit_req, limit_conn)",
        "haproxy" => "requests queue for too long for its servers (maxconn of a server, timeout queue)",
        "envoy" => "a circuit breaker (max_connections, max_pending_requests)",
        _ => "a rate or connection limit, its own or that of a proxy",
    };
    format!("the target rejects part of the requests: {limit}, or overload; check its log")
}

/// Adds unexpected statuses to a sentence with detail and fix, if about as many responses had one.
pub(super) fn beside(case: &Case, [sentence, detail, fix]: [String; 3]) -> [String; 3] {
    let is_other = matches!(case.trouble, Trouble::Waiting | Trouble::Lost);
    let Some(statuses) = explaining(case).filter(|_| is_other) else { return [sentence, detail, fix] };
    let fix = format!("{}; then {fix}", status(case, &statuses, statuses[0].0));
    let responses = Count(total(&statuses)).of("response");
    let detail = format!("{detail}; {responses} had an unexpected status, {}", counted(&statuses));
    // No colon, because the text after one may be prefixed with "probably".
    let sentence = format!("{sentence}, and {responses} had an unexpected status ({})", counted(&statuses));
    [sentence, detail, fix]
}

/// The fix for an unexpected status, considering the plan.
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

/// The fix for an unexpected status.
fn usual_advice(status: u16) -> &'static str {
    match status {
        // gRPC statuses (grpc/doc/statuscodes.md).
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

/// Advice if credentials were sent and not sufficient.
const CHECK_CREDENTIALS: &str =
    "the credentials sent were refused: check the token, the password or the cookie";
const CHECK_PERMISSIONS: &str =
    "the credentials sent were refused, or are not sufficient: check their user's permissions for this path";
