//! Release: closing connections that have nothing more to send while others await responses. A server that serves only some
//! connections at a time, such as one with a process for each, gets to the waiting ones only when open ones close.

use net::{Cx, Io, Key};
use samples::books::End;
use units::Nanos;

use super::Client;

/// Idle connections stay open for this long after the last of a fixed number of requests: usually all responses arrive by then.
const RELEASED_AFTER: Nanos = Nanos::from_millis(500);

/// Whether connections are closed as soon as nothing is under way on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Release {
    Not,
    /// From this time on.
    At(Nanos),
    Now,
}

/// Which idle connections are being closed: surplus or released ones.
#[derive(Debug)]
pub(super) struct Closing {
    release: Release,
    /// The search for them has still to examine the indices below this one.
    pub(super) unexamined: u32,
}

impl Closing {
    pub(super) fn none() -> Closing {
        Closing { release: Release::Not, unexamined: 0 }
    }
}

impl Client {
    /// Whether connections without anything under way are closed.
    pub(super) fn is_released(&self) -> bool {
        self.closing.release == Release::Now
    }

    /// Releases all connections by order, after the load has ended.
    pub(super) fn release_all(&mut self) {
        if self.course.is_draining() {
            self.closing.release = Release::Now;
            self.closing.unexamined = self.conns.len();
        }
    }

    /// Releases all connections some time after the last of a fixed number of requests; returns when.
    pub(super) fn release_due(&mut self, now: Nanos) -> Nanos {
        match self.closing.release {
            // A withdrawn request begins again.
            _ if !self.course.is_draining() && !self.has_sent_all(now) => self.closing.release = Release::Not,
            Release::Not if self.has_sent_all(now) => {
                self.closing.release = Release::At(now + RELEASED_AFTER)
            }
            Release::At(at) if now >= at => {
                self.closing.release = Release::Now;
                self.closing.unexamined = self.conns.len();
            }
            _ => {}
        }
        if let Release::At(at) = self.closing.release { at } else { Nanos::NEVER }
    }

    /// Closes an idle connection that has nothing more to send.
    pub(super) fn release<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.close_idle(cx, k, End::EndedAfter);
    }
}
