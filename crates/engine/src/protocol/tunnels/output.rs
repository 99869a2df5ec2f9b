//! Output of a connection besides messages: CONNECT requests, replies, waiting output, and closing messages.

use net::Io;
use wire::{
    http2::{self, Code, Method},
    websocket::{self as ws, Frames, MAX_CONTROL, MAX_HEADER},
};

use super::{State, Tunnel};
use crate::{
    failure::Failure,
    out::Writer,
    pool::NOTHING,
    protocol::http2::{Queue, frame, room},
};

impl State {
    pub(super) fn drop_rare(&mut self) {
        self.rare.take_if(|rare| {
            rare.table.take_if(|_| !self.connection.has_table());
            let is_empty = rare.queue.is_empty() && !rare.queue.is_due() && rare.requests.is_empty();
            let is_empty = is_empty && rare.table.is_none();
            is_empty && rare.offered.is_none() && rare.farewell.is_empty()
        });
    }

    pub(super) fn queue(&mut self) -> &mut Queue {
        &mut self.rare.get_or_insert_default().queue
    }

    /// Sends waiting output, as far as the server reads and its windows allow.
    pub(super) fn send_waiting<I: Io>(&mut self, to: &mut Writer<'_, I>) {
        if to.is_write_blocked() {
            self.queue().send(to);
            return;
        }
        let frames = self.unblock();
        self.queue().push(&frames);
        self.queue().flush(to);
        self.drop_rare();
    }

    /// Writes a control frame for the WebSocket at `place`; `ends`: its stream ends with it.
    pub(super) fn frame(
        &mut self,
        place: usize,
        ends: bool,
        write: impl FnOnce(&mut [u8], [u8; 4]) -> Option<usize>,
    ) -> Vec<u8> {
        let mask = (self.random.bits() as u32).to_be_bytes();
        let (mut frame, mut out) = ([0; MAX_HEADER + MAX_CONTROL], [0; MAX_HEADER + MAX_CONTROL + 16]);
        let length = write(&mut frame, mask).expect("there is room for a control frame");
        let written = self.tunnels[place].write(&mut self.connection, &mut out, &frame[..length], ends);
        out[..written].to_vec()
    }

    /// Sends as many CONNECT requests as the server allows streams; if it allows none, all wait for its next SETTINGS.
    pub(super) fn connect(&mut self) {
        if !self.connection.has_place() {
            return;
        }
        let Some(rare) = &mut self.rare else { return };
        let requests = std::mem::take(&mut rare.requests);
        let exchange = rare.awaits.unwrap_or(NOTHING);
        let mut out = Vec::new();
        for block in requests {
            if !self.connection.has_place() {
                break;
            }
            let at = out.len();
            out.resize(at + room(block.len()) + 16, 0);
            let begun = self.connection.write_request(&mut out[at..], &block, false, Method::Connect);
            let (written, stream) = begun.expect("there is room, and a place");
            out.truncate(at + written);
            let frames = Frames::new(ws::Role::Client);
            self.tunnels.push(Tunnel {
                stream,
                frames,
                exchange,
                is_open: false,
                is_ended: false,
                partial: None,
            });
        }
        self.queue().push(&out);
    }

    /// Writes as much of the waiting output as the windows allow.
    fn unblock(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        for it in self.tunnels.iter_mut().filter(|it| it.is_blocked()) {
            let Some(partial) = &mut it.partial else { continue };
            let at = out.len();
            out.resize(at + room(partial.output.len()), 0);
            let (written, taken) =
                self.connection.write_data(&mut out[at..], &mut it.stream, &partial.output, false);
            out.truncate(at + written);
            partial.output.drain(..taken);
        }
        out
    }

    /// Sends WINDOW_UPDATE frames when they are due.
    pub(super) fn credit(&mut self, place: usize) -> Result<(), Failure> {
        let stream = &mut self.tunnels[place].stream;
        let (all, own) = (self.connection.take_credit(), self.connection.take_stream_credit(stream));
        let updates = [(0, all), (stream.id(), own)];
        for (number, by) in updates {
            if let Some(by) = by {
                self.queue().reply(&frame(|out| http2::write_window_update(out, number, by)))?;
            }
        }
        Ok(())
    }

    pub(super) fn say_goodbye(&mut self) {
        let goodbye = frame(|out| self.connection.goaway(out, Code::NO_ERROR));
        self.queue().push(&goodbye);
    }
}
