//! Where something is posted: one host over http, a path and a query.

use std::net::SocketAddr;

use crate::{Target, target::Resolve};

/// A URL, taken apart.
pub(super) struct Post<'a> {
    /// Where it listens: of a name's addresses the first.
    pub(super) at: SocketAddr,
    /// Host and port as the user wrote them.
    pub(super) host: &'a str,
    /// Path and query; may be empty.
    pub(super) path: &'a str,
}

impl Post<'_> {
    /// Parses the URL; every error has the fix.
    pub(super) fn parse<'a>(text: &'a str, fix: &str, resolve: Resolve) -> Result<Post<'a>, String> {
        let wrong = |why: &str| format!("{why}; {fix}: {text:?}");
        let rest = text.strip_prefix("http://").ok_or_else(|| wrong("does not start with http://"))?;
        let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if host.contains(['{', ',', '@']) {
            return Err(wrong("not a host and port"));
        }
        if !path.bytes().all(|b| b.is_ascii_graphic() && b != b'#') {
            return Err(wrong("contains a character that is not allowed in a URL"));
        }
        let target = Target::parse(&format!("http://{host}/"), None, &[], resolve)?;
        Ok(Post { at: target.destinations[0], host, path })
    }
}
