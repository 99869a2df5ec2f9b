//! Access to a server of ours: by a secret, or from this machine.

use std::{net::IpAddr, sync::Arc};

use axum::http::{
    HeaderMap,
    header::{AUTHORIZATION, HOST},
};

/// Whether this is the secret.
pub type Opens = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Whether what is requested was named by an address of this machine, or by its name. A name that only now leads here belongs
/// to another page (DNS rebinding).
pub fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Whether a request shows the secret: `Authorization: Bearer …` (RFC 6750, section 2.1).
pub fn shows_secret(headers: &HeaderMap, opens: &Opens) -> bool {
    let shown = headers.get(AUTHORIZATION).map(|value| value.as_bytes().split_at_checked("Bearer ".len()));
    shown.flatten().is_some_and(|(scheme, secret)| scheme.eq_ignore_ascii_case(b"Bearer ") && opens(secret))
}
