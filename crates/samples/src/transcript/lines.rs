//! A transcript as lines, as `curl -v` prints them: `>` what was sent, `<` what was received, `*` what happened, `=` what was found right
//! and `!` what was not.

use std::fmt::Write;

use units::{Count, Status};

use super::{Content, Entry, Event, Mismatch, Piece, Response};
use crate::fault::Fault;

/// Most lines and bytes of content that are printed, unless all of it is wanted.
const LINES: usize = 40;
const BYTES: usize = 4096;
/// Most bytes that are printed of content that is not text.
const SHOWN_BYTES: usize = 32;

/// Prints the entries of a transcript, and counts what was right.
pub struct Transcript {
    /// Names of the steps.
    steps: Vec<String>,
    is_full: bool,
    right: u64,
    wrong: u64,
    /// Number of steps that have begun.
    begun: usize,
    /// Why the connection ended before the last step.
    lost: Option<Fault>,
    is_done: bool,
}

impl Transcript {
    /// Of a user who takes these steps. Content is printed in full if it `is_full`.
    pub fn new(steps: Vec<String>, is_full: bool) -> Transcript {
        Transcript { steps, is_full, right: 0, wrong: 0, begun: 0, lost: None, is_done: false }
    }

    /// Whether every step was taken, every response was right, and no connection was lost.
    pub fn is_right(&self) -> bool {
        self.wrong == 0 && self.lost.is_none() && self.is_complete()
    }

    fn is_complete(&self) -> bool {
        self.is_done || self.begun == self.steps.len()
    }

    /// The entry as lines.
    pub fn text(&mut self, entry: &Entry) -> String {
        let mut out = String::new();
        match &entry.event {
            Event::Dial { from, to } => {
                let from = if from.port() == 0 { from.ip().to_string() } else { from.to_string() };
                self.line(&mut out, "*", &format!("dialling {to} from {from}"));
            }
            Event::Open(took) => self.line(&mut out, "*", &format!("connected in {}", took.brief())),
            Event::Secure { took, resumed, http2 } => {
                let kind = if *resumed { "resumed session" } else { "full handshake" };
                let protocol = if *http2 { ", HTTP/2 agreed" } else { "" };
                self.line(&mut out, "*", &format!("TLS: {kind} in {}{protocol}", took.brief()));
            }
            Event::Step(step) => {
                let name = self.steps.get(usize::from(*step)).map_or("", |name| name);
                self.begun = usize::from(*step) + 1;
                self.line(&mut out, "\n#", &format!("{} {name}", step + 1));
            }
            Event::Skipped(step) => {
                let name = self.steps.get(usize::from(*step)).map_or("", |name| name);
                self.begun = usize::from(*step) + 1;
                self.line(
                    &mut out,
                    "\n#",
                    &format!("{} {name}: skipped, its condition does not hold", step + 1),
                );
            }
            Event::Sent(piece) => self.piece(&mut out, ">", piece),
            Event::Received(piece) => self.piece(&mut out, "<", piece),
            Event::Redirect => self.line(&mut out, "*", "redirected"),
            Event::Pause(time) => self.line(&mut out, "*", &format!("pausing {}", time.brief())),
            Event::Response(response) => self.response(&mut out, response),
            Event::Failed(fault) => {
                self.wrong += 1;
                self.line(&mut out, "!", &fault.name());
            }
            Event::End(None) => self.line(&mut out, "*", "connection closed"),
            Event::End(Some(fault)) => {
                if !self.is_done {
                    self.lost = Some(*fault);
                }
                self.line(&mut out, "!", &format!("connection lost: {}", fault.name()));
            }
            Event::Done => self.is_done = true,
        }
        out
    }

    /// The last line: what was right, and what was not.
    pub fn end(&self, is_interrupted: bool) -> String {
        let Transcript { right, wrong, .. } = *self;
        let mut words = match (right, wrong) {
            (0, 0) => "no response was awaited".to_owned(),
            (right, 0) => format!("{}, all right", Count(right).of("response")),
            (right, wrong) => format!("{} of {} wrong", Count(wrong), Count(right + wrong).of("response")),
        };
        if !self.is_complete() {
            let _ = write!(
                words,
                ", {} of {} taken",
                Count(self.begun as u64),
                Count(self.steps.len() as u64).of("step")
            );
        }
        if let Some(fault) = self.lost {
            let _ = write!(words, ", connection lost: {}", fault.name());
        }
        if is_interrupted {
            words.push_str(", interrupted");
        }
        let mut out = String::new();
        self.line(&mut out, "\n#", &words);
        out
    }

    fn response(&mut self, out: &mut String, response: &Response) {
        let Response { status, length, first_byte, took, wrong, mismatches, captured } = response;
        let status = status.map_or(String::new(), |status| format!("status {}, ", Status(status)));
        let first = first_byte.map_or(String::new(), |time| format!("first byte after {}, ", time.brief()));
        let all = format!("{status}{}, {first}complete after {}", Count(*length).of("byte"), took.brief());
        self.line(out, "*", &all);
        for Mismatch { place, wanted, got } in mismatches {
            let got = if got.is_empty() { "nothing" } else { got };
            self.line(out, "!", &format!("{place}: {got}, not {wanted}"));
        }
        for (name, value) in captured {
            match value {
                Some(value) => self.line(out, "=", &format!("captured {name}: {value}")),
                None if mismatches.is_empty() => {
                    self.line(out, "!", &format!("nothing to capture as {name}"));
                }
                None => {}
            }
        }
        let is_explained = !mismatches.is_empty() || captured.iter().any(|(_, value)| value.is_none());
        match wrong {
            None => {
                self.right += 1;
                self.line(out, "=", "right");
            }
            Some(fault) => {
                self.wrong += 1;
                if !is_explained {
                    self.line(out, "!", &fault.name());
                }
            }
        }
    }

    fn piece(&self, out: &mut String, sign: &str, piece: &Piece) {
        match piece {
            Piece::Head(head) => {
                head.lines().for_each(|line| self.line(out, sign, line));
                self.line(out, sign, "");
            }
            Piece::Content(content) => self.content(out, sign, content),
            Piece::Message { is_text, content } => {
                let kind = if *is_text { "text" } else { "binary" };
                self.line(out, sign, &format!("[{kind}, {}]", Count(content.length).of("byte")));
                self.content(out, sign, content);
            }
            Piece::Control(words) => self.line(out, sign, &format!("[{words}]")),
        }
    }

    fn content(&self, out: &mut String, sign: &str, content: &Content) {
        if let Some(decoded) = &content.decoded {
            let [sent, decoded_len] = [content.length, decoded.len() as u64].map(|n| Count(n).of("byte"));
            self.line(out, sign, &format!("[{sent}, decoded to {decoded_len}]"));
            let decoded = Content { bytes: decoded.clone(), length: decoded.len() as u64, decoded: None };
            return self.content(out, sign, &decoded);
        }
        let Content { bytes, length, .. } = content;
        let is_text = |text: &str| !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
        // The end of what is kept may be within a character.
        let valid = str::from_utf8(bytes).map_or_else(|e| e.valid_up_to(), str::len);
        let text =
            str::from_utf8(&bytes[..valid]).ok().filter(|text| is_text(text) && valid + 4 > bytes.len());
        let Some(text) = text else {
            let hex: Vec<String> = bytes.iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect();
            let more = if *length > SHOWN_BYTES as u64 { " …" } else { "" };
            let size = Count(*length).of("byte");
            return self.line(out, sign, &format!("[{size}, not text: {}{more}]", hex.join(" ")));
        };
        let end = match text.match_indices('\n').nth(LINES - 1) {
            Some((at, _)) if !self.is_full => at + 1,
            _ => text.len(),
        };
        let end = if self.is_full { end } else { text.floor_char_boundary(end.min(BYTES)) };
        text[..end].lines().for_each(|line| self.line(out, sign, line));
        let left = *length - end as u64;
        if left > 0 {
            let how = if self.is_full { "" } else { "; --full prints them" };
            self.line(out, "*", &format!("{} more{how}", Count(left).of("byte")));
        }
    }

    fn line(&self, out: &mut String, sign: &str, text: &str) {
        let text = units::printable(text);
        let line = format!("{sign} {text}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Kind, Stage};
    use units::Nanos;

    fn content(text: &[u8]) -> Content {
        Content { bytes: text.to_vec(), length: text.len() as u64, decoded: None }
    }

    fn text(transcript: &mut Transcript, event: Event) -> String {
        transcript.text(&Entry { at: Nanos::ZERO, event })
    }

    fn plain() -> Transcript {
        Transcript::new(vec!["login".to_owned()], false)
    }

    #[test]
    fn a_step_is_printed_as_sent_and_received() {
        let mut transcript = plain();
        let mut print = |event| text(&mut transcript, event);
        assert_eq!(print(Event::Step(0)), "\n# 1 login\n");
        let head = Piece::Head("POST /login HTTP/1.1\nHost: h".to_owned());
        assert_eq!(print(Event::Sent(head)), "> POST /login HTTP/1.1\n> Host: h\n>\n");
        assert_eq!(print(Event::Sent(Piece::Content(content(b"a\nb")))), "> a\n> b\n");
        let binary = Piece::Content(content(b"\0\x01\xff"));
        assert_eq!(print(Event::Received(binary)), "< [3 bytes, not text: 00 01 ff]\n");
        let message = Piece::Message { is_text: true, content: content("é".as_bytes()) };
        assert_eq!(print(Event::Received(message)), "< [text, 2 bytes]\n< é\n");
        let wrong = Response {
            status: Some(200),
            length: 12,
            first_byte: Some(Nanos::from_millis(2)),
            took: Nanos::from_millis(3),
            wrong: Some(Fault::target(Stage::Exchange, Kind::WrongLength)),
            mismatches: vec![Mismatch {
                place: "length".to_owned(),
                wanted: "13".to_owned(),
                got: "12".to_owned(),
            }],
            captured: vec![("token".to_owned(), None)],
        };
        let lines =
            "* status 200, 12 bytes, first byte after 2.0 ms, complete after 3.0 ms\n! length: 12, not 13\n";
        assert_eq!(print(Event::Response(wrong)), lines);
        assert_eq!(transcript.end(false), "\n# 1 of 1 response wrong\n");
        assert!(!transcript.is_right());
    }

    #[test]
    fn a_value_that_is_missing_makes_a_response_wrong() {
        let mut transcript = plain();
        let captured = vec![("a".to_owned(), Some("***".to_owned())), ("b".to_owned(), None)];
        let wrong = Some(Fault::target(Stage::Exchange, Kind::MissingValue));
        let response = Response { captured, wrong, ..Response::default() };
        let printed = text(&mut transcript, Event::Response(response));
        assert!(printed.ends_with("= captured a: ***\n! nothing to capture as b\n"), "{printed}");
        assert!(!transcript.is_right());
    }

    /// What is kept of a response may not show what is wrong with it.
    #[test]
    fn a_wrong_response_is_wrong_whether_or_not_it_is_explained() {
        let mut transcript = plain();
        let wrong = Some(Fault::target(Stage::Exchange, Kind::WrongBody));
        let printed = text(&mut transcript, Event::Response(Response { wrong, ..Response::default() }));
        assert!(printed.ends_with("\n! target exchange wrong-body\n"), "{printed}");
        assert!(!transcript.is_right());
    }

    #[test]
    fn a_connection_that_is_lost_after_the_last_step_changes_nothing() {
        let fault = Fault::target(Stage::Hold, Kind::Closed);
        let (mut before, mut after) = (plain(), plain());
        text(&mut before, Event::End(Some(fault)));
        text(&mut after, Event::Done);
        text(&mut after, Event::End(Some(fault)));
        assert_eq!((before.is_right(), after.is_right()), (false, true));
        assert!(before.end(true).contains("connection lost") && before.end(true).contains("interrupted"));
        assert_eq!(after.end(false), "\n# no response was awaited\n");
    }

    #[test]
    fn steps_that_were_not_taken_are_counted() {
        let mut transcript = Transcript::new(["a", "b", "c"].map(str::to_owned).to_vec(), false);
        text(&mut transcript, Event::Step(0));
        text(&mut transcript, Event::Response(Response::default()));
        text(&mut transcript, Event::Step(1));
        text(&mut transcript, Event::End(None));
        assert_eq!(transcript.end(false), "\n# 1 response, all right, 2 of 3 steps taken\n");
        assert!(!transcript.is_right());
        text(&mut transcript, Event::Step(2));
        assert!(transcript.is_right() && transcript.end(false).ends_with("all right\n"));
    }

    #[test]
    fn long_content_is_cut_unless_all_of_it_is_wanted() {
        let long = "x".repeat(BYTES + 10);
        let lines = "y\n".repeat(LINES + 2);
        let print = |text: &str, is_full| {
            let mut transcript = Transcript::new(Vec::new(), is_full);
            let piece = Piece::Content(content(text.as_bytes()));
            transcript.text(&Entry { at: Nanos::ZERO, event: Event::Sent(piece) })
        };
        assert!(
            print(&long, false).ends_with("\n* 10 bytes more; --full prints them\n"),
            "{}",
            print(&long, false)
        );
        assert!(print(&lines, false).ends_with("> y\n* 4 bytes more; --full prints them\n"));
        assert_eq!(print(&long, true), format!("> {long}\n"));
        assert_eq!(print(&lines, true).matches("> y").count(), LINES + 2);
    }
}
