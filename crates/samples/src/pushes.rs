//! Messages that a server pushes on WebSockets: the counts of a period, and the figures of a run. Broadcasts (numbered messages to all
//! receivers) are matched across shards by [`Receipts`].

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{
    encode,
    merge::{Merge, merged},
};

merged! {
    /// Messages of WebSockets that are no reply to one of ours, in a period.
    #[derive(Eq)]
    pub struct Pushes {
        /// Messages: unsolicited ones, and those that a step waited for.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub count: u64,
        /// Bytes of their payloads.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub bytes: u64,
        /// Bytes of the largest one.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub bytes_max: u64 => always most,
        /// Unsolicited ones that lack a time or a number which the scenario names, and for which it has no rule.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub unread: u64,
        /// Those with a time that is later than the clock of this host: their delay counts as zero.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub ahead: u64,
        /// Those with a number.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub numbered: u64,
        /// Numbers that were left out when a higher one came on the same WebSocket.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub skipped: u64,
        /// Numbers of these that came after all: late, and out of order.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub late: u64,
        /// Messages with a number that had come before on the same WebSocket.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub duplicates: u64,
        /// Messages whose number is so far below the last one that the sequence has begun anew.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub restarts: u64,
        /// Broadcasts: numbers that were sent to all receivers, with the outcome known.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub broadcasts: u64,
        /// Of those, the ones that all of them received.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub complete: u64,
        /// Connections open at its end that were opened so lately that what they receive may be history: they receive no broadcast yet.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub fresh: u64 => sum,
        /// Broadcasts whose outcome is not known: who received which number, and when; in what sinks are shown, none.
        #[serde(skip_serializing_if = "Receipts::is_empty")]
        #[cfg_attr(test, ts(type = "[number, number, number, number][]"))]
        pub receipts: Receipts,
    }
}

impl Pushes {
    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.broadcasts == 0 && self.receipts.is_empty()
    }
}

/// A numbered message, and how many connections received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, Nanos, Nanos, u64)", into = "(u64, Nanos, Nanos, u64)")]
pub struct Receipt {
    /// Its number.
    pub number: u64,
    /// When the first connection received it.
    pub first: Nanos,
    /// When the last connection received it.
    pub last: Nanos,
    /// How many connections received it. 0: it, or a higher number, was received only by connections opened so recently that it may be
    /// history.
    pub count: u64,
}

impl From<(u64, Nanos, Nanos, u64)> for Receipt {
    fn from((number, first, last, count): (u64, Nanos, Nanos, u64)) -> Receipt {
        Receipt { number, first, last, count }
    }
}

impl From<Receipt> for (u64, Nanos, Nanos, u64) {
    fn from(Receipt { number, first, last, count }: Receipt) -> Self {
        (number, first, last, count)
    }
}

/// The numbers received in a period, ascending. At most [`Receipts::MOST`] are kept, the lowest ones: a number that does not fit in a part
/// cannot be among the lowest of the whole, so the order of merging does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipts(Vec<Receipt>);

impl Receipts {
    /// Five per millisecond in a shard's tick; 32 KiB.
    pub const MOST: usize = 1024;

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The receipts, ascending by number.
    pub fn iter(&self) -> impl Iterator<Item = &Receipt> {
        self.0.iter()
    }

    /// Counts a number that one connection has received.
    pub fn record(&mut self, number: u64, at: Nanos) {
        self.add(Receipt { number, first: at, last: at, count: 1 });
    }

    /// Notes that recently opened connections have received numbers up to this one; it adds no receiver.
    pub fn record_early(&mut self, number: u64, at: Nanos) {
        self.add(Receipt { number, first: at, last: at, count: 0 });
    }

    /// Removes all receipts but keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Converts all times to another clock.
    pub(crate) fn translate(&mut self, to: impl Fn(Nanos) -> Nanos) {
        for it in &mut self.0 {
            (it.first, it.last) = (to(it.first), to(it.last));
        }
    }

    fn add(&mut self, other: Receipt) {
        // The usual case: the latest number again, or the next one.
        let at = match self.0.last() {
            Some(last) if last.number == other.number => Ok(self.0.len() - 1),
            Some(last) if last.number > other.number => {
                self.0.binary_search_by_key(&other.number, |it| it.number)
            }
            _ => Err(self.0.len()),
        };
        match at {
            Ok(at) => {
                let own = &mut self.0[at];
                (own.first, own.last) = (own.first.min(other.first), own.last.max(other.last));
                own.count += other.count;
            }
            Err(Receipts::MOST) => {}
            Err(at) => {
                self.0.truncate(Receipts::MOST - 1);
                if self.0.capacity() == 0 {
                    self.0.reserve_exact(Receipts::MOST);
                }
                self.0.insert(at, other);
            }
        }
    }
}

impl Merge for Receipts {
    fn merge(&mut self, other: &Receipts) {
        other.0.iter().for_each(|it| self.add(*it));
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

merged! {
    /// Messages that a server pushed on WebSockets, over the whole run.
    pub struct PushFigures {
        /// Unsolicited messages, and those that a step waited for.
        pub count: u64,
        /// The same per second of `elapsed_s`.
        pub per_s: f64,
        /// Bytes of their payloads.
        pub bytes: u64,
        /// Bytes of the largest one.
        pub bytes_max: u64 => always most,
        /// Messages without a time or a number that the scenario names.
        pub unread: u64,
        /// Messages with a time later than this host's clock: their delay counts as zero.
        pub ahead: u64,
        /// 0 if their timestamps are from this host's clock; null if that is not known, because the target is on another host.
        pub clock_offset_us: Option<f64> => always alone,
        /// Those with a number.
        pub numbered: u64,
        /// Numbers that were left out, and did not come later.
        pub lost: u64,
        /// Messages with a number that had come before on the same WebSocket.
        pub duplicates: u64,
        /// Messages that came after one with a higher number.
        pub out_of_order: u64,
        /// Sequences of numbers that restarted.
        pub restarts: u64,
        /// Broadcasts whose outcome is known.
        pub broadcasts: u64,
        /// Of those, the ones that all receivers have received.
        pub complete: u64,
    }
}

impl PushFigures {
    /// The figures of what was counted in `elapsed_s` seconds.
    pub fn new(counted: &Pushes, elapsed_s: f64) -> PushFigures {
        PushFigures {
            count: counted.count,
            per_s: if elapsed_s > 0.0 { counted.count as f64 / elapsed_s } else { 0.0 },
            bytes: counted.bytes,
            bytes_max: counted.bytes_max,
            unread: counted.unread,
            ahead: counted.ahead,
            clock_offset_us: None,
            numbered: counted.numbered,
            lost: counted.skipped.saturating_sub(counted.late),
            duplicates: counted.duplicates,
            out_of_order: counted.late,
            restarts: counted.restarts,
            broadcasts: counted.broadcasts,
            complete: counted.complete,
        }
    }

    /// Adds another population's figures.
    pub fn merge(&mut self, other: &PushFigures) {
        Merge::merge(self, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn receipts(of: &[(u64, u64)]) -> Receipts {
        let mut all = Receipts::default();
        of.iter().for_each(|(number, at)| all.record(*number, Nanos(*at)));
        all
    }

    #[test]
    fn a_number_has_its_first_and_its_last_receipt() {
        let mut all = receipts(&[(7, 50), (8, 60), (7, 40), (5, 1), (7, 70)]);
        all.merge(&receipts(&[(8, 55), (9, 2)]));
        let got: Vec<_> = all.iter().map(|it| (it.number, it.first.0, it.last.0, it.count)).collect();
        assert_eq!(got, [(5, 1, 1, 1), (7, 40, 70, 3), (8, 55, 60, 2), (9, 2, 2, 1)]);
        all.translate(|at| Nanos(at.0 + 100));
        assert_eq!(all.iter().next().map(|it| (it.first, it.last)), Some((Nanos(101), Nanos(101))));
        let text = serde_json::to_string(&all).unwrap();
        assert!(text.starts_with("[[5,101,101,1],[7,140,170,3]"), "{text}");
        assert_eq!(serde_json::from_str::<Receipts>(&text).unwrap(), all);
    }

    #[test]
    fn of_more_numbers_than_there_is_room_for_the_lowest_stay() {
        let most = Receipts::MOST as u64;
        let mut all = receipts(&(1..=most).map(|n| (2 * n, n)).collect::<Vec<_>>());
        all.record(2 * most + 1, Nanos(1));
        assert_eq!((all.iter().count(), all.iter().last().unwrap().number), (Receipts::MOST, 2 * most));
        all.record(1, Nanos(1));
        assert_eq!((all.iter().count(), all.iter().last().unwrap().number), (Receipts::MOST, 2 * most - 2));
        all.record(2 * most - 2, Nanos(9_999));
        assert_eq!(all.iter().last().unwrap().count, 2);
    }

    #[test]
    fn what_was_left_out_and_came_later_is_not_lost() {
        let counted = Pushes {
            count: 100,
            bytes: 5_000,
            bytes_max: 80,
            unread: 3,
            ahead: 2,
            numbered: 90,
            skipped: 11,
            late: 4,
            duplicates: 5,
            restarts: 1,
            fresh: 0,
            broadcasts: 9,
            complete: 8,
            receipts: Receipts::default(),
        };
        let mut figures = PushFigures::new(&counted, 4.0);
        assert_eq!((figures.count, figures.per_s, figures.bytes, figures.bytes_max), (100, 25.0, 5_000, 80));
        assert_eq!((figures.unread, figures.ahead, figures.numbered), (3, 2, 90));
        assert_eq!((figures.lost, figures.out_of_order, figures.duplicates), (7, 4, 5));
        assert_eq!((figures.restarts, figures.broadcasts, figures.complete), (1, 9, 8));
        figures.merge(&PushFigures { bytes_max: 90, ..figures.clone() });
        assert_eq!((figures.count, figures.per_s, figures.bytes_max, figures.lost), (200, 50.0, 90, 14));
        assert_eq!(PushFigures::new(&counted, 0.0).per_s, 0.0);
    }

    proptest! {
        /// Whatever order parts come in, also where there are more numbers than there is room for.
        #[test]
        fn receipts_merge_in_any_order(
            a in parts(), b in parts(), c in parts(), far in 0u64..3,
        ) {
            let shift = |part: Vec<(u64, u64)>, by: u64| -> Receipts {
                let filled = (0..Receipts::MOST as u64 / 2).map(|n| (n * 3 + by, n));
                receipts(&filled.chain(part).collect::<Vec<_>>())
            };
            let [a, b, c] = [shift(a, 0), shift(b, far), shift(c, 1)];
            let mut left = a.clone();
            left.merge(&b);
            left.merge(&c);
            let mut right = c;
            right.merge(&b);
            right.merge(&a);
            prop_assert_eq!(left, right);
        }
    }

    fn parts() -> impl Strategy<Value = Vec<(u64, u64)>> {
        proptest::collection::vec((0u64..4_000, 0u64..1 << 40), 0..40)
    }
}
