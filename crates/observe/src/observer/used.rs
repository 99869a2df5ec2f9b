//! Memory and CPU time of throng and of the target, from the first sample to the last.

use host::UsageSample;
use samples::{Cost, Fit, Generator, ProcessCost, TargetSeen};
use units::Nanos;

/// Usage of throng and of the target.
#[derive(Clone, Debug, Default)]
pub(super) struct Used {
    /// throng's latest sample, and its time (`at`).
    pub(super) own: UsageSample,
    at: Nanos,
    own_rss_max: u64,
    /// For a target on this machine: first and latest sample, and maximum memory.
    target: Option<(UsageSample, UsageSample, u64)>,
    /// Times of the target's first and last sample, on any machine.
    target_at: Option<(Nanos, Nanos)>,
}

impl Used {
    pub(super) fn take(&mut self, now: Nanos, own: UsageSample, target: Option<UsageSample>) {
        (self.own, self.at, self.own_rss_max) = (own, now, self.own_rss_max.max(own.rss_bytes));
        let Some(latest) = target else { return };
        let (first, _, most) = self.target.unwrap_or((latest, latest, 0));
        self.target = Some((first, latest, most.max(latest.rss_bytes)));
        self.see_target(now);
    }

    /// Notes that the target was sampled, here or by `throng observe`.
    pub(super) fn see_target(&mut self, now: Nanos) {
        self.target_at = Some((self.target_at.map_or(now, |(first, _)| first), now));
    }

    /// Discards the target's samples: they were of another program.
    pub(super) fn lose_target(&mut self) {
        (self.target, self.target_at) = (None, None);
    }

    pub(super) fn generator(&self, cost: &Cost) -> Generator {
        Generator {
            cpu_s: self.own.cpu_ns() as f64 / 1e9,
            system_s: self.own.cpu_system_ns as f64 / 1e9,
            over_s: self.at.secs_f64(),
            rss_bytes: self.own_rss_max,
            user_bytes_per_connection: slope(cost.generator_bytes),
            ..Generator::default()
        }
    }

    pub(super) fn target(&self, seen: &TargetSeen, cost: &Cost) -> ProcessCost {
        let here = self.target.map(|(first, latest, most)| (most, latest.cpu_ns() - first.cpu_ns()));
        let (rss_bytes, cpu_ns) = here.unwrap_or((seen.process.rss_bytes.max, seen.process.cpu_ns()));
        ProcessCost {
            pid: seen.pid,
            rss_bytes,
            user_bytes_per_connection: slope(cost.target_bytes),
            cpu_s: cpu_ns as f64 / 1e9,
            over_s: self.target_at.map_or(0.0, |(first, last)| last.since(first).secs_f64()),
            processes: seen.processes().to_vec(),
        }
    }
}

fn slope(fit: Option<Fit>) -> Option<f64> {
    fit.map(|fit| fit.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(cpu_s: u64, rss_bytes: u64) -> UsageSample {
        UsageSample { cpu_user_ns: cpu_s * 1_000_000_000, rss_bytes, ..UsageSample::default() }
    }

    #[test]
    fn cpu_time_is_of_the_time_in_which_it_was_sampled() {
        let (mut all, s) = (Used::default(), Nanos::from_secs);
        all.take(s(1), used(1, 50), Some(used(100, 70)));
        all.take(s(4), used(3, 40), Some(used(105, 60)));
        // The target has ended.
        all.take(s(9), used(4, 45), None);
        let own = all.generator(&Cost::default());
        assert_eq!((own.cpu_s, own.over_s, own.rss_bytes), (4.0, 9.0, 50));
        let target = all.target(&TargetSeen::default(), &Cost::default());
        assert_eq!((target.cpu_s, target.over_s, target.rss_bytes), (5.0, 3.0, 70));
        all.lose_target();
        assert_eq!(all.target(&TargetSeen::default(), &Cost::default()).over_s, 0.0);
        // Samples by `throng observe`, whose connection is then lost.
        all.see_target(s(2));
        all.see_target(s(5));
        assert_eq!(all.target(&TargetSeen::default(), &Cost::default()).over_s, 3.0);
    }
}
