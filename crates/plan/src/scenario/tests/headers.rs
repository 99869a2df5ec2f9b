//! What all requests of a population have in common: headers, host, method, body, another host to dial.

use super::mistakes::{check, check_http};
use super::*;
use crate::Text;

fn headers(text: &str) -> Vec<String> {
    let mut plan = right(text);
    let main = &mut plan.populations[0];
    let own = main.headers.clone();
    let lines = |fields: &[(String, Text)]| {
        fields.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("|")
    };
    let requests = main.requests().map(|request| format!("{} {}", request.method, lines(&request.headers)));
    let mut all: Vec<String> = requests.collect();
    all.extend((!own.is_empty()).then(|| lines(&own)));
    all
}

#[test]
fn a_steps_own_go_before_those_of_the_population() {
    let text = "target = \"http://127.0.0.1:1/\"\nheaders = { A = \"top\", B = \"b\" }\n[[population]]\nname = \"u\"\n";
    let steps = "[[population.step]]\nrequest = \"/x\"\n[[population.step]]\nrequest = \"POST /y\"\nheaders = { a = \"{seq}\" }\n";
    assert_eq!(headers(&format!("{text}{steps}")), ["GET A: top|B: b", "POST B: b|a: {seq}"]);
    assert_eq!(
        headers(&format!("{text}headers = {{ C = \"c\" }}\n{steps}")),
        ["GET C: c", "POST C: c|a: {seq}"]
    );
}

#[test]
fn without_steps_there_is_one_request() {
    let text = "target = \"127.0.0.1:1/\"\n";
    assert_eq!(headers(&format!("{text}method = \"PUT\"\nbody = \"x\"\n")), ["PUT "]);
    assert_eq!(headers(&format!("{text}body-file = \"x.bin\"\nheaders = {{ A = \"b\" }}")), ["POST A: b"]);
    let ws =
        "target = \"ws://me:pw@127.0.0.1:1/\"\nheaders = { Origin = \"http://a\", Host = \"x.example\" }\n";
    assert_eq!(headers(ws), ["Authorization: Basic bWU6cHc=|Origin: http://a"]);
    assert_eq!(right(ws).populations[0].target.host_header(0), "x.example");
}

#[test]
fn they_read_as_they_print() {
    for text in [
        "target = \"ws://me:pw@127.0.0.1:1/\"\nheaders = { Origin = \"http://a\", X = \"{seq}\" }\nhost = \"x:1\"\nrequests = 7",
        "target = \"https://x.example/\"\nconnect-to = [\"x.example:443:127.0.0.1:8443\"]\nmethod = \"PUT\"\nbody = \"x\"",
        "target = \"http://me@127.0.0.1:1/\"\nrate = 100\nrequests = \"1k\"",
    ] {
        let first = right(text);
        let printed = first.to_string();
        assert!(!printed.contains("me:pw@") && !printed.contains("me@"), "{printed}");
        assert_eq!(right(&printed).to_string(), printed);
    }
}

#[test]
fn mistakes_are_named() {
    check_http(
        "headers = { \"a b\" = \"c\" }",
        &["2:13: headers: \"a b\" is not a header name; use Content-Type"],
    );
    check_http(
        "host = \"a\"\nheaders = { Host = \"b\" }",
        &["3:13: headers.Host: Host is also given by host; remove one of the two"],
    );
    check_http(
        "connect-to = [\"x\"]",
        &[
            "2:15: connect-to: \"x\" is not HOST1:PORT1:HOST2:PORT2; use 127.0.0.1:8000 to dial that instead of the target's host",
        ],
    );
    check_http("method = \"put\"", &["2:10: method: \"put\" is not a method; use PUT"]);
    check_http(
        "body = \"x\"\n[[population]]\nname = \"u\"\nbody = \"y\"\n[[population.step]]\nrequest = \"/\"",
        &["5:8: population.u.body: the steps define what is sent; remove it"],
    );
    check(
        "target = \"ws://127.0.0.1:1/\"\nheaders = { Upgrade = \"x\" }",
        &["2:13: headers: throng sets this header itself; remove it: Upgrade"],
    );
    check_http(
        "requests = 5\narrive = \"5/s\"",
        &["2:12: requests: with arrive, total and calls set the number of requests; remove it"],
    );
}
