//! Values taken from the fields of a response.

use wire::http2::{self, TakesFields};

use super::State;
use crate::watch::{Wanted, Watch};

/// The fields to be taken from a head.
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

impl State {
    /// The head of a response has come; returns whether the request is a gRPC call.
    pub(super) fn begin(&mut self, place: usize, head: &http2::Head<'_>) -> bool {
        let it = &mut self.under_way[place];
        (it.status, it.head_bytes) = (head.status, u16::try_from(head.head_bytes).unwrap_or(u16::MAX));
        let is_call = it.call.is_one();
        self.say(place, "location", head.location);
        is_call
    }
}
