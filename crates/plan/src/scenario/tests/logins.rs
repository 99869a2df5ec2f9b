//! Scenarios that log in: what they may contain, and their mistakes.

use super::mistakes::{HTTP, TCP, WS, check};
use super::*;
use crate::{Act, Body, From, Then};

/// A population called a with the lines `more` before its steps; each step begins at the line after `[[population.step]]`.
fn population(target: &str, more: &str, steps: &[&str]) -> String {
    let steps: String = steps.iter().map(|step| format!("\n[[population.step]]\n{step}")).collect();
    format!("[[population]]\nname = \"a\"\ntarget = \"{target}\"{more}{steps}")
}

const LOGIN: &str = "request = \"POST /login\"\ncapture = { token = { json = \"/t\" } }";

fn steps(text: &str) -> (Vec<crate::Step>, Then) {
    let Activity::Steps { steps, then } = right(text).populations.remove(0).activity else { panic!("steps") };
    (steps, then)
}

#[test]
fn variables_have_places_in_the_order_of_their_captures() {
    let both = "request = \"/\"\n[population.step.capture]\nb = { header = \"X\" }\na = { cookie = \"c\" }";
    let text = population(HTTP, "", &[LOGIN, both, "request = \"/{var a}?{var token}\"\nbody = \"{var b}\""]);
    let plan = right(&text);
    assert_eq!(plan.populations[0].variables, ["token", "b", "a"]);
    let (steps, _) = steps(&text);
    let Act::Request { request, .. } = &steps[1].act else { panic!("a request") };
    let froms: Vec<(u16, From)> =
        request.expect.captures.iter().map(|own| (own.nth, own.from.clone())).collect();
    assert_eq!(froms, [(1, From::Header("X".to_owned())), (2, From::Cookie("c".to_owned()))]);
    let Act::Request { request, .. } = &steps[2].act else { panic!("a request") };
    let body = request.body.as_ref().map(ToString::to_string);
    assert_eq!(
        (request.path.to_string().as_str(), body.as_deref()),
        ("/{var a}?{var token}", Some("{var b}"))
    );
}

#[test]
fn variables_that_nothing_captures_are_mistakes() {
    check(
        &population(HTTP, "", &["request = \"/{var token}\""]),
        &[
            "5:13: population.a: no step of the population captures it; add capture = { token = { json = \"/token\" } } to a step: \"token\"",
        ],
    );
    check(
        &population(HTTP, "", &[LOGIN, "request = \"/{var tokn}\""]),
        &["8:13: population.a: no step of the population captures it; use token: \"tokn\""],
    );
    check(
        &population(HTTP, "", &["name = \"me\"\nrequest = \"/{var token}\"", LOGIN]),
        &[
            "6:13: population.a.step.me: used before a step captures it; capture it in an earlier step: \"token\"",
        ],
    );
    check(
        &population("http://127.0.0.1:1/{var x}", "", &[LOGIN, "request = \"GET\""]),
        &["3:30: population.a: no step of the population captures it; use token: \"x\""],
    );
}

#[test]
fn places_of_captures_are_checked() {
    let capture =
        |what: &str| population(HTTP, "", &[&format!("request = \"/\"\ncapture = {{ t = {what} }}")]);
    let at = "6:13: population.a.step[1].capture.t";
    check(
        &capture("{}"),
        &[&format!("{at}: exactly one place; use json = \"/token\", header, cookie or regex")],
    );
    check(
        &capture("{ json = \"/a\", header = \"X\" }"),
        &[&format!("{at}: exactly one place; use json = \"/token\", header, cookie or regex")],
    );
    check(
        &capture("{ json = \"a\" }"),
        &["6:26: population.a.step[1].capture.t.json: a JSON pointer starts with /; use /a: \"a\""],
    );
    check(
        &capture("{ json = \"/a~2\" }"),
        &[
            "6:26: population.a.step[1].capture.t.json: ~ is written ~0, and / in a name ~1 (RFC 6901): \"/a~2\"",
        ],
    );
    check(
        &capture("{ regex = \"(\" }"),
        &["6:27: population.a.step[1].capture.t.regex: not a regular expression: unclosed group"],
    );
    check(
        &population(WS, "", &["expect = {}\ncapture = { t = { header = \"X\" } }"]),
        &[
            "6:13: population.a.step[1].capture.t: a message has no header; use json = \"/token\" or regex = \"…\"",
        ],
    );
    check(
        &population(HTTP, "", &["wait = \"1s\"\ncapture = { t = { header = \"X\" } }"]),
        &["6:13: population.a.step[1].capture: cannot be used with wait; remove it, or use another step"],
    );
}

#[test]
fn requests_come_before_the_upgrade() {
    let hello = "send = \"{var token}\"";
    let text = population(WS, "", &[LOGIN, "wait = \"1s\"", hello, "wait = \"1s\""]);
    let (own, then) = steps(&text);
    let names: Vec<&str> = own.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["post-login", "wait", "upgrade", "send", "wait-2"]);
    assert_eq!(then, Then::Again(3), "a connection is upgraded once");
    assert_eq!(right(&text).populations[0].http_steps(), [true, true, true, false, false]);
    let messages = population(WS, "", &["wait = \"1s\"", "send = \"x\""]);
    assert_eq!((right(&messages).populations[0].http_steps(), steps(&messages).1), (vec![], Then::Again(0)));
    let closes = population(WS, "", &[LOGIN, hello, "close = true"]);
    assert_eq!(
        (right(&closes).populations[0].http_steps(), steps(&closes).1),
        (vec![true, true, false, false], Then::Again(0))
    );
    check(
        &population(WS, "", &[LOGIN, hello, "name = \"late\"\nrequest = \"/\""]),
        &[
            "1:1: population.a.step.late: the connection is a WebSocket by now; add a step with close = true before it",
        ],
    );
    check(
        &population(WS, "\nloop = true", &[LOGIN, hello]),
        &[
            "1:1: population.a.loop: begins again with a request, but the connection is a WebSocket by then; end with close = true, or name a step after the upgrade",
        ],
    );
    let http2 =
        right(&population(WS, "\nhttp2 = true", &[LOGIN, hello, "wait = \"1s\""])).populations.remove(0);
    assert_eq!((http2.streams, http2.http_steps()), (Some(1), vec![true, true, false, false]));
    check(
        &population(WS, "\nhttp2 = true\nstreams = 2", &[LOGIN, hello, "wait = \"1s\""]),
        &["5:11: population.a.streams: steps are those of one WebSocket on each connection; remove it"],
    );
    check(
        &population(HTTP, "", &["upgrade = \"/\""]),
        &["5:11: population.a.step[1].upgrade: requires a target with ws:// or wss://"],
    );
    check(
        &population(TCP, "\ncookies = true", &["expect = {}"]),
        &["4:11: population.a.cookies: requires a target with http:// or ws://"],
    );
}

#[test]
fn binary_messages_are_read() {
    let of = |step: &str| {
        let (own, _) = steps(&population(WS, "", &[&format!("{step}\nexpect = {{ echo = true }}")]));
        let Act::Send { message, .. } = own[0].act.clone() else { panic!("a message") };
        message
    };
    assert_eq!(of("send-hex = \"00 fF\""), Body::Hex(vec![0, 255]));
    assert_eq!(of("send-base64 = \"AP8=\""), Body::Base64(vec![0, 255]));
    assert!(matches!(of("send-file = \"m.bin\""), Body::File(content) if content.file == "m.bin"));
    for (step, why) in [
        ("send-hex = \"0\"", "5:12: population.a.step[1].send-hex: not pairs of hex digits; use 00ff: \"0\""),
        (
            "send-hex = \"\"",
            "5:12: population.a.step[1].send-hex: an empty message has no echo; use a non-empty one: \"\"",
        ),
        ("send-base64 = \"AP8\"", "5:15: population.a.step[1].send-base64: not base64; use AP8=: \"AP8\""),
    ] {
        check(&population(WS, "", &[step]), &[why]);
    }
}

#[test]
fn weights_redirects_and_json_are_checked() {
    let other = "wait = \"1s\"\nweight = 1";
    let (own, _) = steps(&population(HTTP, "", &["request = \"/\"\nweight = 3\nredirects = 5", other]));
    let Act::Request { request, .. } = &own[0].act else { panic!("a request") };
    assert_eq!((own[0].weight, request.redirects), (Some(3), 5));
    for (step, why) in [
        (
            "request = \"/\"\nweight = 0",
            "6:10: population.a.step[1].weight: \"0\" is not a weight; use 1 to 1000000",
        ),
        (
            "close = true\nweight = 1",
            "6:10: population.a.step[1].weight: a choice is between requests, messages and pauses; remove it",
        ),
        (
            "request = \"/\"\nredirects = 21",
            "6:13: population.a.step[1].redirects: \"21\" is not a number of redirects; use 0 to 20",
        ),
        (
            "request = \"/\"\nexpect = { json = { ok = true } }",
            "6:21: population.a.step[1].expect.json: a JSON pointer starts with /; use /ok: \"ok\"",
        ),
    ] {
        check(&population(HTTP, "", &[step]), &[why]);
    }
}

#[test]
fn a_weight_alone_is_a_mistake() {
    let (plain, weighted) = ("request = \"/\"", "request = \"/\"\nweight = 3");
    let lone = |line: u32, step: u32| {
        format!(
            "{line}:10: population.a.step[{step}].weight: weights choose between consecutive steps, and neither the step \
             before nor the one after has one; give its alternatives a weight too, or remove it"
        )
    };
    check(&population(HTTP, "", &[weighted]), &[&lone(6, 1)]);
    check(&population(HTTP, "", &[weighted, plain]), &[&lone(6, 1)]);
    check(&population(HTTP, "", &[plain, weighted]), &[&lone(8, 2)]);
    check(&population(HTTP, "", &[weighted, plain, weighted, weighted]), &[&lone(6, 1)]);
    check(&population(HTTP, "", &[plain, weighted, weighted]), &[]);
    // Only the mistake in the other step is reported.
    let wrong = "request = \"/\"\nweight = 0";
    let why = "9:10: population.a.step[2].weight: \"0\" is not a weight; use 1 to 1000000";
    check(&population(HTTP, "", &[weighted, wrong]), &[why]);
}

#[test]
fn the_values_of_the_environment_are_nowhere_but_in_what_is_sent() {
    let text = population(
        HTTP,
        "",
        &["request = \"/?k={env KEY}\"\nheaders = { X = \"{env KEY}\" }\nbody = \"{env OTHER}\""],
    );
    let mut plan = right(&text);
    assert_eq!(plan.missing_env(), ["KEY", "OTHER"]);
    plan.set_env(|name| (name == "KEY").then(|| "hush".to_owned())).unwrap();
    assert_eq!(plan.missing_env(), ["OTHER"]);
    assert!(!format!("{plan}{plan:?}").contains("hush") && plan.to_string().contains("{env KEY}"));
    let why = plan.set_env(|_| Some("a\r\nb".to_owned())).unwrap_err();
    assert_eq!(why, "{env KEY}: '\\r' is not allowed in a path; use %0D");
    let long = plan.set_env(|_| Some("x".repeat(4_097))).unwrap_err();
    assert_eq!(long, "{env KEY}: at most 4096 octets: 4097");
    check(
        &population(HTTP, "", &["request = \"/{env 1}\""]),
        &[
            "5:11: population.a.step[1].request: \"1\" is not the name of an environment variable; use {env TOKEN}",
        ],
    );
}

#[test]
fn all_of_it_reads_as_it_prints() {
    let http = population(
        HTTP,
        "\ncookies = true",
        &[
            "request = \"POST /login\"\nbody = \"{env KEY}\"\nredirects = 2\nexpect = { json = { \"/ok\" = true, \"/a~1b\" = \"\\\"\" } }\n\
             [population.step.capture]\na = { regex = '\"(x+)\"' }\nb = { json = \"\" }",
            "weight = 2\nrequest = \"/{var a}\"",
            "weight = 1\nrequest = \"/{var b}\"\nheaders = { X = \"{var a}\" }",
        ],
    );
    let ws = population(
        WS,
        "",
        &[
            LOGIN,
            "upgrade = \"/c?{var token}\"\nheaders = { Origin = \"{var token}\" }",
            "send-hex = \"00\"\ncapture = { m = { json = \"/m\" } }",
            "send = \"{var m}\"",
        ],
    );
    for text in [http, ws] {
        let first = right(&text);
        let printed = first.to_string();
        assert_eq!(right(&printed), first, "{printed}");
    }
}
