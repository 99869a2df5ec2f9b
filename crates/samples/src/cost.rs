//! What a connection and a request cost in memory and CPU time: the slopes of lines fitted by least squares.

use serde::{Deserialize, Serialize};
use units::Unit;

/// The slope of a line through what was measured, by least squares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Fit {
    /// The slope.
    pub value: f64,
    /// Its standard error, from the scatter about the line.
    pub error: f64,
    /// Share of the variance that the line explains (R²); 1 is a perfect line.
    pub r2: f64,
}

impl Fit {
    /// Whether the slope is positive beyond its noise: more than twice its standard error.
    pub fn is_known(&self) -> bool {
        self.value > 2.0 * self.error
    }

    /// Whether the fit is good enough to report: a positive slope, R² of at least [`Fit::MIN_R2`], and a relative error of at most
    /// [`Fit::MAX_ERROR`].
    pub fn is_carried(&self) -> bool {
        self.value > 0.0 && self.r2 >= Fit::MIN_R2 && self.error <= Fit::MAX_ERROR * self.value
    }

    /// Lowest R² (share of the variance that the line explains) of a fit that is reported.
    pub const MIN_R2: f64 = 0.9;
    /// Highest standard error of a fit that is reported, as a share of its slope.
    pub const MAX_ERROR: f64 = 0.1;
}

/// Costs by regression; `None`: too little data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Cost {
    /// Memory of the target's processes, bytes per connection, over the ramp.
    pub target_bytes: Option<Fit>,
    /// Memory of throng, bytes per connection, over the ramp.
    pub generator_bytes: Option<Fit>,
    /// Memory of the kernel on this machine, bytes per connection, over the ramp; for the pair if both ends are here.
    pub kernel_bytes: Option<Fit>,
    /// Memory of the kernel on the target's host, if `throng observe` reports it.
    pub target_kernel_bytes: Option<Fit>,
    /// CPU of the target, microseconds for each connection opened, its first request included.
    pub target_cpu_us_per_open: Option<Fit>,
    /// CPU of throng, the same.
    pub generator_cpu_us_per_open: Option<Fit>,
    /// CPU of the target, microseconds for each connection opened with a TLS handshake, over the ramp; its first request is included.
    /// None where other connections are opened too: their CPU time cannot be separated.
    pub target_cpu_us_per_handshake: Option<Fit>,
    /// CPU of throng, the same.
    pub generator_cpu_us_per_handshake: Option<Fit>,
    /// CPU of the target at full load, microseconds per response.
    pub target_cpu_us_per_request: Option<Fit>,
    /// CPU of throng at full load, microseconds per response.
    pub generator_cpu_us_per_request: Option<Fit>,
    /// CPU of the target at full load, microseconds per second that a connection stays open; only if each sends less than
    /// one request in 20 s, whose cost is included.
    pub target_cpu_us_per_idle_second: Option<Fit>,
    /// CPU of throng, the same.
    pub generator_cpu_us_per_idle_second: Option<Fit>,
    /// Connections at which the memory of the target's host would be used up, by these slopes, less a reserve. Of a target on a managed
    /// runtime only with its live heap, since its resident memory grows with requests too.
    pub ceiling_connections: Option<u64>,
    /// The runtime with a heap of its own that the target runs on (`JVM`, `Node.js`, …): its resident memory is not what lives in it.
    pub target_runtime: Option<String>,
    /// Live heap of the target's Java virtual machines for each connection, bytes: the slope of what was left after full
    /// collections before the first dial, during the ramp and at full load (`--target-gc`), where they lie on a line.
    pub target_live_bytes: Option<f64>,
    /// The same with its error.
    pub target_live_fit: Option<Fit>,
    /// Each of those collections: connections open, and bytes left.
    pub target_live_points: Vec<(u64, u64)>,
    /// Why there is no such figure although it was requested.
    pub target_live_failure: Option<String>,
    /// Slopes of memory that are rejected because the fit is too poor ([`Fit::is_carried`]).
    pub discarded: Vec<Discarded>,
}

/// A fit among the costs: the name of its field, the unit of its slope, and the field.
#[derive(Debug)]
pub(crate) struct Slope {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) get: fn(&Cost) -> Option<Fit>,
}

macro_rules! slopes {
    ($($name:ident: $unit:ident),+ $(,)?) => {
        &[$(Slope { name: stringify!($name), unit: Unit::$unit, get: |cost| cost.$name }),+]
    };
}

/// All fits of [`Cost`].
pub(crate) static SLOPES: &[Slope] = slopes![
    generator_bytes: Bytes,
    generator_cpu_us_per_handshake: Micros,
    generator_cpu_us_per_idle_second: Micros,
    generator_cpu_us_per_open: Micros,
    generator_cpu_us_per_request: Micros,
    kernel_bytes: Bytes,
    target_bytes: Bytes,
    target_cpu_us_per_handshake: Micros,
    target_cpu_us_per_idle_second: Micros,
    target_cpu_us_per_open: Micros,
    target_cpu_us_per_request: Micros,
    target_kernel_bytes: Bytes,
    target_live_fit: Bytes,
];

impl Cost {
    /// The costs that are known, by the names of their fields.
    pub fn fits(&self) -> impl Iterator<Item = (&'static str, Fit)> + use<'_> {
        SLOPES.iter().filter_map(|slope| Some((slope.name, (slope.get)(self)?)))
    }
}

/// A slope that the points do not carry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Discarded {
    /// Of which figure of [`Cost`].
    pub figure: String,
    /// As it was fitted.
    pub fit: Fit,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, error: f64, expected: bool) {
        assert_eq!(Fit { value, error, r2: 0.5 }.is_known(), expected, "{value} ± {error}");
    }

    #[test]
    fn a_figure_needs_a_line_that_carries_it() {
        let check = |value: f64, error: f64, r2: f64, expected: bool| {
            assert_eq!(Fit { value, error, r2 }.is_carried(), expected, "{value} ± {error}, R² {r2}");
        };
        check(4_700.0, 47.0, 0.99, true);
        check(4_700.0, 470.0, 0.9, true);
        check(4_700.0, 471.0, 0.99, false);
        check(4_700.0, 47.0, 0.585, false);
        check(-4_700.0, 1.0, 0.99, false);
        check(0.0, 0.0, 1.0, false);
    }

    #[test]
    fn a_slope_within_its_scatter_is_not_known() {
        check(100.0, 49.0, true);
        check(100.0, 51.0, false);
        check(-100.0, 1.0, false);
        check(0.0, 0.0, false);
    }
}
