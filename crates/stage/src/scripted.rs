//! A scripted server: the script decides on every request.

use net::{Close, Cx, Gone, Io, Key, Program};
use units::Nanos;

/// Number of pending accepts without an accept limit.
const ACCEPTS: u32 = 64;

/// The request on which the script decides.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Number of the connection, in order of acceptance, from 0.
    pub conn: u64,
    /// Number of the request on its connection, from 0.
    pub nth: u64,
}

/// What the server does.
#[derive(Clone, Copy)]
pub struct Act {
    /// Sent at once; nothing if empty.
    pub send: &'static [u8],
    /// What follows.
    pub then: Then,
}

/// What follows.
#[derive(Clone, Copy)]
pub enum Then {
    /// Nothing.
    Stay,
    /// Closes at once.
    Close(Close),
    /// Closes after this time, unless another request arrives first.
    CloseAfter(Nanos, Close),
    /// Sends more after this time.
    SendAfter(Nanos, &'static [u8]),
}

/// Decides what the server does on each request.
pub type Script = fn(Request) -> Act;

struct Conn {
    request: Request,
    later: Then,
}

/// The server.
pub struct Scripted {
    script: Script,
    /// CPU time of a response, on one processor that handles requests in order.
    cost: Option<fn(Request) -> Nanos>,
    /// When the processor has handled all requests so far.
    busy_until: Nanos,
    /// Minimum time between two accepts.
    every: Nanos,
    accepting: u32,
    accepts_from: Nanos,
    conns: Vec<Conn>,
    /// When each connection was accepted.
    pub accepted_at: Vec<Nanos>,
    /// Number of requests so far.
    pub requests: u64,
}

impl Scripted {
    /// A server that follows the script.
    pub fn new(script: Script) -> Scripted {
        Scripted {
            script,
            cost: None,
            busy_until: Nanos::ZERO,
            every: Nanos::ZERO,
            accepting: 0,
            accepts_from: Nanos::ZERO,
            conns: Vec::new(),
            accepted_at: Vec::new(),
            requests: 0,
        }
    }

    /// Accepts one connection per `every`, without catching up after idle times.
    pub fn accepting_each(every: Nanos, script: Script) -> Scripted {
        Scripted { every, ..Scripted::new(script) }
    }

    /// Responds on one processor, with the given CPU time per response.
    pub fn on_one_processor(cost: fn(Request) -> Nanos, script: Script) -> Scripted {
        Scripted { cost: Some(cost), ..Scripted::new(script) }
    }

    fn act<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, Act { send, then }: Act) {
        if !send.is_empty() {
            cx.send_static(k, send);
        }
        self.conns[k.index as usize].later = then;
        match then {
            Then::Stay => cx.let_sleep(k),
            Then::Close(how) => cx.close(k, how),
            Then::CloseAfter(after, _) | Then::SendAfter(after, _) => cx.wake_at(k, cx.now() + after),
        }
    }
}

impl Program for Scripted {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let request = Request { conn: self.accepted_at.len() as u64, nth: 0 };
        self.accepted_at.push(cx.now());
        self.accepting -= 1;
        self.accepts_from = cx.now() + self.every;
        let at = k.index as usize;
        self.conns.resize_with(self.conns.len().max(at + 1), || Conn { request, later: Then::Stay });
        self.conns[at] = Conn { request, later: Then::Stay };
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        match self.conns[k.index as usize].later {
            Then::CloseAfter(_, how) => cx.close(k, how),
            Then::SendAfter(_, send) => cx.send_static(k, send),
            Then::Stay | Then::Close(_) => unreachable!("no timer was set"),
        }
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        // A client sends one request at a time, without content.
        let Some(at) = input.windows(4).position(|four| four == b"\r\n\r\n") else { return 0 };
        assert_eq!(at + 4, input.len(), "one request at a time");
        self.requests += 1;
        let conn = &mut self.conns[k.index as usize];
        let request = conn.request;
        conn.request.nth += 1;
        let mut act = (self.script)(request);
        if let Some(cost) = self.cost {
            self.busy_until = self.busy_until.max(cx.now()) + cost(request);
            act = Act { send: b"", then: Then::SendAfter(self.busy_until.since(cx.now()), act.send) };
        }
        self.act(cx, k, act);
        at + 4
    }

    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, _: Gone) {}

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let most = if self.every == Nanos::ZERO { ACCEPTS } else { 1 };
        while self.accepting < most && cx.now() >= self.accepts_from {
            assert!(cx.accept(), "the server has a place for everyone");
            self.accepting += 1;
        }
        if self.accepting < most { self.accepts_from } else { Nanos::NEVER }
    }
}
