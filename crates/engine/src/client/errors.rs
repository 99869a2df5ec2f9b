//! Samples of wrong responses: a few of each fault, for the whole run.

use net::{Cx, Io, Key};
use samples::{ErrorSample, ErrorSamples, Fault, Kind, Stage};
use units::Nanos;

use super::Client;
use crate::{connections::State, failure::Failure};

/// Which samples a shard has taken, and what is still to be sampled.
pub(super) struct ErrorSampler {
    /// Of each fault how many.
    taken: Vec<(Fault, usize)>,
    /// The complete response that was just found to be wrong, and its status.
    wrong: Option<(Fault, Option<u16>)>,
}

impl ErrorSampler {
    pub(super) fn new() -> ErrorSampler {
        ErrorSampler { taken: Vec::with_capacity(ErrorSamples::MAX), wrong: None }
    }

    /// A complete response is wrong.
    pub(super) fn note(&mut self, fault: Fault, status: Option<u16>) {
        self.wrong = Some((fault, status));
    }

    /// Whether one more of this fault is taken; it is counted.
    fn takes(&mut self, fault: Fault) -> bool {
        let Some(at) = self.taken.iter().position(|(of, _)| *of == fault) else {
            let has_room = self.taken.len() < ErrorSamples::MAX;
            self.taken.extend(has_room.then_some((fault, 1)));
            return has_room;
        };
        let taken = &mut self.taken[at].1;
        *taken += 1;
        *taken <= ErrorSamples::OF_EACH
    }
}

impl Client {
    /// Whether the next input on a connection is the first of what it awaits.
    pub(super) fn is_before_response(&self, k: Key) -> bool {
        if self.conns[k.index].state() != State::Busy {
            return true;
        }
        match self.job.protocol.server_may_speak() {
            true => self.conns.is_between_messages(k.index),
            false => !self.conns.at(self.conns.latest(k.index)).begun,
        }
    }

    /// Samples the response that was just found to be wrong, if it was: all of it that `input` has.
    pub(super) fn sample_wrong(&mut self, k: Key, now: Nanos, input: &[u8], from_start: bool) {
        if let Some((fault, status)) = self.errors.wrong.take() {
            self.sample(k, fault, (now, status), input, from_start);
        }
    }

    /// The session was refused: all of the refusal that `input` has is sampled.
    pub(super) fn refused<I: Io>(
        &mut self,
        cx: &mut Cx<I>,
        k: Key,
        status: u16,
        input: &[u8],
        from_start: bool,
    ) {
        self.tick.count_status(status);
        // Also after requests: it is the upgrade.
        let fault = Fault::target(Stage::Handshake, Kind::WrongStatus);
        self.sample(k, fault, (cx.now(), Some(status)), input, from_start);
        self.fail(cx, k, fault);
    }

    /// What came is no response: it is sampled.
    pub(super) fn unreadable<I: Io>(
        &mut self,
        cx: &mut Cx<I>,
        k: Key,
        failure: Failure,
        input: &[u8],
        from_start: bool,
    ) {
        let fault = failure.at(self.conns[k.index].state().stage());
        self.sample(k, fault, (cx.now(), None), input, from_start);
        self.fail(cx, k, fault);
    }

    fn sample(
        &mut self,
        k: Key,
        fault: Fault,
        (now, status): (Nanos, Option<u16>),
        input: &[u8],
        from_start: bool,
    ) {
        if !self.errors.takes(fault) {
            return;
        }
        let sample = ErrorSample::new(fault, now, status, input, &self.job.secrets(&self.source, k.index));
        self.tick.error_samples.add(if from_start { sample } else { sample.without_start() });
    }
}
