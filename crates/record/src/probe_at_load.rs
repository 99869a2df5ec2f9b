//! The probe at full load: its responses that came only after the load had ended count as missing, because a server with a fixed number of
//! connections at a time answers them only when the load makes room.

use crate::tolerances::FEW;
use samples::{Latency, Probe};
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Fewer late responses than 1/`PART` of those in time are chance.
const PART: u64 = 2;
/// If all responses are slow, some of the last ones come after the end although they waited no longer than the others. Late responses must
/// have waited at least this many times as long as usual, and this much longer.
const TIMES: u64 = 5;
const MORE: Nanos = Nanos::from_millis(20);

/// The probe's figures before the load ended.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeAtLoad {
    answered: u64,
    kept: Latency,
    fresh: Latency,
    held: Latency,
}

impl ProbeAtLoad {
    /// Adds figures from before the end of the load.
    pub fn take(&mut self, probe: &Probe) {
        self.answered += probe.answered;
        self.kept.merge(&probe.kept);
        self.fresh.merge(&probe.fresh);
        self.held.merge(&probe.held);
    }

    /// The probe's figures at full load, if its late responses were served by the end of the load; `all`: its figures including late
    /// responses. `None` if the end of the load made no difference.
    pub fn of(&self, all: &Probe) -> Option<Probe> {
        let (in_time, total) = (self.held.count(), all.held.count());
        let late = total.saturating_sub(in_time);
        // If late responses waited longer, they are the longest of all, and this is their median.
        let waited = all.held.quantile(1.0 - late as f64 / (2 * total.max(1)) as f64);
        let usual = self.held.quantile(0.5);
        let is_longer = waited > Nanos(usual.0 * TIMES).max(usual + MORE);
        if late < FEW || late * PART < in_time || in_time > 0 && !is_longer {
            return None;
        }
        let late = all.answered.saturating_sub(self.answered);
        Some(Probe {
            answered: all.answered - late,
            failed: all.failed + late,
            kept: unserved(&self.kept, &all.kept),
            fresh: unserved(&self.fresh, &all.fresh),
            held: unserved(&self.held, &all.held),
            ..all.clone()
        })
    }
}

/// All of these times; late ones are censored.
fn unserved(in_time: &Latency, all: &Latency) -> Latency {
    let [known, total] = [in_time, all].map(|times| times.count() + times.censored());
    let mut times = in_time.clone();
    (known..total).for_each(|_| times.censor());
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds responses of fresh and of kept connections at full load, in milliseconds.
    fn add(probe: &mut Probe, fresh_ms: &[u64], kept_ms: &[u64]) {
        let Probe { fresh, kept, held, answered, .. } = probe;
        for (times, responses) in [(fresh, fresh_ms), (kept, kept_ms)] {
            for time in responses.iter().map(|ms| Nanos::from_millis(*ms)) {
                times.record(time);
                held.record(time);
                *answered += 1;
            }
        }
    }

    /// The remaining responses of fresh and kept connections, and the number without response, given responses in time and late ones.
    fn check(in_time: [&[u64]; 2], late: [&[u64]; 2], expected: Option<[u64; 3]>) {
        let (mut probe, mut at_load) = (Probe::default(), ProbeAtLoad::default());
        add(&mut probe, in_time[0], in_time[1]);
        at_load.take(&probe);
        add(&mut probe, late[0], late[1]);
        let seen = at_load.of(&probe).map(|own| {
            assert_eq!((own.held.censored(), own.answered), (own.failed, own.held.count()));
            [own.fresh.count(), own.kept.count(), own.held.censored()]
        });
        assert_eq!(seen, expected, "{in_time:?} {late:?}");
    }

    #[test]
    fn what_the_end_of_the_load_served_had_no_response() {
        let served: Vec<u64> = (1..20).map(|n| 50 * n).collect();
        // All waited, or only new connections.
        check([&[], &[]], [&served, &[]], Some([0, 0, 19]));
        check([&[], &[1; 10]], [&served[..10], &[]], Some([0, 10, 10]));
        // Each response takes 300 ms, or more than half of the step.
        check([&[300; 7], &[300; 7]], [&[300; 3], &[300; 3]], None);
        check([&[600; 4], &[600; 4]], [&[600; 6], &[600; 6]], None);
        // A few slow ones of many.
        check([&[1; 50], &[1; 50]], [&[200; 4], &[]], None);
        check([&[], &[]], [&[900; 2], &[]], None);
        // All in time.
        check([&[1; 10], &[1; 10]], [&[], &[]], None);
    }
}
