//! Statuses of responses: HTTP statuses by number, gRPC statuses by name.

use crate::ParseError;
use std::fmt;

/// A status. Numbers below 17 are gRPC statuses, as HTTP does not use them. Prints as `404` or `NOT_FOUND`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u16);

/// Names of gRPC statuses by number (`grpc/doc/statuscodes.md`).
const OF_GRPC: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

impl Status {
    /// gRPC: a call had no response by its deadline.
    pub const DEADLINE_EXCEEDED: Status = Status(4);

    /// Parses a gRPC status by name or number.
    ///
    /// # Errors
    /// There is no such status.
    pub fn parse_grpc(text: &str) -> Result<Status, ParseError> {
        let named = OF_GRPC.iter().position(|name| *name == text);
        let numbered = || text.parse().ok().filter(|number| *number < OF_GRPC.len());
        let number = named.or_else(numbered).ok_or_else(|| {
            ParseError::new(text, "a status of gRPC", "OK, NOT_FOUND or another name, or 0 to 16")
        })?;
        Ok(Status(number as u16))
    }

    /// Parses the printed form, or any number.
    pub fn parse(text: &str) -> Option<Status> {
        let named = OF_GRPC.iter().position(|name| *name == text).map(|number| number as u16);
        named.or_else(|| text.parse().ok()).map(Status)
    }

    /// Whether it is a gRPC status.
    pub fn is_grpc(self) -> bool {
        usize::from(self.0) < OF_GRPC.len()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match OF_GRPC.get(usize::from(self.0)) {
            Some(name) => f.pad(name),
            None => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_read_as_they_are_printed() {
        for number in 0..1000 {
            assert_eq!(Status::parse(&Status(number).to_string()), Some(Status(number)));
        }
        for (number, text) in [(0, "OK"), (5, "NOT_FOUND"), (14, "UNAVAILABLE"), (17, "17"), (404, "404")] {
            assert_eq!(Status(number).to_string(), text);
        }
        assert_eq!(["", "ok", "-1", "70000"].map(Status::parse), [None; 4]);
    }

    #[test]
    fn statuses_of_grpc_have_names_and_numbers() {
        let check =
            |text, expected| assert_eq!(Status::parse_grpc(text).ok().map(|status| status.0), expected);
        for (text, expected) in [
            ("OK", Some(0)),
            ("0", Some(0)),
            ("INTERNAL", Some(13)),
            ("16", Some(16)),
            ("17", None),
            ("200", None),
        ] {
            check(text, expected);
        }
        let why = Status::parse_grpc("Ok").unwrap_err().to_string();
        assert_eq!(why, "\"Ok\" is not a status of gRPC; use OK, NOT_FOUND or another name, or 0 to 16");
    }
}
