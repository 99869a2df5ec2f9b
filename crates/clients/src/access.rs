//! Who may use the API.

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{ORIGIN, WWW_AUTHENTICATE},
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use exporters::web::{Opens, is_local, shows_secret};

/// Passes authorised requests: with the token, or where there is none, from programs of this machine.
pub(crate) async fn guard(State(opens): State<Option<Opens>>, request: Request, next: Next) -> Response {
    match refusal(opens.as_ref(), request.headers()) {
        Some((StatusCode::UNAUTHORIZED, why)) => {
            let bearer = [(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
            (StatusCode::UNAUTHORIZED, bearer, why).into_response()
        }
        Some(refused) => refused.into_response(),
        None => next.run(request).await,
    }
}

fn refusal(opens: Option<&Opens>, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
    let refused = |status, why| Some((status, why));
    match opens {
        Some(opens) if shows_secret(headers, opens) => None,
        Some(_) => refused(
            StatusCode::UNAUTHORIZED,
            "missing or wrong token; use -H \"Authorization: Bearer $(cat TOKEN_FILE)\"\n",
        ),
        // A form can be sent to this machine by any page that its browser shows.
        None if headers.contains_key(ORIGIN) => {
            refused(StatusCode::FORBIDDEN, "not from a web page without a token\n")
        }
        None if is_local(headers) => None,
        None => refused(StatusCode::FORBIDDEN, "use 127.0.0.1 or localhost as the host\n"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::http::header::{AUTHORIZATION, HOST};

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
        check(Some(&token), std::slice::from_ref(&local), Some(401));
        for wrong in ["Bearer s3cre", "Bearer s3cret ", "Basic s3cret", "s3cret", "Bearer ", "Bearer"] {
            check(Some(&token), &[local.clone(), (AUTHORIZATION, wrong)], Some(401));
        }
        for right in ["Bearer s3cret", "bearer s3cret"] {
            check(Some(&token), &[(HOST, "10.0.0.1:9001"), (AUTHORIZATION, right)], None);
        }
    }
}
