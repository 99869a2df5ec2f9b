//! The cases of the Autobahn test suite for WebSocket, chapters 1 to 7, by their numbers: the bytes of each
//! against an echo endpoint made of `wire::websocket`, and its required response. A failure names its case.
//!
//! Where a case defines how its bytes are split, that is one of the ways in which each case is fed here.

mod closes;
mod endpoint;
mod fragments;
mod framing;
mod opcodes;
mod pings;
mod reserved_bits;
mod utf8;
