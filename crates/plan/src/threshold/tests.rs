use super::*;
use proptest::prelude::*;

/// Path, bound, and whether it is a share; or the message.
fn check(text: &str, expected: Result<(&str, f64, bool), &str>) {
    let names = Names::made_up(&[("users", &["login", "held"])]);
    let read = Threshold::named(text, &names).map_err(|e| {
        let said = e.to_string();
        // The list of all figures that follows is left out.
        let list = ["; all figures:", " one of:"].iter().find_map(|list| said.find(list));
        said[..list.unwrap_or(said.len())].to_owned()
    });
    let read = read.as_ref().map(|t| (t.figure.path(), t.bound, t.is_share)).map_err(String::as_str);
    let expected = expected.map(|(path, bound, is_share)| (path.to_owned(), bound, is_share));
    assert_eq!(read, expected, "{text}");
}

#[test]
fn reads_what_people_write() {
    check("latency.p99 < 200ms", Ok(("latency_us.p99", 200_000.0, false)));
    check("latency.p99 < 200 ms", Ok(("latency_us.p99", 200_000.0, false)));
    check("ramp < 2min", Ok(("ramp_s", 120.0, false)));
    check("answered >= 1e6", Ok(("requests.answered", 1e6, false)));
    check("answered >= 10_000", Ok(("requests.answered", 10_000.0, false)));
    check("per_s >= 1e3/s", Ok(("requests.per_s", 1_000.0, false)));
    check("generator.rss_bytes < 64 MiB", Ok(("generator.rss_bytes", f64::from(64 << 20), false)));
    check("latency_us.p999 < 5000", Ok(("latency_us.p999", 5_000.0, false)));
    check("latency_us.p999<5ms", Ok(("latency_us.p999", 5_000.0, false)));
    check("latency_us.mean < 0.5", Ok(("latency_us.mean", 0.5, false)));
    check("connect.p99 < 1s", Ok(("connect_us.p99", 1e6, false)));
    check("lag.max<=1.5ms", Ok(("lag_us.max", 1_500.0, false)));
    check("latency.count >= 10k", Ok(("latency_us.count", 10_000.0, false)));
    check("probe.p99 < 50ms", Ok(("probe.latency_us.p99", 50_000.0, false)));
    check("probe.connect.p50 < 5ms", Ok(("probe.connect_us.p50", 5_000.0, false)));
    check("faults == 0", Ok(("faults", 0.0, false)));
    check("held >= 99.9%", Ok(("connections.held", 99.9, true)));
    check("connections.held>=1m", Ok(("connections.held", 1e6, false)));
    check("errors < 1%", Ok(("errors.count", 1.0, true)));
    check("errors == 0", Ok(("errors.count", 0.0, false)));
    check("users.errors < 0.5%", Ok(("populations.users.errors.count", 0.5, true)));
    check("errors.count < 5", Ok(("errors.count", 5.0, false)));
    check("failed < 200%", Ok(("connections.failed", 200.0, true)));
    check("held <= 99%", Ok(("connections.held", 99.0, true)));
    check("latency.p95 < 1ms", Ok(("latency_us.p95", 1_000.0, false)));
    check("bytes_in_per_s > 10MB/s", Ok(("requests.bytes_in_per_s", 10e6, false)));
    check("bytes_out_per_s >= 64KiB", Ok(("requests.bytes_out_per_s", 65_536.0, false)));
    check("failed <= 10", Ok(("connections.failed", 10.0, false)));
    check("requests.per_s >= 20k", Ok(("requests.per_s", 20_000.0, false)));
    check("requests.per_s >= 20k/s", Ok(("requests.per_s", 20_000.0, false)));
    check("connections.open_per_s > 0.5", Ok(("connections.open_per_s", 0.5, false)));
    check("requests.status.404 != 0", Ok(("requests.status.404", 0.0, false)));
    check("status.200 >= 99%", Ok(("requests.status.200", 99.0, true)));
    check("answered == 100%", Ok(("requests.answered", 100.0, true)));
    check("ramp_s < 30", Ok(("ramp_s", 30.0, false)));
    check("ramp < 1m", Ok(("ramp_s", 60.0, false)));
    check("generator.rss_bytes < 1GiB", Ok(("generator.rss_bytes", f64::from(1 << 30), false)));
    check("generator.cpu_share < 95%", Ok(("generator.cpu_share", 0.95, false)));
    check("generator.cpu_share < 0.95", Ok(("generator.cpu_share", 0.95, false)));
    check("cost.target_bytes.value < 1k", Ok(("cost.target_bytes.value", 1_000.0, false)));
    check("observed.host.tcp.syn_retrans == 0", Ok(("observed.host.tcp.syn_retrans", 0.0, false)));
    check("users.latency.p99 < 50ms", Ok(("populations.users.latency_us.p99", 50_000.0, false)));
    check("users.held >= 99%", Ok(("populations.users.connections.held", 99.0, true)));
    check("users.faults == 0", Ok(("populations.users.faults", 0.0, false)));
    check("users.status.404 == 0", Ok(("populations.users.requests.status.404", 0.0, false)));
    let login = "populations.users.steps.login.latency_us.p99";
    check("users.login.latency.p99 < 50ms", Ok((login, 50_000.0, false)));
    check("users.login.latency_us.p99 < 50", Ok((login, 50.0, false)));
    let ramp = "populations.users.steps.login.ramp_latency_us.p99";
    check("users.login.ramp_latency.p99 < 50ms", Ok((ramp, 50_000.0, false)));
    check("users.login.faults <= 5", Ok(("populations.users.steps.login.faults", 5.0, false)));
}

#[test]
fn a_mistake_has_its_fix() {
    check("latency.p99", Err("\"latency.p99\" is not a threshold; use latency.p99 < 200ms"));
    check("faults = 0", Err("\"faults = 0\" is not a threshold; use latency.p99 < 200ms"));
    check("< 5", Err("\"< 5\" is not a threshold; use latency.p99 < 200ms"));
    check("faults ==", Err("\"faults ==\" is not a threshold; use latency.p99 < 200ms"));
    check("", Err("\"\" is not a threshold; use latency.p99 < 200ms"));
    check("latncy.p99 < 1s", Err("\"latncy.p99\" is not a figure of the summary; use latency.p99"));
    check("latency.p98 < 1s", Err("\"latency.p98\" is not a figure of the summary; use latency.p95"));
    check("p99 < 1s", Err("\"p99\" is not a figure of the summary; use latency.p99"));
    let each = "is not a threshold; use one for each condition: --threshold 'latency.p95 < 200ms' --threshold 'errors < 1%'";
    for text in ["latency.p95<200ms, errors<1%", "errors < 1% and held >= 5", "errors < 1% && held >= 5"] {
        check(text, Err(&format!("{text:?} {each}")));
    }
    check("helds > 1", Err("\"helds\" is not a figure of the summary; use held"));
    check("quite something > 1", Err("\"quite something\" is not a figure of the summary; use"));
    check("others.latency.p99 < 1s", Err("\"others.latency.p99\" is not a figure of the summary; use"));
    let of_users = |name: &str, fix: &str| {
        check(
            &format!("users.{name} < 1s"),
            Err(&format!("\"users.{name}\" is not a figure of the summary; use {fix}")),
        );
    };
    of_users("logn.latency.p99", "users.login.latency.p99");
    of_users("leave.latency.p99", "users.login.latency.p99 or users.held.latency.p99");
    of_users("login.connect.p99", "users.connect.p99, of all its steps");
    of_users("lag.p99", "lag.p99, of the whole run");
    check("latency.p99 < 200", Err("\"200\" is not a time; use 200ms"));
    check("latency.p99 < 20%", Err("\"20%\" is not a time; use 200ms"));
    check("ramp < 30", Err("\"30\" is not a time; use 30s"));
    check("faults == few", Err("\"few\" is not a count; use 10 or 100k"));
    check("faults < 1%", Err("\"1%\" is not a count; use 10 or 100k"));
    check("observed.x < much", Err("\"much\" is not a number; use 0.5 or 100k"));
    for name in ["cost.", "cost.a..b", "observed.A", "costs.a"] {
        assert!(Threshold::parse(&format!("{name} < 1"), &[]).is_err(), "{name}");
    }
    let share = |bound: &str, percent: &str, number: &str| {
        format!(
            "{bound:?} is not a share; use errors < {percent} (a share of the requests) or errors.count < {number} (a number)"
        )
    };
    check("errors < 1", Err(&share("1", "1%", "1")));
    check("errors < 0.01", Err(&share("0.01", "1%", "10")));
    check("errors < 500", Err(&share("500", "1%", "500")));
    let of_users = "\"5\" is not a share; use users.errors <= 5% (a share of the requests) or users.errors.count <= 5 (a number)";
    check("users.errors <= 5", Err(of_users));
    check("held >= 200%", Err("\"held >= 200%\" is not a condition that can be met; use held >= 99%"));
    check("held > 100%", Err("\"held > 100%\" is not a condition that can be met; use held > 99%"));
    check("errors < 101%", Err("\"errors < 101%\" is not a condition that can fail; use errors < 1%"));
    check(
        "status.200 == 101%",
        Err("\"status.200 == 101%\" is not a condition that can be met; use status.200 == 99%"),
    );
    check("failed < -1", Err("\"-1\" is not a count; use 10 or 100k"));
    check("held >= many%", Err("\"many%\" is not a share; use 99.9%"));
    check("per_s > fast", Err("\"fast\" is not a rate; use 20k/s"));
    check("bytes_in > NaN", Err("\"NaN\" is not a number of bytes; use 512, 64KiB or 10MB"));
    check("faults < 1 < 2", Err("\"1 < 2\" is not a count; use 10 or 100k"));
}

#[test]
fn of_connections_that_come_and_go_none_is_held() {
    let population = |name: &str, arrives: bool| {
        let resolve = |_: &str| Err("no names here".to_owned());
        let around = crate::Environment { cores: 1, seed: 1, resolve: &resolve };
        let flags = crate::Flags::new("http://127.0.0.1:1/");
        let flags = if arrives {
            flags.with(&crate::flag::ARRIVE, "9/s").with(&crate::flag::TOTAL, "9")
        } else {
            flags
        };
        let plan = crate::from_flags(&flags, &around).expect("it is right");
        Population { name: name.to_owned(), ..plan.populations[0].clone() }
    };
    let (held, guests) = (population("users", false), population("guests", true));
    let check = |text: &str, populations: &[&Population], is_right: bool| {
        let all: Vec<Population> = populations.iter().map(|own| (*own).clone()).collect();
        let why = Threshold::parse(text, &all).err().map(|why| why.to_string());
        let refused = format!(
            "{text:?} is not a condition for connections that are closed after their requests, and not held; \
             use errors < 1%, answered >= 99% or finished >= 99%"
        );
        assert_eq!(why, (!is_right).then_some(refused));
    };
    check("held >= 99%", &[&guests], false);
    check("connections.held >= 5", &[&guests], false);
    // How many visits are open when the load ends is random.
    let visits = Population { calls: Some(3), ..held.clone() };
    check("held >= 99%", &[&visits], false);
    check("users.held >= 99%", &[&visits, &guests], false);
    check("held >= 99%", &[&held], true);
    check("held >= 5", &[&held, &guests], true);
    check("guests.held >= 99%", &[&held, &guests], false);
    check("users.held >= 99%", &[&held, &guests], true);
    for text in ["finished >= 99%", "errors < 1%", "answered >= 99%", "peak < 9"] {
        check(text, &[&guests], true);
    }
}

#[test]
fn a_value_is_shown_with_its_unit() {
    for (text, value, expected) in [
        ("latency.p99 < 10us", 140.671, "141 µs"),
        ("latency_us.p99 < 10", 140_671.0, "141 ms"),
        ("held >= 99.9%", 99.8765, "99.877 %"),
        ("errors < 1%", 2.0, "2 %"),
        ("errors.count < 5", 1_234.0, "1,234"),
        ("per_s > 5", 81_226.698, "81,227/s"),
        ("bytes_in_per_s > 37 MB/s", 38_448_245.5, "38.4 MB/s"),
        ("bytes_in_per_s > 1MB", 22_032_384.0, "22.0 MB/s"),
        ("bytes_in_per_s > 1MiB/s", 22_032_384.0, "21.0 MiB/s"),
        ("bytes_in_per_s > 1000000", 22_032_384.0, "21.0 MiB/s"),
        ("bytes_in < 1GB", 120_025_800.0, "120 MB"),
        ("generator.cpu_share < 95%", 0.5, "50.0 %"),
        ("ramp < 1m", 12.34, "12.3 s"),
    ] {
        assert_eq!(Threshold::parse(text, &[]).unwrap().shown(value), expected, "{text}");
    }
}

#[test]
fn a_wrong_figure_lists_those_that_exist() {
    let said = |text: &str| Threshold::parse(text, &[]).unwrap_err().to_string();
    for text in ["foo < 1", "latncy.p99 < 1s"] {
        for figure in ["errors", "held", ".p95", "latency", "status.CODE", "bytes_in_per_s", "probe.fresh"] {
            assert!(said(text).contains(figure), "{figure}: {}", said(text));
        }
    }
    assert!(
        said("latncy.p99 < 1s").contains("; use latency.p99; all figures:\n  times: latency, "),
        "{}",
        said("latncy.p99 < 1s")
    );
}

#[test]
fn each_operator_compares_as_it_reads() {
    for (sign, less, equal, greater) in [
        ("<", true, false, false),
        ("<=", true, true, false),
        (">", false, false, true),
        (">=", false, true, true),
        ("==", false, true, false),
        ("!=", true, false, true),
    ] {
        let threshold = Threshold::parse(&format!("faults {sign} 5"), &[]).unwrap();
        let met = [4.0, 5.0, 6.0].map(|value| threshold.is_met_by(value));
        assert_eq!(met, [less, equal, greater], "{sign}");
    }
}

#[test]
fn times_of_the_target_are_known_from_others() {
    for (name, expected) in [
        ("latency.p99", true),
        ("probe.p99", true),
        ("connect.max", true),
        ("lag.p99", false),
        ("latency.count", false),
    ] {
        assert_eq!(Names::of(&[]).figure(name).unwrap().is_latency(), expected, "{name}");
    }
}

proptest! {
    /// Any text is parsed or refused without a panic.
    #[test]
    fn any_text_is_survived(text in "[a-z_.]{0,12} ?[<>=!]{0,2} ?[0-9a-z.%/]{0,8}|\\PC{0,30}") {
        let _ = Threshold::named(&text, &Names::made_up(&[("", &[""])])).map_err(|e| e.to_string());
    }
}
