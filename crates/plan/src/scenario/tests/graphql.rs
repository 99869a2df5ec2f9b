//! Steps with a GraphQL document.

use super::mistakes::check;
use super::written::request;
use super::*;

/// A file whose step, from line 5 on, has these lines.
fn file(lines: &str) -> String {
    format!(
        "target = \"http://127.0.0.1:1/graphql\"\n[[population]]\nname = \"a\"\n[[population.step]]\n{lines}\n"
    )
}

/// The name of the step, and its request as it is sent for the 5th time.
fn sent(lines: &str) -> (String, String) {
    let plan = right(&file(lines));
    assert_eq!(right(&plan.to_string()).to_string(), plan.to_string(), "{lines}");
    let request = request(&plan);
    assert_eq!(request.expect.absent, ["/errors/0/message"], "{lines}");
    let mut out = vec![0; request.max_len(1)];
    let mut random = Random::new(1);
    let length = request.write("h", &mut Values::new(&mut random, 5, 0), &mut out);
    let written = String::from_utf8(out[..length].to_vec()).unwrap();
    (plan.populations[0].step_names()[0].to_owned(), written)
}

#[test]
fn a_document_is_posted_as_json_and_names_its_step() {
    let (name, written) =
        sent("graphql = 'query User($id: ID!) {user(id: $id) {name}}'\nvariables = '{\"id\": \"{seq}\"}'");
    assert_eq!(name, "User");
    let body = r#"{"query":"query User($id: ID!) {user(id: $id) {name}}","operationName":"User","variables":{"id": "5"}}"#;
    let head = format!(
        "POST /graphql HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    assert_eq!(written, head + body);
    let (name, written) = sent(
        "request = \"POST /api\"\ngraphql = '{me {\"x\"}}'\nheaders = { Content-Type = \"application/graphql+json\" }",
    );
    assert_eq!(name, "post-api");
    assert!(
        written.starts_with("POST /api HTTP/1.1\r\n")
            && written.contains("Content-Type: application/graphql+json\r\n")
    );
    assert!(written.ends_with(r#"{"query":"{me {\"x\"}}"}"#), "{written}");
    let two = "graphql = 'query A {a} mutation B {b}'\noperation = \"B\"";
    assert_eq!(sent(two).0, "B");
    assert!(sent(two).1.ends_with(r#","operationName":"B"}"#));
}

#[test]
fn a_document_that_cannot_be_sent_says_why() {
    let step = |lines: &str, expected: &[&str]| check(&file(lines), expected);
    step(
        "graphql = 'query A {a} query B {b}'",
        &["5:11: population.a.step[1].graphql: several operations; add operation = \"A\": A, B"],
    );
    step(
        "graphql = 'query A {a}'\noperation = \"C\"",
        &["6:13: population.a.step[1].operation: no such operation; use one of A: \"C\""],
    );
    step(
        "graphql = '{a}'\nvariables = '[1]'",
        &[
            "6:13: population.a.step[1].variables: variables are a JSON object; use '{\"id\": {seq}}': \"[1]\"",
        ],
    );
    step(
        "graphql = '{a}'\nbody = 'x'",
        &["6:8: population.a.step[1].body: cannot be used with graphql; remove one of the two"],
    );
    step(
        "wait = \"1s\"\nvariables = '{}'",
        &["6:13: population.a.step[1].variables: cannot be used with wait; remove it, or use another step"],
    );
}
