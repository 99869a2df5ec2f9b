//! Notices about a connection after it was made: one line for each change.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_nats::{ClientError, Event, ServerError};
use units::{Clock, Nanos};

/// Receives the lines.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// Minimum interval between inquiries into the reason for a lost connection; each is another attempt to connect.
const ASKS: Nanos = Nanos::from_secs(5);
/// Maximum number of different refusals to report.
const MOST_KINDS: usize = 32;

/// The notices of one connection.
pub(super) struct Notices {
    server: String,
    say: Say,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    was_connected: bool,
    is_lost: bool,
    /// Time of the last inquiry.
    asked: Nanos,
    /// Why the last attempt failed.
    last: String,
    /// Refusals reported so far.
    refusals: BTreeSet<String>,
}

impl Notices {
    pub(super) fn new(server: String, say: Say) -> Notices {
        Notices { server, say, clock: Clock::start(), state: Mutex::default() }
    }

    /// Reports a change. `reason`: finds out why there is no connection now, which the event does not contain; `None` if there is one
    /// again.
    pub(super) async fn handle(&self, event: Event, reason: impl AsyncFnOnce() -> Option<String>) {
        let event = match event {
            Event::ClientError(ClientError::Other(_)) if self.asks() => match reason().await {
                Some(why) => Event::ClientError(ClientError::Other(why)),
                None => return,
            },
            Event::ClientError(ClientError::Other(_)) => return,
            event => event,
        };
        let line = self.state().line(&self.server, event);
        if let Some(line) = line {
            (self.say)(&line);
        }
    }

    /// Whether it is time to find out why the connection is lost.
    fn asks(&self) -> bool {
        let (now, mut state) = (self.clock.now(), self.state());
        let is_time = state.is_lost && (state.asked == Nanos::ZERO || now.since(state.asked) >= ASKS);
        if is_time {
            state.asked = now;
        }
        is_time
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn line(&mut self, server: &str, event: Event) -> Option<String> {
        match event {
            Event::Connected => {
                let again = std::mem::replace(&mut self.was_connected, true) && self.is_lost;
                (self.is_lost, self.asked) = (false, Nanos::ZERO);
                self.last.clear();
                again.then(|| format!("connected to {server} again"))
            }
            Event::Disconnected if !self.is_lost => {
                self.is_lost = true;
                Some(format!("lost the connection to {server}, trying again"))
            }
            Event::ClientError(ClientError::Other(why)) if self.is_lost && why != self.last => {
                self.last.clone_from(&why);
                Some(format!("{why}; trying again"))
            }
            Event::ServerError(ServerError::Other(why)) => self.once(refusal(server, &why)),
            Event::ServerError(ServerError::AuthorizationViolation) => {
                self.once(format!("{server} does not accept these credentials any more"))
            }
            Event::SlowConsumer(_) => {
                self.once(format!("messages from {server} came faster than they were read"))
            }
            _ => None,
        }
    }

    fn once(&mut self, line: String) -> Option<String> {
        let is_new = self.refusals.len() < MOST_KINDS && self.refusals.insert(line.clone());
        is_new.then_some(line)
    }
}

/// Adds the fix to a refusal, such as `Permissions Violation for Publish to "throng.here"`.
fn refusal(server: &str, why: &str) -> String {
    let is_permission = why.to_ascii_lowercase().contains("permissions violation");
    let fix =
        if is_permission { "; allow this subject for this user in the server's configuration" } else { "" };
    format!("{server} refuses{fix}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(events: Vec<Event>, expected: &[&str]) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let notices = Notices::new(
            "nats://h:1".to_owned(),
            Arc::new(move |line| kept.lock().unwrap().push(line.to_owned())),
        );
        events.into_iter().for_each(|event| handle(&notices, event));
        assert_eq!(*lines.lock().unwrap(), expected);
    }

    /// Handles an event; the text in the event is the reason.
    fn handle(notices: &Notices, event: Event) {
        notices.state().asked = Nanos::ZERO;
        let why = match &event {
            Event::ClientError(ClientError::Other(why)) => Some(why.clone()),
            _ => None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(notices.handle(event, async || why));
    }

    #[test]
    fn there_is_a_line_for_each_change_and_none_for_the_same_again() {
        let failed = |why: &str| Event::ClientError(ClientError::Other(why.to_owned()));
        check(
            vec![
                Event::Connected,
                Event::Disconnected,
                failed("IO error"),
                failed("IO error"),
                failed("authorization violation"),
                Event::Connected,
                Event::Disconnected,
                Event::Connected,
            ],
            &[
                "lost the connection to nats://h:1, trying again",
                "IO error; trying again",
                "authorization violation; trying again",
                "connected to nats://h:1 again",
                "lost the connection to nats://h:1, trying again",
                "connected to nats://h:1 again",
            ],
        );
    }

    #[test]
    fn a_refusal_is_reported_once_and_only_so_many() {
        let refuses = |subject: &str| {
            Event::ServerError(ServerError::Other(format!("Permissions Violation for Publish to {subject}")))
        };
        let line = "nats://h:1 refuses; allow this subject for this user in the server's configuration: Permissions Violation \
            for Publish to throng.here";
        check(vec![refuses("throng.here"), refuses("throng.here")], &[line]);
        let lines = Arc::new(Mutex::new(0));
        let count = lines.clone();
        let notices = Notices::new(String::new(), Arc::new(move |_| *count.lock().unwrap() += 1));
        (0..100).for_each(|nth| handle(&notices, refuses(&nth.to_string())));
        assert_eq!(*lines.lock().unwrap(), MOST_KINDS);
    }
}
