//! Access control for throng's HTTP servers: by a token, or without one only from this machine.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE},
    },
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Checks a token.
pub type Opens = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Whether the request's host is a loopback address or `localhost`. Any other name may resolve to this machine on behalf of a foreign
/// page (DNS rebinding).
pub fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Whether a request contains the token: `Authorization: Bearer …` (RFC 6750, section 2.1).
pub fn shows_secret(headers: &HeaderMap, opens: &Opens) -> bool {
    let shown = headers.get(AUTHORIZATION).map(|value| value.as_bytes().split_at_checked("Bearer ".len()));
    shown.flatten().is_some_and(|(scheme, secret)| scheme.eq_ignore_ascii_case(b"Bearer ") && opens(secret))
}

/// Middleware for an API. With a token, requests must contain it; without one, they must come from this machine, from programs or
/// from pages of this server.
pub async fn guard(State(opens): State<Option<Opens>>, request: Request, next: Next) -> Response {
    guard_with(opens, request, next, |refused| refused.into_response()).await
}

/// The response to a refused request: the status, and a line with the fix.
pub type Refusal = (StatusCode, &'static str);

/// As [`guard`], with `written` to format a refusal.
pub async fn guard_with(
    opens: Option<Opens>,
    request: Request,
    next: Next,
    written: fn(Refusal) -> Response,
) -> Response {
    let Some(refused) = refusal(opens.as_ref(), request.headers()) else { return next.run(request).await };
    let mut response = written(refused);
    if refused.0 == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn refusal(opens: Option<&Opens>, headers: &HeaderMap) -> Option<Refusal> {
    let refused = |status, why| Some((status, why));
    match opens {
        Some(opens) if shows_secret(headers, opens) => None,
        Some(_) => refused(
            StatusCode::UNAUTHORIZED,
            "missing or wrong token; use -H \"Authorization: Bearer $(cat TOKEN_FILE)\"\n",
        ),
        // Any web page can send a form to this machine through the browser that shows it.
        None if !is_of_own_page(headers) => {
            refused(StatusCode::FORBIDDEN, "not from a web page without a token\n")
        }
        None if is_local(headers) => None,
        None => refused(StatusCode::FORBIDDEN, "use 127.0.0.1 or localhost as the host\n"),
    }
}

/// Whether a request does not come from a web page, or comes from one of this server (Fetch, section 3.2).
fn is_of_own_page(headers: &HeaderMap) -> bool {
    let own = headers.get(HOST).map(|host| [b"http://", host.as_bytes()].concat());
    headers.get(ORIGIN).is_none_or(|origin| own.is_some_and(|own| own == origin.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_required_where_there_is_one_and_this_machine_where_not() {
        let token: Opens = Arc::new(|secret| secret == b"s3cret");
        let check =
            |opens: Option<&Opens>, fields: &[(axum::http::HeaderName, &str)], expected: Option<u16>| {
                let mut headers = HeaderMap::new();
                fields.iter().for_each(|(name, value)| drop(headers.insert(name, value.parse().unwrap())));
                let status = refusal(opens, &headers).map(|(status, _)| status.as_u16());
                assert_eq!(status, expected, "{fields:?}");
            };
        let local = (HOST, "localhost:9001");
        for host in ["127.0.0.1:9001", "localhost", "[::1]:9001", "LOCALHOST:1"] {
            check(None, &[(HOST, host)], None);
        }
        check(None, &[(HOST, "evil.example:9001")], Some(403));
        check(None, &[], Some(403));
        check(None, &[local.clone(), (ORIGIN, "https://evil.example")], Some(403));
        check(None, &[local.clone(), (ORIGIN, "http://localhost:9002")], Some(403));
        check(None, &[local.clone(), (ORIGIN, "http://localhost:9001")], None);
        check(Some(&token), std::slice::from_ref(&local), Some(401));
        for wrong in ["Bearer s3cre", "Bearer s3cret ", "Basic s3cret", "s3cret", "Bearer ", "Bearer"] {
            check(Some(&token), &[local.clone(), (AUTHORIZATION, wrong)], Some(401));
        }
        for right in ["Bearer s3cret", "bearer s3cret"] {
            check(Some(&token), &[(HOST, "10.0.0.1:9001"), (AUTHORIZATION, right)], None);
        }
    }
}
