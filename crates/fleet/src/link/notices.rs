//! What becomes of a connection after it was made: a line for each change.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_nats::{ClientError, Event, ServerError};

/// Where the lines go.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// No more kinds of refusals are reported.
const MOST_KINDS: usize = 32;

/// The lines of one connection.
pub(super) struct Notices {
    server: String,
    say: Say,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    was_connected: bool,
    is_lost: bool,
    /// Why the last attempt failed.
    last: String,
    /// What was reported once.
    refusals: BTreeSet<String>,
}

impl Notices {
    pub(super) fn new(server: String, say: Say) -> Notices {
        Notices { server, say, state: Mutex::default() }
    }

    /// Reports what has changed.
    pub(super) fn handle(&self, event: Event) {
        let line = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.line(&self.server, event)
        };
        if let Some(line) = line {
            (self.say)(&line);
        }
    }
}

impl State {
    fn line(&mut self, server: &str, event: Event) -> Option<String> {
        match event {
            Event::Connected => {
                let again = std::mem::replace(&mut self.was_connected, true) && self.is_lost;
                self.is_lost = false;
                self.last.clear();
                again.then(|| format!("connected to {server} again"))
            }
            Event::Disconnected if !self.is_lost => {
                self.is_lost = true;
                Some(format!("lost the connection to {server}, trying again"))
            }
            Event::ClientError(ClientError::Other(why)) if self.is_lost && why != self.last => {
                self.last.clone_from(&why);
                Some(format!("no connection to {server} yet, trying again: {why}"))
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

/// `Permissions Violation for Publish to "throng.here"`
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
        events.into_iter().for_each(|event| notices.handle(event));
        assert_eq!(*lines.lock().unwrap(), expected);
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
                "no connection to nats://h:1 yet, trying again: IO error",
                "no connection to nats://h:1 yet, trying again: authorization violation",
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
        (0..100).for_each(|nth| notices.handle(refuses(&nth.to_string())));
        assert_eq!(*lines.lock().unwrap(), MOST_KINDS);
    }
}
