//! Mistakes in the steps of a population.

use super::mistakes::{HTTP, TCP, WS, check, check_population};

/// The first step of a population called a: it begins at line 4, its keys at line 5.
fn check_step(target: &str, lines: &str, expected: &[&str]) {
    let population = format!("[[population]]\nname = \"a\"\ntarget = \"{target}\"");
    check(&format!("{population}\n[[population.step]]\n{lines}"), expected);
}

#[test]
fn steps_do_one_thing_each() {
    check_step(HTTP, "", &["4:1: population.a.step[1]: the step does nothing; use request = \"GET /\""]);
    check_step(WS, "", &["4:1: population.a.step[1]: the step does nothing; use send = \"hello\""]);
    check_step(
        HTTP,
        "expect = {}",
        &["4:1: population.a.step[1]: the step does nothing; use request = \"GET /\""],
    );
    check_step(
        HTTP,
        "request = \"/\"\nwait = \"1s\"",
        &[
            "6:8: population.a.step[1].wait: a step has one action, and this one also has request; use another step",
        ],
    );
    check_step(
        HTTP,
        "wait = \"1s\"\nthink = \"1s\"\nexpect = \"status=200\"\nbody = \"x\"",
        &[
            "6:9: population.a.step[1].think: cannot be used with wait; remove it, or use another step",
            "7:10: population.a.step[1].expect: cannot be used with wait; remove it, or use another step",
            "8:8: population.a.step[1].body: cannot be used with wait; remove it, or use another step",
        ],
    );
    check_step(
        TCP,
        "request = \"/\"",
        &["5:11: population.a.step[1].request: tcp:// sends messages; use send = \"hello\""],
    );
    check_step(
        HTTP,
        "send = \"x\"",
        &["5:8: population.a.step[1].send: http:// sends requests; use request = \"POST /\" and body"],
    );
    check_step(
        HTTP,
        "close = false\n[[population.step]]\nrequest = \"/\"",
        &["5:9: population.a.step[1].close: false does nothing; remove the step"],
    );
    check_step(
        HTTP,
        "name = \"x y\"\nrequest = \"/\"",
        &["5:8: population.a.step.x y.name: \"x y\" is not a name; use letters, digits, - and _, a \
                letter first, at most 64"],
    );
    check_step(
        HTTP,
        "name = \"x\"\nrequest = \"/\"\n[[population.step]]\nname = \"x\"\nrequest = \"/\"",
        &["8:8: population.a.step.x.name: duplicate step name: \"x\""],
    );
}

#[test]
fn requests() {
    let request = |line: &str| format!("request = \"{line}\"");
    check_step(
        HTTP,
        &request("post /"),
        &["5:11: population.a.step[1].request: \"post\" is not a method; use POST"],
    );
    check_step(
        HTTP,
        &request("CONNECT /"),
        &["5:11: population.a.step[1].request: \"CONNECT\" is not a method; use GET"],
    );
    check_step(HTTP, &request(""), &["5:11: population.a.step[1].request: \"\" is not a method; use GET"]);
    check_step(
        HTTP,
        &request("GET http://h/"),
        &[
            "5:11: population.a.step[1].request: a path starts with /, and the host is that of the target; use GET /: \"http://h/\"",
        ],
    );
    check_step(
        HTTP,
        &request("GET /{rnad 1 2}"),
        &["5:11: population.a.step[1].request: unknown variable \"{rnad 1 2}\"; use {rand 1 4096}"],
    );
    check_step(
        HTTP,
        "request = \"/\"\nheaders = { \"a b\" = 1, Content-Length = 5, X = \"a\\nb\" }",
        &[
            "6:13: population.a.step[1].headers: \"a b\" is not a header name; use Content-Type",
            "6:24: population.a.step[1].headers: throng sets this header itself; remove it: Content-Length",
            "6:48: population.a.step[1].headers.X: '\\n' is not allowed in a header; remove it: \"a\\nb\"",
        ],
    );
    check_step(
        HTTP,
        &format!("request = \"/\"\nbody = \"{}\"", "x".repeat(65_536)),
        &["6:8: population.a.step[1].body: a request may have at most 64 KiB in total: 64.1 KiB"],
    );
    check_step(
        HTTP,
        "request = \"/\"\nexpect = { status = 99, length = \"$1\", echo = true, headers = { \"\" = 1 } }",
        &[
            "6:21: population.a.step[1].expect.status: \"99\" is not a status; use 200 to 599",
            "6:34: population.a.step[1].expect.length: the target has no random number; add {rand 1 4096} to it: \"$1\"",
            "6:47: population.a.step[1].expect.echo: http:// has no echo; remove it, or use body = \"…\"",
            "6:65: population.a.step[1].expect.headers: \"\" is not a header name; use Content-Type",
        ],
    );
    check_step(
        HTTP,
        "request = \"/{rand 1 2}\"\nexpect = \"length=$2\"",
        &["6:10: population.a.step[1].expect: the target has 1 random numbers, the last is $1: \"$2\""],
    );
}

#[test]
fn what_is_expected_has_no_variables() {
    let why = "is not replaced in what is expected; use a text that all responses have in common";
    let check = |expect: &str, expected: &[&str]| {
        check_step(HTTP, &format!("request = \"/\"\nexpect = {{ {expect} }}"), expected);
    };
    check(
        "body = \"n={seq}\"",
        &[&format!("6:19: population.a.step[1].expect.body: {{seq}} {why}: \"n={{seq}}\"")],
    );
    check(
        "json = { \"/user\" = \"{csv u.id}\" }, headers = { X-Id = \"a {rand 1 9}\" }",
        &[
            &format!("6:31: population.a.step[1].expect.json./user: {{csv u.id}} {why}: \"{{csv u.id}}\""),
            &format!(
                "6:66: population.a.step[1].expect.headers.X-Id: {{rand 1 9}} {why}: \"a {{rand 1 9}}\""
            ),
        ],
    );
    let echo = ", or echo = true for the message that was sent";
    check_step(
        WS,
        "send = \"a {seq}\"\nexpect = { body = \"a {{seq}\" }",
        &[&format!("6:19: population.a.step[1].expect.body: {{seq}} {why}{echo}: \"a {{{{seq}}\"")],
    );
    check("status = \"200\"", &[]);
    check(
        "status = \"2xx\"",
        &["6:21: population.a.step[1].expect.status: \"2xx\" is not a status; use 200 to 599"],
    );
    // These braces begin no variable.
    check("body = '{\"id\": {}, \"seq\": {ok}}'", &[]);
    check("body = \"{env} {seq\", json = { \"/a\" = \"{seq 1}\", \"/b\" = \"{}\" }", &[]);
}

#[test]
fn a_length_is_one_of_the_first_eight_numbers() {
    let request = format!("request = \"/{}\"\n", "{rand 1 2}".repeat(9));
    check_step(HTTP, &format!("{request}expect = \"length=$8\""), &[]);
    let why = "only the first 8 numbers are available; use $1: \"$9\"";
    let table = format!("{request}expect = {{ length = \"$9\" }}");
    check_step(HTTP, &table, &[&format!("6:21: population.a.step[1].expect.length: {why}")]);
    let text = format!("{request}expect = \"length=$9\"");
    check_step(HTTP, &text, &[&format!("6:10: population.a.step[1].expect: {why}")]);
}

const NO_TABLE: &str = "7:11: population.a.step.login.request: \"{csv none.id}\": no such table; add [csv.none] with \
                        file = \"none.csv\": \"none\"";

#[test]
fn a_loop_to_no_step_is_named_beside_a_mistake_in_a_step() {
    let steps = "[[population.step]]\nname = \"login\"\nrequest = \"/\"\n[[population.step]]\nclose = true";
    let wrong = steps.replace("request = \"/\"", "request = \"/{csv none.id}\"");
    check(
        &format!("[[population]]\nname = \"a\"\ntarget = \"{HTTP}\"\nloop = \"lgoin\"\n{wrong}"),
        &["4:8: population.a.loop: no such step; use login: \"lgoin\"", NO_TABLE],
    );
    check(
        &format!("[[population]]\nname = \"a\"\ntarget = \"{HTTP}\"\nloop = \"login\"\n{wrong}"),
        &[NO_TABLE],
    );
}

#[test]
fn messages_and_loops() {
    check_step(
        WS,
        "send = \"\"\nexpect = { status = 200, headers = { a = 1 } }",
        &[
            "5:8: population.a.step[1].send: an empty message has no echo; use a non-empty text: \"\"",
            "6:21: population.a.step[1].expect.status: not for ws://; remove it, or use body = \"…\"",
            "6:38: population.a.step[1].expect.headers: not for ws://; remove it, or use body = \"…\"",
        ],
    );
    check_step(WS, "send = \"x\"\nexpect = { json = { \"/ok\" = true }, skip = true }", &[]);
    check_step(
        WS,
        "send = \"x\"\nexpect = { skip = true }",
        &[
            "6:19: population.a.step[1].expect.skip: without a condition, every message passes; add body = \"…\"",
        ],
    );
    check_step(
        WS,
        "expect = { echo = true }",
        &["5:19: population.a.step[1].expect.echo: this step sends nothing; move it to the step that sends"],
    );
    check_step(
        TCP,
        "send = \"x\"\nexpect = \"status=200\"",
        &["6:10: population.a.step[1].expect: tcp:// has no status; use expect = { body = \
                \"status=200\" }"],
    );
    check_step(
        TCP,
        "send = \"x\"",
        &[
            "1:1: population.a.loop: infinite loop without a pause; let a step expect a response, or use wait = \"1s\"",
        ],
    );
    let steps = "[[population.step]]\nname = \"login\"\nrequest = \"/\"\n[[population.step]]\nclose = true";
    check_population(
        HTTP,
        "loop = \"lgoin\"",
        &["3:8: population.a.loop: no steps; remove it, or use [[population.step]]"],
    );
    check(
        &format!("[[population]]\nname = \"a\"\ntarget = \"{HTTP}\"\nloop = \"lgoin\"\n{steps}"),
        &["4:8: population.a.loop: no such step; use login: \"lgoin\""],
    );
    check(
        &format!("[[population]]\nname = \"a\"\ntarget = \"{HTTP}\"\nloop = \"close\"\n{steps}"),
        &[
            "4:8: population.a.loop: infinite loop without a pause; let a step expect a response, or use wait = \"1s\"",
        ],
    );
    check(
        &format!(
            "[[population]]\nname = \"a\"\ntarget = \"{HTTP}\"\nrate = \
                \"5/s\"\n{steps}\n[[population.step]]\nwait = \"1s\"\n"
        ),
        &[
            "11:8: population.a.step[3].wait: cannot be used with rate, which sets when requests are due; remove it",
        ],
    );
}
