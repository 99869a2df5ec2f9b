//! Access control for the page and for the commands to the run.

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
    },
    middleware::Next,
    response::{IntoResponse, Response},
};

use webserver::{Opens, Public, is_local, shows_secret};

/// A header that only throng's page sends: other origins cannot send it without permission (Fetch, CORS-preflight).
const OWN: &str = "x-throng";
/// The page contains everything that it needs, so nothing else may be loaded.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The rules for access.
#[derive(Clone)]
pub(crate) struct Access {
    /// The token; without it, only this machine has access.
    pub(crate) opens: Option<Opens>,
    /// Whether a path is that of the page, which contains no data and therefore needs no token.
    pub(crate) is_page: fn(&str) -> bool,
}

/// Middleware that passes authorised requests.
pub(crate) async fn guard(State(access): State<Access>, request: Request, next: Next) -> Response {
    let Access { opens, is_page } = access;
    let is_page = is_page(request.uri().path());
    let refused = |status, why: &'static str| (status, why).into_response();
    let headers = request.headers();
    match &opens {
        // Without a token, only loopback names are accepted: any other name may have been pointed to this machine by a foreign page.
        None if is_local(headers) => {}
        None => return refused(StatusCode::FORBIDDEN, "use 127.0.0.1 or localhost as the host\n"),
        Some(opens) => match in_address(&request).filter(|_| is_page) {
            Some(secret) if opens(secret.as_bytes()) => return moved(request.uri().path(), secret),
            None if is_page => {}
            _ if shows_secret(headers, opens) => {}
            _ => {
                let fix = "open /#token=… with the token from the token file\n";
                return refused(StatusCode::UNAUTHORIZED, fix);
            }
        },
    }
    let is_known = opens.as_ref().is_none_or(|opens| shows_secret(request.headers(), opens));
    let mut response = next.run(request).await;
    if !is_known {
        response.extensions_mut().insert(Public);
    }
    page_headers(response.headers_mut());
    response
}

/// Middleware that passes requests from throng's page.
pub(crate) async fn own(request: Request, next: Next) -> Response {
    if !request.headers().contains_key(OWN) {
        return (StatusCode::FORBIDDEN, "missing header X-Throng: 1\n").into_response();
    }
    next.run(request).await
}

/// Sets the headers of a page: what it may load, and that it must not be cached.
pub fn page_headers(headers: &mut HeaderMap) {
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// The token in the query, if a user typed it there.
fn in_address(request: &Request) -> Option<&str> {
    request.uri().query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// Redirects to the page with the token in the fragment, which a browser does not send. A cookie would be sent to every port of this
/// host, including the target's (RFC 6265, section 8.5).
fn moved(path: &str, secret: &str) -> Response {
    let headers = [(LOCATION, format!("{path}#token={secret}")), (CACHE_CONTROL, "no-store".to_owned())];
    (StatusCode::SEE_OTHER, headers).into_response()
}
