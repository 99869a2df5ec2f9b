//! Reactions to messages that a server pushes.

use std::fmt;

use units::Nanos;

use crate::Text;

/// What a population does about WebSocket messages that are not replies to its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pushes {
    /// Where a message has its send time.
    pub time: Option<Sought>,
    /// Where a message has its sequence number. Each WebSocket has a separate sequence; with `receivers`, all share one.
    pub number: Option<Sought>,
    /// How many connections of the population receive each number; `None`: messages are not broadcast.
    pub receivers: Option<Receivers>,
    /// Rules for messages that are never a response; the first that matches a message applies.
    pub rules: Vec<Rule>,
    /// A message that each connection sends at intervals, whatever else it does.
    pub heartbeat: Option<Heartbeat>,
}

/// A value in a message. Its display is the syntax that `parse` accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sought {
    /// `json:/a/0`: the unescaped parts of a JSON Pointer (RFC 6901), at least one. Anything before the first brace or bracket of the
    /// message is skipped.
    Json(Vec<String>),
    /// `after:seq=`: the value that follows the first occurrence of this text.
    After(String),
}

/// How many connections receive a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receivers {
    /// All open ones.
    All,
    /// This many; at least 1.
    Of(u32),
}

/// A condition on pushed messages, and the reply to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The messages to which it applies.
    pub matches: Matches,
    /// The reply, if any.
    pub reply: Option<Text>,
}

/// A condition on a message; the text is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matches {
    /// The whole message.
    Is(String),
    /// Its beginning.
    Starts(String),
    /// A part of it.
    Contains(String),
}

/// A message at intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Interval, also from the opening of the connection to the first message; never zero.
    pub every: Nanos,
    /// The message.
    pub text: Text,
}

impl Pushes {
    /// Most rules of a population.
    pub const MOST_RULES: usize = 8;

    /// All texts that are sent.
    pub(crate) fn texts(&mut self) -> impl Iterator<Item = &mut Text> {
        let replies = self.rules.iter_mut().filter_map(|rule| rule.reply.as_mut());
        replies.chain(self.heartbeat.as_mut().map(|heartbeat| &mut heartbeat.text))
    }

    /// Whether the content of messages matters.
    pub fn reads(&self) -> bool {
        self.time.is_some() || self.number.is_some() || !self.rules.is_empty()
    }
}

/// Most parts of a pointer; `LONGEST` is the most octets of a part or text.
const DEEPEST: usize = 16;
const LONGEST: usize = 256;

impl Sought {
    /// Parses `json:/ts` or `after:seq=`.
    pub(crate) fn parse(text: &str) -> Result<Sought, String> {
        let sought = match text.split_once(':') {
            Some(("json", pointer)) => Sought::Json(parts(pointer)?),
            Some(("after", before)) if !before.is_empty() => Sought::After(before.to_owned()),
            _ => return Err(format!("{text:?} is not a location in a message; use json:/ts or after:ts=")),
        };
        let (count, longest) = match &sought {
            Sought::Json(parts) => (parts.len(), parts.iter().map(String::len).max().unwrap_or(0)),
            Sought::After(before) => (1, before.len()),
        };
        if count > DEEPEST || longest > LONGEST {
            return Err(format!("at most {DEEPEST} levels of at most {LONGEST} octets each: {text:?}"));
        }
        Ok(sought)
    }
}

/// The parts of a JSON Pointer, unescaped (RFC 6901 sections 3 and 4).
fn parts(pointer: &str) -> Result<Vec<String>, String> {
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(format!("a JSON pointer begins with /; use json:/ts: {pointer:?}"));
    };
    Ok(rest.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect())
}

impl fmt::Display for Sought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sought::After(before) => write!(f, "after:{before}"),
            Sought::Json(parts) => {
                f.write_str("json:")?;
                parts.iter().try_for_each(|part| write!(f, "/{}", part.replace('~', "~0").replace('/', "~1")))
            }
        }
    }
}

impl Receivers {
    /// Parses `all` or a number.
    pub(crate) fn parse(text: &str) -> Result<Receivers, String> {
        if text == "all" {
            return Ok(Receivers::All);
        }
        let count = units::Count::parse(text).ok().and_then(|count| u32::try_from(count.0).ok());
        match count {
            Some(count @ 1..) => Ok(Receivers::Of(count)),
            _ => Err(format!("{text:?} is not a number of receivers; use all or 1000")),
        }
    }
}

impl fmt::Display for Receivers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Receivers::All => f.write_str("all"),
            Receivers::Of(count) => write!(f, "{count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_a_message_read_as_they_print() {
        let json = |parts: &[&str]| Sought::Json(parts.iter().map(|part| (*part).to_owned()).collect());
        for (text, expected) in [
            ("json:/ts", json(&["ts"])),
            ("json:/a/0/b~1c~0d/", json(&["a", "0", "b/c~d", ""])),
            ("after:seq=", Sought::After("seq=".to_owned())),
            ("after::", Sought::After(":".to_owned())),
        ] {
            assert_eq!(Sought::parse(text), Ok(expected.clone()), "{text}");
            assert_eq!(expected.to_string(), text);
        }
        for wrong in ["ts", "json:ts", "json:", "after:", "xml:/ts", ""] {
            assert!(Sought::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Sought::parse(&format!("json:{}", "/a".repeat(17))).is_err());
        assert!(Sought::parse(&format!("after:{}", "a".repeat(257))).is_err());
    }

    #[test]
    fn receivers_are_all_or_so_many() {
        assert_eq!(Receivers::parse("all"), Ok(Receivers::All));
        assert_eq!(Receivers::parse("1.5k"), Ok(Receivers::Of(1_500)));
        assert!(["0", "none", "5000m"].iter().all(|wrong| Receivers::parse(wrong).is_err()));
    }
}
