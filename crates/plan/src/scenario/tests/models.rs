//! Defaults, load models and stages.

use super::written::{operations, program};
use super::*;

#[test]
fn a_file_of_one_line_is_the_command_line() {
    let scenario = right("target = \"http://127.0.0.1:1/\"");
    let stage = Stage {
        name: "up".to_owned(),
        of: vec![0],
        to: Share::ALL,
        ramp: Ramp::Adaptive,
        hold: Hold::For(Nanos::from_secs(10)),
    };
    assert_eq!((scenario.seed, scenario.threads, scenario.io), (77, 2, IoChoice::Auto));
    assert_eq!(scenario.stages, [stage]);
    let [main] = &scenario.populations[..] else { panic!("one population") };
    assert_eq!((main.name.as_str(), main.load, main.calls), ("main", Load::Held { connections: 50 }, None));
    assert_eq!((main.timeout, main.reconnect), (Nanos::from_secs(10), Reconnect::Planned));
    assert_eq!(program(&scenario), "0.get:\n    0  request GET / -> any\n    1  goto 0\n");
}

#[test]
fn keys_at_the_top_mean_the_same_as_flags() {
    let text = "target = \"http://127.0.0.1:1/\"\nconnections = \"1m\"\nramp = \"30s\"\nduration = \
        \"forever\"\n\
                think = \"5s..45s\"\nexpect = \"status=204\"";
    let scenario = right(text);
    assert_eq!(scenario.populations[0].load, Load::Held { connections: 1_000_000 });
    let stage = &scenario.stages[0];
    assert_eq!((stage.ramp, stage.hold), (Ramp::Within(Nanos::from_secs(30)), Hold::Forever));
    let expected = "0.get:\n    0  request GET / -> status 204\n    1  wait 5s..45s\n    2  goto 0\n";
    assert_eq!(program(&scenario), expected);
}

/// Stages of the file, and each expected stage as one line.
fn check_stages(stages: &str, expected: &[&str]) {
    let populations = "[[population]]\nname = \"a\"\n[[population]]\nname = \"b\"\n";
    let scenario = right(&format!("target = \"http://127.0.0.1:1/\"\n{stages}\n{populations}"));
    let line = |stage: &Stage| {
        format!("{} {:?} {} {:?} {:?}", stage.name, stage.of, stage.to, stage.ramp, stage.hold)
    };
    assert_eq!(scenario.stages.iter().map(line).collect::<Vec<_>>(), expected, "{stages}");
    let forever = scenario.stages.iter().any(|stage| stage.hold == Hold::Forever);
    let together = scenario.stages.iter().map(|stage| stage.hold.time().0).fold(0, u64::saturating_add);
    assert_eq!(scenario.hold(), (!forever).then_some(Nanos(together)), "{stages}");
}

#[test]
fn stages_follow_one_another() {
    check_stages("", &["up [0, 1] 100% Adaptive For(Nanos(10000000000))"]);
    check_stages(
        "[[stage]]\n[[stage]]\nfor = \"1s\"\n[[stage]]\nto = \"50%\"\nramp = \"0s\"\n[[stage]]\nto = \
            \"75%\"\n[[stage]]\nto = \"0%\"",
        &[
            "up [0, 1] 100% Adaptive For(Nanos(0))",
            "hold [0, 1] 100% Adaptive For(Nanos(1000000000))",
            "down [0, 1] 50% Within(Nanos(0)) For(Nanos(0))",
            "up [0, 1] 75% Adaptive For(Nanos(0))",
            "down [0, 1] 0% Adaptive For(Nanos(0))",
        ],
    );
    check_stages(
        "[[stage]]\nof = [\"b\"]\nto = \"10%\"\n[[stage]]\nname = \"the rest\"\nof = [\"b\", \"a\"]\nto = \
            \"20%\"",
        &["up [1] 10% Adaptive For(Nanos(0))", "the rest [0, 1] 20% Adaptive For(Nanos(0))"],
    );
}

/// Checks program and calls of a population with these keys.
fn check(keys: &str, calls: Option<u64>, expected: &[&str]) {
    let scenario = right(keys);
    assert_eq!(scenario.populations[0].calls, calls, "{keys}");
    let ops = operations(&scenario);
    assert_eq!(ops, expected, "{keys}");
}

#[test]
fn programs_without_steps() {
    check("target = \"tcp://127.0.0.1:9\"", None, &["stay"]);
    check("target = \"tcp://127.0.0.1:9\"\nmessage = \"x\"", None, &["ping \"x\" each 30s"]);
    check("target = \"ws://127.0.0.1:9\"\nmessage = \"\"\nping = \"5s\"", None, &["ping \"\" each 5s"]);
    check("target = \"http://127.0.0.1:9\"\nhttp2 = true\nping = \"5s\"", None, &["ping \"\" each 5s"]);
    for (keys, keep_alive) in [
        ("http2 = true\nping = \"5s\"", None),
        ("http2 = true\nping = \"5s\"\nthink = 0", Some(5)),
        ("http2 = true\nping = \"5s\"\nrate = \"5/s\"", Some(5)),
        ("http2 = true\nping = \"5s\"\narrive = \"5/s\"", Some(5)),
    ] {
        let plan = right(&format!("target = \"http://127.0.0.1:9\"\n{keys}"));
        assert_eq!(plan.populations[0].keep_alive, keep_alive.map(Nanos::from_secs), "{keys}");
        let has_steps = matches!(plan.populations[0].activity, Activity::Steps { .. });
        assert_eq!(has_steps, keep_alive.is_some(), "{keys}");
    }
    check("target = \"ws://127.0.0.1:9\"\nhttp2 = true\nstreams = 3", None, &["ping \"ping\" each 30s"]);
    let echoes = ["send \"ping\"", "expect echo", "goto 0"];
    check("target = \"ws://127.0.0.1:9\"\nrate = \"5/s\"", None, &["ping \"ping\" each 30s"]);
    check("target = \"ws://127.0.0.1:9\"\ncalls = 3", Some(3), &echoes);
    check("target = \"ws://127.0.0.1:9\"\narrive = \"5/s\"", Some(1), &echoes);
    check("target = \"tcp://127.0.0.1:9\"\narrive = \"5/s\"", None, &["stay"]);
    let requests = ["request GET / -> any", "goto 0"];
    check("target = \"http://127.0.0.1:9\"\narrive = \"5/s\"", Some(1), &requests);
    check("target = \"http://127.0.0.1:9\"\narrive = \"5/s\"\ncalls = 7", Some(7), &requests);
}

#[test]
fn an_arrival_goes_through_its_steps_once() {
    let top = "[[population]]\nname = \"a\"\ntarget = \"http://127.0.0.1:9\"\narrive = \"5/s\"\n";
    let step = "[[population.step]]\nrequest = \"/x\"\n";
    check(&format!("{top}{step}"), None, &["request GET /x -> any", "close"]);
    check(&format!("{top}calls = 2\n{step}"), Some(2), &["request GET /x -> any", "goto 0"]);
    check(&format!("{top}calls = 2\nloop = false\n{step}"), Some(2), &["request GET /x -> any", "close"]);
}

#[test]
fn a_population_inherits_the_keys_at_the_top() {
    let text = "target = \"http://127.0.0.1:9/top\"\nthink = \"2s\"\nexpect = { status = 204 }\nping = \
        \"7s\"\nmessage = \"hey\"\n\
                [[population]]\nname = \"a\"\n\
                [[population]]\nname = \"b\"\nthink = \"1s\"\nexpect = { body = \"x\" }\n\
                [[population]]\nname = \"c\"\nrate = \"5/s\"\n\
                [[population]]\nname = \"d\"\ntarget = \"ws://127.0.0.1:9\"\n";
    let ops = operations(&right(text));
    #[rustfmt::skip]
    let expected = [
        "request GET /top -> status 204", "wait 2s", "goto 0",
        "request GET /top -> body \"x\"", "wait 1s", "goto 3",
        "request GET /top -> status 204", "goto 6",
        "ping \"hey\" each 7s",
    ];
    assert_eq!(ops, expected);
}

#[test]
fn the_probe_uses_the_first_http_target() {
    let text = "target = \"ws://127.0.0.1:9\"\nprobe = \"5/s\"\n[[population]]\nname = \"a\"\n\
                [[population]]\nname = \"b\"\ntarget = \"http://127.0.0.1:9/b\"\n";
    assert_eq!(right(text).probe.unwrap().target().path.to_string(), "/b");
    let own = "target = \"ws://127.0.0.1:9\"\n[probe]\nrate = \"30/m\"\ntarget = \
        \"http://127.0.0.1:9/c?x={seq}\"\n";
    let probe = right(own).probe.unwrap();
    assert_eq!(
        (probe.rate.to_string(), probe.target().path.to_string()),
        ("0.5/s".to_owned(), "/c?x={seq}".to_owned())
    );
    assert_eq!(right("target = \"ws://127.0.0.1:9\"").probe, None);
}

#[test]
fn the_probe_speaks_what_the_load_speaks_there() {
    let streams = |text: &str| right(text).probe.unwrap().populations.map(|own| own.streams);
    let population =
        "[[population]]\nname = \"a\"\ntarget = \"http://127.0.0.1:9/a\"\nhttp2 = true\nstreams = 5\n";
    assert_eq!(streams(&format!("probe = \"5/s\"\n{population}")), [Some(1); 2]);
    let own = |target: &str| format!("[probe]\nrate = \"5/s\"\ntarget = \"{target}\"\n{population}");
    assert_eq!(streams(&own("http://127.0.0.1:9/b")), [Some(1); 2]);
    assert_eq!(streams(&own("http://127.0.0.1:8/a")), [None; 2]);
}

/// A thread without a connection could not send its share of the rate.
#[test]
fn with_a_rate_each_thread_has_a_connection_in_any_stage() {
    let check = |load: &str, expected: u32| {
        let stages = "[[stage]]\nfor = \"1s\"\n[[stage]]\nto = \"3%\"\n[[stage]]\nto = \"0%\"\n[[stage]]\nto = \"50%\"";
        let scenario = right(&format!("target = \"http://127.0.0.1:1/\"\n{load}\n{stages}"));
        assert_eq!(scenario.most_threads(0), expected, "{load}");
    };
    check("connections = 100\nrate = \"1k/s\"", 3);
    check("connections = 100", 100);
}

#[test]
fn the_probe_has_the_timeout_of_the_files_top() {
    let check = |more: &str, expected_ms: u64| {
        let scenario = right(&format!("target = \"http://127.0.0.1:1/\"\n{more}"));
        let own = &scenario.probe.as_ref().expect("it has one").populations;
        assert!(own.iter().all(|own| own.timeout == Nanos::from_millis(expected_ms)), "{more}");
        assert_eq!(scenario.longest_timeout(), Nanos::from_millis(expected_ms.max(500)), "{more}");
    };
    check("probe = \"5/s\"\ntimeout = \"500ms\"", 500);
    check("timeout = \"500ms\"\n[probe]\nrate = \"5/s\"\ntarget = \"http://127.0.0.1:1/p\"", 500);
    // A population's timeout does not apply to the probe.
    check("probe = \"5/s\"\n[[population]]\nname = \"a\"\ntimeout = \"500ms\"", 10_000);
}
