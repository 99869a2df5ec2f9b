//! The machine's behaviour by state, as scripts. Behaviour that packetdrill's published scripts (github.com/google/packetdrill,
//! gtests/net/tcp) cover names the file there; numbers differ because the machine has other options or another initial window.

use crate::script::check;

mod closing;
mod data;
mod loss;
mod opening;

/// A behaviour: name, source and script.
type Row = (&'static str, &'static str, &'static str);

fn all(rows: &[Row]) {
    for (name, source, script) in rows {
        check(&format!("{name} ({source})"), script);
    }
}

#[test]
fn connections_open_or_do_not() {
    all(opening::ROWS);
}

#[test]
fn data_goes_both_ways() {
    all(data::ROWS);
}

#[test]
fn what_is_lost_is_sent_again() {
    all(loss::ROWS);
}

#[test]
fn connections_end() {
    all(closing::ROWS);
}
