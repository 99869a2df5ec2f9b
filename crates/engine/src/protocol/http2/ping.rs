//! PING (RFC 9113 section 6.7): instead of requests, each with an exchange, and beside them.

use net::Io;
use wire::http2;

use super::{REPLY, State};
use crate::{exchange::Exchange, out::Out};

/// Sends a PING, whose reply `exchange` awaits; it has this index.
pub(crate) fn ping<I: Io>(state: &mut State, (index, exchange): (u32, &mut Exchange), out: &mut Out<'_, I>) {
    // A number, so that no other reply passes for its own.
    exchange.expected = out.source.random.bits();
    state.pinged = index;
    keep_alive(exchange.expected, out);
}

/// Sends a PING with this number, whose reply no exchange awaits: it is a [`Progress::Pong`].
///
/// [`Progress::Pong`]: crate::protocol::Progress::Pong
pub(crate) fn keep_alive<I: Io>(number: u64, out: &mut Out<'_, I>) {
    out.to.send(REPLY, |out| {
        http2::write_ping(out, number.to_be_bytes()).expect("there is room for a short frame")
    });
}
