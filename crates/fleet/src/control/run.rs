//! The coordinator's side of operator requests: a sink that supplies commands, like a terminal or a page.

use samples::{Command, Header, Phase, Samples, Sink, Tick};
use units::Nanos;

use super::{RunReply, RunRequest, to_run};
use crate::link::{Asked, Inbox, Link};

/// Receives commands of a run over NATS.
pub struct Commands {
    requests: Inbox<Asked<RunRequest>>,
    /// Connections of the plan.
    connections: u64,
    /// Whether the run is paused, by its last second and the commands since.
    is_paused: bool,
}

impl Commands {
    /// Subscribes to commands of this run.
    ///
    /// # Errors
    /// NATS refuses the subscription.
    pub fn new(link: &Link, run: &str) -> Result<Commands, String> {
        Ok(Commands { requests: link.serve(to_run(run))?, connections: 0, is_paused: false })
    }
}

impl Sink for Commands {
    fn begin(&mut self, header: &Header) {
        self.connections = header.connections;
    }

    fn tick(&mut self, tick: &Tick, _: &Samples) {
        self.is_paused = tick.phase == Phase::Pause;
    }

    fn ask(&mut self) -> Option<Command> {
        let asked = self.requests.next(Nanos::ZERO)?;
        match asked.message.command(self.connections, self.is_paused) {
            Ok((command, what)) => {
                asked.reply(&RunReply::Accepted(what));
                self.is_paused = command == Command::Pause || self.is_paused && command != Command::Resume;
                Some(command)
            }
            Err(why) => {
                asked.reply(&RunReply::Refused(why));
                None
            }
        }
    }
}
