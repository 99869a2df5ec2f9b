//! The real binary as a user meets it: real processes, real sockets, what they print and how they end.
//!
//! `THRONG_BIN` names the binary where it is another than the one that cargo built for this test. Targets are either
//! `throng serve` or a scripted server ([`scripted`]) that does on purpose what servers do by mistake.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

mod answers;
mod calibrates;
mod caller;
mod causes;
mod closes;
mod compares;
mod costs;
mod demo;
mod dials;
mod doctor;
mod echoes;
mod expects;
mod figures;
mod finds;
mod forms;
mod help;
mod io;
mod knobs;
mod labs;
mod live;
mod load;
mod metrics;
mod misbehaving;
mod observing;
mod output;
mod places;
mod program;
mod replays;
mod reports;
mod scenarios;
mod schedule;
mod scripted;
mod seeds;
mod serving;
mod serving_ends;
mod signals;
mod silence;
mod silences;
mod stores;
mod summary;
mod terminal;
mod thresholds;
mod unread;
mod watching;
mod words;
