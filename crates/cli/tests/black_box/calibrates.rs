//! `throng calibrate`: figures that are stored, and how later runs use them.

use std::fs;

use serde_json::Value;

use crate::{
    program::{Program, Serving},
    stores::Data,
    summary::Summary,
};

fn calibrate(data: &Data, args: &[&str]) -> Value {
    let calibrate = || data.end(&[&["calibrate", "-d", "200ms"], args].concat());
    // If other programs keep the machine busy, it says so and measures nothing.
    let mut tries = (0..6).map(|_| calibrate());
    let ended =
        tries.find(|ended| ended.status != Some(4)).expect("this machine is free at one of six times");
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let json = if args.contains(&"-") { &ended.stdout } else { "null" };
    let parts = ["connects ", " connects/s", "requests ", " requests/s", "would fit ", "shared this machine"];
    let table = if args.contains(&"-") { &ended.stderr } else { &ended.stdout };
    assert!(parts.iter().all(|part| table.contains(part)), "{ended:?}");
    serde_json::from_str(json).unwrap()
}

/// A run that is just long enough for a rate, its summary and its text output.
fn run(data: &Data, url: &str, args: &[&str]) -> (Summary, String) {
    let json = data.0.join("summary.json");
    fs::create_dir_all(&data.0).unwrap();
    let load = ["-c", "10", "-d", "500ms", "--think", "5ms"];
    let run = ["run", url, "--live", "off", "--json", json.to_str().unwrap()];
    let ended = Program::from(data.throng(&[&run[..], &load, args].concat())).end();
    ended.assert_status(0);
    (Summary(serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap()), ended.stdout)
}

#[test]
fn later_runs_report_their_share_of_the_calibration() {
    let (data, server) = (Data::new("calibrated"), Serving::start(&["--threads", "1"]));
    let (before, text) = run(&data, &server.url("/"), &[]);
    assert!(before.at("rig").is_null() && !text.contains("  calibration "), "{text}");

    let c = calibrate(&data, &["--json", "-"]);
    assert_eq!(c["schema"], "throng.calibration/1");
    assert_eq!(c["io"], before.text("io"), "auto is the same for both");
    for figure in ["open_per_s", "requests_per_s", "connections"] {
        assert!(c[figure]["value"].as_f64() > Some(100.0), "{figure}: {c:#}");
        assert!(!c[figure]["limited_by"].as_str().unwrap().is_empty(), "{c:#}");
    }
    assert!(c["latency_p99_us"].as_f64() > Some(0.0) && c["host"]["cores"].as_u64() > Some(0), "{c:#}");

    let (s, text) = run(&data, &server.url("/"), &[]);
    assert_eq!(s.at("rig.calibrated_at"), &c["calibrated_at"]);
    let share = s.number("requests.per_s") / c["requests_per_s"]["value"].as_f64().unwrap();
    assert!((s.number("rig.requests_per_s") / share - 1.0).abs() < 1e-9, "{share}: {:#}", s.at("rig"));
    let share = s.number("connections.peak") / c["connections"]["value"].as_f64().unwrap();
    assert!((s.number("rig.connections") / share - 1.0).abs() < 1e-9, "{share}: {:#}", s.at("rig"));
    assert!(s.at("rig.open_per_s").is_null(), "ten connections are no rate");
    let day = &c["calibrated_at"].as_str().unwrap()[..10];
    let output = format!(
        "of this machine's calibration against throng's own server, a lower bound (calibrated {day})"
    );
    assert!(text.contains("  calibration ") && text.contains(&output), "{text}");
    // What is stored is what was shown, and a calibration is no run.
    assert_eq!(data.runs().len(), 2);
}

#[test]
fn each_interface_of_the_kernel_is_measured_by_itself() {
    let (data, server) = (Data::new("calibrated-epoll"), Serving::start(&["--threads", "1"]));
    calibrate(&data, &["--io", "epoll"]);
    let (epoll, _) = run(&data, &server.url("/"), &["--io", "epoll"]);
    assert!(epoll.number("rig.requests_per_s") > 0.0);
    if let (other, _) = run(&data, &server.url("/"), &[])
        && other.text("io") == "uring"
    {
        assert!(other.at("rig").is_null(), "{:#}", other.at("rig"));
    }
}

#[test]
fn all_usage_errors_are_reported_before_anything_starts() {
    let data = Data::new("calibrate-run");
    let ended = data.end(&["calibrate", "-d", "soon", "--io", "magic"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("--duration: ") && ended.stderr.contains("--io: "), "{ended:?}");
    for endless in ["forever", "0s"] {
        let ended = data.end(&["calibrate", "-d", endless]);
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("is not a time; use 8s"), "{ended:?}");
    }
    assert!(!data.0.exists());
}

#[test]
fn without_a_store_nothing_is_measured() {
    let data = Data::new("calibrate-no-place");
    fs::write(&data.0, "").unwrap();
    let ended = data.end(&["calibrate", "-d", "1s"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(3), ""), "{ended:?}");
    assert!(!ended.stderr.contains("opening"), "{ended:?}");
}
