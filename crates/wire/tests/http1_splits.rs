//! Generated streams: each framing is read as it was written, wherever the input is split.

use fuzz::http1::{client, server};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::http1::{Response, write_request, write_response};

/// The framing of a body.
#[derive(Clone, Debug)]
enum Framing {
    Length,
    /// The chunk sizes, used in turn; and whether there are trailers.
    Chunked(Vec<usize>, bool),
}

fn framing() -> impl Strategy<Value = Framing> {
    prop_oneof![
        Just(Framing::Length),
        (vec(1..20usize, 1..4), any::<bool>())
            .prop_map(|(sizes, trailers)| Framing::Chunked(sizes, trailers)),
    ]
}

impl Framing {
    fn field(&self, body: &[u8]) -> String {
        match self {
            Self::Length => format!("Content-Length: {}\r\n", body.len()),
            Self::Chunked(..) => "Transfer-Encoding: chunked\r\n".to_owned(),
        }
    }

    fn length(&self, body: &[u8]) -> String {
        match self {
            Self::Length => body.len().to_string(),
            Self::Chunked(..) => "?".to_owned(),
        }
    }

    fn write(&self, out: &mut Vec<u8>, mut body: &[u8]) {
        let Self::Chunked(sizes, trailers) = self else { return out.extend_from_slice(body) };
        for (nth, size) in sizes.iter().cycle().enumerate() {
            if body.is_empty() {
                break;
            }
            let (chunk, behind) = body.split_at(body.len().min(*size));
            let line = match nth % 3 {
                0 => format!("{:x}\r\n", chunk.len()),
                1 => format!("{:04X};nth={nth}\r\n", chunk.len()),
                _ => format!("{:X} \r\n", chunk.len()),
            };
            out.extend_from_slice(line.as_bytes());
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
            body = behind;
        }
        out.extend_from_slice(if *trailers { b"0\r\nA: b\r\nSum: c\r\n\r\n" } else { b"0\r\n\r\n" });
    }
}

fn said_body(body: &[u8]) -> String {
    if body.is_empty() { String::new() } else { format!("body {} | ", body.escape_ascii()) }
}

/// A stream of responses on a kept connection, and its trace: any framing, some with interim responses, a final status of 200 or 204.
fn replies() -> impl Strategy<Value = (Vec<u8>, String)> {
    let reply = (framing(), vec(any::<u8>(), 0..60), 0..3u8, prop::bool::weighted(0.2));
    vec(reply, 1..6).prop_map(|replies| {
        let (mut stream, mut said) = (Vec::new(), Vec::new());
        for (framing, body, interims, bodyless) in replies {
            for _ in 0..interims {
                stream.extend_from_slice(wire::http1::CONTINUE);
                said.push("interim 100".to_owned());
            }
            if bodyless {
                stream.extend_from_slice(b"HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n");
                said.push("204 length=0 keeps | end".to_owned());
                continue;
            }
            stream.extend_from_slice(format!("HTTP/1.1 200 OK\r\n{}\r\n", framing.field(&body)).as_bytes());
            framing.write(&mut stream, &body);
            said.push(format!("200 length={} keeps | {}end", framing.length(&body), said_body(&body)));
        }
        (stream, said.join(" | "))
    })
}

/// A stream of requests on a kept connection, some after empty lines, and its trace.
fn requests() -> impl Strategy<Value = (Vec<u8>, String)> {
    let request = (framing(), vec(any::<u8>(), 0..60), 0..3usize, "[A-Z]{1,8}", "/[a-z?=&]{0,20}");
    vec(request, 1..6).prop_map(|requests| {
        let (mut stream, mut said) = (Vec::new(), Vec::new());
        for (framing, body, blank, method, target) in requests {
            stream.extend_from_slice("\r\n".repeat(blank).as_bytes());
            let field = framing.field(&body);
            stream.extend_from_slice(
                format!("{method} {target} HTTP/1.1\r\nHost: h\r\n{field}\r\n").as_bytes(),
            );
            framing.write(&mut stream, &body);
            let head = if method == "HEAD" { " head" } else { "" };
            said.push(format!("{method} {target} keeps{head} | {}end", said_body(&body)));
        }
        (stream, said.join(" | "))
    })
}

/// Arbitrary bytes, biased towards meaningful ones.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let words: [&[u8]; 20] = [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 200 OK\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 204 \r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\n",
        b"POST / HTTP/1.0\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n",
        b"Transfer-Encoding: gzip\r\n",
        b"Connection: close\r\n",
        b"Connection: keep-alive\r\n",
        b"5\r\nhello\r\n",
        b"0\r\n",
        b"\r\n",
        b"\r",
        b"\n",
    ];
    let word = prop::sample::select(words.to_vec()).prop_map(<[u8]>::to_vec);
    vec(prop_oneof![9 => word, 1 => vec(any::<u8>(), 1..4)], 0..12).prop_map(|parts| parts.concat())
}

/// Splits `stream` at these positions, modulo its length.
fn cut<'a>(stream: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = places.iter().map(|p| p % (stream.len() + 1)).collect();
    places.extend([0, stream.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect()
}

fn places() -> impl Strategy<Value = Vec<usize>> {
    vec(any::<usize>(), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn replies_are_read_as_written((stream, said) in replies(), places in places()) {
        prop_assert_eq!(&client(&[&stream], |_| false, false), &said);
        prop_assert_eq!(&client(&cut(&stream, &places), |_| false, false), &said);
    }

    #[test]
    fn a_last_reply_may_last_until_the_close(
        (mut stream, said) in replies(),
        body in vec(any::<u8>(), 0..60),
        places in places(),
    ) {
        stream.extend_from_slice(b"HTTP/1.1 200 OK\r\n\r\n");
        stream.extend_from_slice(&body);
        let said = format!("{said} | 200 length=? closes | {}end", said_body(&body));
        prop_assert_eq!(&client(&cut(&stream, &places), |_| false, true), &said);
    }

    #[test]
    fn requests_are_read_as_written((stream, said) in requests(), places in places()) {
        prop_assert_eq!(&server(&[&stream]), &said);
        prop_assert_eq!(&server(&cut(&stream, &places)), &said);
    }

    #[test]
    fn noise_means_the_same_however_it_is_cut(
        stream in noise(),
        places in places(),
        heads in any::<u32>(),
        closes in any::<bool>(),
    ) {
        let heads = |nth| heads >> (nth % 32) & 1 == 1;
        prop_assert_eq!(client(&cut(&stream, &places), heads, closes), client(&[&stream], heads, closes));
        prop_assert_eq!(server(&cut(&stream, &places)), server(&[&stream]));
    }

    /// A written request is read back, and a missing byte is noticed.
    #[test]
    fn a_written_request_is_read(method in "[A-Z]{1,8}", target in "/[a-z?=&]{0,40}", host in "[a-z.]{1,20}") {
        let mut out = [0; 128];
        let n = write_request(&mut out, &method, &target, &host).expect("it fits");
        let head = if method == "HEAD" { " head" } else { "" };
        prop_assert_eq!(server(&[&out[..n]]), format!("{method} {target} keeps{head} | end"));
        prop_assert_eq!(write_request(&mut out[..n - 1], &method, &target, &host), None);
        prop_assert_eq!(write_request(&mut out[..n], &method, &target, &host), Some(n));
    }

    #[test]
    fn a_written_response_is_read(
        status in 200..1000u16,
        content_length in any::<u64>(),
        keeps_alive in any::<bool>(),
        http10 in any::<bool>(),
    ) {
        let response = Response { status, content_type: "text/plain", content_length, keeps_alive, http10 };
        let mut out = [0; 256];
        let n = write_response(&mut out, &response).expect("it fits");
        let bodyless = matches!(status, 204 | 304);
        let length = if bodyless { 0 } else { content_length };
        let lasts = if keeps_alive { "keeps" } else { "closes" };
        let end = if length == 0 { " | end" } else { "" };
        let said = client(&[&out[..n]], |_| false, false);
        prop_assert_eq!(said, format!("{status} length={length} {lasts}{end}"));
        prop_assert_eq!(write_response(&mut out[..n - 1], &response), None);
    }
}
