//! A variable as written in a text.

use super::Place;
use super::encoding::Encoding;
use crate::csv::Csv;

/// A variable as written.
pub(super) struct Written<'t> {
    /// With its braces.
    pub(super) whole: &'t str,
    pub(super) name: &'t str,
    /// What follows the name.
    pub(super) rest: &'t str,
    pub(super) place: Place,
    pub(super) encoding: Encoding,
    pub(super) tables: &'t [Csv],
}
