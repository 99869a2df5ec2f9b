//! Calls of gRPC in scenario files.

use super::*;
use crate::{Body, Request, Text};

fn requests(text: &str) -> Vec<Request> {
    right(text).populations[0].requests().map(|request| request.clone()).collect()
}

#[test]
fn calls_are_read() {
    let text = "target = \"grpc://127.0.0.1:1/a.B/C\"\nprotoset = \"p\"\nstreams = 3\nbody = '{\"n\": 1}'\n";
    let [request] = &requests(text)[..] else { panic!("one request") };
    assert_eq!(request.body, Some(Body::Text(Text::fixed("{\"n\": 1}"))));
    assert_eq!((request.expect.status, right(text).populations[0].streams), (Some(0), Some(3)));

    // gRPC always sends PINGs in addition to calls.
    let text = "target = \"grpc://127.0.0.1:1/a.B/C\"\nping = \"5s\"\n";
    assert_eq!((requests(text).len(), right(text).populations[0].keep_alive), (1, Some(Nanos::from_secs(5))));

    let text = "target = \"grpc://127.0.0.1:1/\"\nserver-streaming = true\nexpect = \"status=ABORTED\"\n\
        [[population]]\nname = \"a\"\n\
        [[population.step]]\nrequest = \"/a.B/C\"\nbody-file = \"m\"\nheaders = { x-user = \"{seq}\" }\n\
        [[population.step]]\nrequest = \"POST /a.B/D\"\nexpect = { status = \"INTERNAL\" }\n";
    let [first, second] = &requests(text)[..] else { panic!("two requests") };
    assert!(
        [first, second].iter().all(|one| one.method == "POST" && one.call.as_ref().unwrap().is_streaming)
    );
    assert_eq!((first.expect.status, second.expect.status), (Some(10), Some(13)));
    assert!(matches!(&first.body, Some(Body::File(content)) if content.file == "m"));
    assert_eq!(second.body, None);
    // An HTTP body may be in a file, too.
    let text = "target = \"http://127.0.0.1:1/\"\n[[population]]\nname = \"a\"\n\
        [[population.step]]\nrequest = \"POST /\"\nbody-file = \"m\"\n";
    assert!(matches!(&requests(text)[0].body, Some(Body::File(content)) if content.file == "m"));
}

#[test]
fn a_probe_makes_the_first_call_of_the_load() {
    let text = "probe = \"5/s\"\ntimeout = \"1s\"\n[[population]]\nname = \"a\"\ntarget = \"grpc://127.0.0.1:1/\"\n\
        protoset = \"p\"\n[[population.step]]\nwait = \"1s\"\n\
        [[population.step]]\nrequest = \"/a.B/C\"\nbody = \"[]\"\nthink = \"9s\"\n";
    let mut plan = right(text);
    let sent = requests(text);
    for own in &mut plan.probe.as_mut().unwrap().populations {
        assert_eq!((own.streams, own.timeout), (Some(1), Nanos::from_secs(1)));
        assert_eq!(own.grpc.as_ref().unwrap().protoset.as_ref().unwrap().file, "p");
        assert_eq!(own.requests().map(|request| request.clone()).collect::<Vec<_>>(), sent);
    }
    let own =
        "target = \"http://127.0.0.1:1/\"\n[probe]\nrate = \"5/s\"\ntarget = \"grpc://127.0.0.1:1/a.B/C\"\n";
    let why = "the probe sends HTTP requests; use http://host:port/";
    assert!(listed(&scenario(own).unwrap_err()).join("\n").contains(why));
}

#[test]
fn what_a_call_cannot_have_is_reported() {
    let check = |keys: &str, expected: &str| {
        let text = format!(
            "target = \"grpc://127.0.0.1:1/a.B/C\"\n[[population]]\nname = \"a\"\n[[population.step]]\n{keys}\n"
        );
        let found = scenario(&text).map(|_| ()).map_err(|mistakes| listed(&mistakes).join("\n")).unwrap_err();
        assert!(found.contains(expected), "{keys}: {found}");
    };
    check("request = \"GET /a.B/C\"", "gRPC has no other method than POST; remove it");
    check("request = \"/a\"", "\"/a\" is not a method");
    check("request = \"/a.B/C\"\nbody = \"{}\"", "a message as JSON requires protoset = \"FILE\"");
    check("request = \"/a.B/C\"\nheaders = { TE = \"x\" }", "throng sets this header itself; remove it: TE");
    check("request = \"/a.B/C\"\nexpect = { status = 200 }", "\"200\" is not a status of gRPC");
    check("send = \"x\"\nbody-file = \"m\"", "cannot be used with send");
    let found =
        scenario("target = \"http://127.0.0.1:1/\"\n[[population]]\nname = \"a\"\nprotoset = \"p\"\n");
    assert!(listed(&found.unwrap_err()).join("\n").contains("requires a target with grpc:// or grpcs://"));
}
