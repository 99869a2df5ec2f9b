//! Two targets that got the same requests: what their responses differ in.

use std::fmt::Write;

use samples::{
    Fault,
    transcript::{Entry, Event, Piece},
};
use serde_json::Value;
use units::{Count, Nanos, Status};

/// Most differences that are listed of a response.
const LISTED: usize = 10;
/// Bytes of text that are shown on either side of the first difference.
const AROUND: usize = 30;

/// The responses of a transcript, one per step.
#[derive(Debug, Default)]
pub struct Responses(Vec<Seen>);

/// What a step has received.
#[derive(Debug, Default)]
struct Seen {
    step: u16,
    status: Option<u16>,
    content: Vec<u8>,
    length: u64,
    took: Option<Nanos>,
    fault: Option<Fault>,
}

impl Responses {
    /// Adds an entry of the transcript.
    pub fn add(&mut self, entry: &Entry) {
        if let Event::Step(step) = entry.event {
            self.0.push(Seen { step, ..Seen::default() });
        }
        let Some(seen) = self.0.last_mut() else { return };
        match &entry.event {
            Event::Received(Piece::Content(content) | Piece::Message { content, .. }) => {
                seen.content = without_lengths(content.decoded.as_ref().unwrap_or(&content.bytes));
            }
            Event::Response(response) => {
                (seen.status, seen.length) = (response.status, response.length);
                seen.took = Some(response.took);
            }
            Event::Failed(fault) | Event::End(Some(fault)) if seen.took.is_none() => {
                seen.fault = Some(*fault)
            }
            _ => {}
        }
    }

    /// The differences to the responses of the `other` target, as lines of a transcript, and the number of steps that differ.
    pub fn differences(&self, other: &Responses, steps: &[String], name: &str) -> (String, usize) {
        let (mut out, mut differing) = (format!("\n# compared with {name}\n"), 0);
        for (nth, seen) in self.0.iter().enumerate() {
            let name = steps.get(usize::from(seen.step)).map_or("", |name| name);
            let step = format!("{} {name}", seen.step + 1);
            let Some(theirs) = other.0.get(nth) else {
                differing += 1;
                let _ = writeln!(out, "! {step}: not reached");
                continue;
            };
            let times = times(seen, theirs);
            let lines = seen.differences(theirs);
            if lines.is_empty() {
                let _ = writeln!(out, "= {step}: the same{times}");
                continue;
            }
            differing += 1;
            let _ = writeln!(out, "! {step}: differs{times}");
            lines
                .iter()
                .take(LISTED)
                .for_each(|line| writeln!(out, "!   {}", units::printable(line)).unwrap_or_default());
            if lines.len() > LISTED {
                let _ = writeln!(out, "!   {}", Count((lines.len() - LISTED) as u64).of("more difference"));
            }
        }
        if self.0.is_empty() {
            let _ = writeln!(out, "\n# nothing to compare: no step awaits a response");
            return (out, 0);
        }
        let all = Count(self.0.len() as u64).of("step");
        let _ = writeln!(out, "\n# {differing} of {all} differ");
        (out, differing)
    }
}

impl Seen {
    fn differences(&self, other: &Seen) -> Vec<String> {
        let fault = |seen: &Seen| seen.fault.map_or("a response".to_owned(), |fault| fault.name());
        if self.fault.is_some() || other.fault.is_some() {
            let (own, theirs) = (fault(self), fault(other));
            return if own == theirs { Vec::new() } else { vec![format!("{own} and {theirs}")] };
        }
        let status = |seen: &Seen| seen.status.map_or("none".to_owned(), |status| Status(status).to_string());
        let mut lines = Vec::new();
        if self.status != other.status {
            lines.push(format!("status {} and {}", status(self), status(other)));
        }
        let json = |seen: &Seen| {
            serde_json::from_slice::<Value>(&seen.content).ok().filter(|json| !json.is_number())
        };
        match (json(self), json(other)) {
            (Some(own), Some(theirs)) => compare(&own, &theirs, &mut String::new(), &mut lines),
            _ if self.content != other.content => lines.push(first(&self.content, &other.content)),
            _ if self.length != other.length => {
                lines.push(format!("{} and {} bytes", self.length, other.length))
            }
            _ => {}
        }
        lines
    }
}

/// Content with one `*` for each masked secret: secrets of two users have different lengths.
fn without_lengths(content: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(content.len());
    for byte in content {
        if *byte != b'*' || out.last() != Some(&b'*') {
            out.push(*byte);
        }
    }
    out
}

/// How long each took.
fn times(own: &Seen, theirs: &Seen) -> String {
    match (own.took, theirs.took) {
        (Some(own), Some(theirs)) => format!(", {} and {}", own.brief(), theirs.brief()),
        _ => String::new(),
    }
}

/// Adds each place at which two values differ: its pointer (RFC 6901), and both values.
fn compare(own: &Value, theirs: &Value, pointer: &mut String, lines: &mut Vec<String>) {
    let length = pointer.len();
    match (own, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let further = b.keys().filter(|name| !a.contains_key(*name));
            for name in a.keys().chain(further) {
                let _ = write!(pointer, "/{}", name.replace('~', "~0").replace('/', "~1"));
                compare_some(a.get(name), b.get(name), pointer, lines);
                pointer.truncate(length);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for nth in 0..a.len().max(b.len()) {
                let _ = write!(pointer, "/{nth}");
                compare_some(a.get(nth), b.get(nth), pointer, lines);
                pointer.truncate(length);
            }
        }
        _ if own != theirs => lines.push(format!("{pointer}: {own} and {theirs}")),
        _ => {}
    }
}

fn compare_some(own: Option<&Value>, theirs: Option<&Value>, pointer: &mut String, lines: &mut Vec<String>) {
    match (own, theirs) {
        (Some(own), Some(theirs)) => compare(own, theirs, pointer, lines),
        (Some(own), None) => lines.push(format!("{pointer}: {own} and nothing")),
        (None, Some(theirs)) => lines.push(format!("{pointer}: nothing and {theirs}")),
        (None, None) => {}
    }
}

/// The first difference of two texts, with its surroundings.
fn first(own: &[u8], theirs: &[u8]) -> String {
    let same = own.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    let part = |bytes: &[u8]| {
        let part = &bytes[same.saturating_sub(AROUND).min(bytes.len())..bytes.len().min(same + AROUND)];
        format!("{:?}", String::from_utf8_lossy(part))
    };
    format!("from byte {same}: {} and {}", part(own), part(theirs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::{
        Kind, Stage,
        transcript::{Content, Response},
    };

    fn responses(all: &[(u16, &str)]) -> Responses {
        let mut responses = Responses::default();
        for (nth, (status, content)) in all.iter().enumerate() {
            let mut bytes = Content::default();
            bytes.push(content.as_bytes(), Content::KEPT);
            let response = Response {
                status: Some(*status),
                length: bytes.length,
                took: Nanos::from_millis(2),
                ..Response::default()
            };
            for event in
                [Event::Step(nth as u16), Event::Received(Piece::Content(bytes)), Event::Response(response)]
            {
                responses.add(&Entry { at: Nanos::ZERO, event });
            }
        }
        responses
    }

    #[test]
    fn each_difference_has_its_place_and_both_values() {
        let own = responses(&[
            (200, r#"{"a":[1,{"b":2}],"c":"x"}"#),
            (200, "hello world"),
            (200, "same"),
            (200, ""),
        ]);
        let mut other =
            responses(&[(503, r#"{"a":[1,{"b":3},4],"d":null}"#), (200, "hello there"), (200, "same")]);
        other.add(&Entry { at: Nanos::ZERO, event: Event::Step(3) });
        let fault = Fault::target(Stage::Exchange, Kind::Timeout);
        other.add(&Entry { at: Nanos::ZERO, event: Event::End(Some(fault)) });
        let steps: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
        let (text, differing) = own.differences(&other, &steps, "http://h/");
        let expected = "
# compared with http://h/
! 1 a: differs, 2.0 ms and 2.0 ms
!   status 200 and 503
!   /a/1/b: 2 and 3
!   /a/2: nothing and 4
!   /c: \"x\" and nothing
!   /d: nothing and null
! 2 b: differs, 2.0 ms and 2.0 ms
!   from byte 6: \"hello world\" and \"hello there\"
= 3 c: the same, 2.0 ms and 2.0 ms
! 4 d: differs
!   a response and target exchange timeout

# 3 of 4 steps differ
";
        assert_eq!((text.as_str(), differing), (expected, 3));
    }

    #[test]
    fn masked_secrets_do_not_differ() {
        let (one, other) = (responses(&[(200, r#"{"t":"***"}"#)]), responses(&[(200, r#"{"t":"*****"}"#)]));
        assert_eq!(one.differences(&other, &["a".to_owned()], "other").1, 0);
        let nothing = Responses::default().differences(&Responses::default(), &[], "other");
        assert!(nothing.0.contains("# nothing to compare"), "{}", nothing.0);
    }

    #[test]
    fn a_step_that_the_other_did_not_reach_differs() {
        let (text, differing) = responses(&[(200, "")]).differences(&Responses::default(), &[], "other");
        assert!(differing == 1 && text.contains("! 1 : not reached\n"), "{text}");
    }
}
