//! What is remembered of a client.

use std::sync::Arc;

use net::Key;
use samples::Fault;
use units::Nanos;
use wire::websocket::Frames;

use crate::{
    history::{History, Partial},
    order::View,
    place::Place,
    target::Target,
};

/// The text that each client sends at its interval.
pub(crate) const PING: &str = "ping";
/// Pings that may await their echoes; with the next one the oldest counts as unanswered.
pub(crate) const MAX_PINGED: usize = 8;
/// A client is lost after this time without a byte from the server, or two intervals of its pings where that is longer.
const SILENCE: Nanos = Nanos::from_secs(60);
/// Texts of the API that may wait for the connection.
pub(crate) const MAX_UNSENT: usize = 16;

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) target: Arc<Target>,
    pub(crate) state: State,
    /// While it has a connection, or is dialled.
    pub(crate) key: Option<Key>,
    /// Which of the target's destinations.
    pub(crate) destination: u16,
    /// When its dial was due; then when it was connected.
    pub(crate) since: Nanos,
    /// Between two pings.
    pub(crate) ping: Nanos,
    /// When the next one is due.
    pub(crate) ping_due: Nanos,
    /// When those were due whose echoes have not come.
    pub(crate) pinged: Pinged,
    /// When anything last arrived from the server.
    pub(crate) heard: Nanos,
    pub(crate) sent: History,
    pub(crate) received: History,
    /// Of the message that is incomplete.
    pub(crate) partial: Option<Box<Partial>>,
    /// Texts to send once it is connected.
    pub(crate) unsent: Vec<Arc<str>>,
    /// Until it is lost.
    pub(crate) place: Option<Place>,
}

/// Where a client stands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    /// Its dial is not due yet.
    Waiting,
    /// Dialled; local addresses that turned out to be taken.
    Dialling(u16),
    /// The TLS handshake is under way.
    Securing,
    /// The response to the upgrade is awaited, whose key has this nonce.
    Upgrading(u64),
    Open(Frames),
    Lost(Lost),
}

/// Why a client is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lost {
    /// Something went wrong.
    Fault(Fault),
    /// The server said that it closes, with this code.
    Closed(Option<u16>),
}

impl Client {
    /// One that is to be dialled then.
    pub(crate) fn new(target: Arc<Target>, due: Nanos, ping: Nanos, place: Place) -> Client {
        Client {
            target,
            state: State::Waiting,
            key: None,
            destination: 0,
            since: due,
            ping,
            ping_due: Nanos::NEVER,
            pinged: Pinged::default(),
            heard: due,
            sent: History::default(),
            received: History::default(),
            partial: None,
            unsent: Vec::new(),
            place: Some(place),
        }
    }

    /// When it is lost, if nothing comes from the server until then; before it is open, from when its dial was due.
    pub(crate) fn silent_at(&self) -> Nanos {
        self.heard + SILENCE.max(self.ping + self.ping)
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost(_))
    }

    /// As the API shows it.
    pub(crate) fn view(&self, number: u32) -> View {
        let lost = match self.state {
            State::Lost(Lost::Fault(fault)) => Some(fault.name()),
            State::Lost(Lost::Closed(Some(code))) => Some(format!("closed by the server with code {code}")),
            State::Lost(Lost::Closed(None)) => Some("closed by the server".to_owned()),
            _ => None,
        };
        View {
            number,
            ws: self.target.ws.clone(),
            connected: self.is_open(),
            lost,
            sent: self.sent.texts(),
            received: self.received.texts(),
        }
    }
}

/// When pings were due whose echoes have not come, the oldest first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pinged {
    due: [Nanos; MAX_PINGED],
    count: u8,
}

impl Pinged {
    /// One more; whether the oldest was given up for it.
    pub(crate) fn add(&mut self, due: Nanos) -> bool {
        let is_full = self.len() == MAX_PINGED;
        if is_full {
            self.take();
        }
        self.due[self.len()] = due;
        self.count += 1;
        is_full
    }

    /// The oldest, whose echo has come: a server replies in order.
    pub(crate) fn take(&mut self) -> Option<Nanos> {
        self.count = self.count.checked_sub(1)?;
        let due = self.due[0];
        self.due.rotate_left(1);
        Some(due)
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.count.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoes_belong_to_the_oldest_ping_and_no_more_than_eight_are_awaited() {
        let mut pinged = Pinged::default();
        assert_eq!(pinged.take(), None);
        assert!((1..=8).all(|due| !pinged.add(Nanos(due))));
        assert!(pinged.add(Nanos(9)), "the first is given up");
        assert!((2..=9).all(|due| pinged.take() == Some(Nanos(due))));
        assert_eq!(pinged.take(), None);
        assert!(!pinged.add(Nanos(10)));
        assert_eq!((pinged.len(), pinged.take()), (1, Some(Nanos(10))));
    }
}
