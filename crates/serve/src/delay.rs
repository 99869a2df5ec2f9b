//! The delay service, modelled on the cl-async server whose experiment the lab `cl-async` repeats: after any input it waits, sends
//! one fixed HTTP response, and closes.

use std::sync::Arc;

use net::{Cx, Io, Key};
use units::Nanos;

use crate::{
    counters::Counters,
    knobs::Knobs,
    shard::{Handler, ServerShard},
};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nDate: Wed, 03 Oct 2012 23:43:10 GMT\r\n\
Content-Type: text/plain\r\nContent-Length: 9\r\n\r\nomglolwtf";

/// The state of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No input yet.
    Silent,
    /// The response is waiting for its time.
    Waiting,
    /// Closing once the response has left, or never responding.
    Done,
}

/// The service: one fixed response, a given time after the first bytes.
pub struct Delay(Nanos);

impl Delay {
    /// Shard number `shard` of the server, which publishes to `counters` and responds after `after`.
    pub fn shard(counters: Arc<Counters>, shard: u32, after: Nanos, knobs: &Knobs) -> ServerShard<Delay> {
        ServerShard::new(Delay(after), counters, shard, knobs)
    }
}

impl Handler for Delay {
    type Conn = State;
    const NEW: State = State::Silent;

    fn is_waiting(conn: &State) -> bool {
        *conn == State::Waiting
    }

    fn handle_bytes<I: Io>(shard: &mut ServerShard<Delay>, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        if *shard.conn(k) == State::Silent {
            *shard.conn(k) = State::Waiting;
            shard.respond_after(cx, k, shard.handler.0);
        }
        input.len()
    }

    fn respond<I: Io>(shard: &mut ServerShard<Delay>, cx: &mut Cx<I>, k: Key) {
        *shard.conn(k) = State::Done;
        if !shard.stalls.next() {
            shard.stats.requests += 1;
            shard.out.send_static(cx, k, RESPONSE);
            shard.out.finish(cx, k);
        }
    }
}
