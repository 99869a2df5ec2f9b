//! The requests as they are sent.

use super::written::request;
use super::*;

/// The first request of a population with one step, filled for the 5th time in row 1.
fn check(step: &str, expected: &str) {
    let text = format!(
        "target = \"http://127.0.0.1:8000/base\"\n[[population]]\nname = \"a\"\n[[population.step]]\n{step}\n\
         [csv.users]\nfile = \"users.csv\"\n"
    );
    let scenario = right(&text);
    let request = request(&scenario);
    let host = scenario.populations[0].target.host_header(0);
    let mut out = vec![b'#'; request.max_len(host.len())];
    let mut random = Random::new(1);
    let length = request.write(&host, &mut Values::new(&mut random, 5, 1), &mut out);
    assert_eq!(std::str::from_utf8(&out[..length]).unwrap(), expected, "{step}");
}

#[test]
fn requests_go_out_as_they_are_written() {
    check("request = \"GET\"", "GET /base HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n");
    check("request = \"/x\"", "GET /x HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n");
    check("request = \"DELETE /x#part\"", "DELETE /x HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n");
    check("request = \"POST /\"", "POST / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nContent-Length: 0\r\n\r\n");
    check(
        "request = \"PUT /{csv users.id}\"\nheaders = { host = \"h\", Z = 1, A = \" {csv users.word} \" \
            }\nbody = \"s={seq}\"",
        "PUT /12 HTTP/1.1\r\nhost: h\r\nZ: 1\r\nA: swordfish\r\nContent-Length: 3\r\n\r\ns=5",
    );
    check(
        "request = \"GET /\"\nbody = \"\"",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nContent-Length: 0\r\n\r\n",
    );
    // The longest body would have 20 octets more, and a length of two digits.
    check(
        "request = \"PATCH /\"\nbody = \"{seq}é\"",
        "PATCH / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nContent-Length: 3\r\n\r\n5é",
    );
}

#[test]
fn a_header_signs_the_request_that_is_sent() {
    let signed = "headers = { X-Sign = \"{hmac-sha256 k {path} {body}}\" }\nbody = \"s={seq}\"";
    let tag = "02c2eaee6806f49536309cde91f2f4b94664c03873a1208b90301c8df7861db8";
    check(
        &format!("request = \"POST /x?n={{seq}}\"\n{signed}"),
        &format!(
            "POST /x?n=5 HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nX-Sign: {tag}\r\nContent-Length: 3\r\n\r\ns=5"
        ),
    );
    // Without content, that of the empty text.
    check(
        "request = \"GET /\"\nheaders = { X-Hash = \"{sha256 {body}}\" }",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nX-Hash: \
         e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\r\n\r\n",
    );
}

#[test]
fn numbers_are_drawn_in_the_order_in_which_they_stand() {
    let text = "target = \"http://127.0.0.1:1/\"\n[[population]]\nname = \"a\"\n[[population.step]]\n\
                request = \"POST /{rand 1 1}\"\nheaders = { A = \"{rand 2 2}\" }\nbody = \"{rand 3 \
                3}\"\nexpect = { length = \"$3\" }\n";
    let scenario = right(text);
    let request = request(&scenario);
    let (mut random, mut out) = (Random::new(1), vec![0; request.max_len(1)]);
    let mut values = Values::new(&mut random, 0, 0);
    let length = request.write("h", &mut values, &mut out);
    assert_eq!(out[..length].split_at(length - 1).1, b"3");
    assert_eq!((request.numbers(), values.numbers()), (3, &[1, 2, 3][..]));
    assert_eq!(request.expect.length.unwrap().of(values.numbers()), 3);
}

proptest::proptest! {
    /// The header has the length of the body, whatever was drawn.
    #[test]
    fn the_length_is_that_of_the_body(high: u64, seq: u64, row: u64, seed: u64, host in "[a-z.]{0,30}") {
        let text = format!(
            "target = \"http://127.0.0.1:1/\"\n[csv.users]\nfile = \"users.csv\"\n[[population]]\nname = \
                \"a\"\n\
             [[population.step]]\nrequest = \"POST /{{rand 0 {high}}}\"\nbody = \"{{rand 0 \
             {high}}},{{seq}},{{csv users.word}}\"\n"
        );
        let scenario = right(&text);
        let request = request(&scenario);
        let (mut random, mut out) = (Random::new(seed), vec![0; request.max_len(host.len())]);
        let length = request.write(&host, &mut Values::new(&mut random, seq, row), &mut out);
        let written = std::str::from_utf8(&out[..length]).unwrap();
        let (head, body) = written.split_once("\r\n\r\n").unwrap();
        let length: usize = head.rsplit_once("Content-Length: ").unwrap().1.parse().unwrap();
        proptest::prop_assert_eq!(length, body.len());
        let word = ["open sesame", "swordfish"][(row % 2) as usize];
        let ends = format!(",{seq},{word}");
        proptest::prop_assert!(body.ends_with(&ends));
    }
}
