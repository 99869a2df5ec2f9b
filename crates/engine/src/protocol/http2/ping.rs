//! PING (RFC 9113 section 6.7): instead of requests, each with an exchange, and beside them.

use net::Io;
use wire::http2;

use super::{NO_STATUS, Progress, SHORT, State};
use crate::{exchange::Exchange, out::Out, pool::NOTHING};

/// Sends a PING, whose reply `exchange` awaits; it has this index.
pub(crate) fn ping<I: Io>(state: &mut State, (index, exchange): (u32, &mut Exchange), out: &mut Out<'_, I>) {
    // A number, so that no other reply passes for its own.
    exchange.expected = out.source.random.bits();
    state.pinged = index;
    keep_alive(exchange.expected, out);
}

/// Sends a PING with this number, whose reply no exchange awaits: it is a [`Progress::Pong`].
pub(crate) fn keep_alive<I: Io>(number: u64, out: &mut Out<'_, I>) {
    out.to.send(SHORT, |out| {
        http2::write_ping(out, number.to_be_bytes()).expect("there is room for a short frame")
    });
}

/// The reply to the PING with this number has come; an exchange awaits the one with the number `awaited`, where that is one.
pub(super) fn acknowledge<'a>(
    state: &mut State,
    number: u64,
    awaited: Option<u64>,
    used: usize,
) -> Progress<'a> {
    if awaited != Some(number) {
        return Progress::Pong(used, number);
    }
    (state.pinged, state.reads, state.last) = (NOTHING, NOTHING, NO_STATUS);
    Progress::Responded(used)
}
