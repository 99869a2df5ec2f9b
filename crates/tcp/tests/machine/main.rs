//! The machine from outside: scripts of segments, and simulations against a TCP of another hand.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

mod places;
mod script;
mod scripts;
mod segment;
mod server;
mod simulation;
