//! Sessions without a load: their program has a schedule of its own, and awaits nothing (crate `clients`).

use net::Io;
use plan::Population;
use samples::Kind;
use wire::websocket::Data;

use super::{Failure, Progress, Protocol, Session, Speaks, ValueSource, websocket};
use crate::out::{Out, Writer};

/// The protocol of a target, and how sessions with it are opened.
#[derive(Debug)]
pub struct TargetProtocol(Protocol);

/// The protocol state of one connection.
#[derive(Debug)]
pub struct SessionState(Session);

/// What the sessions of a shard share.
#[derive(Debug)]
pub struct Sessions(ValueSource);

/// What a session has read.
#[derive(Clone, Copy, Debug)]
pub enum Came {
    /// All, except for an incomplete rest.
    Rest,
    /// The session is open.
    Opened,
    /// A message is complete.
    Message,
    /// What the protocol replies to.
    Control,
    /// The server ends the session, with this code.
    Closed(Option<u16>),
}

impl TargetProtocol {
    /// The protocol of the target of a population without steps.
    pub fn new(population: &Population) -> TargetProtocol {
        TargetProtocol(Protocol::new(population))
    }
}

impl Sessions {
    /// Draws random values from this seed.
    pub fn new(seed: u64) -> Sessions {
        Sessions(ValueSource::alone(seed))
    }

    /// The transport to a destination is open: begins to open the session with this number.
    pub fn open<I: Io>(
        &mut self,
        TargetProtocol(protocol): &TargetProtocol,
        (number, destination): (u32, u16),
        to: Writer<'_, I>,
    ) -> SessionState {
        let Sessions(source) = self;
        source.written = number.into();
        let mut session = protocol.session_of_dial(&mut source.random);
        protocol.open(&mut session, destination.into(), &mut Out { to, source });
        SessionState(session)
    }

    /// Reads input up to the next event; returns it with the number of bytes used. Messages go to `piece` as they arrive.
    ///
    /// # Errors
    /// The session cannot continue.
    pub fn read<I: Io>(
        &mut self,
        SessionState(session): &mut SessionState,
        input: &[u8],
        to: Writer<'_, I>,
        mut piece: impl FnMut(&Data<'_>),
    ) -> Result<(usize, Came), Failure> {
        let out = &mut Out { to, source: &mut self.0 };
        Ok(match session.read(input, None, None, &mut piece)? {
            Progress::More(n) => (n, Came::Rest),
            Progress::Opened(n) => (n, Came::Opened),
            Progress::Pushed(n) => (n, Came::Message),
            Progress::Reply(n, reply) => {
                reply.send(out);
                (n, Came::Control)
            }
            Progress::Ending(reply, _) => {
                let code = reply.close_code();
                reply.send(out);
                (input.len(), Came::Closed(code))
            }
            Progress::Refused(_) => return Err(Kind::WrongStatus.into()),
            progress => unreachable!("nothing is awaited: {progress:?}"),
        })
    }

    /// Sends a text.
    pub fn send<I: Io>(&mut self, text: &str, to: Writer<'_, I>) {
        websocket::send_text(text, &mut Out { to, source: &mut self.0 });
    }

    /// Begins to close an open session, if the server reads.
    pub fn close<I: Io>(&mut self, to: Writer<'_, I>) {
        websocket::close(&mut Out { to, source: &mut self.0 });
    }
}
