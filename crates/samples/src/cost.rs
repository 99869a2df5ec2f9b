//! What a connection and a request cost, as slopes of fitted lines.

use serde::Serialize;

/// The slope of a line through what was measured, by least squares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Fit {
    /// The slope.
    pub value: f64,
    /// Its standard error, from the scatter about the line.
    pub error: f64,
    /// Share of the variance that the line explains (R²); 1 is a perfect line.
    pub r2: f64,
}

impl Fit {
    /// Whether it is a cost, and more than what its scatter alone could make of nothing: twice its standard error.
    pub fn is_known(&self) -> bool {
        self.value > 2.0 * self.error
    }
}

/// Costs by regression; `None` where too little was seen to tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Cost {
    /// Memory of the target's processes, bytes a connection, over the ramp.
    pub target_bytes: Option<Fit>,
    /// Memory of throng, bytes a connection, over the ramp.
    pub generator_bytes: Option<Fit>,
    /// Memory of the kernel on this machine, bytes a connection, over the ramp; for the pair where both ends are here.
    pub kernel_bytes: Option<Fit>,
    /// Memory of the kernel on the target's host, where `throng observe` tells.
    pub target_kernel_bytes: Option<Fit>,
    /// CPU of the target, microseconds for each connection opened, its first request included.
    pub target_cpu_us_per_open: Option<Fit>,
    /// CPU of throng, the same.
    pub generator_cpu_us_per_open: Option<Fit>,
    /// CPU of the target at full load, microseconds for each answer.
    pub target_cpu_us_per_request: Option<Fit>,
    /// CPU of throng at full load, microseconds for each answer.
    pub generator_cpu_us_per_request: Option<Fit>,
    /// CPU of the target at full load, microseconds for each second that a connection stays open; where each asks less
    /// than once in 20 s, and with what that costs.
    pub target_cpu_us_per_idle_second: Option<Fit>,
    /// CPU of throng, the same.
    pub generator_cpu_us_per_idle_second: Option<Fit>,
    /// Connections at which the memory of the target's host would be used up, by these slopes.
    pub ceiling_connections: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, error: f64, expected: bool) {
        assert_eq!(Fit { value, error, r2: 0.5 }.is_known(), expected, "{value} ± {error}");
    }

    #[test]
    fn a_slope_within_its_scatter_is_not_known() {
        check(100.0, 49.0, true);
        check(100.0, 51.0, false);
        check(-100.0, 1.0, false);
        check(0.0, 0.0, false);
    }
}
