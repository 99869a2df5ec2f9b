//! The source of rejections. The errno of a dial has neither the sender of an ICMP message nor all of its content: when
//! dials are rejected, a few more are made besides the load whose sockets store such messages.

use std::{
    net::{IpAddr, SocketAddr},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use net::{DialOutcome, Icmp};
use record::rejection::Rejection;
use samples::{Detail, Fault, Faults, Kind, Stage};
use units::Nanos;

/// Dials at the most. Routers send a message a second to each address, and the load's dials compete for it.
const MAX_DIALS: u32 = 8;
/// Longer than until a SYN is sent again.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// Between two dials.
const APART: Duration = Duration::from_millis(500);
/// How long the end of a run waits for a result. Then no dial of the load competes for it any more.
const LAST_WAIT: Nanos = Nanos::from_millis(2_500);

/// Queries and results.
#[derive(Debug, Default)]
pub(crate) struct Rejections {
    pending: Option<(SocketAddr, Receiver<DialOutcome>)>,
    found: Option<Icmp>,
    /// Until when the end of the run may be put off.
    until: Option<Nanos>,
}

/// Whether it is worth finding out: with this many ICMP messages to this machine, these faults may be rejections. A refused
/// dial without any message got a reset.
pub(crate) fn may_be(faults: &Faults, messages: u64) -> bool {
    faults.iter().any(|(fault, _)| is_sign(fault, messages))
}

fn is_sign(fault: Fault, messages: u64) -> bool {
    let is_dial = fault.stage == Stage::Dial;
    match fault.kind {
        Kind::Unreachable => is_dial,
        Kind::Denied => is_dial && fault.detail == Detail::new(EACCES),
        Kind::Refused | Kind::Timeout => is_dial && messages > 0,
        _ => false,
    }
}

/// What ICMPv6's *administratively prohibited* becomes.
const EACCES: i32 = 13;

impl Rejections {
    /// Starts to find out what rejects dials from there to `at`, if not done yet.
    pub(crate) fn investigate(&mut self, from: Option<IpAddr>, at: SocketAddr) {
        if self.pending.is_some() {
            return;
        }
        let (sender, receiver) = channel();
        let body = move || dial(from, at, &sender);
        // Without a further thread nothing more is known.
        if thread::Builder::new().name("rejections".to_owned()).spawn(body).is_ok() {
            self.pending = Some((at, receiver));
        }
    }

    /// Takes what has come; whether nothing more will.
    fn take(&mut self) -> bool {
        let Some((_, outcomes)) = &self.pending else { return true };
        loop {
            match outcomes.try_recv() {
                Ok(DialOutcome::Icmp(icmp)) => self.found = Some(icmp),
                Ok(_) => {}
                Err(e) => return e == std::sync::mpsc::TryRecvError::Disconnected,
            }
        }
    }

    /// Whether the end of a run should wait for a result.
    pub(crate) fn is_pending(&mut self, now: Nanos) -> bool {
        let is_done = self.take() || self.found.is_some();
        let until = *self.until.get_or_insert(now + LAST_WAIT);
        !is_done && now < until
    }

    /// What was learnt; `is_here`: whether an address is this machine's.
    pub(crate) fn finish(mut self, is_here: impl Fn(IpAddr) -> bool) -> Option<Rejection> {
        self.take();
        let ((at, _), icmp) = (self.pending?, self.found?);
        let Icmp { by, is_v6, kind, code } = icmp;
        Some(Rejection { by, is_v6, kind, code, at, is_ours: by.is_some_and(is_here) })
    }
}

/// Dials until there is a reply, or it is no longer needed.
fn dial(from: Option<IpAddr>, at: SocketAddr, outcomes: &Sender<DialOutcome>) {
    net::block_signals();
    for _ in 0..MAX_DIALS {
        let outcome = net::try_dial(at, from, PATIENCE);
        let is_known = !matches!(outcome, DialOutcome::Silence | DialOutcome::Accepted);
        if outcomes.send(outcome).is_err() || is_known {
            return;
        }
        thread::sleep(APART);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fault: Fault, messages: u64, expected: bool) {
        let mut faults = Faults::default();
        faults.count(fault);
        assert_eq!(may_be(&faults, messages), expected, "{fault:?}, {messages}");
    }

    #[test]
    fn a_reset_has_no_icmp_message() {
        check(Fault::target(Stage::Dial, Kind::Refused), 0, false);
        check(Fault::target(Stage::Dial, Kind::Refused), 3, true);
        check(Fault::target(Stage::Dial, Kind::Timeout), 0, false);
        check(Fault::target(Stage::Dial, Kind::Timeout), 3, true);
        check(Fault::target(Stage::Exchange, Kind::Timeout), 3, false);
        check(Fault::target(Stage::Dial, Kind::Unreachable), 0, true);
        check(Fault::host(Stage::Dial, Kind::Denied).with(Detail::new(EACCES)), 0, true);
        check(Fault::host(Stage::Dial, Kind::Denied).with(Detail::new(1)), 0, false);
        assert!(!may_be(&Faults::default(), 9));
    }

    #[test]
    fn a_reset_dial_has_no_message_to_wait_for() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        drop(listener);
        let mut rejections = Rejections::default();
        assert!(!rejections.is_pending(Nanos::ZERO), "nothing was started");
        rejections.investigate(None, at);
        while rejections.is_pending(Nanos::ZERO) {
            thread::yield_now();
        }
        assert_eq!(rejections.finish(|_| true), None);
    }
}
