//! The probe's times by the number of connections that were open.

use std::collections::BTreeMap;

use samples::{Latency, Probe, ProbePoint, ProbeSummary};
use serde::{Deserialize, Serialize};
use units::Rate;

/// Maximum number of points; each has two histograms.
const BUCKETS: u64 = 20;

/// A range of connection counts.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Bucket {
    latency: Latency,
    connect: Latency,
    /// Sum of the open connections over all requests that ended.
    connections: u128,
}

/// The curve, built from ticks.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Curve {
    most: u64,
    buckets: BTreeMap<u64, Bucket>,
}

impl Curve {
    /// An empty curve for up to `most` connections (at least 1).
    pub fn new(most: u64) -> Curve {
        Curve { most: most.max(1), ..Curve::default() }
    }

    /// Adds the probe's figures while `open` connections were open.
    pub fn add(&mut self, open: u64, probe: &Probe) {
        let ended =
            [&probe.kept, &probe.fresh].map(|times| times.count() + times.censored()).iter().sum::<u64>();
        if ended + probe.connect.count() == 0 {
            return;
        }
        let at =
            (u128::from(open) * u128::from(BUCKETS) / u128::from(self.most)).min(u128::from(BUCKETS - 1));
        let bucket = self.buckets.entry(at as u64).or_default();
        bucket.latency.merge(&probe.kept);
        bucket.latency.merge(&probe.fresh);
        bucket.connect.merge(&probe.connect);
        bucket.connections += u128::from(open) * u128::from(ended);
    }

    /// The probe's figures; `whole`: its totals, `rate`: its configured rate.
    pub fn summary(&self, rate: Rate, whole: Option<&Probe>) -> ProbeSummary {
        let probe = whole.cloned().unwrap_or_default();
        let mut together = probe.kept.clone();
        together.merge(&probe.fresh);
        ProbeSummary {
            rate: rate.per_s_f64(),
            sent: probe.sent,
            answered: probe.answered,
            failed: probe.failed,
            unanswered: probe.unanswered,
            failures: probe.failures(),
            latency_us: together.quantiles(),
            kept_us: probe.kept.quantiles(),
            fresh_us: probe.fresh.quantiles(),
            held_us: probe.held.quantiles(),
            connect_us: probe.connect.quantiles(),
            by_connections: self.points(),
        }
    }

    /// The points by ascending connections, without those in which no request ended.
    fn points(&self) -> Vec<ProbePoint> {
        let point = |bucket: &Bucket| {
            let latency = bucket.latency.quantiles();
            let ended = latency.count + bucket.latency.censored();
            (ended > 0).then(|| ProbePoint {
                connections: (bucket.connections / u128::from(ended)) as u64,
                latency_p50_us: latency.p50,
                latency_p99_us: latency.p99,
                no_response: bucket.latency.censored_share(),
                connect_p99_us: bucket.connect.quantiles().p99,
            })
        };
        self.buckets.values().filter_map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    fn probe(responses: u64, ms: u64) -> Probe {
        let mut probe = Probe::default();
        for n in 0..responses {
            if n % 2 == 0 { &mut probe.kept } else { &mut probe.fresh }.record(Nanos::from_millis(ms));
        }
        probe.connect.record(Nanos::from_millis(ms * 2));
        probe
    }

    #[test]
    fn times_go_with_the_connections_that_were_open() {
        let mut curve = Curve::new(1_000);
        // The first bucket ends below 50; the last one contains everything from 950 on.
        for (open, responses, ms) in
            [(0, 3, 1), (40, 1, 1), (500, 2, 5), (1_000, 1, 9), (2_000, 1, 9), (700, 0, 7)]
        {
            curve.add(open, &probe(responses, ms));
        }
        let points = curve.points();
        let seen: Vec<(u64, u64, u64, u64)> = (points.iter())
            .map(|p| {
                let ms = |us: f64| (us / 1e3).round() as u64;
                (p.connections, ms(p.latency_p50_us), ms(p.latency_p99_us), ms(p.connect_p99_us))
            })
            .collect();
        assert_eq!(seen, [(10, 1, 1, 2), (500, 5, 5, 10), (1_500, 9, 9, 18)]);
        assert_eq!(Curve::new(0).points(), []);
        // Requests without a response are included: nine of ten at 600, all of them at 800.
        let mut hanging = probe(1, 15);
        (0..9).for_each(|_| hanging.fresh.censor());
        curve.add(600, &hanging);
        let mut silent = Probe::default();
        silent.kept.censor();
        curve.add(800, &silent);
        let shares: Vec<(u64, f64)> = curve.points().iter().map(|p| (p.connections, p.no_response)).collect();
        assert_eq!(shares, [(10, 0.0), (500, 0.0), (600, 0.9), (800, 1.0), (1_500, 0.0)]);
    }

    #[test]
    fn kept_and_fresh_are_reported_together_and_apart() {
        let mut whole = Probe { sent: 5, answered: 3, failed: 1, ..Probe::default() };
        whole.kept.record(Nanos::from_millis(2));
        [4, 6].into_iter().for_each(|ms| whole.fresh.record(Nanos::from_millis(ms)));
        whole.held.record(Nanos::from_millis(6));
        whole.connect.record(Nanos::from_millis(1));
        let s = Curve::new(1).summary(Rate::per_s(10), Some(&whole));
        assert_eq!((s.rate, s.sent, s.answered, s.failed), (10.0, 5, 3, 1));
        let times = [s.latency_us, s.kept_us, s.fresh_us, s.held_us, s.connect_us].map(|q| (q.count, q.mean));
        assert_eq!(times, [(3, 4_000.0), (1, 2_000.0), (2, 5_000.0), (1, 6_000.0), (1, 1_000.0)]);
        assert_eq!(Curve::new(1).summary(Rate::per_s(10), None).latency_us.count, 0);
    }
}
