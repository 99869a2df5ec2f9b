//! The cases of the Autobahn test suite for WebSocket, chapters 1 to 7, by their numbers: the bytes of each are sent to an echo endpoint
//! made of `wire::websocket`, whose response is checked. A failure names its case.
//!
//! If a case defines how its bytes are split, that is one of the ways in which every case is split here.

mod closes;
mod endpoint;
mod fragments;
mod framing;
mod opcodes;
mod pings;
mod reserved_bits;
mod utf8;
