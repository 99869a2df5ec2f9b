//! Samples of wrong responses: a few of each fault, for the whole run.

use net::{Cx, Io, Key};
use samples::{Detail, ErrorSample, ErrorSamples, Fault, Kind, Stage};
use units::Nanos;

use super::Client;
use crate::{connections::State, failure::Failure};

/// Which samples a shard has taken, and what is still to be sampled.
pub(super) struct ErrorSampler {
    /// Of each fault how many.
    taken: Vec<(Fault, usize)>,
    /// The complete response that was just found to be wrong, and its status.
    wrong: Option<(Fault, Option<u16>)>,
    /// What its server said in words, where its bytes are no sample of it.
    said: Vec<u8>,
    /// Why the redirect that was just received is not followed.
    not_followed: Detail,
    /// A reply that has begun otherwise than expected: its connection, and its first bytes.
    begun: (Option<Key>, Vec<u8>),
}

impl ErrorSampler {
    pub(super) fn new() -> ErrorSampler {
        let bytes = || Vec::with_capacity(ErrorSample::BYTES);
        ErrorSampler {
            taken: Vec::with_capacity(ErrorSamples::MAX),
            wrong: None,
            said: bytes(),
            not_followed: Detail::NONE,
            begun: (None, bytes()),
        }
    }

    /// A redirect was to be followed, and is not.
    pub(super) fn not_followed(&mut self, why: Detail) {
        self.not_followed = why;
    }

    /// Why the response that was just received was not followed; none where it was not to be.
    pub(super) fn take_not_followed(&mut self) -> Detail {
        std::mem::replace(&mut self.not_followed, Detail::NONE)
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
            false => !self.conns.at(self.conns.latest(k.index)).begun.has(),
        }
    }

    /// Samples the response that was just found to be wrong, if it was: all of it that `input` has.
    pub(super) fn sample_wrong(&mut self, k: Key, now: Nanos, input: &[u8], from_start: bool) {
        if let Some((fault, status)) = self.errors.wrong.take() {
            let said = std::mem::take(&mut self.errors.said);
            let (input, from_start) = if said.is_empty() { (input, from_start) } else { (&said[..], true) };
            self.sample(k, fault, (now, status), input, from_start);
            self.errors.said = said;
        }
    }

    /// The complete response on the connection at `index` is wrong.
    pub(super) fn note_wrong(&mut self, index: u32, fault: Fault, status: Option<u16>) {
        let Client { conns, errors, .. } = self;
        errors.wrong = Some((fault, status));
        errors.said.clear();
        errors.said.extend(conns.find_session(index).map(|session| session.said()).unwrap_or_default());
    }

    /// Part of a reply has come, and the reply is not complete: kept where it is already known to be wrong, for there may be no more of it.
    /// So is what came before a request, of a protocol in which the server is not the first to speak.
    pub(super) fn note_begun(&mut self, k: Key, piece: &[u8]) {
        let is_wrong = match self.conns[k.index].state() {
            State::Busy => self.conns.at(self.conns.latest(k.index)).differs,
            _ => !self.job.is_http2() && !self.job.protocol.server_may_speak(),
        };
        let (of, bytes) = &mut self.errors.begun;
        if !is_wrong || piece.is_empty() || *of == Some(k) {
            return;
        }
        *of = Some(k);
        bytes.clear();
        bytes.extend(piece.iter().take(ErrorSample::BYTES));
    }

    /// What is awaited on a connection does not come in time: what has come of it is sampled.
    pub(super) fn sample_begun<I: Io>(&mut self, cx: &Cx<I>, k: Key, fault: Fault) {
        let begun = self.errors.begun.0.take_if(|of| *of == k).map(|_| self.errors.begun.1.clone());
        let unsealed = self.layer.as_ref().map(|layered| layered.leftover(k.index));
        let left = [cx.leftover(k), unsealed.unwrap_or_default()].into_iter().find(|left| !left.is_empty());
        if let Some(bytes) = left.map(<[u8]>::to_vec).or(begun) {
            self.sample_words(k, fault, cx.now(), &bytes);
        }
    }

    /// A connection is lost that the server ended: what it said of that is sampled.
    pub(super) fn sample_farewell(&mut self, k: Key, fault: Fault, now: Nanos) {
        if matches!(fault.kind, Kind::Closed | Kind::Reset) {
            let session = self.conns.find_session(k.index);
            let words = session.map(|session| session.farewell().to_vec()).unwrap_or_default();
            self.sample_words(k, fault, now, &words);
        }
    }

    /// What came is sampled, if anything did.
    pub(super) fn sample_words(&mut self, k: Key, fault: Fault, now: Nanos, words: &[u8]) {
        if !words.is_empty() {
            self.sample(k, fault, (now, None), words, true);
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
