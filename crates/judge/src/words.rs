//! Texts from the target: for each kind of fault, the first line of an error sample that explains it.

use samples::{Detail, ErrorSample, ErrorSamples, Fault, Kind, Stage};

/// The text that came with a kind of fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    stage: Stage,
    kind: Kind,
    /// `it says`, `it begins with`, `it redirects to`
    verb: &'static str,
    /// Quoted, with secrets masked, and truncated.
    pub(crate) text: String,
    /// Whether people can read it.
    is_text: bool,
    /// Whether it is an HTTP/1 response.
    pub(crate) is_http: bool,
}

/// Maximum number of bytes quoted.
const MOST_SHOWN: usize = 100;

impl Words {
    /// The texts by kind of fault.
    pub(super) fn of(samples: &ErrorSamples) -> Vec<Words> {
        let mut all: Vec<Words> = Vec::new();
        for sample in samples.iter() {
            let Fault { stage, kind, .. } = sample.fault();
            let is_known = all.iter().any(|words| (words.stage, words.kind) == (stage, kind));
            let Some((verb, line)) = explaining(sample).filter(|_| !is_known) else { continue };
            let is_text = !line.iter().any(u8::is_ascii_control) && str::from_utf8(line).is_ok();
            let (shown, more) = match line.len() {
                0..=MOST_SHOWN => (line, ""),
                _ => (&line[..MOST_SHOWN], "…"),
            };
            let shown = match is_text {
                true => String::from_utf8_lossy(shown).trim_end_matches('\u{fffd}').to_owned(),
                false => shown.escape_ascii().to_string(),
            };
            let is_http = line.starts_with(b"HTTP/");
            all.push(Words { stage, kind, verb, text: format!("\"{shown}{more}\""), is_text, is_http });
        }
        all
    }

    /// The text for this kind of fault.
    pub(super) fn find(all: &[Words], stage: Stage, kind: Kind) -> Option<&Words> {
        all.iter().find(|words| (words.stage, words.kind) == (stage, kind))
    }

    /// Whether it gives inactivity as the reason: `idle_timeout`, `max_idle`, `session idle`.
    pub(super) fn are_of_idleness(&self) -> bool {
        self.text.to_ascii_lowercase().contains("idle")
    }

    /// A sentence, if people can read it: `it redirects to "/login" (more redirects than are followed)`.
    pub(super) fn sentence(&self, detail: Detail) -> Option<String> {
        let why = if detail.is_of_redirect() { detail.suffix() } else { String::new() };
        (self.is_text && !self.is_http).then(|| format!("{} {}{why}", self.verb, self.text))
    }
}

/// The line of a sample that explains the fault.
fn explaining(sample: &ErrorSample) -> Option<(&'static str, &[u8])> {
    let mut lines = sample.bytes().split(|byte| b"\r\n".contains(byte)).filter(|line| !line.is_empty());
    let kind = sample.fault().kind;
    if !sample.is_from_start() {
        None
    } else if kind == Kind::WrongStatus {
        let is_redirect = sample.status().is_some_and(|status| (300..400).contains(&status));
        lines.find_map(|line| {
            let at = line.iter().position(|byte| *byte == b':')?;
            let (name, value) = (&line[..at], line[at + 1..].trim_ascii());
            match name {
                _ if value.is_empty() => None,
                name if is_redirect && name.eq_ignore_ascii_case(b"location") => {
                    Some(("it redirects to", value))
                }
                b"grpc-message" => Some(("it says", value)),
                _ => None,
            }
        })
    } else if matches!(kind, Kind::BadAnswer | Kind::NotTls | Kind::Timeout) {
        Some(("it begins with", lines.next()?))
    } else if kind == Kind::Closed {
        Some(("it says", lines.next()?))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    fn check(kind: Kind, status: Option<u16>, bytes: &[u8], expected: Option<&str>) {
        let mut samples = ErrorSamples::default();
        let fault = Fault::target(Stage::Exchange, kind);
        samples.add(ErrorSample::new(fault, Nanos(1), status, bytes, &[]));
        let all = Words::of(&samples);
        let found = Words::find(&all, Stage::Exchange, kind).and_then(|words| words.sentence(Detail::NONE));
        assert_eq!(found.as_deref(), expected, "{kind:?} {:?}", bytes.escape_ascii().to_string());
        assert_eq!(Words::find(&all, Stage::Hold, kind), None);
    }

    #[test]
    fn the_line_that_explains_is_quoted() {
        let redirect = b"HTTP/1.1 302 Found\r\nServer: a\r\nLOCATION: /login?next=/\r\n\r\n";
        check(Kind::WrongStatus, Some(302), redirect, Some("it redirects to \"/login?next=/\""));
        check(Kind::WrongStatus, Some(201), redirect, None);
        check(
            Kind::WrongStatus,
            Some(302),
            b"location: http://other/",
            Some("it redirects to \"http://other/\""),
        );
        check(Kind::WrongStatus, Some(5), "grpc-message: no é\nat all".as_bytes(), Some("it says \"no é\""));
        check(Kind::WrongStatus, Some(503), b"HTTP/1.1 503 Busy\r\n\r\nbusy: yes", None);
        check(Kind::BadAnswer, None, b"\r\n220 mail ESMTP\r\n", Some("it begins with \"220 mail ESMTP\""));
        check(Kind::NotTls, None, b"SSH-2.0-OpenSSH_9\r\n", Some("it begins with \"SSH-2.0-OpenSSH_9\""));
        check(Kind::Timeout, None, b"-ERR\r\n", Some("it begins with \"-ERR\""));
        check(Kind::Timeout, None, b"HTTP/1.1 200 OK\r\nCont", None);
        check(Kind::BadAnswer, None, b"J\0\0\0\x0a8.0.36\0", None);
        check(Kind::Closed, None, b"too_many_pings", Some("it says \"too_many_pings\""));
        check(Kind::WrongBody, Some(200), b"HTTP/1.1 200 OK\r\nLocation: /\r\n\r\n", None);
        check(Kind::Closed, None, b"", None);
        let long = format!("it says \"{}…\"", "x".repeat(100));
        check(Kind::Closed, None, &[b'x'; 240], Some(&long));
    }
}
