//! Counts connections that wait for acknowledgements in vain.

use super::Tcp;

/// After this many retransmissions without an acknowledgement, it is more than a single loss: at least 0.6 s have passed.
const LOST_FOR_GOOD: u8 = 2;

/// Numbers of connections that wait for an acknowledgement in vain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    /// Dials whose SYN was retransmitted.
    pub syns: u64,
    /// Connections whose first unacknowledged data was retransmitted twice or more.
    pub unacknowledged: u64,
}

impl Tcp {
    /// Counts stuck connections among the first `most` flights.
    pub fn stuck(&self, most: usize) -> Stuck {
        let mut stuck = Stuck::default();
        for (number, flight) in self.flights.iter().take(most) {
            let connection = self.table.get(flight.owner);
            // The flight of an ended connection keeps its last values until it is reused.
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
