//! Calibrations, as text and as JSON.

use std::fmt::Write;

use samples::{Calibration, CalibrationShare, Measurement};
use units::{Bytes, Count, Nanos, percent};

/// A calibration as JSON, followed by a line break.
pub fn calibration_json(c: &Calibration) -> String {
    let mut json = serde_json::to_value(c).expect("a calibration has only plain fields");
    json["schema"] = "throng.calibration/1".into();
    json["calibrated_at"] = c.at_ms.to_string().into();
    format!("{json:#}\n")
}

/// A line for each figure, with its limit.
pub fn calibration_text(c: &Calibration) -> String {
    let mut out = String::new();
    let cores = Count(c.host.cores).of("processor");
    let limit = |measurement: &Measurement| {
        let limit = match measurement.limited_by.as_str() {
            "unknown" => "limit unknown".to_owned(),
            "other programs" => "limited by other programs; measure again without them".to_owned(),
            limit => format!("limited by the {limit}"),
        };
        let used = measurement.cores_used.map(|used| format!(": both ends used {used:.1} of {cores}"));
        limit + &used.unwrap_or_default()
    };
    let mut row = |name: &str, figure: String, note: String| {
        writeln!(out, "  {name:<15} {figure:<23}{note}").expect("a String takes it");
    };
    let whole = |value: f64| Count(value.round() as u64);
    let p99 = Nanos((c.latency_p99_us * 1e3) as u64);
    let each = match c.bytes_per_connection {
        Some(bytes) => format!(", {bytes:.0} bytes each at both ends"),
        None => ", from doctor: too few samples".to_owned(),
    };
    row("connects", format!("{} connects/s", whole(c.open_per_s.value)), limit(&c.open_per_s));
    row("requests", format!("{} requests/s", whole(c.requests_per_s.value)), limit(&c.requests_per_s));
    row("latency", format!("p99 {}", p99.brief()), "in that closed loop".to_owned());
    let fit = limit(&c.connections) + &each;
    row("would fit", whole(c.connections.value).of("connection"), fit);
    let host = &c.host;
    let memory = Bytes(host.memory_bytes).brief();
    row("machine", format!("{cores}, {memory}"), format!("Linux {}, {}", host.kernel, c.io));
    out.push_str(
        "Both ends shared this machine: with the target on another machine it can do at least as much\n",
    );
    out
}

/// How close a run came to the calibration; `None` if there is nothing to compare.
pub(crate) fn share(rig: &CalibrationShare) -> Option<String> {
    let day = rig.calibrated_at.split('T').next().unwrap_or_default();
    let rates = [("requests", rig.requests_per_s), ("connects", rig.open_per_s)];
    let rates = rates.iter().filter_map(|(what, share)| Some(format!("{what} at {}", percent((*share)?))));
    let rates = rates.collect::<Vec<_>>().join(", ");
    let did = (!rates.is_empty()).then(|| {
        format!(
            "{rates} of this machine's calibration against throng's own server, a lower bound (calibrated \
            {day})"
        )
    });
    let fit = rig.connections.map(|share| format!("{} of the connections that would fit", percent(share)));
    let lines: Vec<String> = did.into_iter().chain(fit).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::HostFacts;
    use units::Date;

    fn calibration() -> Calibration {
        let measurement = |value, limited_by: &str, cores_used| Measurement {
            value,
            limited_by: limited_by.to_owned(),
            cores_used,
            cores_waited: None,
        };
        Calibration {
            version: "0.1.0".to_owned(),
            at_ms: Date(1_795_282_449_000),
            host: HostFacts { kernel: "6.12".to_owned(), cores: 2, memory_bytes: 24 << 30 },
            io: "uring".to_owned(),
            open_per_s: measurement(68_480.4, "unknown", Some(1.07)),
            requests_per_s: measurement(142_026.0, "processors", Some(1.96)),
            latency_p99_us: 1800.0,
            connections: measurement(2_877_533.0, "memory", None),
            bytes_per_connection: Some(8_600.6),
        }
    }

    #[test]
    fn a_calibration_names_what_limited_each() {
        let expected =
            "  connects        68,480 connects/s      limit unknown: both ends used 1.1 of 2 processors
  requests        142,026 requests/s     limited by the processors: both ends used 2.0 of 2 processors
  latency         p99 1.8 ms             in that closed loop
  would fit       2,877,533 connections  limited by the memory, 8601 bytes each at both ends
  machine         2 processors, 24.0 GiB Linux 6.12, uring
Both ends shared this machine: with the target on another machine it can do at least as much
";
        assert_eq!(calibration_text(&calibration()), expected);
        let json: serde_json::Value = serde_json::from_str(&calibration_json(&calibration())).unwrap();
        assert_eq!(json["schema"], "throng.calibration/1");
        assert_eq!(
            (&json["calibrated_at"], &json["open_per_s"]["value"]),
            (&"2026-11-21T17:34:09Z".into(), &68_480.4.into())
        );
    }

    #[test]
    fn others_in_the_way_are_a_reason_to_measure_again() {
        let mut c = calibration();
        c.open_per_s.limited_by = "other programs".to_owned();
        c.bytes_per_connection = None;
        let text = calibration_text(&c);
        let line =
            "limited by other programs; measure again without them: both ends used 1.1 of 2 processors";
        assert!(text.contains(line) && text.contains("memory, from doctor: too few samples"), "{text}");
    }

    #[test]
    fn a_share_names_its_total_and_never_exceeds_it() {
        let check = |open_per_s, requests_per_s, connections, expected: Option<&str>| {
            let calibrated_at = "2026-11-20T01:02:03Z".to_owned();
            let rig = CalibrationShare { calibrated_at, open_per_s, requests_per_s, connections };
            assert_eq!(share(&rig).as_deref(), expected);
        };
        check(None, None, None, None);
        check(
            Some(0.4),
            Some(0.931),
            Some(0.004),
            Some(
                "requests at 93 %, connects at 40 % of this machine's calibration against throng's own server, a lower bound \
                 (calibrated 2026-11-20); 0.40 % of the connections that would fit",
            ),
        );
        check(None, None, Some(0.000_2), Some("0.02 % of the connections that would fit"));
        check(None, None, Some(1.25), Some("125 % of the connections that would fit"));
        check(
            Some(1.0),
            None,
            None,
            Some(
                "connects at 100 % of this machine's calibration against throng's own server, a lower bound (calibrated 2026-11-20)",
            ),
        );
    }
}
