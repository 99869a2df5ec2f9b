use crate::flag;
use crate::{Call, Environment, Flags, Mistake, Plan, from_flags};

fn plan(url: &str, pairs: &[(&crate::Flag, &str)]) -> Result<Plan, Vec<String>> {
    let flags = pairs.iter().fold(Flags::new(url), |flags, (flag, value)| flags.with(flag, value));
    let resolve = |_: &str| unreachable!("the target is an address");
    let read = from_flags(&flags, &Environment { cores: 2, seed: 1, resolve: &resolve });
    read.map_err(|mistakes| mistakes.iter().map(Mistake::to_string).collect())
}

const URL: &str = "grpc://127.0.0.1:1/a.B/C";

#[test]
fn a_call_is_a_request_that_is_to_succeed() {
    let streaming = (&flag::SERVER_STREAMING, "");
    for (pairs, streams, status, is_streaming) in [
        (&[][..], 1, 0, false),
        (&[(&flag::STREAMS, "9"), (&flag::EXPECT, "status=NOT_FOUND"), streaming], 9, 5, true),
    ] {
        let mut plan = plan(URL, pairs).unwrap();
        let main = &mut plan.populations[0];
        assert_eq!(main.streams, Some(streams));
        let request = main.requests().next().unwrap();
        let call = request.call.as_ref().unwrap();
        assert_eq!((request.method.as_str(), request.expect.status), ("POST", Some(status)));
        assert_eq!((call.is_streaming, &request.body), (is_streaming, &None));
    }
    let file = plan(URL, &[(&flag::BODY_FILE, "m.bin"), (&flag::PROTOSET, "p")]).unwrap();
    let mut main = file.populations[0].clone();
    let named: Vec<_> =
        main.contents().into_iter().map(|(flag, content)| (flag, content.file.clone())).collect();
    assert_eq!(named, [("--protoset", "p".to_owned()), ("--body-file", "m.bin".to_owned())]);
}

#[test]
fn what_a_call_cannot_have_is_a_mistake() {
    let check = |url: &str, pairs: &[(&crate::Flag, &str)], expected: &str| {
        assert_eq!(plan(url, pairs).unwrap_err(), [expected], "{url}");
    };
    let body = (&flag::BODY, "{}");
    check(
        URL,
        &[body],
        "--body: a message as JSON requires --protoset FILE; or use --body-file with its bytes: \"{}\"",
    );
    check(
        URL,
        &[(&flag::BODY, "{seq}"), (&flag::PROTOSET, "p")],
        "--body: a message of gRPC has no variables; write {{ for a brace: \"{seq}\"",
    );
    check(
        URL,
        &[body, (&flag::BODY_FILE, "m"), (&flag::PROTOSET, "p")],
        "--body-file: cannot be used with --body; remove one of the two: \"m\"",
    );
    check(
        URL,
        &[(&flag::PROTOSET, "p"), (&flag::SERVER_STREAMING, "")],
        "--server-streaming: the descriptors of --protoset say which methods stream; remove it",
    );
    check(URL, &[(&flag::HTTP2, "")], "--http2: gRPC is over HTTP/2; remove it");
    check(URL, &[(&flag::BODY_FILE, "")], "--body-file: no file; use message.bin");
    check(
        "http://127.0.0.1:1/",
        &[(&flag::PROTOSET, "m")],
        "--protoset: requires a target with grpc:// or grpcs://: \"m\"",
    );
    for path in ["", "/", "/a.B", "/a.B/", "/a/b/c"] {
        let url = format!("grpc://127.0.0.1:1{path}");
        let why = plan(&url, &[]).unwrap_err().join("; ");
        assert!(why.contains("is not a method; use grpc://host:port/package.Service/Method"), "{why}");
    }
}

#[test]
fn messages_go_to_a_machine_without_the_files() {
    let mut here = plan(URL, &[(&flag::BODY_FILE, "m"), (&flag::PROBE, "1/s")]).unwrap();
    let there = here.clone();
    for request in here.all_populations_mut().flat_map(crate::Population::requests) {
        request.call = Some(Call { is_streaming: true, message: b"hi".to_vec() });
    }
    let sent = here.sent();
    // The requests of the load, and those of both populations of the probe.
    assert_eq!(sent.len(), 3);
    assert_eq!(there.clone().with_sent(&sent), Ok(here));
    assert!(there.clone().with_sent(&sent[1..]).is_err());
    assert!(there.with_sent(&[&sent[..], &sent[..1]].concat()).is_err());
}
