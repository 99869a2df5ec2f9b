//! Cause: the target, a proxy, has no local port left for another connection to its upstream.

use super::*;
use crate::statuses;

/// The target's log says that no local port was free for a connection to its upstream (`Cannot assign requested address`, `no free ports`),
/// and the most frequent unexpected status is one with which proxies reply then: 500, 502, 503, or `UNAVAILABLE` of gRPC.
pub(crate) struct UpstreamPorts {
    pub(crate) at: u64,
}

/// nginx replies with 502, HAProxy with 503, programs that do not expect the error with 500; the last one is `UNAVAILABLE` of gRPC.
const REPLIES: [u16; 4] = [500, 502, 503, 14];

/// The unexpected statuses, if a proxy without a connection to its upstream replies with the most frequent one.
fn replies(case: &Case) -> Option<Vec<(u16, u64)>> {
    case.kind.filter(|kind| *kind == Kind::WrongStatus)?;
    let statuses = statuses::unexpected(case, case.stage == Some(Stage::Handshake));
    let is_it = statuses.first().is_some_and(|(status, _)| REPLIES.contains(status));
    is_it.then_some(statuses)
}

impl Cause for UpstreamPorts {
    const ID: &'static str = "upstream-ports";
    const OF: (Side, Name) = (Side::Target, Name::Ports);
    const FIX: &'static str = "keep connections to the upstream open (nginx: keepalive in upstream), raise net.ipv4.ip_local_port_range, \
        or give the upstream more addresses";

    fn find(case: &Case) -> Option<Found<UpstreamPorts>> {
        replies(case)?;
        case.logged(LogKind::Ports)?;
        let at = case.left();
        Some(Found::seen(UpstreamPorts { at }, at).began(Began::Seen(Sign::Ports)))
    }

    fn sentence(&self) -> String {
        format!(
            "the target ran out of local ports to its upstream at {}, according to its log",
            connections(self.at)
        )
    }

    fn detail(&self, case: &Case) -> String {
        let statuses = statuses::counted(&replies(case).unwrap_or_default());
        format!("process {} had no local port for another connection to its upstream: {statuses}", case.pid())
    }
}
