//! A URL for POST requests: one host over http, a path and a query.

use std::net::SocketAddr;

use crate::{Target, target::Resolve};

/// A parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostUrl {
    /// Address; the first one of a name.
    pub at: SocketAddr,
    /// Host and port as the user wrote them.
    pub host: String,
    /// Path and query; may be empty.
    pub path: String,
}

impl PostUrl {
    /// Parses the URL; every error has the fix.
    pub(super) fn parse(text: &str, fix: &str, resolve: Resolve) -> Result<PostUrl, String> {
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
        Ok(PostUrl { at: target.destinations[0], host: host.to_owned(), path: path.to_owned() })
    }
}
