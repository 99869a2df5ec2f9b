//! Black-box tests of the machine: scripts of segments, and simulations against an independent TCP implementation.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

mod places;
mod script;
mod scripts;
mod segment;
mod server;
mod simulation;
