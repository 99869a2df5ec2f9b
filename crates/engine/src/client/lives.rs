//! What may explain why connections end: how many responses each one received, and how long the remaining ones have been silent.

use net::Key;
use units::Nanos;

use super::Client;
use crate::connections::State;

/// Number of connections of a shard whose responses are counted, two bytes each: enough to show a pattern.
const MOST: u32 = 4096;

/// Number of responses of each connection with an index below [`MOST`].
pub(super) struct Lives(Vec<u16>);

impl Lives {
    pub(super) fn new(places: u32) -> Lives {
        Lives(vec![0; places.min(MOST) as usize])
    }

    pub(super) fn begin(&mut self, k: Key) {
        if let Some(responses) = self.0.get_mut(k.index as usize) {
            *responses = 0;
        }
    }

    pub(super) fn count(&mut self, k: Key) {
        if let Some(responses) = self.0.get_mut(k.index as usize) {
            *responses = responses.saturating_add(1);
        }
    }

    /// `None` if they are not counted, or exceed the counter.
    pub(super) fn responses(&self, index: u32) -> Option<u64> {
        let responses = self.0.get(index as usize).copied();
        responses.filter(|n| *n < u16::MAX).map(u64::from)
    }
}

impl Client {
    /// The longest silence of the idle connections. Scans all of them, some nanoseconds each, so it is called only at the end of
    /// full load.
    pub(super) fn longest_silence(&self, now: Nanos) -> Nanos {
        let idle = self.conns.iter_in(State::Idle);
        idle.map(|(_, conn)| conn.silent_for(now)).max().unwrap_or(Nanos::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_counted_from_the_opening_on() {
        let mut lives = Lives::new(MOST + 9);
        let key = |index| Key { index, turn: 0 };
        (0..10).for_each(|_| lives.count(key(7)));
        lives.count(key(MOST));
        let counted = [7, 8, MOST].map(|index| lives.responses(index));
        assert_eq!(counted, [Some(10), Some(0), None]);
        lives.begin(key(7));
        assert_eq!(lives.responses(7), Some(0));
        (0..70_000).for_each(|_| lives.count(key(8)));
        assert_eq!(lives.responses(8), None, "not known any more");
    }
}
