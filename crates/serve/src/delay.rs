//! The cl-async server of the source text: after any bytes it waits, answers with one fixed HTTP response, and closes.

use std::sync::Arc;

use net::{Cx, Gone, Io, Key, Program};
use units::Nanos;

use crate::{
    counters::{Counters, Stats},
    gate::Gate,
    knobs::{Due, Knobs, Stalls, Watch},
    threads::Serves,
};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nDate: Wed, 03 Oct 2012 23:43:10 GMT\r\n\
Content-Type: text/plain\r\nContent-Length: 9\r\n\r\nomglolwtf";

/// Where a connection stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing has come yet.
    Silent,
    /// The answer waits for its time.
    Waiting,
    /// Will be closed when the answer has left, or never answered.
    Done,
}

/// One shard of the server.
pub struct Delay {
    after: Nanos,
    states: Vec<State>,
    stats: Stats,
    gate: Gate,
    watch: Watch,
    stalls: Stalls,
    /// Answers that wait for their time.
    waiting: u64,
}

impl Delay {
    /// Shard number `shard`, which publishes to `counters` and answers after `after`.
    pub fn new(counters: Arc<Counters>, shard: u32, after: Nanos, knobs: &Knobs) -> Delay {
        Delay {
            gate: Gate::new(counters, shard, knobs),
            watch: Watch::new(knobs),
            stalls: Stalls::new(knobs.stalls_of_million),
            after,
            states: Vec::new(),
            stats: Stats::default(),
            waiting: 0,
        }
    }

    fn leave(&mut self, k: Key) {
        self.waiting -= u64::from(self.states[k.index as usize] == State::Waiting);
        self.gate.left(&mut self.stats);
    }

    fn answer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.states[k.index as usize] = State::Done;
        self.waiting -= 1;
        if !self.stalls.next() {
            self.stats.requests += 1;
            self.stats.bytes_out += ANSWER.len() as u64;
            cx.send_static(k, ANSWER);
            cx.finish(k);
        }
    }
}

impl Serves for Delay {
    fn is_finished<I: Io>(&self, cx: &Cx<I>) -> bool {
        self.gate.is_stopping() && self.waiting == 0 && cx.clogged() == 0
    }
}

impl Program for Delay {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if !self.gate.opened(cx, k, &mut self.stats) {
            return;
        }
        if k.index as usize >= self.states.len() {
            self.states.resize(k.index as usize + 1, State::Silent);
        }
        self.states[k.index as usize] = State::Silent;
        self.watch.opened(cx, k);
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        match self.watch.due(cx, k) {
            Due::Nothing => {}
            Due::Answer => self.answer(cx, k),
            Due::Close(how) => {
                self.leave(k);
                cx.close(k, how);
            }
        }
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        self.stats.bytes_in += input.len() as u64;
        if self.states[k.index as usize] == State::Silent {
            self.states[k.index as usize] = State::Waiting;
            self.waiting += 1;
            self.watch.heard(cx, k);
            self.watch.owes(cx, k, cx.now() + self.after);
        }
        input.len()
    }

    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        if !cx.is_open(k) {
            return self.gate.failed(cx, k, why, &mut self.stats);
        }
        self.leave(k);
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        self.gate.pace(cx, &self.stats)
    }
}
