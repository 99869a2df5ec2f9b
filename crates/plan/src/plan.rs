//! The resolved plan: every default filled in, every word checked.

use crate::{Expect, Load, Observe, Sources, Target, Threshold};
use units::{Misread, Nanos, Rate, Spans};

/// What shall happen in one run. No field means "default" any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Where to, and what to ask for.
    pub target: Target,
    /// Connections to hold at once, or of [`Load::Visits`] to open in all; at least 1.
    pub connections: u32,
    /// How fast to dial.
    pub ramp: Ramp,
    /// Time at full load, after the ramp; of [`Load::Visits`] a limit of the whole.
    pub hold: Hold,
    /// When requests are due.
    pub load: Load,
    /// The probe lane's requests a second, never zero: half on fresh connections, half on kept ones, beside the load.
    pub probe: Option<Rate>,
    /// HTTP: idle between a response and the next request, drawn uniformly; zero is a closed loop.
    pub think: Think,
    /// WebSocket and TCP: what is sent, and how often. `None`: open and hold only.
    pub message: Option<Message>,
    /// Limit of a dial, a handshake and a response, each; never zero.
    pub timeout: Nanos,
    /// What a right answer is.
    pub expect: Expect,
    /// What to do about a connection that is gone.
    pub reconnect: Reconnect,
    /// Local addresses to dial from.
    pub sources: Sources,
    /// Shards on this machine, 1..=1024; on epoll a minimum.
    pub threads: u32,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Which kernel interface to drive.
    pub io: IoChoice,
    /// What to show on standard error meanwhile.
    pub live: Live,
    /// In whose form the summary is printed.
    pub format: Format,
    /// What the run is judged by; none: the load reached and held, and no fault.
    pub thresholds: Vec<Threshold>,
    /// Who tells how the target's host fares.
    pub observe: Option<Observe>,
}

/// How fast to dial until all connections are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ramp {
    /// As fast as the target takes them.
    Adaptive,
    /// So many dials in a time, in all; never zero.
    Rate(Rate),
    /// All dials evenly within this time; zero is all at once.
    Within(Nanos),
}

/// How long to hold the full load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// This long.
    For(Nanos),
    /// Until SIGINT.
    Forever,
}

/// A message whose echo is checked and timed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// From one to the next on each connection, the first after a random part of it; zero is a closed loop.
    pub every: Nanos,
    /// What is sent. Empty (WebSocket only): a control ping, whose pong is timed.
    pub text: String,
}

/// From the shortest to the longest idle time: [`Spans::min`], [`Spans::max`].
pub type Think = Spans;

/// What to do about a connection that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconnect {
    /// Dial again what the server closed by announcement, when its next request is due.
    Planned,
    /// Not even that.
    Never,
    /// That, and what was lost or could not be dialled: after a random part of a time that doubles with each failure,
    /// from [`Spans::min`] to [`Spans::max`].
    Backoff(Spans),
}

/// Which kernel interface to drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoChoice {
    /// io_uring where it is allowed, else epoll.
    Auto,
    /// io_uring.
    Uring,
    /// epoll.
    Epoll,
}

impl IoChoice {
    /// `auto`, `uring` or `epoll`.
    ///
    /// # Errors
    /// It is none of them.
    pub fn parse(text: &str) -> Result<IoChoice, Misread> {
        match text {
            "auto" => Ok(IoChoice::Auto),
            "uring" => Ok(IoChoice::Uring),
            "epoll" => Ok(IoChoice::Epoll),
            _ => Err(Misread::new(text, "a way to do I/O", "auto, uring or epoll")),
        }
    }
}

/// What to show on standard error while the run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// What suits the terminal, or its absence.
    Auto,
    /// One line a second.
    Line,
    /// The http-kit client's line.
    Classic,
    /// Nothing.
    Off,
}

/// In whose form the summary is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own.
    Throng,
    /// wrk's, with its `--latency`.
    Wrk,
    /// That of `fortio load`.
    Fortio,
    /// ApacheBench's.
    Ab,
    /// httperf's.
    Httperf,
}
