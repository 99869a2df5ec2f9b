//! The figures that are compared.

use samples::{Figure, Latency, Statistic, Summary};
use units::Unit;

/// A figure with its name in reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The figure.
    pub figure: Figure,
}

/// Figures of every comparison: name, and path in the summary.
const USUAL: &[(&str, &str)] = &[
    ("connections held", "connections.held"),
    ("peak connections", "connections.peak"),
    ("memory per connection, throng", "generator.user_bytes_per_connection"),
    ("memory per connection, target", "target_cost.user_bytes_per_connection"),
    ("memory per connection, kernel", "kernel_bytes_per_connection.value"),
    ("connection rate", "connections.open_per_s"),
    ("response rate", "requests.per_s"),
    ("latency p99 at equal load", "equal_load_us.p99"),
    ("latency p50", "latency_us.p50"),
    ("latency p95", "latency_us.p95"),
    ("latency p99", "latency_us.p99"),
    ("no response", "latency_us.censored.share"),
    ("connect p99", "connect_us.p99"),
    ("probe p99", "probe.latency_us.p99"),
    ("faults", "faults"),
    ("CPU per request, throng", "cost.generator_cpu_us_per_request.value"),
    ("CPU per request, target", "cost.target_cpu_us_per_request.value"),
];

impl Named {
    /// The figures of every comparison.
    pub fn usual() -> Vec<Named> {
        let named = |(name, path): &(&str, &str)| {
            let figure = Figure::of_comparison(path).expect("a figure of the table");
            Named { name: (*name).to_owned(), figure }
        };
        USUAL.iter().map(named).collect()
    }

    /// The figure of a run; `None` if it was not measured, or is within its noise.
    pub fn of(&self, s: &Summary) -> Option<f64> {
        let error = self.figure.error_of_slope(s);
        self.figure.value(s).filter(|value| error.is_none_or(|error| *value > 2.0 * error))
    }

    /// The figure as thresholds judge it: requests without a response count as slower than all others. `None` if that places the
    /// figure among them.
    pub(super) fn judged(&self, s: &Summary) -> Option<f64> {
        self.of(s).and_then(|_| self.figure.judged(s))
    }

    /// The reported percentile, with its value if requests without a response count as slower than all others (`None` if it lies
    /// among them). `None` if that makes no difference.
    pub(super) fn survivors_only(&self, s: &Summary) -> Option<(f64, Option<f64>)> {
        let value = self.of(s).filter(|_| self.figure.statistic().is_some_and(Statistic::is_percentile))?;
        let judged = self.judged(s);
        let is_same = judged.is_some_and(|judged| judged <= value * (1.0 + self.grain(&[value])));
        (!is_same).then_some((value, judged))
    }

    /// Whether values are compared exactly instead of by logarithms: if some are not positive, or if they count faults, which are not
    /// expected at all.
    pub(super) fn is_as_such(&self, values: &[f64]) -> bool {
        self.figure.is_faults() || values.iter().any(|value| *value <= 0.0)
    }

    /// Resolution of values of this size that results from their measurement, as a share.
    pub(super) fn grain(&self, values: &[f64]) -> f64 {
        let is_time = self.figure.statistic().is_some() && self.figure.unit == Unit::Micros;
        values.iter().filter(|_| is_time).map(|us| Latency::grain(*us)).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::{Censored, Figures, Fit, Generator, KernelCost, Quantiles};

    fn figure(path: &str) -> Named {
        Named::usual().into_iter().find(|own| own.figure.key == path).unwrap()
    }

    #[test]
    fn unknown_figures_of_a_run_are_none() {
        let mut s = Summary::default();
        (s.latency_us.count, s.latency_us.p99) = (5, 7.0);
        s.generator = Generator { user_bytes_per_connection: Some(0.0), ..Generator::default() };
        s.kernel_bytes_per_connection = Some(KernelCost { value: 8_000.5, both_ends: true });
        s.cost.target_cpu_us_per_request = Some(Fit { value: 10.0, error: 6.0, r2: 0.1 });
        s.cost.generator_cpu_us_per_request = Some(Fit { value: 10.0, error: 1.0, r2: 0.9 });
        s.errors.of = 5;
        let check = |path: &str, expected| assert_eq!(figure(path).of(&s), expected, "{path}");
        check("latency_us.p99", Some(7.0));
        check("equal_load_us.p99", None);
        check("connect_us.p99", None);
        check("probe.latency_us.p99", None);
        check("generator.user_bytes_per_connection", None);
        check("kernel_bytes_per_connection.value", Some(8_000.5));
        check("cost.target_cpu_us_per_request.value", None);
        check("cost.generator_cpu_us_per_request.value", Some(10.0));
        check("faults", Some(0.0));
        let of = |path: &str, s: &Summary| {
            let figure = Figure::of_comparison(path).unwrap();
            Named { name: path.to_owned(), figure }.of(s)
        };
        // The error and the fit of a slope are not slopes.
        assert_eq!(of("cost.target_cpu_us_per_request.error", &s), Some(6.0));
        assert_eq!(of("cost.generator_cpu_us_per_request.r2", &s), Some(0.9));
        s.kernel_bytes_per_connection = Some(KernelCost { value: 0.0, both_ends: true });
        assert_eq!(of("kernel_bytes_per_connection.value", &s), None);
    }

    #[test]
    fn a_percentile_of_survivors_is_one_that_the_others_would_change() {
        let check = |censored: Option<(f64, Option<f64>)>, expected: Option<(f64, Option<f64>)>| {
            let censored = censored.map(|(share, p99)| Censored { share, p99, ..Censored::default() });
            let latency_us = Quantiles { count: 9, p99: 700.0, censored, ..Quantiles::default() };
            let figures = Figures { latency_us, ..Figures::default() };
            let s = Summary { figures, ..Summary::default() };
            assert_eq!(figure("latency_us.p99").survivors_only(&s), expected);
        };
        check(None, None);
        check(Some((0.1, None)), Some((700.0, None)));
        check(Some((0.1, Some(800.0))), Some((700.0, Some(800.0))));
        // Within the resolution of the histogram.
        check(Some((0.000_1, Some(700.5))), None);
        let mut s = Summary::default();
        (s.connections.wanted, s.connections.held) = (5, 5);
        assert_eq!(figure("connections.held").survivors_only(&s), None);
    }

    #[test]
    fn only_times_of_histograms_have_a_grain() {
        let grain = |path: &str, value| figure(path).grain(&[value, value]);
        assert_eq!(grain("latency_us.p99", 1_000.0), 0.001);
        assert_eq!(grain("latency_us.p50", 6.4), 0.01);
        assert_eq!(grain("cost.target_cpu_us_per_request.value", 6.4), 0.0);
        assert_eq!(grain("requests.per_s", 6.4), 0.0);
    }
}
