//! Who may see the page, and ask things of the run.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{
            AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, REFERRER_POLICY,
            SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
        },
    },
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Whether this is the secret.
pub type Opens = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// By which a browser shows the secret, once it was in the address.
const NAME: &str = "throng";
/// The page's own, which no other page may send without being allowed to (Fetch, CORS-preflight).
const OWN: &str = "x-throng";
/// Everything that the page needs is in it.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Lets pass who may.
pub(super) async fn guard(State(opens): State<Option<Opens>>, request: Request, next: Next) -> Response {
    let refused = |status, why: &'static str| (status, why).into_response();
    let headers = request.headers();
    match &opens {
        // Without a secret it is for this machine: a name that only now leads here belongs to another page.
        None if !is_local(headers) => {
            return refused(StatusCode::FORBIDDEN, "write its address as 127.0.0.1 or localhost\n");
        }
        Some(opens) => {
            if let Some(secret) = in_address(&request).filter(|secret| opens(secret.as_bytes())) {
                return remembered(secret);
            }
            if !is_shown(headers, opens) {
                return refused(StatusCode::UNAUTHORIZED, "open /?token=… with what is in the token file\n");
            }
        }
        None => {}
    }
    if request.method() == Method::POST && !headers.contains_key(OWN) {
        return refused(StatusCode::FORBIDDEN, "only its own page may ask: send X-Throng: 1\n");
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Whether the page was asked for by an address of this machine, or by its name.
fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// The secret, where a person typed it.
fn in_address(request: &Request) -> Option<&str> {
    let query = request.uri().query().filter(|_| request.uri().path() == "/")?;
    query.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// The browser keeps it, and the address shows it no more.
fn remembered(secret: &str) -> Response {
    let cookie = format!("{NAME}={secret}; HttpOnly; SameSite=Strict; Path=/");
    (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, "/".to_owned())]).into_response()
}

fn is_shown(headers: &HeaderMap, opens: &Opens) -> bool {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    bearer.is_some_and(|secret| opens(secret))
        || pairs.any(|(name, secret)| name == NAME && opens(secret.as_bytes()))
}
