//! The calibration of a machine: its maximum rates and connections against throng's built-in server, and the share of them that a run
//! reached.

use serde::{Deserialize, Serialize};
use units::Date;

use crate::{
    cost::{Cost, Fit},
    encode::json,
    gauge::Growth,
    observation::Observation,
    record::HostFacts,
    share::CalibrationShare,
    summary::Summary,
};

/// Shortest phase over which a rate is meaningful, seconds.
const MIN_S: f64 = 0.5;
/// If the load used at least this share of the processors, they were the limit.
const USED_UP: f64 = 0.9;
/// From this share up to [`USED_UP`] the limit is unknown: the two ends also wait for each other. Below it, other programs may have had the
/// processors.
const LEFT: f64 = 0.75;

/// One measurement of this machine, both ends on it: what is printed, stored, and later runs are held against. As the
/// ends shared its processors, each figure is a lower bound of what the generator can do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Calibration {
    /// throng's own version.
    pub version: String,
    /// When.
    #[cfg_attr(test, ts(type = "number"))]
    pub at_ms: Date,
    /// Where.
    pub host: HostFacts,
    /// `uring` or `epoll`, at both ends.
    pub io: String,
    /// Bare TCP connections opened per second, as fast as the server took them.
    pub open_per_s: Measurement,
    /// Responses per second in closed loop.
    pub requests_per_s: Measurement,
    /// The 99th percentile of their latency, microseconds.
    pub latency_p99_us: f64,
    /// Connections that would fit, both ends here.
    pub connections: Measurement,
    /// Memory of a connection at both ends, in the kernel and in both programs, bytes; `None`: too little was seen.
    pub bytes_per_connection: Option<f64>,
}

/// A figure, and what limited it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Measurement {
    /// The figure.
    pub value: f64,
    /// `processors`, `other programs` (that had them), `memory`, `ports`, `file table` or `unknown`.
    pub limited_by: String,
    /// Processors that both ends used for it; `None`: not measured, or not the point.
    pub cores_used: Option<f64>,
    /// Threads of both ends that were ready to run and had none, on average; `None` as above.
    pub cores_waited: Option<f64>,
}

impl Measurement {
    /// A rate per second. `cpu_us`: processor time per event at either end; `waited`: threads of both ends that were ready to run without a
    /// processor, on average.
    fn rate(per_s: f64, cpu_us: [Option<Fit>; 2], waited: Option<f64>, cores: u64) -> Measurement {
        let each_us = cpu_us[0].zip(cpu_us[1]).map(|(one, other)| one.value + other.value);
        let cores_used = each_us.map(|us| per_s * us / 1e6);
        let share = |used: f64| used / cores.max(1) as f64;
        let limited_by = match (cores_used, waited) {
            (Some(used), _) if share(used) >= USED_UP => "processors",
            // The threads waited for processors that other programs used.
            (Some(used), Some(waited)) if share(used) < LEFT && share(used + waited) >= 1.0 => {
                "other programs"
            }
            _ => "unknown",
        };
        Measurement { value: per_s, limited_by: limited_by.to_owned(), cores_used, cores_waited: waited }
    }

    /// The connection rate of a run against a server on the same machine.
    pub fn of_opening(s: &Summary, cores: u64) -> Measurement {
        let waited = waited(&s.observed, |wait| wait.ramp, s.ramp_s);
        let cpu_us = [s.cost.target_cpu_us_per_open, s.cost.generator_cpu_us_per_open];
        Measurement::rate(s.connections.open_per_s, cpu_us, waited, cores)
    }

    /// The response rate of a run against a server on the same machine.
    pub fn of_requests(s: &Summary, cores: u64) -> Measurement {
        let waited = waited(&s.observed, |wait| wait.hold, s.duration_s);
        let cpu_us = [s.cost.target_cpu_us_per_request, s.cost.generator_cpu_us_per_request];
        Measurement::rate(s.requests.per_s, cpu_us, waited, cores)
    }
}

/// Runnable threads of both ends without a processor, on average over a phase of `time_s` seconds; `None` if either end was not observed.
fn waited(seen: &Observation, phase: fn(&Growth) -> u64, time_s: f64) -> Option<f64> {
    let (own, target) = (seen.own.as_ref()?, seen.target.as_ref()?);
    let ns = phase(&own.run_queue_wait_ns) + phase(&target.process.run_queue_wait_ns);
    (time_s > 0.0).then(|| ns as f64 / 1e9 / time_s)
}

impl CalibrationShare {
    /// Compares a run with the first of `calibrations` that used the same I/O backend; `None` without one.
    pub fn of(calibrations: &[Calibration], s: &Summary) -> Option<CalibrationShare> {
        let c = calibrations.iter().find(|calibration| calibration.io == s.io)?;
        let share = |of: f64, measurement: &Measurement| {
            (of > 0.0 && measurement.value > 0.0).then(|| of / measurement.value)
        };
        let over = |time_s: f64, share: Option<f64>| share.filter(|_| time_s >= MIN_S);
        Some(CalibrationShare {
            calibrated_at: c.at_ms.to_string(),
            open_per_s: over(s.ramp_s, share(s.connections.open_per_s, &c.open_per_s)),
            requests_per_s: over(s.duration_s, share(s.requests.per_s, &c.requests_per_s)),
            connections: share(s.connections.peak as f64, &c.connections),
        })
    }
}

/// Lowest R² at which a change of the machine's memory is attributed to connections alone.
const STRAIGHT: f64 = 0.9;

/// Memory of a connection in the kernel and in both programs, bytes: the sum of the fitted slopes of a run with both ends on this machine.
/// `None` if other programs' memory, or too few connections, left no straight line.
pub fn bytes_per_pair(cost: &Cost) -> Option<f64> {
    let kernel = cost.kernel_bytes.filter(|kernel| kernel.r2 >= STRAIGHT)?;
    // Both programs take little memory per connection: where allocation by pages hides their slopes, they are negligible.
    let own = [cost.target_bytes, cost.generator_bytes].into_iter().flatten().map(|fit| fit.value);
    Some(own.sum::<f64>() + kernel.value)
}

json! {
    Calibration => Calibration,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        sample::{HostSample, ProcessSample, TargetSample},
        summary::{Connections, Figures, Requests},
        tick::Phase,
    };

    fn fit(value: f64) -> Option<Fit> {
        Some(Fit { value, error: 0.1, r2: 0.99 })
    }

    /// 40,000 connections/s opened, 100,000 requests/s, 500 connections at most.
    fn summary(io: &'static str) -> Summary {
        let figures = Figures {
            threads: 2,
            ramp_s: 2.0,
            duration_s: 5.0,
            elapsed_s: 7.0,
            connections: Connections { open_per_s: 40_000.0, peak: 500, held: 100, ..Connections::default() },
            requests: Requests { per_s: 100_000.0, ..Requests::default() },
            ..Figures::default()
        };
        Summary { io: io.into(), figures, ..Summary::default() }
    }

    fn calibration(io: &str, at_ms: u64, value: f64) -> Calibration {
        let measurement = |value| Measurement { value, ..Measurement::default() };
        Calibration {
            io: io.to_owned(),
            at_ms: Date(at_ms),
            open_per_s: measurement(value),
            requests_per_s: measurement(value * 2.0),
            connections: measurement(value / 10.0),
            ..Calibration::default()
        }
    }

    #[test]
    fn a_calibration_share_is_the_share_of_the_latest_calibration_of_the_same_backend() {
        let all = [
            calibration("epoll", 3000, 1.0),
            calibration("uring", 2000, 80_000.0),
            calibration("uring", 1, 5.0),
        ];
        let rig = CalibrationShare::of(&all, &summary("uring")).unwrap();
        assert_eq!(
            (rig.open_per_s, rig.requests_per_s, rig.connections),
            (Some(0.5), Some(0.625), Some(0.0625))
        );
        assert_eq!(rig.calibrated_at, "1970-01-01T00:00:02Z");
        assert_eq!(CalibrationShare::of(&all[..1], &summary("uring")), None);
        assert_eq!(CalibrationShare::of(&[], &summary("epoll")), None);
    }

    #[test]
    fn short_measurements_have_no_share() {
        let all = [calibration("uring", 0, 80_000.0)];
        let mut short = summary("uring");
        (short.ramp_s, short.duration_s) = (0.4, 0.4);
        let rig = CalibrationShare::of(&all, &short).unwrap();
        assert_eq!((rig.open_per_s, rig.requests_per_s, rig.connections), (None, None, Some(0.0625)));
        let mut silent = summary("uring");
        silent.requests = Requests::default();
        assert_eq!(CalibrationShare::of(&all, &silent).unwrap().requests_per_s, None);
        let nothing = [Calibration { io: "uring".to_owned(), ..Calibration::default() }];
        assert_eq!(CalibrationShare::of(&nothing, &summary("uring")).unwrap().open_per_s, None);
    }

    /// Both ends waited for a processor for these nanoseconds in the ramp and in the hold.
    fn waiting(ramp: u64, hold: u64) -> Observation {
        let mut seen = Observation::default();
        let looks = [(Phase::Ramp, 0), (Phase::Ramp, ramp), (Phase::Hold, ramp + hold)];
        for (phase, run_queue_wait_ns) in looks {
            let process = ProcessSample { run_queue_wait_ns, ..ProcessSample::default() };
            seen.see_here(phase, &HostSample::default(), &process);
            seen.see_target(phase, &TargetSample { process, ..TargetSample::default() });
        }
        seen
    }

    /// (limited by, cores used, cores waited for) of opening and of requests, on two processors.
    fn check_limits(
        each_us: [Option<Fit>; 2],
        observed: Observation,
        expected: [(&str, Option<f64>, Option<f64>); 2],
    ) {
        let mut s = Summary { observed, ..summary("uring") };
        [s.cost.target_cpu_us_per_open, s.cost.generator_cpu_us_per_open] = each_us;
        [s.cost.target_cpu_us_per_request, s.cost.generator_cpu_us_per_request] = each_us;
        let measurements = [Measurement::of_opening(&s, 2), Measurement::of_requests(&s, 2)];
        let rounded = |cores: Option<f64>| cores.map(|cores| (cores * 1e3).round() / 1e3);
        let found = measurements.each_ref().map(|measurement| {
            (
                measurement.limited_by.as_str(),
                rounded(measurement.cores_used),
                rounded(measurement.cores_waited),
            )
        });
        assert_eq!(found, expected);
        assert_eq!(measurements.map(|measurement| measurement.value), [40_000.0, 100_000.0]);
    }

    #[test]
    fn processors_are_the_limit_only_where_they_were_used_up() {
        let none = Observation::default;
        check_limits(
            [fit(10.0), fit(8.0)],
            none(),
            [("unknown", Some(0.72), None), ("processors", Some(1.8), None)],
        );
        check_limits(
            [fit(10.0), fit(7.9)],
            none(),
            [("unknown", Some(0.716), None), ("unknown", Some(1.79), None)],
        );
        check_limits([fit(10.0), None], none(), [("unknown", None, None); 2]);
    }

    #[test]
    fn other_programs_are_named_if_ours_waited_for_processors() {
        // The ramp took 2 s, the hold 5 s; each end waited for so long.
        let seen = || waiting(1_400_000_000, 5_000_000_000);
        let expected = [("other programs", Some(0.6), Some(1.4)), ("other programs", Some(1.4), Some(2.0))];
        check_limits(
            [fit(10.0), fit(5.0)],
            waiting(1_400_000_000, 5_000_000_000),
            [expected[0], ("unknown", Some(1.5), Some(2.0))],
        );
        check_limits([fit(10.0), fit(4.0)], seen(), [("unknown", Some(0.56), Some(1.4)), expected[1]]);
    }

    #[test]
    fn a_connection_takes_memory_in_three_places() {
        let cost = || Cost { target_bytes: fit(51.0), generator_bytes: fit(35.0), ..Cost::default() };
        assert_eq!(bytes_per_pair(&cost()), None);
        assert_eq!(bytes_per_pair(&Cost { kernel_bytes: fit(8515.0), ..cost() }), Some(8601.0));
        let scattered = Some(Fit { value: 400.0, error: 90.0, r2: 0.6 });
        assert_eq!(bytes_per_pair(&Cost { kernel_bytes: scattered, ..cost() }), None);
    }
}
