//! Commands of users who watch a run, and their effect.

use samples::{Command, MarkKind, UserCommand};
use units::Nanos;

use super::Conductor;

/// What may end a run, besides a signal: of a user, or of a client of the API.
const COMMAND: &str = "a command";
/// Maximum of stored commands.
const MAX_COMMANDS: usize = 1_000;

impl Conductor<'_> {
    /// Applies a user's command; returns whether it changes anything.
    pub fn handle_command(&mut self, command: Command, now: Nanos) -> bool {
        // Every worker learns of the end, and reports what it still has.
        let short = Nanos(2 * self.latency.0);
        let done = match command {
            Command::Drain if self.ends_by.is_none() => {
                self.ends_by = Some(COMMAND);
                Some("drained".to_owned())
            }
            // A second time, if a requested drain takes too long.
            Command::Stop if self.patience.shorten(short) || self.ends_by.is_none() => {
                self.ends_by = Some(COMMAND);
                Some("stopped".to_owned())
            }
            command if self.ends_by.is_none() && self.draining.is_none() => {
                // Those held are counted before the load is moved, where it has been reached.
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
