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
    // What comes in at once touches the server's buffers, more of them the busier this machine is: let it be done.
    run(&server.url("/"), &["-c", "2000", "-d", "500ms"]);
    let args = ["-c", "20000", "--ramp", "4s", "-d", "2s", "--think", "1m", "--threads", "1"];
    // Others on this machine take and give memory meanwhile: then throng says that it does not know, and is asked again.
    let mut runs = (0..3).map(|_| run(&server.url("/"), &args));
    let known = runs.find(|(_, s)| !s.at("cost.ceiling_connections").is_null());
    let (ended, s) = known.expect("one of three is not disturbed");
    ended.assert_status(0);
    let (value, r2) = fit(&s, "target_bytes");
    assert!((20.0..2_000.0).contains(&value) && r2 > 0.95, "{value}, R² {r2}: {:#}", s.at("cost"));
    let (value, r2) = fit(&s, "generator_bytes");
    assert!((10.0..2_000.0).contains(&value) && r2 > 0.5, "{value}, R² {r2}: {:#}", s.at("cost"));
    assert_eq!(s.number("target_cost.user_bytes_per_connection"), fit(&s, "target_bytes").0);
    assert_eq!(s.number("generator.user_bytes_per_connection"), fit(&s, "generator_bytes").0);
    // Two sockets.
    let (kernel, _) = fit(&s, "kernel_bytes");
    assert!((1_500.0..20_000.0).contains(&kernel), "{:#}", s.at("cost"));
    let (cpu, r2) = fit(&s, "target_cpu_us_per_open");
    assert!((1.0..1_000.0).contains(&cpu) && r2 > 0.9, "{cpu} µs, R² {r2}");
    let ceiling = s.count("cost.ceiling_connections");
    assert!((20_001..1 << 40).contains(&ceiling), "{ceiling}");
    let line = ended.stderr.lines().find(|line| line.starts_with("  cost ")).expect("a line");
    assert!(line.contains("bytes a connection: target ") && line.contains("memory for about "), "{line}");
}

#[test]
fn an_answer_has_a_price() {
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
