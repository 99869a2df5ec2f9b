//! Cause: no dial gets a reply.

use super::*;

/// No dial ever succeeded, and neither a SYN-ACK nor a reset nor ICMP arrived. With `--io tun`, packets may not be forwarded, or not return to the
/// network of the sources: compare with `--io uring`.
pub(crate) struct NoSynAck {
    pub(crate) dials: u64,
    /// SYNs that were sent again.
    pub(crate) again: u64,
    /// Dials came from a network that is routed to this machine.
    pub(crate) is_routed: bool,
}

/// Whether no dial got a reply. The target's host answers each SYN unless the listener's queue is full; if both ends are on this machine,
/// that queue is observed, and another cause applies.
pub(super) fn never_opened(case: &Case) -> bool {
    let is_elsewhere = case.evidence.there.is_none() || case.evidence.accept_queue.is_none();
    let are_dials = case.trouble == Trouble::Waiting && case.stage == Some(Stage::Dial);
    are_dials && case.opened() == 0 && is_elsewhere
}

impl Cause for NoSynAck {
    const ID: &'static str = "no-syn-ack";
    const OF: (Side, Name) = (Side::Path, Name::NoSynAck);
    const YIELDS_TO: &'static str = "rejected rejected-in-part unacknowledged blocked-here conntrack";

    fn find(case: &Case) -> Option<Found<NoSynAck>> {
        let net = case.evidence.here.net;
        let is_it = never_opened(case) && net.retrans_fails == 0;
        let is_routed = case.summary.io == "tun";
        is_it.then(|| Found::inferred(NoSynAck { dials: case.count, again: net.syn_retrans, is_routed }, 0))
    }

    fn sentence(&self) -> String {
        let dials = some(self.dials, "dial");
        match self.is_routed {
            true => format!(
                "{dials} got no reply: packets are not forwarded, or replies have no route to the source network"
            ),
            false => format!("{dials} got no reply: the path drops packets, or no host has that address"),
        }
    }

    fn detail(&self, _: &Case) -> String {
        let n = some(self.dials, "dial");
        let again = match self.again {
            0 => String::new(),
            n => format!(" ({})", some(n, "SYN retransmission")),
        };
        let or = if self.is_routed { ", or they do not come back to the network of the sources" } else { "" };
        format!(
            "{n} got no SYN-ACK, no reset and no ICMP{again}: packets are dropped on the path, or no host has that address{or}"
        )
    }

    fn fix(&self, _: &Case) -> String {
        // Over a TUN device, dials come from other addresses than this machine's, which a ping would use.
        let fix = match self.is_routed {
            true => {
                "check forwarding and the route back to the sources (throng doctor TARGET --io tun), or compare with --io uring"
            }
            false => WAY,
        };
        fix.to_owned()
    }
}
