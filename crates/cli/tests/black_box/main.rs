//! The real binary as a user runs it: real processes, real sockets, what they print and how they end.
//!
//! `THRONG_BIN` names the binary if it is not the one that cargo built for this test. Targets are either
//! `throng serve` or a scripted server ([`scripted`]) that does on purpose what servers do by mistake.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

mod asks;
mod calibrates;
mod caller;
mod causes;
mod closes;
mod compares;
mod costs;
mod demo;
mod dials;
mod disks;
mod doctor;
mod echoes;
mod expects;
mod failures;
mod figures;
mod finds;
mod formats;
mod help;
mod hostile;
mod imports;
mod in_common;
mod io;
mod judged;
mod knobs;
mod labs;
mod live;
mod load;
mod logins;
mod metrics;
mod misbehaving;
mod observing;
mod output;
mod pages;
mod places;
mod program;
mod pushes;
mod quotes;
mod repeats;
mod replays;
mod reports;
mod reproduces;
mod responses;
mod scenarios;
mod schedule;
mod scripted;
mod seeds;
mod sentences;
mod serving;
mod serving_ends;
mod signals;
mod silence;
mod stores;
mod summary;
mod terminal;
mod thresholds;
mod tries;
mod ui;
mod unread;
mod usage;
mod values;
mod watching;
