//! Equal load: seconds of different runs in which about the same number of connections was open.

use std::ops::RangeInclusive;

use samples::{Latency, Tick};

/// A number of connections that every run reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EqualLoad(u64);

impl EqualLoad {
    /// The minimum of the runs' peaks; `None` if a run had no connection.
    pub fn of(most: impl IntoIterator<Item = u64>) -> Option<EqualLoad> {
        most.into_iter().min().filter(|n| *n > 0).map(EqualLoad)
    }

    /// The number of connections.
    pub fn connections(self) -> u64 {
        self.0
    }

    /// The numbers that count as equal: within 5 %.
    pub fn range(self) -> RangeInclusive<u64> {
        let part = self.0 / 20;
        self.0 - part..=self.0 + part
    }

    /// Adds the responses of a tick, in the ramp and at full load, if it was at this load both at its end and on average. A second in which
    /// the ramp merely passes this load does not count.
    pub fn add(self, tick: &Tick, latency: &mut Latency) {
        let period = u128::from(tick.until.since(tick.from).0);
        let average = tick.open_ns.checked_div(period).unwrap_or(0);
        // Rounded, because connections open all the time yield slightly less than their number.
        let average = (average + u128::from((tick.open_ns % period.max(1)) * 2 >= period.max(1))) as u64;
        if self.range().contains(&tick.open) && self.range().contains(&average) {
            latency.merge(&tick.latency);
            latency.merge(&tick.ramp_latency);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    #[test]
    fn the_load_is_what_every_run_held() {
        assert_eq!(EqualLoad::of([500, 200, 1_000]), Some(EqualLoad(200)));
        assert_eq!(EqualLoad::of([500, 0]), None);
        assert_eq!(EqualLoad::of([]), None);
        assert_eq!((EqualLoad(200).range(), EqualLoad(3).range()), (190..=210, 3..=3));
    }

    /// Checks the number of counted responses for a second with these connections at its end and on average.
    fn check(open: u64, average: f64, expected: u64) {
        let second = Nanos::from_secs(1);
        let open_ns = (average * 1e9) as u128;
        let mut tick = Tick { from: second, until: Nanos::from_secs(2), open, open_ns, ..Tick::default() };
        tick.latency.record(Nanos::from_millis(1));
        tick.ramp_latency.record(Nanos::from_millis(2));
        let mut latency = Latency::default();
        EqualLoad(200).add(&tick, &mut latency);
        assert_eq!(latency.count(), expected, "{open} {average}");
    }

    #[test]
    fn a_second_counts_where_the_load_was_there_all_the_time() {
        check(200, 200.0, 2);
        check(190, 189.6, 2);
        check(210, 200.0, 2);
        check(189, 200.0, 0);
        check(211, 200.0, 0);
        // The ramp began in this second, or passed the load.
        check(200, 100.0, 0);
        check(200, 0.0, 0);
        EqualLoad(200).add(&Tick::default(), &mut Latency::default());
    }
}
