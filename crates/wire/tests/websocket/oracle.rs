//! Against tungstenite, an independent implementation of the RFC: each reads what the other writes.

use crate::script::{Script, Sent, config, cut, line, places, role, script};
use fuzz::websocket::frames;
use proptest::prelude::*;
use std::io::{self, Cursor, Read, Write};
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};
use tungstenite::protocol::frame::{Frame, FrameHeader};
use tungstenite::protocol::{Message, WebSocket};
use tungstenite::{Error, error::ProtocolError};
use wire::websocket::{Opcode, Role};

/// The input of tungstenite, which then ends; and its output.
struct Wire {
    input: Cursor<Vec<u8>>,
    output: Vec<u8>,
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn socket(role: Role, input: Vec<u8>) -> WebSocket<Wire> {
    let role = match role {
        Role::Client => tungstenite::protocol::Role::Client,
        Role::Server => tungstenite::protocol::Role::Server,
    };
    WebSocket::from_raw_socket(Wire { input: Cursor::new(input), output: Vec::new() }, role, None)
}

/// The trace of what tungstenite reads from a stream.
fn read_by_tungstenite(role: Role, stream: Vec<u8>) -> String {
    let mut socket = socket(role, stream);
    let mut said = Vec::new();
    loop {
        said.push(match socket.read() {
            Ok(Message::Text(text)) => line("text", text.as_bytes()),
            Ok(Message::Binary(bytes)) => line("binary", &bytes),
            Ok(Message::Ping(payload)) => line("ping", &payload),
            Ok(Message::Pong(payload)) => line("pong", &payload),
            Ok(Message::Close(Some(close))) => {
                line(&format!("close {}", u16::from(close.code)), close.reason.as_bytes())
            }
            Ok(Message::Close(None)) => "close".to_owned(),
            Ok(Message::Frame(frame)) => panic!("a raw frame is never read: {frame:?}"),
            Err(Error::ConnectionClosed | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => {
                return said.join(" | ");
            }
            Err(error) => format!("breach {error}"),
        });
        assert!(said.len() < 100, "it goes on and on: {said:?}");
    }
}

/// The frames of a script as tungstenite writes them; a client's frames have masks of its choice.
fn written_by_tungstenite(script: &Script, writer: Role) -> Vec<u8> {
    let mut socket = socket(writer, Vec::new());
    for Sent { opcode, ends, payload } in &script.frames {
        let opcode = match opcode {
            Opcode::Continuation => OpCode::Data(Data::Continue),
            Opcode::Text => OpCode::Data(Data::Text),
            Opcode::Binary => OpCode::Data(Data::Binary),
            Opcode::Close => OpCode::Control(Control::Close),
            Opcode::Ping => OpCode::Control(Control::Ping),
            Opcode::Pong => OpCode::Control(Control::Pong),
        };
        let header = FrameHeader { is_final: *ends, opcode, ..FrameHeader::default() };
        let frame = Frame::from_payload(header, payload.clone().into());
        socket.write(Message::Frame(frame)).expect("it takes frames as they are");
    }
    socket.flush().expect("a vector takes all");
    std::mem::take(&mut socket.get_mut().output)
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn tungstenite_reads_what_is_written_here(script in script(), role in role(), seed in any::<u32>()) {
        prop_assert_eq!(read_by_tungstenite(role, script.written(role, seed)), script.said);
    }

    #[test]
    fn frames_written_by_tungstenite_are_read(script in script(), role in role(), places in places()) {
        let writer = if role == Role::Client { Role::Server } else { Role::Client };
        let stream = written_by_tungstenite(&script, writer);
        prop_assert_eq!(frames(role, u64::MAX, &cut(&stream, &places)), script.said);
    }
}
