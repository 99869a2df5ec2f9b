//! The whole client against whole servers, over the simulated network, in virtual time: what is counted, which faults
//! there are, and how fast it dials. A failure names the seed that repeats it.

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
