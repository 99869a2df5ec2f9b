//! A mistake hides no other one, as far as the others can be determined: all should be reported by a single run.

use super::{listed, mistakes::check, scenario};

#[test]
fn the_keys_beside_a_wrong_target_are_read() {
    let steps = "[[population.step]]\nrequest = \"GET me\"\nheaders = { A = 5.5, B = \"x\", C = true }\n\
        [[population.step]]\nrequest = \"/b\"\nexpect = { status = 99 }\n";
    check(
        &format!("[[population]]\nname = \"a\"\ntarget = \"https://nowhere/\"\nloop = \"x\"\n{steps}"),
        &[
            "3:10: population.a.target: \"nowhere\" has no address: no such host",
            "6:11: population.a.step[1].request: a path starts with /, and the host is that of the target; use GET /: \"me\"",
            "7:17: population.a.step[1].headers.A: a floating-point number is not allowed here; use headers = { Content-Type = \"application/json\" }",
            "7:35: population.a.step[1].headers.C: true or false is not allowed here; use headers = { Content-Type = \"application/json\" }",
            "10:21: population.a.step[2].expect.status: \"99\" is not a status; use 200 to 599",
        ],
    );
}

#[test]
fn a_step_of_two_actions_is_read_as_the_first_of_them() {
    check(
        "target = \"ws://127.0.0.1:1/\"\n[[population]]\nname = \"a\"\n[[population.step]]\nsend = \"\"\nsend-hex = \"00\"\n",
        &[
            "5:8: population.a.step[1].send: an empty message has no echo; use a non-empty text: \"\"",
            "6:12: population.a.step[1].send-hex: a step has one action, and this one also has send; use another step",
        ],
    );
}

/// A population that was left out because of a mistake may hold its connections.
#[test]
fn a_threshold_on_those_held_is_refused_only_where_all_populations_are_known() {
    let file = |connections: &str| {
        format!(
            "target = \"http://127.0.0.1:1/\"\nthresholds = [\"held >= 5\"]\n\
             [[population]]\nname = \"a\"\narrive = \"5/s\"\n{connections}"
        )
    };
    check(
        &file(""),
        &[
            "2:15: thresholds: \"held >= 5\" is not a condition for connections that are closed after their requests, \
           and not held; use errors < 1%, answered >= 99% or finished >= 99%",
        ],
    );
    let mistakes = scenario(&file("[[population]]\nname = \"b\"\nconnections = \"x\"\n")).unwrap_err();
    assert!(listed(&mistakes).iter().all(|mistake| !mistake.contains("held")), "{mistakes:?}");
}

#[test]
fn thresholds_and_stages_are_read_beside_other_mistakes() {
    let populations = "[[population]]\nname = \"a\"\n[[population.step]]\nname = \"me\"\nrequest = \"me\"\n\
        [[population]]\nname = \"b\"\n";
    // A threshold may name a step that was left out because of a mistake.
    check(
        &format!(
            "target = \"http://127.0.0.1:1/\"\nthresholds = [\"latency.p95 < 5x\", \"a.me.latency.p99 < 1s\", 7]\n\
             {populations}[[stage]]\nof = [\"a\"]\n"
        ),
        &[
            "2:15: thresholds: \"5x\" is not a time; use 200ms",
            "2:60: thresholds: a number is not allowed here; use thresholds = [\"held >= 99.9%\", \"users.latency.p99 < 50ms\"]",
            "7:11: population.a.step.me.request: \"me\" is not a method; use ME",
            "8:1: population.b: no stage starts it; add \"b\" to the `of` of a stage",
        ],
    );
}
