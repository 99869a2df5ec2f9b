//! WebSocket by RFC section, by generated streams, and against tungstenite.

mod frames;
mod handshake;
mod oracle;
mod script;
mod splits;
mod written;
