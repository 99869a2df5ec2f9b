//! What a call of gRPC sends: `--body`, `--body-file`, `--protoset`, `--server-streaming`.

use super::FlagReader;
use crate::request::LONGEST_REQUEST;
use crate::text::Place;
use crate::{Body, Call, Content, Expectation, Grpc, Request, Scheme, Target, Text, flag};
use units::{Bytes, Status};

impl FlagReader<'_> {
    /// What is sent, and what the calls share; none where it is not gRPC.
    pub(super) fn grpc(&mut self, scheme: Option<Scheme>) -> Option<(Option<Body>, Grpc)> {
        if scheme.is_some_and(|scheme| !scheme.has_calls()) {
            for flag in flag::OF_GRPC {
                self.refuse(flag, Scheme::required(Scheme::BOTH, Scheme::has_calls));
            }
            return None;
        }
        let text = self.given(&flag::BODY, json).map(Body::Text);
        let file = self.given(&flag::BODY_FILE, Content::named).map(Body::File);
        let protoset = self.given(&flag::PROTOSET, Content::named);
        if self.get(&flag::BODY).is_some() && self.get(&flag::BODY_FILE).is_some() {
            self.refuse(&flag::BODY_FILE, "cannot be used with --body; remove one of the two");
        }
        if self.get(&flag::PROTOSET).is_none() {
            self.refuse(&flag::BODY, NEEDS_PROTOSET);
        }
        let is_streaming = self.get(&flag::SERVER_STREAMING).is_some();
        if self.get(&flag::PROTOSET).is_some() {
            self.refuse(&flag::SERVER_STREAMING, PROTOSET_SAYS);
        }
        Some((text.or(file), Grpc { protoset, is_streaming }))
    }
}

/// Why JSON alone is not enough.
pub(crate) const NEEDS_PROTOSET: &str =
    "a message as JSON requires --protoset FILE; or use --body-file with its bytes";
/// Why the kind of the method is not given twice.
pub(crate) const PROTOSET_SAYS: &str = "the descriptors of --protoset say which methods stream; remove it";

/// A message as JSON. It has no variables: it is encoded before the run.
pub(crate) fn json(text: &str) -> Result<Text, String> {
    if text.len() > LONGEST_REQUEST {
        return Err(format!("at most 64 KiB; use --body-file: {}", Bytes(text.len() as u64).brief()));
    }
    let read = Text::parse(text, Place::Content, &[])?;
    match read.fixed_text() {
        Some(_) => Ok(read),
        None => Err(format!("a message of gRPC has no variables; write {{{{ for a brace: {text:?}")),
    }
}

/// The call of a target.
pub(crate) fn call(target: &Target, body: Option<Body>, grpc: &Grpc, expect: Expectation) -> Request {
    let call = Call { is_streaming: grpc.is_streaming, message: Vec::new() };
    Request {
        method: "POST".to_owned(),
        body,
        call: Some(call),
        ..Request::get(target.path.clone(), expected(expect))
    }
}

/// A call is to succeed, where nothing else is expected.
pub(crate) fn expected(expect: Expectation) -> Expectation {
    Expectation { status: expect.status.or(Some(OK.0)), ..expect }
}

const OK: Status = Status(0);

/// The name of a method: `/package.Service/Method`.
pub(crate) fn method(path: &Text) -> Result<(), String> {
    let text = path.to_string();
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        ["", service, method] if !service.is_empty() && !method.is_empty() => Ok(()),
        _ => Err(format!("{text:?} is not a method; use grpc://host:port/package.Service/Method")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, Flags, Mistake, Plan, from_flags};

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
        check(URL, &[body], &format!("--body: {NEEDS_PROTOSET}: \"{{}}\""));
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
            &format!("--server-streaming: {PROTOSET_SAYS}"),
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
        // The load's, and those of the two kinds of the probe.
        assert_eq!(sent.len(), 3);
        assert_eq!(there.clone().with_sent(&sent), Ok(here));
        assert!(there.clone().with_sent(&sent[1..]).is_err());
        assert!(there.with_sent(&[&sent[..], &sent[..1]].concat()).is_err());
    }
}
