//! What was there instead of what was expected.

use plan::Expectation;
use samples::{
    Kind,
    transcript::{Mismatch, Piece},
};
use units::{Nanos, Status};

use crate::{
    exchange::Exchange,
    json::{Found, Pointer, Scan},
};

/// What a step has received.
#[derive(Debug)]
pub(crate) struct Findings<'a> {
    /// The lines of the last head that has a status.
    head: &'a str,
    /// The content that the checks have read, or the last message; and whether it is whole.
    content: (&'a [u8], bool),
    /// When the step was sent.
    pub(crate) sent: Nanos,
    /// When the first byte of its response came.
    pub(crate) first_byte: Option<Nanos>,
}

/// Octets of text that a mismatch quotes.
const QUOTED: usize = 80;

impl<'a> Findings<'a> {
    pub(super) fn new(
        received: impl Iterator<Item = &'a Piece>,
        decodes: bool,
        under_way: Option<(Nanos, Option<Nanos>)>,
    ) -> Findings<'a> {
        let (sent, first_byte) = under_way.unwrap_or_default();
        let mut findings = Findings { head: "", content: (&[], true), sent, first_byte };
        for piece in received {
            match piece {
                Piece::Head(head) if head.starts_with("HTTP/") => findings.head = head,
                // Trailers.
                Piece::Head(_) | Piece::Control(_) => {}
                Piece::Content(content) | Piece::Message { content, .. } => {
                    let decoded = content.decoded.as_deref().filter(|_| decodes);
                    findings.content = (decoded.unwrap_or(&content.bytes), content.is_whole());
                }
            }
        }
        findings
    }

    /// Each expectation that was not met, as far as what was kept shows it; `wrong` are the kinds of checks that failed. `sent`: the message that was to be echoed.
    pub(crate) fn mismatches(
        &self,
        wrong: &[Kind],
        expected: &Expectation,
        (exchange, status): (&Exchange, Option<u16>),
        sent: &[u8],
    ) -> Vec<Mismatch> {
        let of = |kind: &Kind| match kind {
            Kind::WrongStatus => vec![self.status(expected, status)],
            Kind::WrongHeader => self.headers(expected),
            Kind::WrongLength => {
                vec![mismatch("length", exchange.expected.to_string(), exchange.content.to_string())]
            }
            Kind::WrongEcho => vec![self.echo(sent)],
            Kind::WrongBody => self.body(expected),
            _ => Vec::new(),
        };
        wrong.iter().flat_map(of).collect()
    }

    fn status(&self, expected: &Expectation, status: Option<u16>) -> Mismatch {
        let name = |status: u16| Status(status).to_string();
        let wanted = expected.status.map_or("200 to 299".to_owned(), name);
        mismatch("status", wanted, status.map_or(String::new(), name))
    }

    fn headers(&self, expected: &Expectation) -> Vec<Mismatch> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let of = |(name, text): &(String, String)| {
            let values: Vec<&str> = fields
                .clone()
                .filter(|(own, _)| own.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim())
                .collect();
            let is_there = values.iter().any(|value| value.contains(text));
            let wanted = if text.is_empty() { "any value".to_owned() } else { text.clone() };
            (!is_there).then(|| mismatch(&format!("header {name}"), wanted, values.join(", ")))
        };
        expected.headers.iter().filter_map(of).collect()
    }

    /// The first difference between a message and its echo, with its surroundings.
    fn echo(&self, sent: &[u8]) -> Mismatch {
        let same = sent.iter().zip(self.content.0).take_while(|(a, b)| a == b).count();
        let from = same.saturating_sub(QUOTED / 4);
        let part = |bytes: &[u8]| quoted(bytes.get(from..).unwrap_or_default());
        mismatch(&format!("echo from byte {same}"), part(sent), part(self.content.0))
    }

    fn body(&self, expected: &Expectation) -> Vec<Mismatch> {
        let (content, is_whole) = self.content;
        // What is not in the part that was kept may be in the rest.
        let text = expected.body.iter().filter(|text| {
            let text = text.as_bytes();
            is_whole && !text.is_empty() && !content.windows(text.len()).any(|part| part == text)
        });
        let text = text.map(|text| mismatch("body", text.clone(), quoted(content)));
        let json = expected.json.iter().filter_map(|(pointer, wanted)| {
            let got = self.value(pointer).map(Some).or(is_whole.then_some(None))?;
            (got.as_ref() != Some(wanted)).then(|| mismatch(pointer, wanted.clone(), got.unwrap_or_default()))
        });
        let absent = expected.absent.iter().filter_map(|pointer| {
            let got = self.value(pointer).filter(|got| got != "null")?;
            Some(mismatch(pointer, "absent".to_owned(), got))
        });
        text.chain(json).chain(absent).collect()
    }

    /// The value at a JSON pointer of the content.
    fn value(&self, pointer: &str) -> Option<String> {
        let (pointer, mut scan, mut value) = (Pointer::new(pointer), Scan::new(), Vec::new());
        let found = scan.read(&pointer, self.content.0.iter().copied(), |octet| value.push(octet));
        let is_there = found == Found::Yes || scan.end() == Found::Yes;
        is_there.then(|| String::from_utf8_lossy(&value).into_owned())
    }
}

fn mismatch(place: &str, wanted: String, got: String) -> Mismatch {
    Mismatch { place: place.to_owned(), wanted, got }
}

/// The beginning of a text.
fn quoted(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(QUOTED)];
    let more = if cut.len() < bytes.len() { "…" } else { "" };
    format!("{}{more}", String::from_utf8_lossy(cut))
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::transcript::Content;

    fn content(text: &str) -> Piece {
        Piece::Content(Content { bytes: text.into(), length: text.len() as u64, decoded: None })
    }

    fn check(received: &[Piece], wrong: Kind, expected: &Expectation, sent: &str, lines: &[&str]) {
        let findings = Findings::new(received.iter(), false, None);
        let exchange = Exchange { expected: 13, content: 12, ..Exchange::new(Nanos(1), Nanos(1)) };
        let found = findings.mismatches(&[wrong], expected, (&exchange, Some(503)), sent.as_bytes());
        let found: Vec<_> =
            found.iter().map(|it| format!("{}: {}, not {}", it.place, it.got, it.wanted)).collect();
        assert_eq!(found, lines);
    }

    #[test]
    fn each_check_says_what_was_there_instead() {
        let any = Expectation::default();
        check(&[], Kind::WrongStatus, &any, "", &["status: 503, not 200 to 299"]);
        check(&[], Kind::WrongLength, &any, "", &["length: 12, not 13"]);
        let head = Piece::Head("HTTP/1.1 200 OK\nA: x\nB: y".to_owned());
        let pairs = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let headers = pairs(&[("a", "x"), ("b", "z"), ("C", "")]);
        let of_head = Expectation { headers, ..Expectation::default() };
        let lines = ["header b: y, not z", "header C: , not any value"];
        check(&[head], Kind::WrongHeader, &of_head, "", &lines);
        let json = pairs(&[("/items/1/price", "12"), ("/ok", "true"), ("/none", "1")]);
        let of_body = Expectation { json, body: Some("sorry".to_owned()), ..Expectation::default() };
        let text = r#"{"items":[{},{"price":12.5}],"ok":true}"#;
        let lines =
            [&format!("body: {text}, not sorry")[..], "/items/1/price: 12.5, not 12", "/none: , not 1"];
        check(&[content(text)], Kind::WrongBody, &of_body, "", &lines);
        let cut = Piece::Content(Content { bytes: text.into(), length: 9_999, decoded: None });
        check(&[cut], Kind::WrongBody, &of_body, "", &["/items/1/price: 12.5, not 12"]);
        let lines = ["echo from byte 3: abcX, not abcd"];
        check(&[content("abcX")], Kind::WrongEcho, &any, "abcd", &lines);
    }
}
