//! Checks of responses: `expect` of a step, of its population, and of the file.

use samples::{Kind, Stage};

use super::run;
use crate::listener::{Received, Reply, Speaks, ok, response};

const HTTP: Speaks = Speaks::Http;

/// The fault of one response that is checked by `expect`.
fn check_response(expect: &str, replies: &[&str], wrong: Option<Kind>) {
    let text = format!(
        "target = \"http://127.0.0.1:80/\"\nconnections = 3\nthink = \"1s\"\nduration = \"3s\"\n\
         [expect]\n{expect}\n"
    );
    let replies: Vec<Reply> =
        replies.iter().map(|replies| Reply::Bytes(replies.as_bytes().to_vec())).collect();
    let (result, _) = run(&text, 2, HTTP, move |_| replies.clone());
    let c = &result.whole.counts;
    let faults: Vec<_> = wrong.into_iter().map(|kind| (Stage::Exchange, kind, c.answered)).collect();
    assert_eq!(result.faults(), faults, "{expect}");
    // A wrong response is still a response, and its connection stays open.
    assert!(c.answered >= 9 && c.answered == c.sent, "{expect}: {c:?}");
    assert_eq!((c.dropped, c.closed, result.held), (0, 0, 3), "{expect}");
}

#[test]
fn checks_of_a_response() {
    let plain =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 11\r\n\r\nwelcome you";
    let moved = "HTTP/1.1 302 Found\r\nLocation: /home\r\nContent-Length: 0\r\n\r\n";
    let chunks = [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chu",
        "nked\r\n\r\n6\r\nsay we\r\n",
        "2\r\nwel\r\n",
        "1\r\nc\r\n2\r\nom\r\n1\r",
        "\ne\r\n0\r\n\r\n",
    ];
    let chunks = chunks.map(|piece| piece.replace("2\r\nwel", "3\r\nwel"));
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    for (expect, replies, wrong) in [
        ("status = 200", &[plain][..], None),
        ("status = 201", &[plain], Some(Kind::WrongStatus)),
        ("length = 11", &[moved], Some(Kind::WrongStatus)),
        ("status = 302", &[moved], None),
        ("status = 302\nheaders = { location = \"/home\" }", &[moved], None),
        ("status = 302\nheaders = { Location = \"/away\" }", &[moved], Some(Kind::WrongHeader)),
        ("headers = { Content-Type = \"text/plain\", content-type = \"utf-8\" }", &[plain], None),
        ("headers = { Content-Type = \"text/html\" }", &[plain], Some(Kind::WrongHeader)),
        ("headers = { Content-Typ = \"text\" }", &[plain], Some(Kind::WrongHeader)),
        ("length = 11", &[plain], None),
        ("length = 12", &[plain], Some(Kind::WrongLength)),
        ("body = \"come y\"", &[plain], None),
        ("body = \"welcome me\"", &[plain], Some(Kind::WrongBody)),
        ("body = \"welcome\"\nlength = 13", &chunks, None),
        ("body = \"we wel\"\nlength = 13", &chunks, Some(Kind::WrongBody)),
        ("body = \"welcome\"\nlength = 12", &chunks, Some(Kind::WrongLength)),
        ("body = \"nowhere\"\nstatus = 404", &[plain], Some(Kind::WrongStatus)),
    ] {
        check_response(expect, replies, wrong);
    }
    // One byte per segment.
    let single: Vec<String> = plain.chars().map(String::from).collect();
    let single: Vec<&str> = single.iter().map(String::as_str).collect();
    check_response(
        "status = 200\nlength = 11\nbody = \"welcome you\"\nheaders = { Content-Type = \"8\" }",
        &single,
        None,
    );
}

#[test]
fn a_step_without_an_expectation_has_that_of_its_population_or_of_the_file() {
    let text = r#"
        target = "http://127.0.0.1:80/"
        duration = "5s"
        think = "1s"
        expect = "status=404"
        [[population]]
        name = "a"
        connections = 2
        expect = { status = 200 }
        [[population.step]]
        request = "/own"
        expect = "status=500"
        [[population.step]]
        request = "/population"
        [[population]]
        name = "b"
        connections = 2
        [[population.step]]
        request = "/file"
    "#;
    let script = |received: &Received| match received.line() {
        "GET /own" => vec![response(500, "", "")],
        "GET /population" => ok(),
        _ => vec![response(404, "", "")],
    };
    let (result, _) = run(text, 1, HTTP, script);
    assert_eq!((result.faults(), result.whole.counts.dropped), (vec![], 0));
    assert_eq!(result.whole.status.iter().sum::<u64>(), result.whole.counts.answered);
}
