//! Breakdown of ended requests by what they may have in common (destination, source address, connection, step, size, …): the one
//! place that counts them.

use std::net::IpAddr;

use plan::Part;
use samples::breakdown::{Buckets, Dimension, Outcome, cell};
use units::Nanos;

use super::Client;
use crate::exchange::Exchange;

/// Number of connections of a shard, from index 0, whose local addresses are kept, a byte each.
const MOST: u32 = 4096;

/// A longer pause means that the last input came after the request was sent: the clock of [`Conn`](crate::connections::Conn)
/// wraps in 14 hours.
const LONGEST_PAUSE: Nanos = Nanos::from_secs(12 * 3_600);

/// The shard's share of the buckets, and what assigns its connections to them.
pub(super) struct Sampled {
    /// The shard's buckets of [`Dimension::Connection`]: the first one, and their number.
    first: usize,
    width: usize,
    /// Seed of the assignment of connections to groups.
    seed: u64,
    /// The last four bits of each connection's local address, by index.
    sources: Vec<u8>,
    /// Eighths of the shard's places per connection: 8 ÷ places.
    eighths: f32,
    /// False for the probe, whose requests are not part of the load.
    is_load: bool,
}

impl Sampled {
    pub(super) fn new(part: &Part, is_load: bool) -> Sampled {
        let buckets = Dimension::Connection.buckets() as u64;
        let shards = u64::from(part.shards.max(1));
        // The shards share the buckets equally; each has at least one.
        let slice = [part.slice.from, part.slice.width, part.slice.of].map(u64::from);
        let from = slice[0] * shards + slice[1] * u64::from(part.shard);
        let place = |at: u64| (buckets * at / (slice[2] * shards).max(1)) as usize;
        let (first, end) = (place(from), place(from + slice[1]));
        Sampled {
            first: first.min(buckets as usize - 1),
            width: (end - first).max(1),
            seed: part.seed,
            sources: vec![0; part.places.min(MOST) as usize],
            eighths: 8.0 / part.places.max(1) as f32,
            is_load,
        }
    }

    /// The bucket of a connection that has one to itself; `None` for the others.
    fn connection(&self, index: u32) -> Option<usize> {
        let index = index as usize;
        (index < self.width).then_some(self.first + index)
    }

    /// The group of a connection: constant, and pseudo-random (Fibonacci hashing, Knuth, TAOCP volume 3, section 6.4).
    fn group(&self, index: u32) -> usize {
        let hash = (u64::from(index) ^ self.seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        const { assert!(Dimension::Group.buckets() == 1 << 6) };
        (hash >> (u64::BITS - 6)) as usize
    }

    /// Notes the local address of a dialled connection.
    pub(super) fn dialled(&mut self, index: u32, from: IpAddr) {
        let last = match from {
            IpAddr::V4(from) => from.octets()[3],
            IpAddr::V6(from) => from.octets()[15],
        };
        self.sources.get_mut(index as usize).into_iter().for_each(|own| *own = last & 0xF);
    }
}

impl Client {
    /// Counts an ended request; `size`: bytes of its response, if that is complete.
    pub(super) fn break_down(
        &mut self,
        exchange: &Exchange,
        index: u32,
        size: Option<u64>,
        outcome: Outcome,
    ) {
        if !self.sampled.is_load {
            return;
        }
        let mut buckets = Buckets::NONE;
        let mut set = |dimension, bucket: Option<usize>| {
            bucket.into_iter().for_each(|bucket| buckets.set(dimension, bucket));
        };
        set(Dimension::Destination, self.job.row(self.conns[index].destination));
        set(Dimension::Source, self.sampled.sources.get(index as usize).map(|last| usize::from(*last)));
        set(Dimension::Connection, self.sampled.connection(index));
        set(Dimension::Group, Some(self.sampled.group(index)));
        let eighths = self.sampled.eighths * self.conns.open().saturating_sub(1) as f32;
        set(Dimension::Open, Some(eighths as usize));
        // A request without a response is numbered after the responses before it.
        let number = self.lives.responses(index).map(|n| n + u64::from(size.is_none()));
        set(Dimension::Number, number.map(octave));
        set(Dimension::Step, Some(self.job.step_of_plan(exchange.at)));
        // In units of 64 bytes.
        set(Dimension::Size, size.map(|bytes| octave(bytes.div_ceil(64))));
        set(Dimension::FirstByte, exchange.begun.cell().filter(|_| size.is_some()));
        // Only complete responses count as input; with concurrent requests, another response may have come after this request was
        // sent.
        let pause = self.conns[index].silent_for(exchange.started);
        set(Dimension::Pause, Some(cell(pause)).filter(|_| pause < LONGEST_PAUSE));
        self.tick.breakdown.count(buckets, outcome);
    }
}

/// The exponent of the power of two that `n` rounds up to: 0 for 0 and 1, 1 for 2, 2 for 3 and 4, 3 for 5 to 8, and so on.
fn octave(n: u64) -> usize {
    (u64::BITS - n.saturating_sub(1).leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Role, Slice, TupleShare};

    fn part(slice: Slice, shard: u32, shards: u32) -> Part {
        let role = Role::Population(0);
        let tuple_share = TupleShare::ALL;
        Part {
            role,
            slice,
            shard,
            shards,
            connections: 100,
            places: 100,
            requests: None,
            seed: 7,
            tuple_share,
        }
    }

    fn sampled(slice: Slice, shard: u32, shards: u32) -> (usize, usize) {
        let Sampled { first, width, .. } = Sampled::new(&part(slice, shard, shards), true);
        (first, width)
    }

    #[test]
    fn octaves_are_up_to_a_power_of_two() {
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 9, 1 << 40].map(octave), [0, 0, 1, 2, 2, 3, 3, 4, 40]);
    }

    #[test]
    fn shards_share_the_buckets_for_connections() {
        assert_eq!(sampled(Slice::WHOLE, 0, 1), (0, 64));
        assert_eq!([0, 1, 2].map(|shard| sampled(Slice::WHOLE, shard, 3)), [(0, 21), (21, 21), (42, 22)]);
        assert_eq!(sampled(Slice::WHOLE, 199, 200), (63, 1));
        let half = Slice { from: 1, width: 1, of: 2 };
        assert_eq!([0, 1].map(|shard| sampled(half, shard, 2)), [(32, 16), (48, 16)]);
    }
}
