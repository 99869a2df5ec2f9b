//! Cause: the target does not speak HTTP/2, or does not carry WebSocket over it.

use super::*;

/// The target does not speak HTTP/2, or does not carry WebSocket over it: handshakes failed with nothing in common.
pub(crate) struct NoHttp2 {
    pub(crate) lacks: Lacks,
    /// On how many connections, where it has it on others.
    pub(crate) connections: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lacks {
    WebSocket,
    Grpc,
    Http2,
}

impl Lacks {
    fn what(self) -> &'static str {
        match self {
            Lacks::WebSocket => "does not offer WebSocket over HTTP/2 (RFC 8441)",
            Lacks::Grpc | Lacks::Http2 => "does not speak HTTP/2 without TLS",
        }
    }
}

impl Cause for NoHttp2 {
    const ID: &'static str = "no-http2";
    const OF: (Side, Name) = (Side::Target, Name::WrongAnswer);

    fn find(case: &Case) -> Option<Found<NoHttp2>> {
        if (case.stage, case.kind) != (Some(Stage::Handshake), Some(Kind::NothingInCommon)) {
            return None;
        }
        let populations = case.summary.populations.values().map(|population| &population.figures.target);
        let mut targets = [&case.summary.figures.target].into_iter().chain(populations);
        let lacks = if targets.clone().any(|target| target.starts_with("ws")) {
            Lacks::WebSocket
        } else if targets.any(|target| target.starts_with("grpc")) {
            Lacks::Grpc
        } else {
            Lacks::Http2
        };
        let is_of_some = case.others_succeed(case.summary.handshake_us.count);
        let found = NoHttp2 { lacks, connections: is_of_some.then_some(case.count) };
        Some(Found::seen(found, case.left()))
    }

    fn sentence(&self) -> String {
        let on = self.connections.map_or(String::new(), |n| format!(" on {}", connections(n)));
        format!("the target {}{on}", self.lacks.what())
    }

    fn detail(&self, case: &Case) -> String {
        format!("{} failed: the target {}", case.n().of("handshake"), self.lacks.what())
    }

    fn fix(&self, _: &Case) -> String {
        let fix = match self.lacks {
            _ if self.connections.is_some() => ONE_OF_SOME,
            Lacks::WebSocket => "leave out --http2: WebSocket over HTTP/1.1 needs no such offer",
            Lacks::Grpc => "check the port, or use grpcs://",
            Lacks::Http2 => "leave out --http2, or use https://, where the protocol is negotiated",
        };
        fix.to_owned()
    }
}
