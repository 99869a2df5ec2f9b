//! What is taken from the fields of a response.

use wire::http2::TakesFields;

use crate::watch::{Wanted, Watch};

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
