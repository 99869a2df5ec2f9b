//! What metrics make of a run that never was.

use fixtures::{header, seen};
use units::Date;

use super::{Book, Snapshot};

/// Two seconds of two populations; the second one has a name that wants to be escaped.
pub(crate) fn two_seconds() -> (Snapshot, [Snapshot; 2]) {
    let mut book = Book::new(Date(1_700_000_000_250));
    book.begin(&header());
    let blank = book.blank();
    (blank, [1, 2].map(|second| second_of(&mut book, second)))
}

fn second_of(book: &mut Book, n: u64) -> Snapshot {
    let (tick, looks) = seen(n);
    book.tick(&tick, &looks)
}
