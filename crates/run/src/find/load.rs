//! The plan of a step: the same as the user's, with another load.

use plan::{Hold, Plan, Population, Ramp, Share, Stage};
use units::{Nanos, Rate};

use super::By;

impl By {
    /// The plan with this load, held for `dwell`. Of several populations each has its share: as large a part of the whole
    /// as in the user's plan.
    pub fn plan(self, plan: &Plan, load: u64, dwell: Nanos) -> Plan {
        let mut plan = plan.clone();
        let ramp = match self {
            By::Burst => Ramp::Within(Nanos::ZERO),
            _ => plan.stages[0].ramp,
        };
        let of = (0..plan.populations.len() as u16).collect();
        plan.stages =
            vec![Stage { name: "step".to_owned(), of, to: Share::ALL, ramp, hold: Hold::For(dwell) }];
        let load = if self == By::Rate { load.saturating_sub(probes_per_s(&plan)).max(1) } else { load };
        let weights: Vec<f64> = plan.populations.iter().map(|population| self.weight(population)).collect();
        for (population, n) in plan.populations.iter_mut().zip(dealt(load, &weights)) {
            let mut keys = population.load.keys();
            match self {
                By::Arrival => {
                    let all = u64::from(n).saturating_mul(dwell.0) / Nanos::from_secs(1).0;
                    keys.arrive = Some(Rate::per_s(n));
                    keys.total = Some(u32::try_from(all.max(1)).unwrap_or(u32::MAX));
                    population.calls = population.calls.or(Some(1));
                }
                // Those that come and go stay as they are.
                By::Connections | By::Burst => keys.connections = Some(n),
                By::Rate => keys.rate = Some(Rate::per_s(n)),
            }
            population.load = keys.load();
        }
        plan
    }

    /// How much of the load is a population's.
    fn weight(self, population: &Population) -> f64 {
        match (self, population.load.rate()) {
            (By::Rate | By::Arrival, Some(rate)) => rate.per_s_f64(),
            _ if population.comes_and_goes() => 0.0,
            _ => f64::from(population.load.connections()),
        }
    }
}

/// Requests that the probe sends in a second, if there is one.
pub(super) fn probes_per_s(plan: &Plan) -> u64 {
    plan.probe.as_ref().map_or(0, |probe| probe.rate.per_s_f64().round() as u64)
}

/// `n` split in these proportions, at least one for each that is not zero; the sum is `n` if possible.
fn dealt(n: u64, weights: &[f64]) -> Vec<u32> {
    let all: f64 = weights.iter().sum();
    let (mut so_far, mut given) = (0.0, 0);
    let share = |weight: &f64| {
        so_far += weight;
        let until = (n as f64 * so_far / all.max(f64::MIN_POSITIVE)).round() as u64;
        let own = until.saturating_sub(given).max(u64::from(*weight > 0.0));
        given += own;
        u32::try_from(own).unwrap_or(u32::MAX)
    };
    weights.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_dealt_out_in_proportion() {
        for (n, weights, expected) in [
            (700, &[50.0][..], &[700][..]),
            (700, &[500_000.0, 2_000.0], &[697, 3]),
            (10, &[1.0, 1.0, 1.0], &[3, 4, 3]),
            (10, &[1.0, 0.0, 1.0], &[5, 0, 5]),
            (2, &[1.0, 1_000.0], &[1, 1]),
            (u64::MAX, &[1.0], &[u32::MAX]),
        ] {
            assert_eq!(dealt(n, weights), expected, "{n} {weights:?}");
        }
    }
}
