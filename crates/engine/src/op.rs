//! What the connections of a population do, one operation after the other; each keeps its place among them.

use plan::{Op as Planned, Plan, Population, Think};
use units::Nanos;

use crate::{
    check::Check,
    request::{Message, Request},
};

/// One operation. After it comes the next one, but for [`Op::Goto`], [`Op::Ping`] and [`Op::Stay`].
#[derive(Clone, Debug)]
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
        matches!(self, Op::Request(_) | Op::Exchange(_))
    }

    /// Whether it begins with something that goes out.
    pub(crate) fn sends(&self) -> bool {
        matches!(self, Op::Request(_) | Op::Exchange(_) | Op::Send(_) | Op::Ping(..) | Op::Close)
    }
}

/// The operations of a population of the plan, and the step of the plan that each belongs to.
pub(crate) fn compile(plan: &Plan, nth: u16) -> (Vec<Op>, Vec<u16>) {
    let program = &plan.program;
    let place = |nth: usize| program.starts.get(nth).map_or(program.ops.len(), |start| usize::from(*start));
    let range = place(usize::from(nth))..place(usize::from(nth) + 1);
    let population = &plan.populations[usize::from(nth)];
    compiled(population, &program.ops[range.clone()], &program.step_of[range.clone()], range.start)
}

/// The same for one that is not among the plan's: the probe's.
pub(crate) fn compile_alone(population: &Population) -> (Vec<Op>, Vec<u16>) {
    let program = plan::Program::compile(std::slice::from_ref(population)).expect("a population alone fits");
    compiled(population, &program.ops, &program.step_of, 0)
}

fn compiled(
    population: &Population,
    planned: &[Planned],
    step_of: &[u16],
    start: usize,
) -> (Vec<Op>, Vec<u16>) {
    // An expectation that is the reply to the preceding message becomes part of that operation.
    let reply_at = |at: usize| match (at.checked_sub(1).map(|before| &planned[before]), planned.get(at)) {
        (Some(Planned::Send(_)), Some(Planned::Expect(reply))) if step_of[at - 1] == step_of[at] => {
            Some(reply)
        }
        _ => None,
    };
    let (mut ops, mut steps, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (at, op) in planned.iter().enumerate() {
        places.push(ops.len() as u16);
        if reply_at(at).is_some() {
            continue;
        }
        ops.push(match op {
            Planned::Request(request) => Op::Request(Request::new((**request).clone(), &population.target)),
            Planned::Send(text) => match reply_at(at + 1) {
                Some(reply) => Op::Exchange(Message::new(text, Check::new(reply))),
                None => Op::Send(Message::new(text, Check::default())),
            },
            Planned::Expect(reply) => Op::Expect(Check::new(reply)),
            Planned::Wait(think) => Op::Wait(*think),
            Planned::Ping { every, text } => Op::Ping(Message::new(text, Check::echo()), *every),
            Planned::Close => Op::Close,
            Planned::Goto(to) => Op::Goto(to - start as u16),
            Planned::Stay => Op::Stay,
        });
        steps.push(step_of[at]);
    }
    for op in &mut ops {
        if let Op::Goto(to) = op {
            *to = places[usize::from(*to)];
        }
    }
    (ops, steps)
}
