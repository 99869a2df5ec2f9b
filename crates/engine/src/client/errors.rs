//! Samples of wrong responses, for error reports: a few per fault over the whole run.

use net::{Cx, Io, Key};
use samples::{Detail, ErrorSample, ErrorSamples, Fault, Kind, Stage};
use units::Nanos;

use super::Client;
use crate::{connections::State, failure::Failure, protocol::Speaks};

/// Which samples a shard has taken, and what is to be sampled next.
pub(super) struct ErrorSampler {
    /// Number of samples taken of each fault.
    taken: Vec<(Fault, usize)>,
    /// The complete response just found wrong: its fault and its status.
    wrong: Option<(Fault, Option<u16>)>,
    /// The server's error message in words, if the bytes of the response do not show it.
    said: Vec<u8>,
    /// Why the redirect just received is not followed.
    not_followed: Detail,
    /// An incomplete reply already known to be wrong: its connection and first bytes.
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

    /// Notes why a redirect that should be followed is not.
    pub(super) fn not_followed(&mut self, why: Detail) {
        self.not_followed = why;
    }

    /// Why the response just received was not followed; `NONE` if it was not to be.
    pub(super) fn take_not_followed(&mut self) -> Detail {
        std::mem::replace(&mut self.not_followed, Detail::NONE)
    }

    /// Whether one more sample of this fault is wanted; counts it.
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
    /// Whether the next input on a connection is the beginning of what it awaits.
    pub(super) fn is_before_response(&self, k: Key) -> bool {
        if self.conns[k.index].state() != State::Busy {
            return true;
        }
        match self.job.protocol.properties().server_may_speak {
            true => self.conns.is_between_messages(k.index),
            false => !self.conns.at(self.conns.latest(k.index)).begun.has(),
        }
    }

    /// Samples the response just found wrong, if any: as much of it as `input` holds. `from_start`: `input` includes its
    /// beginning.
    pub(super) fn sample_wrong(&mut self, k: Key, now: Nanos, input: &[u8], from_start: bool) {
        if let Some((fault, status)) = self.errors.wrong.take() {
            let said = std::mem::take(&mut self.errors.said);
            let (input, from_start) = if said.is_empty() { (input, from_start) } else { (&said[..], true) };
            self.sample(k, fault, (now, status), input, from_start);
            self.errors.said = said;
        }
    }

    /// Notes that the complete response on the connection at `index` is wrong.
    pub(super) fn note_wrong(&mut self, index: u32, fault: Fault, status: Option<u16>) {
        let Client { conns, errors, magnifier, .. } = self;
        magnifier.saw(fault);
        errors.wrong = Some((fault, status));
        errors.said.clear();
        errors.said.extend(conns.find_session(index).map(|session| session.said()).unwrap_or_default());
    }

    /// Keeps the first bytes of an incomplete reply that is already known to be wrong, since the rest may never come; and those
    /// of input before a request, in protocols where the server does not speak first.
    pub(super) fn note_begun(&mut self, k: Key, piece: &[u8]) {
        let is_wrong = match self.conns[k.index].state() {
            State::Busy => self.conns.at(self.conns.latest(k.index)).differs,
            _ => !self.job.is_http2() && !self.job.protocol.properties().server_may_speak,
        };
        let (of, bytes) = &mut self.errors.begun;
        if !is_wrong || piece.is_empty() || *of == Some(k) {
            return;
        }
        *of = Some(k);
        bytes.clear();
        bytes.extend(piece.iter().take(ErrorSample::BYTES));
    }

    /// Samples the part that has arrived of what a connection awaited when it timed out.
    pub(super) fn sample_begun<I: Io>(&mut self, cx: &Cx<I>, k: Key, fault: Fault) {
        let begun = self.errors.begun.0.take_if(|of| *of == k).map(|_| self.errors.begun.1.clone());
        let unsealed = self.transport.layer.as_ref().map(|layered| layered.leftover(k.index));
        let left = [cx.leftover(k), unsealed.unwrap_or_default()].into_iter().find(|left| !left.is_empty());
        if let Some(bytes) = left.map(<[u8]>::to_vec).or(begun) {
            self.sample_words(k, fault, cx.now(), &bytes);
        }
    }

    /// Samples the server's closing message when a connection is lost because the server ended it.
    pub(super) fn sample_farewell(&mut self, k: Key, fault: Fault, now: Nanos) {
        if matches!(fault.kind, Kind::Closed | Kind::Reset) {
            let session = self.conns.find_session(k.index);
            let words = session.map(|session| session.farewell().to_vec()).unwrap_or_default();
            self.sample_words(k, fault, now, &words);
        }
    }

    /// Samples these bytes, unless empty.
    pub(super) fn sample_words(&mut self, k: Key, fault: Fault, now: Nanos, words: &[u8]) {
        if !words.is_empty() {
            self.sample(k, fault, (now, None), words, true);
        }
    }

    /// The server refused the session: samples as much of the refusal as `input` holds.
    pub(super) fn refused<I: Io>(
        &mut self,
        cx: &mut Cx<I>,
        k: Key,
        status: u16,
        input: &[u8],
        from_start: bool,
    ) {
        self.tick.count_status(status);
        // The upgrade was refused, even if requests came before it.
        let fault = Fault::target(Stage::Handshake, Kind::WrongStatus);
        self.sample(k, fault, (cx.now(), Some(status)), input, from_start);
        self.fail(cx, k, fault);
    }

    /// The input is not a response: samples it.
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
