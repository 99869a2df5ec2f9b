//! The steps of a connection.

use units::Nanos;

use crate::{Body, Bound, Capture, Condition, Expectation, Repeat, Request, Text, Think, text::Place};

/// A step of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Same syntax as a population's name; given, or derived from the act.
    pub name: String,
    /// What it does.
    pub act: Act,
    /// Among adjacent steps with a weight one is chosen each time, with a probability in proportion to its weight.
    pub weight: Option<u32>,
    /// It is skipped unless this holds.
    pub only_if: Option<Condition>,
    /// How often it is taken in a row; `None`: once.
    pub repeat: Option<Repeat>,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// HTTP: a request and its complete response.
    Request {
        /// The request.
        request: Request,
        /// Think time after it.
        think: Think,
    },
    /// WebSocket: the upgrade, if requests precede it on the same connection.
    Upgrade {
        /// The path.
        path: Text,
        /// Additional header fields of the upgrade.
        headers: Vec<(String, Text)>,
        /// Think time after it.
        think: Think,
    },
    /// WebSocket, TCP: a message, and the reply that is expected, if any.
    Send {
        /// The message.
        message: Body,
        /// The check of the reply; `None` if none is expected.
        expected: Option<Expectation>,
        /// Think time after it.
        think: Think,
    },
    /// WebSocket, TCP: an unsolicited message from the server.
    Expect {
        /// The check of the message.
        expected: Expectation,
        /// Think time after it.
        think: Think,
    },
    /// A pause.
    Wait(Think),
    /// Closes the connection; the next step dials again.
    Close,
}

impl Step {
    /// A step without a weight.
    pub(crate) fn new(name: &str, act: Act) -> Step {
        Step { name: name.to_owned(), act, weight: None, only_if: None, repeat: None }
    }

    /// Maximum number of times that it is taken in a row.
    pub fn times(&self) -> u16 {
        self.repeat.as_ref().map_or(1, |repeat| repeat.times)
    }

    /// Whether it may be skipped.
    pub fn may_be_skipped(&self) -> bool {
        let is_while = |repeat: &Repeat| matches!(repeat.bound, Bound::While(_));
        self.only_if.is_some() || self.repeat.as_ref().is_some_and(is_while)
    }

    /// All texts in it, with the place in which each is used.
    pub(crate) fn texts(&mut self) -> Vec<(&mut Text, Place)> {
        let Step { act, only_if, repeat, .. } = self;
        let conditions = only_if.iter_mut().chain(repeat.iter_mut().filter_map(Repeat::condition_mut));
        let conditions = conditions.flat_map(|condition| condition.texts_mut());
        act.texts().into_iter().chain(conditions.map(|text| (text, Place::Content))).collect()
    }

    /// Number of operations of the engine's client.
    pub(crate) fn operations(&self) -> usize {
        // With a weight: the choice, and the jump afterwards. With a condition: a jump each time.
        let of_choice = if self.weight.is_some() { 2 } else { 0 };
        let has_jumps = self.repeat.as_ref().is_some_and(|repeat| repeat.bound != Bound::Times);
        let each = self.act.operations() + usize::from(has_jumps);
        of_choice + usize::from(self.only_if.is_some()) + each * usize::from(self.times())
    }
}

impl Act {
    pub(crate) fn texts(&mut self) -> Vec<(&mut Text, Place)> {
        match self {
            Act::Request { request, .. } => request.texts(),
            Act::Upgrade { path, headers, .. } => {
                let fields = headers.iter_mut().map(|(_, value)| (value, Place::Field));
                [(path, Place::Path)].into_iter().chain(fields).collect()
            }
            Act::Send { message: Body::Text(text), .. } => vec![(text, Place::Content)],
            Act::Send { .. } => Vec::new(),
            Act::Expect { .. } | Act::Wait(_) | Act::Close => Vec::new(),
        }
    }

    /// What it captures from its response.
    pub(crate) fn captures(&self) -> &[Capture] {
        match self {
            Act::Request { request, .. } => &request.expect.captures,
            Act::Send { expected: Some(expected), .. } | Act::Expect { expected, .. } => &expected.captures,
            Act::Send { expected: None, .. } | Act::Upgrade { .. } | Act::Wait(_) | Act::Close => &[],
        }
    }

    /// Removes its think time.
    pub(crate) fn take_think(&mut self) {
        self.think_mut().into_iter().for_each(|think| *think = Think::default());
    }

    /// Replaces its think time, if it has one.
    pub(crate) fn set_think(&mut self, new: Think) {
        self.think_mut().filter(|think| think.max > Nanos::ZERO).into_iter().for_each(|think| *think = new);
    }

    /// Replaces its think time, or its duration if it is a pause.
    pub(crate) fn limit_think(&mut self, new: Think) {
        match self {
            Act::Wait(think) => *think = new,
            _ => self.set_think(new),
        }
    }

    fn think_mut(&mut self) -> Option<&mut Think> {
        match self {
            Act::Request { think, .. }
            | Act::Upgrade { think, .. }
            | Act::Send { think, .. }
            | Act::Expect { think, .. } => Some(think),
            Act::Wait(_) | Act::Close => None,
        }
    }

    /// Number of operations of the engine's client that it becomes: a reply and a think time are additional ones.
    pub(crate) fn operations(&self) -> usize {
        let (awaits, idle) = self.awaits_and_idles();
        let has_reply = awaits && matches!(self, Act::Send { .. });
        let thinks = idle > Nanos::ZERO && !matches!(self, Act::Wait(_));
        1 + usize::from(has_reply) + usize::from(thinks)
    }

    /// Whether it counts as a request towards `calls` and `requests`.
    pub(crate) fn is_request(&self) -> bool {
        self.awaits_and_idles().0 && !matches!(self, Act::Expect { .. })
    }

    /// Whether it awaits a response or a message.
    pub(crate) fn takes_response(&self) -> bool {
        self.awaits_and_idles().0
    }

    /// Whether it waits for anything.
    pub(crate) fn takes_time(&self) -> bool {
        let (awaits, idle) = self.awaits_and_idles();
        awaits || idle > Nanos::ZERO
    }

    /// Whether it has a think time, or is a pause.
    pub(crate) fn pauses(&self) -> bool {
        self.awaits_and_idles().1 > Nanos::ZERO
    }

    /// Whether a response is awaited, and the maximum think time.
    pub(crate) fn awaits_and_idles(&self) -> (bool, Nanos) {
        let awaits = match self {
            Act::Request { .. } | Act::Upgrade { .. } | Act::Expect { .. } => true,
            Act::Send { expected, .. } => expected.is_some(),
            Act::Wait(_) | Act::Close => false,
        };
        (awaits, self.think().max)
    }

    /// The idle time after it, or its duration if it is a pause.
    pub fn think(&self) -> Think {
        match self {
            Act::Request { think, .. }
            | Act::Upgrade { think, .. }
            | Act::Send { think, .. }
            | Act::Expect { think, .. }
            | Act::Wait(think) => *think,
            Act::Close => Think::default(),
        }
    }
}
