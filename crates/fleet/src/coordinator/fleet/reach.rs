//! Whether the broker responds. One that is suspended keeps its connections, so that the connection state alone does not show it.

use std::sync::mpsc::{Receiver, TryRecvError};

use units::Nanos;

/// Silence after which the broker is probed. Agents report every second.
const QUIET: Nanos = Nanos::from_millis(1_500);
/// Maximum time for its reply. Together with [`QUIET`] shorter than the time after which agents count as lost.
const REPLIES: Nanos = Nanos::from_secs(1);

/// What arrived from the broker, and pending probes.
#[derive(Default)]
pub(super) struct Reach {
    /// When something last arrived.
    heard: Nanos,
    /// When it was first probed since then.
    asked: Option<Nanos>,
    /// Receives the reply; a disconnection is not a reply.
    reply: Option<Receiver<()>>,
    was_silent: bool,
}

impl Reach {
    /// Notes that something arrived from the broker.
    pub(super) fn hear(&mut self, now: Nanos) {
        (self.heard, self.asked, self.reply) = (now, None, None);
    }

    /// Advances the state; `ask` probes the broker. Returns whether its silence began or ended.
    pub(super) fn poll(&mut self, now: Nanos, ask: impl FnOnce() -> Receiver<()>) -> bool {
        match self.reply.as_ref().map(Receiver::try_recv) {
            Some(Ok(())) => self.hear(now),
            Some(Err(TryRecvError::Disconnected)) => self.reply = None,
            Some(Err(TryRecvError::Empty)) | None => {}
        }
        if now.since(self.heard) >= QUIET && self.reply.is_none() {
            self.asked.get_or_insert(now);
            self.reply = Some(ask());
        }
        let is_silent = self.is_silent(now);
        std::mem::replace(&mut self.was_silent, is_silent) != is_silent
    }

    /// Whether the broker does not reply.
    pub(super) fn is_silent(&self, now: Nanos) -> bool {
        self.asked.is_some_and(|asked| now.since(asked) >= REPLIES)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// Polls; returns whether the state changed, and the sender for a reply to a new probe.
    fn poll(reach: &mut Reach, ms: u64) -> (bool, Option<Sender<()>>) {
        let mut asked = None;
        let has_changed = reach.poll(MS(ms), || {
            let (sender, reply) = channel();
            asked = Some(sender);
            reply
        });
        (has_changed, asked)
    }

    #[test]
    fn a_broker_that_does_not_reply_stands_still_until_something_comes() {
        let mut reach = Reach::default();
        reach.hear(MS(1_000));
        assert!(matches!(poll(&mut reach, 2_400), (false, None)));
        let (has_changed, first) = poll(&mut reach, 2_500);
        assert!(!has_changed && first.is_some());
        assert!(matches!(poll(&mut reach, 3_400), (false, None)), "its reply is awaited");
        assert!(matches!(poll(&mut reach, 3_500), (true, None)));
        assert!(reach.is_silent(MS(3_500)));
        // That probe has failed; the next one does not restart the silence.
        drop(first);
        let (has_changed, second) = poll(&mut reach, 7_500);
        assert!(!has_changed && reach.is_silent(MS(7_500)));
        second.unwrap().send(()).unwrap();
        assert!(matches!(poll(&mut reach, 7_600), (true, None)));
        assert!(!reach.is_silent(MS(7_600)));
    }

    #[test]
    fn a_broker_that_replies_is_there_though_no_agent_reports() {
        let mut reach = Reach::default();
        for ms in (2_000..20_000).step_by(10) {
            let (has_changed, asked) = poll(&mut reach, ms);
            asked.into_iter().for_each(|reply| reply.send(()).unwrap());
            assert!(!has_changed && !reach.is_silent(MS(ms)), "{ms}");
        }
    }
}
