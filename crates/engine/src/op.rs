//! What the connections of a population do, one operation after the other; each keeps its place among them.

use plan::{Act, Activity, Population, Then, Think};
use units::Nanos;

use crate::{
    check::Check,
    request::{Message, Request},
};

/// One operation. After it comes the next one, but for [`Op::Goto`], [`Op::Ping`] and [`Op::Stay`].
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a population has a few, and reads one for each request")]
pub(crate) enum Op {
    /// HTTP: a request and its complete response.
    Request(Request),
    /// WebSocket, TCP: a message and its reply.
    Exchange(Message),
    /// WebSocket, TCP: a fire-and-forget message.
    Send(Message),
    /// WebSocket, TCP: an unsolicited message from the server.
    Expect(Check),
    /// WebSocket, TCP: this message, and its echo, at this interval, the first after a random part of it.
    Ping(Message, Nanos),
    /// Idle for a time between the two.
    Wait(Think),
    /// Close; the next operation dials again first.
    Close,
    /// Go on there.
    Goto(u16),
    /// Nothing more.
    Stay,
}

impl Op {
    /// Whether it awaits a response from its start.
    pub(crate) fn awaits_response(&self) -> bool {
        matches!(self, Op::Request(_) | Op::Exchange(_) | Op::Expect(_) | Op::Ping(..))
    }

    /// Whether it may begin while others of its connection are under way, where the protocol has room for that.
    pub(crate) fn may_overlap(&self) -> bool {
        matches!(self, Op::Request(_) | Op::Exchange(_) | Op::Ping(..))
    }

    /// Whether it begins with something that goes out.
    pub(crate) fn sends(&self) -> bool {
        matches!(self, Op::Request(_) | Op::Exchange(_) | Op::Send(_) | Op::Ping(..) | Op::Close)
    }
}

/// The operations of a population, and the step that each belongs to: its own first one has the number `first_step`.
pub(crate) fn compile(population: &Population, first_step: u16) -> (Vec<Op>, Vec<u16>) {
    let (steps, then) = match &population.activity {
        Activity::Idle => return (vec![Op::Stay], vec![first_step]),
        Activity::Ping { every, text } => {
            // Of several WebSockets on a connection each has its turn in this time.
            let streams = population.streams.filter(|_| !population.target.scheme.has_requests());
            let every = Nanos(every.0 / u64::from(streams.unwrap_or(1)));
            return (vec![Op::Ping(Message::new(text, Check::echo()), every)], vec![first_step]);
        }
        Activity::Steps { steps, then } => (steps, then),
    };
    let (mut ops, mut step_of, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (nth, step) in (first_step..).zip(steps) {
        places.push(ops.len() as u16);
        let (op, think) = match &step.act {
            Act::Request { request, think } => (
                {
                    let is_http2 = population.streams.is_some();
                    Op::Request(Request::new(
                        request.clone(),
                        &population.target,
                        is_http2,
                        population.timeout,
                    ))
                },
                *think,
            ),
            Act::Send { text, expected: Some(reply), think } => {
                (Op::Exchange(Message::new(text, Check::new(reply))), *think)
            }
            Act::Send { text, expected: None, think } => {
                (Op::Send(Message::new(text, Check::default())), *think)
            }
            Act::Expect { expected, think } => (Op::Expect(Check::new(expected)), *think),
            Act::Wait(time) => (Op::Wait(*time), Think::default()),
            Act::Close => (Op::Close, Think::default()),
        };
        ops.push(op);
        // A think time of zero is nothing to do.
        ops.extend((think.max > Nanos::ZERO).then_some(Op::Wait(think)));
        step_of.resize(ops.len(), nth);
    }
    ops.push(match then {
        Then::Again(step) => Op::Goto(places[usize::from(*step)]),
        Then::Stay => Op::Stay,
        Then::Close => Op::Close,
    });
    step_of.extend(step_of.last().copied());
    (ops, step_of)
}
