//! What a connection costs, by regression over a ramp.

use serde_json::Value;

use crate::{
    program::Serving,
    summary::{Summary, run},
};

/// The value and the R² of a fit.
fn fit(s: &Summary, name: &str) -> (f64, f64) {
    let fit = s.at(&format!("cost.{name}"));
    let number = |key: &str| fit[key].as_f64().unwrap_or_else(|| panic!("{name}: {:#}", s.at("cost")));
    assert!(number("error") >= 0.0, "{name}: {fit}");
    (number("value"), number("r2"))
}

#[test]
fn a_connection_of_the_reference_server_has_a_price() {
    let server = Serving::start(&["--threads", "1"]);
    // Connections that arrive at once touch the server's buffers, more of them on a busy machine: let them complete first.
    run(&server.url("/"), &["-c", "2000", "-n", "4000"]);
    let args = ["-c", "20000", "--ramp", "4s", "-d", "2s", "--think", "1m", "--threads", "1"];
    // Other programs take and free memory meanwhile: then a figure is not measured, and its line is kept. They may
    // take the processor too, so that the server cannot accept in time.
    let mut was_known = false;
    for _ in 0..6 {
        let (ended, s) = run(&server.url("/"), &args);
        if s.at("limit")["cause"] == "accept-queue" {
            continue;
        }
        ended.assert_status(0);
        let line = ended.stderr.lines().find(|line| line.starts_with("  cost ")).expect("a line");
        for name in MEMORY {
            is_carried_or_discarded(&s, name);
        }
        let own = |figure: &str, fit: &str| assert_eq!(s.at(figure), &s.at(&format!("cost.{fit}"))["value"]);
        own("target_cost.user_bytes_per_connection", "target_bytes");
        own("generator.user_bytes_per_connection", "generator_bytes");
        assert_eq!(s.at("kernel_bytes_per_connection").is_null(), s.at("cost.kernel_bytes").is_null());
        let (cpu, r2) = fit(&s, "target_cpu_us_per_open");
        assert!((1.0..1_000.0).contains(&cpu) && r2 > 0.5, "{cpu} µs, R² {r2}");
        let discarded = s.at("cost.discarded").as_array().unwrap().len();
        assert_eq!(line.matches("not measured: ").count(), discarded, "{line}");
        if let Some(ceiling) = s.at("cost.ceiling_connections").as_u64() {
            assert!(!s.at("cost.kernel_bytes").is_null(), "{:#}", s.at("cost"));
            assert!((20_001..1 << 40).contains(&ceiling), "{ceiling}");
            assert!(line.contains("memory for about "), "{line}");
        }
        was_known = !s.at("cost.target_bytes").is_null() && r2 > 0.9;
        if was_known {
            break;
        }
    }
    assert!(was_known, "one of six is not disturbed");
}

/// What 20,000 connections may take, each.
const MEMORY: [(&str, std::ops::Range<f64>); 3] = [
    ("target_bytes", 20.0..2_000.0),
    ("generator_bytes", 10.0..2_000.0),
    // Two sockets.
    ("kernel_bytes", 1_500.0..40_000.0),
];

fn is_carried_or_discarded(s: &Summary, (name, range): (&str, std::ops::Range<f64>)) {
    let all = s.at("cost.discarded").as_array().unwrap();
    let discarded = all.iter().find(|discarded| discarded["figure"] == name);
    let fit = &s.at("cost")[name];
    assert_eq!(fit.is_null(), discarded.is_some(), "{name}: {:#}", s.at("cost"));
    let number = |fit: &Value, key: &str| fit[key].as_f64().unwrap();
    let carries =
        |fit: &Value| number(fit, "r2") >= 0.9 && number(fit, "error") <= 0.1 * number(fit, "value");
    match discarded {
        None => assert!(carries(fit) && range.contains(&number(fit, "value")), "{name}: {fit}"),
        Some(discarded) => {
            let fit = &discarded["fit"];
            assert!(!carries(fit) || number(fit, "value") <= 0.0, "{name}: {fit}");
        }
    }
}

#[test]
fn a_handshake_has_a_price_at_both_ends() {
    let server = Serving::start(&["--threads", "1", "--tls"]);
    let target = format!("https://{}/", server.address);
    let args =
        ["-c", "800", "--ramp", "4s", "-d", "1s", "--think", "1m", "--threads", "1", "-k", "--no-resume"];
    let (_, s) = run(&target, &args);
    assert_eq!(s.count("tls_us.count"), 800);
    for (who, cpu_ns) in [("target", "observed.target.process"), ("generator", "observed.own")] {
        let (value, r2) = fit(&s, &format!("{who}_cpu_us_per_handshake"));
        let used = |part: &str| s.number(&format!("{cpu_ns}.cpu_{part}_ns.ramp")) / 1e3;
        let quotient = (used("user") + used("system")) / 800.0;
        // What throng does besides, each second, is in the quotient and not in the slope.
        assert!(
            (0.5..1.5).contains(&(value / quotient)) && r2 > 0.9,
            "{who}: {value}, by division {quotient}, R² {r2}"
        );
        // Of so few connections it is no cost of opening one.
        assert!(s.at(&format!("cost.{who}_cpu_us_per_open")).is_null());
    }
}

#[test]
fn a_response_has_a_price() {
    let server = Serving::start(&["--threads", "1"]);
    let (_, s) = run(&server.url("/"), &["-c", "10", "-d", "4s", "--threads", "1"]);
    for (name, cpu_ns) in [
        ("target_cpu_us_per_request", "observed.target.process"),
        ("generator_cpu_us_per_request", "observed.own"),
    ] {
        let (value, r2) = fit(&s, name);
        let used_us: f64 = ["user", "system"]
            .map(|part| s.number(&format!("{cpu_ns}.cpu_{part}_ns.hold")) / 1e3)
            .iter()
            .sum();
        let quotient = used_us / s.count("latency_us.count") as f64;
        assert!(
            (value / quotient - 1.0).abs() < 0.5 && r2 > 0.9,
            "{name}: {value}, by division {quotient}, R² {r2}"
        );
    }
    // Ten connections are too few for a slope of memory.
    for name in ["target_bytes", "generator_bytes", "kernel_bytes", "ceiling_connections"] {
        assert_eq!(s.at(&format!("cost.{name}")), &Value::Null, "{name}");
    }
    assert_eq!(s.at("cost.target_cpu_us_per_idle_second"), &Value::Null, "they are not idle");
}
