//! Requests that wait for full load, when all connections are open: those of a closed loop with an adaptive ramp, and those of a
//! fixed number of requests. Of the latter, exactly that number is sent, and the load ends with their responses.

use net::{Cx, Io, Key};
use units::Nanos;

use super::Client;
use crate::{connections::State, job::Job, op::Op};

/// How many requests a shard still has to send, and from when on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quota {
    /// Requests that are not due yet; `None`: no limit.
    left: Option<u64>,
    /// When requests may begin; never, while they wait for full load.
    starts: Nanos,
    /// Whether the number is that of a schedule, which ends by itself.
    is_scheduled: bool,
}

impl Quota {
    /// `requests`: the total, if limited. Connections that await a message before they send begin as they open.
    pub(super) fn new(requests: Option<u64>, job: &Job) -> Quota {
        let awaits_first = matches!(job.op(0), Op::Expect(_));
        let starts = if requests.is_some() && !awaits_first { Nanos::NEVER } else { Nanos::ZERO };
        Quota { left: requests, starts, is_scheduled: matches!(job.load, plan::Load::Rate { .. }) }
    }

    /// Whether the number of requests is limited.
    pub(super) fn is_limited(&self) -> bool {
        self.left.is_some()
    }

    /// Whether no request may begin any more.
    pub(super) fn is_spent(&self) -> bool {
        self.left == Some(0) && !self.is_scheduled
    }

    /// When requests may begin.
    pub(super) fn starts(&self) -> Nanos {
        if self.is_scheduled { Nanos::ZERO } else { self.starts }
    }

    /// Whether `at` is the time at which waiting requests begin together.
    pub(super) fn is_start(&self, at: Nanos) -> bool {
        self.starts > Nanos::ZERO && at == self.starts
    }

    /// Requests wait for full load.
    pub(super) fn wait(&mut self) {
        self.starts = Nanos::NEVER;
    }

    /// A request is due: takes it from the quota.
    pub(super) fn take(&mut self) {
        if let Some(left) = self.left.as_mut().filter(|_| !self.is_scheduled) {
            *left = left.checked_sub(1).expect("nothing is due once the number is spent");
        }
    }
}

impl Client {
    /// Whether nothing more begins.
    pub(super) fn begins_nothing(&self) -> bool {
        self.course.is_draining() || self.quota.is_spent()
    }

    /// Whether the load has ended by itself: all arrivals have gone, all requests have their response, or no connection is left
    /// to send the remaining ones.
    pub(super) fn has_ended(&self, now: Nanos) -> bool {
        if self.pacer.is_through(self.conns.open() + self.conns.dialling()) {
            return true;
        }
        // A stage that wants no connections has none; a later stage may bring them back.
        let are_lost = self.sends_a_number(now) && self.there() == 0 && self.pacer.wants_any();
        self.has_sent_all(now) && self.waiting() == 0 || are_lost
    }

    /// Whether the last of a fixed number of requests has begun.
    pub(super) fn has_sent_all(&self, now: Nanos) -> bool {
        let is_sent = || self.quota.is_spent() || self.pacer.has_sent_all() && self.conns.dialling() == 0;
        self.sends_a_number(now) && is_sent()
    }

    /// Whether the number of requests is fixed, and they may begin by now.
    fn sends_a_number(&self, now: Nanos) -> bool {
        let Quota { left, starts, .. } = self.quota;
        left.is_some() && now >= starts && self.course.has_ramped()
    }

    /// Full load begins at `from`: starts the requests that wait for it, the first time.
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

    /// An open connection waits for full load.
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
