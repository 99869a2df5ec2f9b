//! Commands of users who watch a run, and of API clients: pause, change the load, drain, stop.

use samples::{Command, MarkKind, UserCommand};
use units::Nanos;

use super::Conductor;

/// Recorded as the reason of an early end that a user or an API client requested.
const COMMAND: &str = "a command";
/// Maximum number of stored commands.
const MAX_COMMANDS: usize = 1_000;

impl Conductor<'_> {
    /// Applies a command; returns whether it changes anything.
    pub fn handle_command(&mut self, command: Command, now: Nanos) -> bool {
        // Enough time for every worker to receive the end and to report its last counts.
        let short = Nanos(2 * self.latency.0);
        let done = match command {
            Command::Drain if self.ends_by.is_none() => {
                self.ends_by = Some(COMMAND);
                Some("drained".to_owned())
            }
            // A stop may follow a drain that takes too long.
            Command::Stop if self.patience.shorten(short) || self.ends_by.is_none() => {
                self.ends_by = Some(COMMAND);
                Some("stopped".to_owned())
            }
            command if self.ends_by.is_none() && self.draining.is_none() => {
                // Count the held connections before the command changes the load, for populations that have reached it.
                let held = self.held(|nth| self.schedule.has_arrived(nth));
                let open: Vec<u64> = self.record.populations.iter().map(|measured| measured.open).collect();
                self.schedule.apply(command, now, &open).inspect(|_| self.keep_held(&held))
            }
            _ => None,
        };
        let Some(what) = done else { return false };
        self.mark(now, MarkKind::Command, what.clone());
        if self.record.commands.len() < MAX_COMMANDS {
            let at_s = now.since(self.record.started).secs_f64();
            self.record.commands.push(UserCommand { at_s, what });
        }
        true
    }
}
