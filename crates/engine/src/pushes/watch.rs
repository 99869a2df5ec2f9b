//! Reads messages as they arrive, in pieces: which rule they match, and the time and number in them.

use plan::{Matches, Pushes};
use units::Nanos;
use wire::websocket::Data;

use super::scan::{Place, Scan};
use crate::{needle::Needle, request::Message};

/// What to look for in messages, compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    rules: Vec<Rule>,
    time: Option<Place>,
    number: Option<Place>,
    /// Whether each number is sent to several connections.
    pub(crate) is_broadcast: bool,
}

#[derive(Clone, Debug)]
struct Rule {
    matches: Compared,
    reply: Option<Message>,
}

#[derive(Clone, Debug)]
enum Compared {
    /// Compared from the beginning of the message; with all of it, if `is_whole`.
    Text {
        text: Vec<u8>,
        is_whole: bool,
    },
    Contains(Needle),
}

/// The state of reading a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    pub(super) bytes: u64,
    /// For each rule: octets of its text that have matched; [`DIFFERS`] after a difference.
    seen: [u16; Pushes::MOST_RULES],
    time: Scan,
    number: Scan,
}

/// More than the length of any text that is compared.
const DIFFERS: u16 = u16::MAX;

/// A complete message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Came {
    /// The place of its WebSocket.
    pub(crate) place: u32,
    pub(crate) bytes: u64,
    /// The first rule that it matches.
    pub(crate) rule: Option<u8>,
    /// When it was sent, as time since 1970.
    pub(crate) time: Option<Nanos>,
    pub(crate) number: Option<u64>,
}

impl Watch {
    pub(crate) fn new(pushes: &Pushes) -> Watch {
        let rule = |rule: &plan::Rule| Rule {
            matches: match &rule.matches {
                Matches::Is(text) => Compared::Text { text: text.clone().into_bytes(), is_whole: true },
                Matches::Starts(text) => Compared::Text { text: text.clone().into_bytes(), is_whole: false },
                Matches::Contains(text) => Compared::Contains(Needle::new(text)),
            },
            reply: rule.reply.as_ref().map(Message::alone),
        };
        Watch {
            rules: pushes.rules.iter().map(rule).collect(),
            time: pushes.time.as_ref().map(Place::new),
            number: pushes.number.as_ref().map(Place::new),
            is_broadcast: pushes.receivers.is_some(),
        }
    }

    /// Whether the content of messages is read.
    pub(crate) fn reads(&self) -> bool {
        !self.rules.is_empty() || self.time.is_some() || self.number.is_some()
    }

    /// Whether a message lacks a time or number that messages should have.
    pub(crate) fn lacks(&self, came: &Came) -> bool {
        self.time.is_some() && came.time.is_none() || self.number.is_some() && came.number.is_none()
    }

    /// The reply to messages that match a rule.
    pub(crate) fn reply(&self, rule: u8) -> Option<&Message> {
        self.rules[usize::from(rule)].reply.as_ref()
    }

    /// Reads the next piece of a message.
    pub(super) fn feed(&self, reading: &mut Reading, data: &Data<'_>) {
        let bytes = || data.payload.bytes();
        for (rule, seen) in self.rules.iter().zip(&mut reading.seen) {
            match &rule.matches {
                Compared::Contains(needle) => *seen = needle.scan(*seen, bytes()),
                Compared::Text { text, is_whole } if *seen != DIFFERS => {
                    *seen = compare(text, *is_whole, *seen, bytes());
                }
                Compared::Text { .. } => {}
            }
        }
        for (place, scan) in [(&self.time, &mut reading.time), (&self.number, &mut reading.number)] {
            if let Some(place) = place {
                scan.feed(place, bytes());
            }
        }
        reading.bytes += data.payload.len() as u64;
    }

    /// The message is complete.
    pub(super) fn end(&self, reading: &Reading, place: u32) -> Came {
        let fits = |(rule, seen): (&Rule, &u16)| match &rule.matches {
            Compared::Contains(needle) => needle.is_found(*seen),
            Compared::Text { text, .. } => usize::from(*seen) == text.len(),
        };
        Came {
            place,
            bytes: reading.bytes,
            rule: self.rules.iter().zip(&reading.seen).position(fits).map(|at| at as u8),
            time: reading.time.time(),
            number: reading.number.number(),
        }
    }
}

/// How much of the text has matched after these bytes.
fn compare(text: &[u8], is_whole: bool, seen: u16, bytes: impl Iterator<Item = u8>) -> u16 {
    let mut seen = usize::from(seen);
    for byte in bytes {
        match text.get(seen) {
            Some(next) if *next == byte => seen += 1,
            None if !is_whole => break,
            _ => return DIFFERS,
        }
    }
    seen as u16
}
