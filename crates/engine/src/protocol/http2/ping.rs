//! PING (RFC 9113 section 6.7): as an exchange instead of requests, or as keep-alive beside them.

use net::Io;
use wire::http2;

use super::{NO_STATUS, Progress, SHORT, State};
use crate::{exchange::Exchange, out::Out, pool::NOTHING};

/// Sends a PING whose acknowledgement `exchange`, with this index, awaits.
pub(crate) fn ping<I: Io>(state: &mut State, (index, exchange): (u32, &mut Exchange), out: &mut Out<'_, I>) {
    // Random, so that no other acknowledgement matches.
    exchange.expected = out.source.random.bits();
    state.pinged = index;
    keep_alive(exchange.expected, out);
}

/// Sends a PING with this number for keep-alive; its acknowledgement is a [`Progress::Pong`].
pub(crate) fn keep_alive<I: Io>(number: u64, out: &mut Out<'_, I>) {
    out.to.send(SHORT, |out| {
        http2::write_ping(out, number.to_be_bytes()).expect("there is room for a short frame")
    });
}

/// The PING with this number is acknowledged; `awaited`: the number that an exchange awaits, if any.
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
