//! Checks of a response: `status=200,length=$1`.

use std::fmt;

use crate::{Capture, MAX_NUMBERS, Scheme};
use units::{Count, Status};

/// What a response is checked for, besides complete framing; all checks must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// HTTP: this status (200..=599); `None`: any 2xx. gRPC: this status (0..=16), always set.
    pub status: Option<u16>,
    /// This many bytes of content (RFC 9110 section 6.4); `None`: any number.
    pub length: Option<ExpectedLength>,
    /// HTTP: fields, each with a text that its value must contain.
    pub headers: Vec<(String, String)>,
    /// A text that the content or message must contain.
    pub body: Option<String>,
    /// WebSocket, TCP: the message must equal the one that was sent.
    pub echo: bool,
    /// Values in JSON content by pointer (RFC 6901): a text without quotes, or a number, `true`, `false` or `null` as written.
    pub json: Vec<(String, String)>,
    /// JSON pointers at which there must be no text, number or truth value; `null` is none.
    pub absent: Vec<String>,
    /// Values to capture, which must exist.
    pub captures: Vec<Capture>,
    /// WebSocket: ignore messages until one passes.
    pub skip: bool,
}

/// The expected length of a response's content. Prints as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedLength {
    /// A fixed number of bytes.
    Fixed(u64),
    /// The random number of the request with this index: `$1` is index 0.
    Drawn(usize),
}

impl ExpectedLength {
    /// Checks that it is still known when the response arrives: only the first random numbers of a request are stored.
    pub(crate) fn kept(self) -> Result<ExpectedLength, String> {
        match self {
            ExpectedLength::Drawn(MAX_NUMBERS..) => {
                Err(format!("only the first {MAX_NUMBERS} numbers are available; use $1: \"{self}\""))
            }
            _ => Ok(self),
        }
    }

    /// The expected number of bytes in response to a request with these random `numbers`.
    pub fn of(self, numbers: &[u64]) -> u64 {
        match self {
            ExpectedLength::Fixed(length) => length,
            ExpectedLength::Drawn(index) => numbers[index],
        }
    }
}

impl fmt::Display for ExpectedLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpectedLength::Fixed(length) => write!(f, "{length}"),
            ExpectedLength::Drawn(index) => write!(f, "${}", index + 1),
        }
    }
}

impl Expectation {
    /// Parses `status=200`, `length=512`, `length=$1`, or both with a comma. `numbers`: how many random numbers the target draws; `None` if
    /// unknown because the target itself is invalid.
    pub(crate) fn parse(text: &str, scheme: Scheme, numbers: Option<usize>) -> Result<Expectation, String> {
        let mut expect = Expectation::default();
        for item in text.split(',') {
            let unknown = || format!("unknown check {item:?}; use status=200,length=$1");
            let (key, value) = item.split_once('=').ok_or_else(unknown)?;
            let twice = match key {
                "status" => expect.status.replace(status(value, scheme)?).is_some(),
                "length" => expect.length.replace(length(value, numbers)?).is_some(),
                "body" | "json" | "header" | "headers" => {
                    return Err(format!(
                        "{key} is checked by expect in a scenario file; here use status=200,length=$1: {item:?}"
                    ));
                }
                _ => return Err(unknown()),
            };
            if twice {
                return Err(format!("{key} is given twice: {text:?}"));
            }
        }
        Ok(expect)
    }
}

pub(crate) fn status(text: &str, scheme: Scheme) -> Result<u16, String> {
    if scheme.has_calls() {
        return Status::parse_grpc(text).map(|status| status.0).map_err(|why| why.to_string());
    }
    // An informational response (1xx) is never final: RFC 9110 section 15.2.
    let code = text.parse().ok().filter(|code| (200..=599).contains(code));
    code.ok_or_else(|| format!("{text:?} is not a status; use 200 to 599"))
}

pub(crate) fn length(text: &str, numbers: Option<usize>) -> Result<ExpectedLength, String> {
    let Some(number) = text.strip_prefix('$') else {
        let fixed = Count::parse(text).map(|length| ExpectedLength::Fixed(length.0));
        return fixed.map_err(|_| format!("{text:?} is not a length; use 512 or $1"));
    };
    let index = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    let index = index.ok_or_else(|| format!("{text:?} is not a number of the request; use $1"))?;
    match numbers {
        Some(0) => Err(format!("the target has no random number; add {{rand 1 4096}} to it: {text:?}")),
        Some(n) if index >= n => {
            Err(format!("the target has {n} random numbers, the last is ${n}: {text:?}"))
        }
        _ => Ok(ExpectedLength::Drawn(index)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ExpectedLength::{Drawn, Fixed};

    #[test]
    fn reads_expectations() {
        check("status=200", Ok((Some(200), None)));
        check("length=512", Ok((None, Some(Fixed(512)))));
        check("length=1k", Ok((None, Some(Fixed(1_000)))));
        check("status=404,length=0", Ok((Some(404), Some(Fixed(0)))));
        check("length=$1,status=200", Ok((Some(200), Some(Drawn(0)))));
        check("length=$2", Ok((None, Some(Drawn(1)))));
        check("length=$3", Err("the target has 2 random numbers, the last is $2: \"$3\""));
        check("length=$0", Err("\"$0\" is not a number of the request; use $1"));
        check("length=$x", Err("\"$x\" is not a number of the request; use $1"));
        check("length=long", Err("\"long\" is not a length; use 512 or $1"));
        check("status=ok", Err("\"ok\" is not a status; use 200 to 599"));
        check("status=100", Err("\"100\" is not a status; use 200 to 599"));
        check("status=600", Err("\"600\" is not a status; use 200 to 599"));
        check("status=200,status=201", Err("status is given twice: \"status=200,status=201\""));
        check("200", Err("unknown check \"200\"; use status=200,length=$1"));
        let in_file =
            "body is checked by expect in a scenario file; here use status=200,length=$1: \"body=x\"";
        check("body=x", Err(in_file));
        check("", Err("unknown check \"\"; use status=200,length=$1"));
    }

    /// For a target that draws two numbers.
    fn check(text: &str, expected: Result<(Option<u16>, Option<ExpectedLength>), &str>) {
        let read =
            Expectation::parse(text, Scheme::Http, Some(2)).map(|expect| (expect.status, expect.length));
        assert_eq!(read, expected.map_err(str::to_owned), "{text:?}");
    }

    #[test]
    fn a_number_needs_a_target_that_draws() {
        assert!(
            Expectation::parse("length=$1", Scheme::Http, Some(0)).unwrap_err().contains("no random number")
        );
        assert_eq!(Expectation::parse("length=$9", Scheme::Http, None).unwrap().length, Some(Drawn(8)));
        let of_grpc = |text| Expectation::parse(text, Scheme::Grpc, None).map(|expect| expect.status);
        assert_eq!(of_grpc("status=NOT_FOUND,length=0"), Ok(Some(5)));
        assert_eq!(of_grpc("status=200").unwrap_err(), Status::parse_grpc("200").unwrap_err().to_string());
        assert_eq!((Drawn(1).of(&[5, 7]), Fixed(3).of(&[5, 7])), (7, 3));
    }
}
