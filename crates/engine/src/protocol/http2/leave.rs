//! The end of requests by the server: of a session that it leaves, and of a stream that it resets.

use samples::{Detail, Kind};
use wire::http2::Code;

use super::State;
use crate::{
    failure::Failure,
    protocol::{Progress, Reply},
};

/// The server takes no new streams: the requests that it will not act on are withdrawn one by one, and the session ends when it
/// has responded to all others. The last withdrawn request ends with the session.
pub(super) fn leave<'a>(state: &mut State) -> Option<Progress<'a>> {
    let last = state.connection.last_stream();
    let unserved = state.under_way.iter().position(|it| it.stream.id() > last);
    if let Some(place) = unserved.filter(|_| state.under_way.len() > 1) {
        let exchange = state.under_way[place].exchange;
        if exchange != state.reads {
            state.reads = exchange;
            return Some(Progress::Turned(0));
        }
        state.end(place, Code::CANCEL);
        return Some(Progress::Withdrawn(0));
    }
    let is_over = state.under_way.is_empty() || unserved.is_some();
    is_over.then_some(Progress::Ending(Reply::Queued, b""))
}

/// The server has reset a stream.
pub(super) fn was_reset<'a>(code: Code, used: usize) -> Progress<'a> {
    match code {
        Code::REFUSED_STREAM => Progress::Failed(used, Kind::Refused.into()),
        code => Progress::Failed(used, Failure { kind: Kind::Reset, detail: Detail::of_goaway(code.0) }),
    }
}
