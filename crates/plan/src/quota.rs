//! Totals of requests, and how slices and shards divide them.

use crate::{Load, Part, Plan, Population, Role, Slice, part::split_long};

/// The total of requests of a population. Divided in proportion to connections; for a rate, in proportion to slices, and equally among the
/// shards of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    requests: u64,
    /// `None` for a rate.
    connections: Option<u32>,
}

impl Population {
    /// Its total of requests; `None` without one.
    pub fn quota(&self) -> Option<Quota> {
        let connections = match self.load {
            Load::Rate { .. } => None,
            load => Some(load.connections()),
        };
        self.requests.map(|requests| Quota { requests, connections })
    }

    /// The total of a slice, if the load ends by a number: of requests, or of arrivals.
    pub fn number(&self, slice: Slice) -> Option<u64> {
        match self.load {
            Load::Arrivals { total, .. } => total.map(|total| u64::from(slice.of(total))),
            _ => self.quota().map(|quota| quota.of(slice)),
        }
    }
}

impl Quota {
    /// The part of a slice; the parts of all slices sum to the whole.
    pub fn of(self, slice: Slice) -> u64 {
        match self.connections {
            None => slice.of_long(self.requests),
            Some(all) => share_of(self.requests, (slice.before(all), slice.of(all)), all),
        }
    }

    /// The part of a shard of a slice; `connections`: index of the first one within the population, and their number.
    pub(crate) fn of_shard(self, slice: Slice, shard: (u32, u32), connections: (u32, u32)) -> u64 {
        match self.connections {
            None => split_long(self.of(slice), shard),
            Some(all) => share_of(self.requests, connections, all),
        }
    }
}

impl Plan {
    /// Replaces the [totals](Population::number) of these parts: `left` has one entry per population, which its parts divide as they divide
    /// the plan's total; `None` keeps the parts unchanged.
    pub fn with_left(&self, parts: Vec<Part>, left: &[Option<u64>]) -> Vec<Part> {
        let connections_of =
            |role| parts.iter().filter(|part| part.role == role).map(|part| part.connections).sum::<u32>();
        let mut before = vec![0; left.len()];
        let with = |part: &Part| {
            let Role::Population(nth) = part.role else { return *part };
            let at = usize::from(nth);
            let Some(all) = left.get(at).copied().flatten() else { return *part };
            let own = match self.populations[at].load {
                Load::Rate { .. } | Load::Arrivals { .. } => split_long(all, (part.shard, part.shards)),
                Load::Held { .. } => {
                    share_of(all, (before[at], part.connections), connections_of(part.role).max(1))
                }
            };
            before[at] += part.connections;
            if self.populations[at].load.arrival_rate().is_none() {
                return Part { requests: Some(own), ..*part };
            }
            let connections = u32::try_from(own).unwrap_or(u32::MAX);
            Part { connections, places: part.places.min(connections), ..*part }
        };
        parts.iter().map(with).collect()
    }
}

/// The part of `n` for `width` of `all` connections, from `from` on; all parts sum to `n`. 0 if there are no connections, as on a machine
/// without any.
fn share_of(n: u64, (from, width): (u32, u32), all: u32) -> u64 {
    if all == 0 {
        return 0;
    }
    let up_to = |connection: u32| (u128::from(n) * u128::from(connection) / u128::from(all)) as u64;
    up_to(from + width) - up_to(from)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use crate::tests::plan;

    use super::*;

    /// With 2 connections on three machines, one has none.
    #[test]
    fn a_machine_without_a_connection_sends_nothing() {
        let flags = [("-c", "2"), ("-n", "20"), ("--rate", "5/s")];
        for flags in [&flags[..2], &flags] {
            let whole = plan(flags);
            let none = Slice { from: 0, width: 0, of: 2 };
            let own = whole.sliced(&[none], false);
            let is_idle = |part: &Part| part.connections == 0 && part.places == 0;
            assert!(own.parts(|_| 3).iter().all(is_idle), "{flags:?}");
            assert_eq!(own.pairs_needed(), 0, "{flags:?}");
            assert_eq!(whole.populations[0].quota().unwrap().of(none), 0);
            assert!(whole.parts_of(&[none], false, |_| 3).is_empty());
        }
        let own = plan(&[("-c", "2"), ("-n", "20")]).sliced(&[Slice { from: 2, width: 0, of: 2 }], false);
        assert!(own.parts(|_| 3).iter().all(|part| part.requests == Some(0)));
        assert_eq!(own.populations[0].quota().unwrap().of(Slice::WHOLE), 0);
    }

    proptest! {
        /// With an unchanged total the parts stay the same; with another, the shards divide that total fairly.
        #[test]
        fn shards_share_another_number_as_their_own(
            n in 1u64..1 << 50, left in 0u64..1 << 50, widths in vec(1u32..5_000, 1..6), shards in 1u32..9, has_rate: bool
        ) {
            let connections: u32 = widths.iter().sum();
            let (connections, n_text) = (connections.to_string(), n.to_string());
            let rate = [("--rate", "5/s")];
            let mut flags = vec![("-c", &*connections), ("-n", &*n_text)];
            flags.extend(rate.iter().filter(|_| has_rate));
            let plan = plan(&flags);
            let quota = plan.populations[0].quota().unwrap();
            let (mut from, mut sum) = (0, 0);
            for &width in &widths {
                let slice = Slice { from, width, of: widths.iter().sum() };
                from += width;
                let parts = plan.parts_of(&[slice], false, |_| shards);
                let all = |parts: &[Part]| parts.iter().map(|part| part.requests.unwrap()).sum::<u64>();
                prop_assert_eq!(all(&parts), quota.of(slice));
                sum += quota.of(slice);
                prop_assert_eq!(&plan.with_left(parts.clone(), &[None]), &parts);
                let others = plan.with_left(parts.clone(), &[Some(left)]);
                prop_assert_eq!(all(&others), left);
                for part in &others {
                    let share = if has_rate { 1.0 / f64::from(shards) } else { f64::from(part.connections) / f64::from(width) };
                    let fair = left as f64 * share;
                    prop_assert!((part.requests.unwrap() as f64 - fair).abs() < 1.01 + fair * 1e-12, "{:?} of {}", part, left);
                }
            }
            prop_assert_eq!(sum, n);
        }
    }
}
