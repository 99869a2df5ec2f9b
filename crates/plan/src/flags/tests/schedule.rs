use super::*;

#[test]
fn a_schedule_of_the_whole_run() {
    let load = |line: &[&str]| {
        let plan = plan(&flags(line)).unwrap();
        (plan.populations[0].load, plan.populations[0].calls, plan.stages[0].ramp, plan.stages[0].hold)
    };
    let ten = Hold::For(Nanos::from_secs(10));
    let rate = |connections| Load::Rate { connections, rate: Rate::per_s(20_000) };
    assert_eq!(load(&[URL, "-c", "1k", "--rate", "20k/s"]), (rate(1_000), None, Ramp::Adaptive, ten));
    for target in ["ws://127.0.0.1:9", "tcp://127.0.0.1:9"] {
        assert_eq!(
            load(&[target, "--message", "x", "--rate", "20k/s"]),
            (rate(50), None, Ramp::Adaptive, ten)
        );
    }
    let arrive = [URL, "--arrive", "6k/s", "--total", "40k", "--calls", "10"];
    let six = Load::Arrivals { rate: Rate::per_s(6_000), total: Some(40_000) };
    assert_eq!(load(&arrive), (six, Some(10), Ramp::Adaptive, Hold::Forever));
    assert_eq!(load(&[&arrive[..5], &["-d", "10s"]].concat()), (six, Some(1), Ramp::Adaptive, ten));
    let span = Spans { min: Nanos::from_secs(1), max: Nanos::from_secs(30) };
    assert_eq!(main(&[URL, "--reconnect", "1s..30s"]).reconnect, Reconnect::Backoff(span));
}

#[test]
fn schedules_that_contradict_each_other() {
    check(&[URL, "--rate", "20q"], &["--rate: \"20q\" is not a rate; use 20k/s or 600/m"]);
    check(&[URL, "--rate", "0"], &["--rate: \"0\" is not a rate greater than 0; use 20k/s"]);
    check(&[URL, "--rate", "0/s"], &["--rate: \"0/s\" is not a rate greater than 0; use 20k/s"]);
    // As other commands, which expect a unit.
    assert_eq!(a_rate("0", "1k/s").unwrap_err().to_string(), "\"0\" is not a rate greater than 0; use 1k/s");
    check(&[URL, "--rate", "1e12"], &["--rate: \"1e12\" is not a rate of at most 100m/s; use 20k/s"]);
    assert_eq!(a_rate("5", "1k/s").unwrap_err().to_string(), "\"5\" is not a rate; use 5/s");
    let due = "cannot be used with --rate, which sets when requests are due; remove one of the two";
    check(&[URL, "--rate", "5/s", "--think", "1s"], &[&format!("--think: {due}: \"1s\"")]);
    check(&["ws://127.0.0.1:9", "--rate", "5/s", "--ping", "1s"], &[&format!("--ping: {due}: \"1s\"")]);
    let tcp = "tcp:// sends nothing without a message; add --message ping";
    check(
        &["tcp://127.0.0.1:9", "--rate", "5/s", "--probe", "1/s"],
        &[&format!("--rate: {tcp}: \"5/s\""), &format!("--probe: {tcp}: \"1/s\"")],
    );
    check(&[URL, "--probe", "0/s"], &["--probe: \"0/s\" is not a rate greater than 0; use 10/s"]);
    let eaten = format!("--probe: a target, and no rate; use --probe 10/s: {URL:?}");
    check(&[URL, "--probe", URL], &[&eaten]);
    check(&[URL, "--probe", "many"], &["--probe: \"many\" is not a rate; use 20k/s or 600/m"]);
    check(&[URL, "--total", "9"], &["--total: requires --arrive 100/s; add it, or remove this: \"9\""]);
    check(
        &[URL, "--arrive", "0/s", "--calls", "0"],
        &[
            "--arrive: \"0/s\" is not a rate greater than 0; use 100/s",
            "--calls: \"0\" is not a number of at least 1; use 10 or 40k",
        ],
    );
    let line = [
        "-c",
        "5",
        "--ramp",
        "1/s",
        "--rate",
        "5/s",
        "--reconnect",
        "never",
        "--total",
        "9",
        "--arrive",
        "1/s",
    ];
    check(
        &[&[URL], &line[..]].concat(),
        &[
            "--connections: with --arrive, --total sets the number of connections; remove it: \"5\"",
            "--ramp: --arrive is the rate of dials; use a time in which it is reached, as 30s: \"1/s\"",
            "--rate: with --arrive, --calls sets the requests per connection; remove it: \"5/s\"",
            "--reconnect: with --arrive, no connection is dialled again; remove it: \"never\"",
        ],
    );
}
