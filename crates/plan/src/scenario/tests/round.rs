//! Reading a printed scenario returns the same plan.

use super::*;
use proptest::prelude::*;

#[test]
fn everything_reads_as_it_prints() {
    check(EVERYTHING);
    check("target = \"ws://127.0.0.1:9\"\nmessage = \"\"\nseed = 18446744073709551615");
    check(
        "target = \"ws://127.0.0.1:9\"\n[[population]]\nname = \"a\"\n[[population.on]]\nevery = \"9s\"\nsend = \"\"",
    );
    check("target = \"http://127.0.0.1:9\"\nhttp2 = true\nping = \"9s\"\nthink = \"1m\"");
    check("target = \"http://127.0.0.1:9\"\nhttp2 = true\nprobe = \"5/s\"");
    // gRPC calls, with a probe that makes one of them.
    let call = "target = \"grpc://127.0.0.1:9/a.B/C\"\nprobe = \"5/s\"\n";
    for keys in [
        "",
        "streams = 7\nbody-file = \"m\"\nserver-streaming = true",
        "ping = \"9s\"\nrate = \"5/s\"\nprotoset = \"p\"\nbody = '{\"n\": [\"{{seq}\"]}'\nexpect = \"status=NOT_FOUND\"",
        "protoset = \"p\"\nserver-streaming = true\n[[population]]\nname = \"a\"\n[[population.step]]\nwait = \"1s\"\n\
            [[population.step]]\nrequest = \"/a.B/D\"\nheaders = { x-user = \"{seq}\" }",
    ] {
        check(&format!("{call}{keys}"));
    }
    // All TLS settings.
    for target in
        ["https://localhost/", "wss://localhost/chat", "tls://localhost:9", "grpcs://localhost/a.B/C"]
    {
        check(&format!("target = \"{target}\"\ninsecure = true\ncacert = \"ca.pem\"\nno-resume = true"));
        let identity = "cert = \"c.pem\"\nkey = \"k.pem\"\nsni = \"example.org\"\ntls = \"1.2\"";
        check(&format!("target = \"{target}\"\n{identity}"));
        check(&format!("target = \"{target}\"\ntls = \"1.3\""));
    }
    check(
        "target = \"tcp://127.0.0.1:9\"\nmessage = \"a \\\"b\\\" \\\\ {{seq}} \\u007F\\n\"\nduration = \
            \"forever\"",
    );
}

fn check(text: &str) {
    let first = right(text);
    let printed = first.to_string();
    assert_eq!(right(&printed), first, "{printed}");
    assert_eq!(right(&printed).to_string(), printed);
}

/// A valid value for each key, so that most files are valid.
fn population(name: usize) -> impl Strategy<Value = String> {
    let target = prop_oneof![
        Just("http://127.0.0.1:1/a?x={rand 1 9}"),
        Just("ws://127.0.0.1:1/"),
        Just("tcp://127.0.0.1:1"),
        Just("grpc://127.0.0.1:1/a.B/C"),
        Just("https://localhost/a"),
        Just("wss://localhost/a"),
        Just("tls://localhost:1"),
        Just("grpcs://localhost/a.B/C"),
    ];
    let keys = prop_oneof![
        Just(""),
        Just("connections = \"1.5k\"\n"),
        Just("rate = \"30/m\"\n"),
        Just("arrive = \"5/s\"\ntotal = 7\n"),
        Just("calls = 3\nloop = false\n"),
        Just("timeout = \"1500ms\"\nreconnect = \"never\"\n"),
        Just("think = \"1s..2s\"\nexpect = { status = 404, body = \"\\\"\" }\n"),
        Just("message = \"{choice a b} {{seq}\"\nping = \"0\"\n"),
        Just("http2 = true\nping = \"2s\"\n"),
        Just("http2 = true\nping = \"2s\"\nrate = \"5/s\"\n"),
        Just("http2 = true\nstreams = 5\n"),
        Just("streams = 5\nserver-streaming = true\nbody-file = \"m\"\n"),
        Just("ping = \"2s\"\nprotoset = \"p\"\nbody = \"{{}\"\n"),
        Just("insecure = true\nsni = \"a.b\"\ntls = \"1.3\"\n"),
        Just("cookies = true\nhost = \"a.b\"\nheaders = { A = \"{rand 1 9}\" }\n"),
        Just("requests = 9\nconnect-to = [\"::127.0.0.1:5\"]\n"),
    ];
    let http = prop_oneof![
        Just(
            "request = \"POST /{csv users.id}/x\"\nbody = \"{rand 0 5}\\n\\u0001\"\nheaders = { A = \
                \"{seq}\" }"
        ),
        Just("request = \"/a-b/c\"\nexpect = { length = \"$1\", headers = { B = \"\" } }"),
        Just("request = \"GET\"\nthink = \"3s\""),
        Just("wait = \"1s\""),
        Just("close = true"),
    ];
    let messages = prop_oneof![
        Just("send = \"é {seq}\"\nexpect = { echo = true }"),
        Just("expect = { body = \"x\", length = 5 }"),
        Just("wait = \"1ms..2ms\""),
        Just("name = \"bye\"\nclose = true"),
    ];
    let calls = prop_oneof![
        Just("request = \"/a.B/D\"\nexpect = { status = \"ABORTED\" }\nheaders = { x-a = \"{seq}\" }"),
        Just("request = \"POST /a.B/E\"\nbody-file = \"n\"\nweight = 2"),
        Just("wait = \"1s\"\nweight = 3"),
    ];
    let steps = prop_oneof![
        proptest::collection::vec(calls, 0..4).boxed(),
        proptest::collection::vec(http, 0..4).boxed(),
        proptest::collection::vec(messages, 0..4).boxed()
    ];
    (target, keys, steps).prop_map(move |(target, keys, steps)| {
        let steps: String = steps.iter().map(|step| format!("[[population.step]]\n{step}\n")).collect();
        format!("[[population]]\nname = \"p{name}\"\ntarget = \"{target}\"\n{keys}{steps}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::default() })]
    #[test]
    fn any_scenario_reads_as_it_prints(
        first in population(1),
        second in population(2),
        stages in prop_oneof![
            Just(""), Just("[[stage]]\nof = [\"p2\"]\nto = \"1.5%\"\n[[stage]]\nramp = \
                \"7/s\"\n[[stage]]\nto = \"0%\"\nfor = \"1m30s\"\n"),
        ],
        seed: u64,
    ) {
        let text = format!("seed = \"{seed}\"\n{stages}{first}{second}[csv.users]\nfile = \"users.csv\"\n");
        let read = scenario(&text);
        prop_assume!(read.is_ok());
        let first = read.unwrap();
        let printed = first.to_string();
        let second = scenario(&printed).map_err(|mistakes| listed(&mistakes));
        prop_assert_eq!(second.as_ref(), Ok(&first), "{}", printed);
    }
}
