//! What is taken from the fields of a response.

use wire::http2::{self, TakesFields};

use super::{State, respond};
use crate::{
    protocol::{Progress, grpc},
    watch::{Wanted, Watch},
};

/// The fields of a head that are taken from it.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    pub(super) wanted: &'a Wanted,
    pub(super) watch: &'a mut Watch,
}

impl TakesFields for Fields<'_> {
    fn wants(&self, name: &[u8]) -> bool {
        Watch::wants(self.wanted, name)
    }

    fn take(&mut self, name: &[u8], value: &[u8]) {
        self.watch.field(self.wanted, name, value);
    }
}

/// The head of a response has come.
pub(super) fn begin<'a>(
    state: &mut State,
    place: usize,
    head: &http2::Head<'_>,
    looks_at_type: bool,
    used: usize,
) -> Progress<'a> {
    let it = &mut state.under_way[place];
    (it.status, it.head_bytes) = (head.status, u16::try_from(head.head_bytes).unwrap_or(u16::MAX));
    if it.call.is_one() {
        return grpc::head(state, place, head, head.grpc.is_typed || !looks_at_type, used);
    }
    state.say(place, "location", head.location);
    if head.ends { respond(state, place, used) } else { Progress::Began(used) }
}
