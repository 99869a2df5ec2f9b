//! Which connections wait for acknowledgements in vain.

use super::Tcp;

/// Sent again so often without an acknowledgement, it is no single loss: 0.6 s at the least.
const LOST_FOR_GOOD: u8 = 2;

/// Connections that wait for an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    /// Those whose SYN was sent again.
    pub syns: u64,
    /// Those of which what was sent last was sent again twice or more.
    pub unacknowledged: u64,
}

impl Tcp {
    /// Those among `most` of the connections that have something under way.
    pub fn stuck(&self, most: usize) -> Stuck {
        let mut stuck = Stuck::default();
        for (number, flight) in self.flights.iter().take(most) {
            let connection = self.table.get(flight.owner);
            // What is over leaves its flight as it was.
            if connection.flight() != Some(number) {
                continue;
            }
            stuck.syns += u64::from(flight.syn && flight.tries > 0);
            let is_sent = !flight.syn && flight.una != connection.snd_nxt;
            stuck.unacknowledged += u64::from(is_sent && flight.tries >= LOST_FOR_GOOD);
        }
        stuck
    }
}
