//! Scenario files: from TOML to a checked [`Scenario`], or to all that is wrong with it at once.
//!
//! The words are the flags', with the same meaning and units. `docs/reference/scenario.md` has them
//! all; it comes, as the JSON schema does, from the table of keys that the reader uses.

mod answer;
mod check;
mod csv;
mod document;
mod keys;
mod load;
mod nearest;
mod population;
mod print;
mod program;
mod request;
mod schema;
mod share;
mod step;
mod text;

pub use csv::{Column, Csv};
pub use program::{Op, OpIndex, Program};
pub use request::{Answer, Request};
pub use schema::{reference, schema};
pub use share::Share;
pub use text::{MOST_NUMBERS, Segment, Text, Values};

use crate::{Hold, IoChoice, Mistake, Ramp, Reconnect, Sources, Surroundings, Target, Think};
use units::{Nanos, Rate};

/// What a scenario file says, checked, with every default filled in. Prints as a file that reads the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Where all randomness comes from.
    pub seed: u64,
    /// Shards on this machine, 1..=1024; on epoll a minimum.
    pub threads: u32,
    /// Which kernel interface to drive.
    pub io: IoChoice,
    /// Local addresses to dial from.
    pub sources: Sources,
    /// The course of the load: at least one.
    pub stages: Vec<Stage>,
    /// At least one; no two of one name.
    pub populations: Vec<Population>,
    /// What all connections do, from the populations' steps.
    pub program: Program,
    /// The independent lane, where there is one.
    pub probe: Option<Probe>,
    /// Tables of values.
    pub tables: Vec<Csv>,
    /// What the figures must keep, as typed.
    pub thresholds: Vec<Written>,
}

/// A stretch of the run: the load goes to a share, and stays there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// How it is called in the output.
    pub name: String,
    /// Which populations it moves, as indices; ascending, at least one.
    pub of: Vec<u16>,
    /// The share of their connections and of their rates at the end of the ramp.
    pub to: Share,
    /// How fast it gets there. Downwards [`Ramp::Adaptive`] is at once.
    pub ramp: Ramp,
    /// How long it stays there; [`Hold::Forever`] only in the last one.
    pub hold: Hold,
}

/// Connections that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Population {
    /// Letters, digits, `-` and `_`; a letter first.
    pub name: String,
    /// Where to. What is asked for is in `path` and in the steps, not in its template.
    pub target: Target,
    /// The target's path and query: of the WebSocket's handshake, and of a request that names none; empty
    /// with `tcp://`.
    pub path: Text,
    /// How many, and when.
    pub load: Load,
    /// Requests, or messages, on each connection, after which it is closed.
    pub calls: Option<u64>,
    /// Limit of a dial, a handshake and an answer, each; never zero.
    pub timeout: Nanos,
    /// What to do about a connection that is gone.
    pub reconnect: Reconnect,
    /// What each connection does.
    pub activity: Activity,
}

/// How many connections there are, and when something is due on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// So many are held, at least 1; each goes on by itself, a closed loop.
    Held {
        /// At once.
        connections: u32,
    },
    /// So many are held, and their next requests are due at a rate: an open loop.
    Rate {
        /// At once, at least 1.
        connections: u32,
        /// Requests in a time over all of them; never zero.
        rate: Rate,
    },
    /// New connections come at a rate.
    Arrivals {
        /// Connections in a time; never zero.
        rate: Rate,
        /// In all; none is as long as the stages last.
        total: Option<u64>,
    },
}

/// What each connection of a population does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It is open.
    Idle,
    /// WebSocket, TCP: a message each `every`, the first after a random part of it.
    Ping {
        /// From one to the next; zero is a closed loop.
        every: Nanos,
        /// What must come back. Empty (WebSocket only): a control ping.
        text: Text,
    },
    /// These, in this order.
    Steps {
        /// At least one; no two of one name.
        steps: Vec<Step>,
        /// What comes behind the last.
        then: Then,
    },
}

/// What comes behind the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// This step, by its index.
    Again(u16),
    /// Nothing; the connection stays open.
    Stay,
    /// The connection's end.
    Close,
}

/// One thing that a connection does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// As a population's; given, or from what it does.
    pub name: String,
    /// What it does.
    pub act: Act,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// HTTP: a request and its whole answer.
    Request {
        /// What goes out.
        request: Request,
        /// Idle behind it.
        think: Think,
    },
    /// WebSocket, TCP: a message, and what must come back, where that is said.
    Send {
        /// What goes out.
        text: Text,
        /// What must come back.
        answer: Option<Answer>,
        /// Idle behind it.
        think: Think,
    },
    /// WebSocket, TCP: a message that comes by itself.
    Expect {
        /// What it must be.
        answer: Answer,
        /// Idle behind it.
        think: Think,
    },
    /// Nothing for so long.
    Wait(Think),
    /// Close; the next step dials again.
    Close,
}

/// Requests on a clock of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// In a time; never zero.
    pub rate: Rate,
    /// Where to, with `http://`.
    pub target: Target,
    /// What it asks for.
    pub path: Text,
}

/// A text as typed, and where it stands; equal where the text is.
#[derive(Clone, Debug, Eq)]
pub struct Written {
    /// As typed.
    pub text: String,
    /// From 1.
    pub line: usize,
    /// Of characters, from 1.
    pub column: usize,
}

impl PartialEq for Written {
    fn eq(&self, other: &Written) -> bool {
        self.text == other.text
    }
}

/// Is a target a scenario file?
pub fn is_file(target: &str) -> bool {
    target.ends_with(".toml") && !target.contains("://")
}

/// Reads the text of a scenario file. `file` is what mistakes call it, and `open` gives the text of another
/// file that it names, from the folder of the first; its error is a short reason.
///
/// # Errors
/// All that is wrong, in the order in which it stands there: `load.toml:12:9: population.users.think: "5" is
/// not a time: write 5s`.
pub fn read(
    file: &str,
    text: &str,
    around: &Surroundings,
    open: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Scenario, Vec<Mistake>> {
    check::scenario(file, text, around, open)
}

#[cfg(test)]
mod tests;
