//! The record of a client.

use std::sync::Arc;

use engine::SessionState;
use net::Key;
use samples::{Fault, Stage};
use units::Nanos;

use crate::{
    history::{History, Partial},
    order::View,
    place::Place,
    target::Target,
};

/// The text that each client sends at an interval.
pub(crate) const PING: &str = "ping";
/// Maximum number of pings that await their echo; the next one makes the oldest count as unanswered.
pub(crate) const MAX_PINGED: usize = 8;
/// A client is lost after this time without a byte from the server, or after two ping intervals if that is longer.
const SILENCE: Nanos = Nanos::from_secs(60);
/// Maximum number of texts waiting for the connection.
pub(crate) const MAX_UNSENT: usize = 16;

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) target: Arc<Target>,
    pub(crate) state: State,
    /// Its key while it has a connection or is being dialled.
    pub(crate) key: Option<Key>,
    /// Its session, from the upgrade on.
    pub(crate) session: Option<SessionState>,
    /// Index of the target's destination.
    pub(crate) destination: u16,
    /// When its dial was due; later when the current phase of connecting began.
    pub(crate) since: Nanos,
    /// Interval of pings.
    pub(crate) ping: Nanos,
    /// When the next ping is due.
    pub(crate) ping_due: Nanos,
    /// When the pings without an echo were due.
    pub(crate) pinged: Pinged,
    /// When input last arrived.
    pub(crate) heard: Nanos,
    pub(crate) sent: History,
    pub(crate) received: History,
    /// The incomplete message, if any.
    pub(crate) partial: Option<Box<Partial>>,
    /// Texts to send once connected.
    pub(crate) unsent: Vec<Arc<str>>,
    /// Its place in shard and agent, until it is lost.
    pub(crate) place: Option<Place>,
}

/// The state of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    /// Its dial is not due yet.
    Waiting,
    /// Dialling; the number of local addresses that were in use.
    Dialling(u16),
    /// The TLS handshake is under way.
    Securing,
    /// The response to the upgrade is awaited.
    Upgrading,
    Open,
    Lost(Lost),
}

impl State {
    /// The stage of a fault in this state.
    pub(crate) fn stage(self) -> Stage {
        match self {
            State::Waiting | State::Dialling(_) => Stage::Dial,
            State::Securing => Stage::Tls,
            State::Upgrading => Stage::Handshake,
            State::Open | State::Lost(_) => Stage::Hold,
        }
    }
}

/// Why a client is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lost {
    /// By a fault.
    Fault(Fault),
    /// The server announced the close, with this code.
    Closed(Option<u16>),
}

impl Client {
    /// A client that is to be dialled at `due`.
    pub(crate) fn new(target: Arc<Target>, due: Nanos, ping: Nanos, place: Place) -> Client {
        Client {
            target,
            state: State::Waiting,
            key: None,
            session: None,
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

    /// When it is lost if no input arrives; before it is open, counted from when its dial was due.
    pub(crate) fn silent_at(&self) -> Nanos {
        self.heard + SILENCE.max(self.ping + self.ping)
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost(_))
    }

    /// The client as the API shows it.
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

/// When the pings without an echo were due, oldest first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pinged {
    due: [Nanos; MAX_PINGED],
    count: u8,
}

impl Pinged {
    /// Adds a ping; returns whether the oldest was given up for it.
    pub(crate) fn add(&mut self, due: Nanos) -> bool {
        let is_full = self.len() == MAX_PINGED;
        if is_full {
            self.take();
        }
        self.due[self.len()] = due;
        self.count += 1;
        is_full
    }

    /// Removes the oldest ping, whose echo has come: servers reply in order.
    pub(crate) fn take(&mut self) -> Option<Nanos> {
        self.count = self.count.checked_sub(1)?;
        let due = self.due[0];
        self.due.rotate_left(1);
        Some(due)
    }

    /// Number of pings without an echo.
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
