//! Requests that begin at full load, when all connections are open: those of a closed loop whose ramp is adaptive, and a number of
//! requests in all, exactly that number of them, with whose responses the load ends.

use net::{Cx, Io, Key};
use units::Nanos;

use super::Client;
use crate::{connections::State, job::Job, op::Op};

/// What a shard still has to send, and from when on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quota {
    /// Requests that are not due yet; none is no limit.
    left: Option<u64>,
    /// When they may begin; never, where they wait for full load and the order has not come.
    starts: Nanos,
    /// The number was that of a schedule, which ends by itself.
    is_scheduled: bool,
}

impl Quota {
    /// `requests`: how many in all. Connections that await a message before they send begin as they open.
    pub(super) fn new(requests: Option<u64>, job: &Job) -> Quota {
        let awaits_first = matches!(job.op(0), Op::Expect(_));
        let starts = if requests.is_some() && !awaits_first { Nanos::NEVER } else { Nanos::ZERO };
        Quota { left: requests, starts, is_scheduled: matches!(job.load, plan::Load::Rate { .. }) }
    }

    /// Whether there is a number of them.
    pub(super) fn is_limited(&self) -> bool {
        self.left.is_some()
    }

    /// Whether nothing may begin any more.
    pub(super) fn is_spent(&self) -> bool {
        self.left == Some(0) && !self.is_scheduled
    }

    /// When requests may begin.
    pub(super) fn starts(&self) -> Nanos {
        if self.is_scheduled { Nanos::ZERO } else { self.starts }
    }

    /// Whether it is the time at which they begin together.
    pub(super) fn is_start(&self, at: Nanos) -> bool {
        self.starts > Nanos::ZERO && at == self.starts
    }

    /// They begin at full load.
    pub(super) fn wait(&mut self) {
        self.starts = Nanos::NEVER;
    }

    /// One is due.
    pub(super) fn take(&mut self) {
        if let Some(left) = self.left.as_mut().filter(|_| !self.is_scheduled) {
            *left = left.checked_sub(1).expect("nothing is due once the number is spent");
        }
    }
}

impl Client {
    /// Whether there is nothing more to begin.
    pub(super) fn begins_nothing(&self) -> bool {
        self.draining || self.quota.is_spent()
    }

    /// Whether the load has ended by itself: connections that come and go have gone, or all requests have their response, or no
    /// connection is left for the others.
    pub(super) fn has_ended(&self, now: Nanos) -> bool {
        if self.pacer.is_through(self.conns.open() + self.conns.dialling()) {
            return true;
        }
        // Where a stage of the load has none, a later one may bring them back.
        let are_lost = self.sends_a_number(now) && self.there() == 0 && self.pacer.wants_any();
        self.has_sent_all(now) && self.waiting() == 0 || are_lost
    }

    /// Whether the last of a number of requests has begun.
    pub(super) fn has_sent_all(&self, now: Nanos) -> bool {
        let is_sent = || self.quota.is_spent() || self.pacer.has_sent_all() && self.conns.dialling() == 0;
        self.sends_a_number(now) && is_sent()
    }

    /// Whether there is a number of requests, which may begin by now.
    fn sends_a_number(&self, now: Nanos) -> bool {
        let Quota { left, starts, .. } = self.quota;
        left.is_some() && now >= starts && self.ramped_at != Nanos::NEVER
    }

    /// Full load begins at `from`, for the first time: what waits for it does then.
    pub(super) fn start_quota<I: Io>(&mut self, cx: &mut Cx<I>, from: Nanos) {
        if self.quota.starts != Nanos::NEVER || from == Nanos::NEVER {
            return;
        }
        self.quota.starts = from;
        if self.quota.is_scheduled {
            return;
        }
        for index in 0..self.conns.len() {
            let waits = matches!(self.conns[index].state(), State::Idle | State::Disconnected);
            if let Some(k) = cx.at(index).filter(|_| waits) {
                self.wait_for_start(cx, k);
            }
        }
    }

    /// A connection that is open waits for full load.
    pub(super) fn wait_for_start<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let starts = self.quota.starts;
        let at = match self.job.op(self.conns[k.index].at) {
            Op::Ping(_, every) if starts != Nanos::NEVER => {
                starts + Nanos(self.source.random.between(0, every.0))
            }
            _ => starts,
        };
        self.wake_at(cx, k, at);
    }
}
