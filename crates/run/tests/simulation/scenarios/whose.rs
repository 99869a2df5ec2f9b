//! Faults of requests, attributed to steps.

use samples::{Kind, Stage};

use super::run;
use crate::listener::{Received, Reply, Speaks, ok, response};

const TEXT: &str = "expect = { body = \"hello\" }";

/// Runs three connections that repeat three steps. The second step has these `keys`, and gets this reply.
fn check_second(keys: &str, reply: impl Fn() -> Vec<Reply> + 'static, kind: Kind, sentence: &str) {
    let step = |name: &str, keys: &str| {
        format!("[[population.step]]\nname = \"{name}\"\nrequest = \"/{name}\"\n{keys}\n")
    };
    let text = format!(
        "target = \"http://127.0.0.1:80\"\nduration = \"5s\"\nthink = \"1s\"\ntimeout = \"500ms\"\n[[population]]\n\
         name = \"users\"\nconnections = 3\n{}{}{}",
        step("login", ""),
        step("look", keys),
        step("leave", "")
    );
    let script = move |received: &Received| if received.line() == "GET /look" { reply() } else { ok() };
    let (result, _) = run(&text, 2, Speaks::Http, script);
    let summary = result.judge(&stage::scenario(&text, 1));
    let steps = &summary.populations["users"].steps;
    let of = |step: &str| steps.get(step).map_or(Vec::new(), |step| step.faults.clone());
    assert_eq!([of("login"), of("leave")], [vec![], vec![]], "{kind:?}");
    let [fault] = &of("look")[..] else { panic!("{kind:?}: {:?}", of("look")) };
    let all = result.faults().into_iter();
    let of_requests: Vec<_> = all.filter(|(stage, ..)| *stage == Stage::Exchange).collect();
    assert_eq!(of_requests, [(Stage::Exchange, fault.kind, fault.count)]);
    assert_eq!((fault.kind, fault.count >= 3), (kind, true), "{fault:?}");
    let said = summary.limit.expect("it is bad").sentence;
    assert!(said.contains(sentence), "{said}");
}

#[test]
fn the_step_is_named_whose_requests_failed() {
    let check = |reply: fn() -> Vec<Reply>, kind, sentence| check_second(TEXT, reply, kind, sentence);
    check(
        || vec![response(404, "", "hello")],
        Kind::WrongStatus,
        "unexpected status: 404 × 6, all in step look",
    );
    check(|| vec![response(200, "", "hollo")], Kind::WrongBody, "text × 6, all in step look");
    check(Vec::new, Kind::Timeout, "3 requests timed out after 0.5 s, all in step look");
    let head = || vec![Reply::Bytes(b"HTTP/1.1 2x\r\n".to_vec())];
    check(head, Kind::BadAnswer, "allow (malformed head) × 3, all in step look");
    // Each had one response before, so that the sentence does not depend on the reason.
    let closed = "the target closed 3 connections instead of responding (1 in 2 requests), all in step look";
    check(|| vec![Reply::End], Kind::Closed, closed);
    let capture = "capture = { n = { header = \"X-Token\" } }";
    check_second(capture, ok, Kind::MissingValue, "without the value to capture × 3, all in step look");
}
