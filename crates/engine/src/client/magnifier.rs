//! The magnifier: once a fault has been seen, looks at one exchange after another as a whole, until one has ended with that fault. It
//! becomes the fault's example.
//!
//! At any time one exchange of a shard is looked at, so that a run with faults costs hardly more than one without; a run without
//! faults costs nothing. A rare fault may never be caught; its first bytes are sampled in any case ([`super::errors`]).

use net::Key;
use samples::{
    Example, Examples, Fault, Kind, Side, Stage,
    transcript::{Entry, Transcript},
};
use units::Nanos;

use super::Client;
use crate::transcriber::Transcriber;

/// Maximum number of exchanges that are looked at in vain before the magnifier gives up.
const MOST: u32 = 100_000;

/// Which faults need an example, and which have one.
pub(super) struct Magnifier {
    faults: Vec<(Side, Stage, Kind, bool)>,
    /// Number of faults without an example.
    wanted: u32,
    left: u32,
}

impl Magnifier {
    pub(super) fn new() -> Magnifier {
        Magnifier { faults: Vec::new(), wanted: 0, left: MOST }
    }

    /// A fault has been counted.
    pub(super) fn saw(&mut self, fault: Fault) {
        let Fault { side, stage, kind, .. } = fault;
        let is_known = self.faults.iter().any(|(a, b, c, _)| (*a, *b, *c) == (side, stage, kind));
        // Before an exchange, there is nothing to look at.
        if !is_known && self.faults.len() < Examples::MAX && stage >= Stage::Exchange {
            self.faults.push((side, stage, kind, false));
            self.wanted += 1;
        }
    }

    /// Whether an example of this fault is wanted; if so, it has one from now on.
    fn takes(&mut self, fault: Fault) -> bool {
        let Fault { side, stage, kind, .. } = fault;
        let own = self.faults.iter_mut().find(|(a, b, c, _)| (*a, *b, *c) == (side, stage, kind));
        let Some((.., has_one)) = own.filter(|(.., has_one)| !has_one) else { return false };
        *has_one = true;
        self.wanted -= 1;
        true
    }
}

impl Client {
    /// A step begins on a connection: looks at it, if examples are wanted and nothing else is looked at. Returns whether it does.
    pub(super) fn magnify(&mut self, k: Key) -> bool {
        let Magnifier { wanted, left, .. } = &mut self.magnifier;
        // With several requests at once on a connection, their bytes would be mixed.
        if *wanted == 0 || *left == 0 || self.transport.transcriber.is_some() || self.job.tunnels > 1 {
            return false;
        }
        *left -= 1;
        self.transport.transcriber = Some(Box::new(Transcriber::of_exchange(k.index)));
        true
    }

    /// The exchange that is looked at has ended; in a run, it is kept if it has a wanted fault.
    pub(super) fn magnified(&mut self, fault: Option<Fault>, now: Nanos) {
        let transcriber = self.transport.transcriber.take_if(|transcriber| transcriber.is_of_exchange());
        let Some(transcriber) = transcriber else { return };
        if let Some(fault) = fault.filter(|fault| self.magnifier.takes(*fault)) {
            let example = Example::new(fault, now, self.lines(&transcriber.entries()));
            self.tick.examples.add(example);
        }
    }

    fn lines(&self, entries: &[Entry]) -> String {
        let mut transcript = Transcript::new(self.job.step_names.clone(), false);
        entries.iter().map(|entry| transcript.text(entry)).collect::<String>().trim_start().to_owned()
    }
}
