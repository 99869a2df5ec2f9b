//! The real client against real servers, over the simulated network and in virtual time: counts, faults, and dial rates. A failure names
//! the seed that reproduces it.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

mod closes;
mod faults;
mod goaway;
mod hold;
mod http2_listener;
mod levels;
mod listener;
mod manual;
mod matrix;
mod open_loop;
mod prefork;
mod probe;
mod quota;
mod ramps;
mod reconnect;
mod scenarios;
mod stalls;
mod streams;
mod visits;
mod websocket;
