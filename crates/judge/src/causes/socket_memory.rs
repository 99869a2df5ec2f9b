//! Cause: the kernel's memory for sockets is exhausted.

use super::*;

/// The kernel aborted connections because the memory of all sockets was exhausted (`TCPAbortOnMemory`), here or on the target's host.
pub(crate) struct SocketMemory {
    pub(crate) side: Side,
    pub(crate) aborted: u64,
}

impl Cause for SocketMemory {
    const ID: &'static str = "socket-memory";
    const OF: (Side, Name) = (Side::Target, Name::Memory);
    const FIX: &'static str = "sysctl -w net.ipv4.tcp_mem='1048576 2097152 4194304'";

    fn find(case: &Case) -> Option<Found<SocketMemory>> {
        let (here, there) = (case.evidence.here.net, case.evidence.there.unwrap_or_default().net);
        let (side, aborted) = match here.abort_on_memory {
            0 => (Side::Target, there.abort_on_memory),
            n => (Side::Host, n),
        };
        let found = Found::seen(SocketMemory { side, aborted }, case.left());
        (aborted > 0 && case.is_short()).then(|| found.began(Began::Seen(Sign::SocketMemory)))
    }

    fn of(&self) -> (Side, Name) {
        (self.side, Name::Memory)
    }

    fn sentence(&self) -> String {
        let whose = if self.side == Side::Host { "this machine" } else { "the target's host" };
        format!("{whose} ran out of memory for sockets: its kernel aborted {}", connections(self.aborted))
    }

    fn detail(&self, _: &Case) -> String {
        format!("socket memory ran out: the kernel aborted {}", connections(self.aborted))
    }
}
