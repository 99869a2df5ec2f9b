//! The operations of a population, compiled from its steps. Each connection has an index into them.

use plan::{Act, Activity, Body, Bound, Condition, Expectation, Population, Step, Then, Think};
use units::Nanos;

use crate::{
    check::Check,
    request::{Message, Request},
    watch::Wanted,
};

/// One operation. The next one follows, except after [`Op::Goto`], [`Op::Jump`], [`Op::Choose`], [`Op::Ping`] and [`Op::Stay`].
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a population has a few, and reads one for each request")]
pub(crate) enum Op {
    /// HTTP: a request, until its response is complete.
    Request(Request),
    /// WebSocket, TCP: a message, and its reply.
    Exchange(Message),
    /// WebSocket, TCP: a fire-and-forget message.
    Send(Message),
    /// WebSocket, TCP: an unsolicited message from the server.
    Expect(Check),
    /// WebSocket, TCP: a message and its echo, repeated at this interval; the first after a random part of it.
    Ping(Message, Nanos),
    /// Think time: idle for a time between these two.
    Wait(Think),
    /// Close the connection; the next operation dials again first.
    Close,
    /// WebSocket: the upgrade, after HTTP requests on the same connection.
    Upgrade,
    /// Continue at one of these, by weight; each has the sum of its weight and the preceding ones.
    Choose(Box<[(u32, u16)]>),
    /// Continue there.
    Goto(u16),
    /// Continue at `to` if this holds.
    Jump {
        condition: Condition,
        to: u16,
        /// Whether a step is skipped that has not been taken.
        skips: bool,
    },
    /// Nothing more: the connection is held.
    Stay,
}

impl Op {
    /// Whether it awaits a response from its beginning.
    pub(crate) fn awaits_response(&self) -> bool {
        matches!(self, Op::Request(_) | Op::Exchange(_) | Op::Expect(_) | Op::Upgrade | Op::Ping(..))
    }

    /// The check of its response, unless that is an echo at an interval.
    pub(crate) fn check(&self) -> Option<&Check> {
        match self {
            Op::Request(request) => Some(&request.check),
            Op::Exchange(message) => Some(&message.check),
            Op::Expect(check) => Some(check),
            _ => None,
        }
    }

    fn check_mut(&mut self) -> Option<&mut Check> {
        match self {
            Op::Request(request) => Some(&mut request.check),
            Op::Exchange(message) => Some(&mut message.check),
            Op::Expect(check) => Some(check),
            _ => None,
        }
    }

    /// What is captured or watched in its response.
    pub(crate) fn wanted(&self) -> Option<&Wanted> {
        self.check()?.wanted.as_deref()
    }

    /// What its response is checked for; `None` if it awaits none, or none with content.
    pub(crate) fn expected(&self) -> Option<&Expectation> {
        match self {
            Op::Request(request) => Some(&request.check.expected),
            Op::Exchange(message) | Op::Ping(message, _) => Some(&message.check.expected),
            Op::Expect(check) => Some(&check.expected),
            _ => None,
        }
    }

    /// Whether it may begin while others of its connection are under way, if the protocol allows.
    pub(crate) fn may_overlap(&self) -> bool {
        // Later operations may need what is captured from a response.
        matches!(self, Op::Request(_) | Op::Exchange(_) | Op::Ping(..)) && self.wanted().is_none()
    }

    /// Whether it sends something at its beginning.
    pub(crate) fn sends(&self) -> bool {
        let is_message = matches!(self, Op::Exchange(_) | Op::Send(_) | Op::Ping(..));
        is_message || matches!(self, Op::Request(_) | Op::Upgrade | Op::Close)
    }
}

/// The operations of a population, and the plan's step of each: the population's first step has the number `first_step`.
pub(crate) fn compile(population: &Population, first_step: u16) -> (Vec<Op>, Vec<u16>) {
    let (steps, then) = match &population.activity {
        Activity::Idle => return (vec![Op::Stay], vec![first_step]),
        Activity::Ping { every, text } => {
            // Several WebSockets on a connection take turns within the interval.
            let streams = population.streams.filter(|_| !population.target.scheme.has_requests());
            let every = Nanos(every.0 / u64::from(streams.unwrap_or(1)));
            return (
                vec![Op::Ping(Message::new(&Body::Text(text.clone()), Check::echo()), every)],
                vec![first_step],
            );
        }
        Activity::Steps { steps, then } => (steps, then),
    };
    let (mut ops, mut step_of, mut places) = (Vec::new(), Vec::new(), Vec::new());
    let mut choice: Option<Choice> = None;
    for (nth, step) in (first_step..).zip(steps) {
        if step.weight.is_none() {
            choice.take().into_iter().for_each(|choice| choice.end(&mut ops));
        }
        let begins = step.weight.is_some() && choice.is_none();
        places.push(ops.len() as u16);
        if let Some(weight) = step.weight {
            let choice = choice.get_or_insert_with(|| Choice::begin(&mut ops));
            // The whole choice begins at its first step.
            choice.add(weight, ops.len() as u16);
            if !begins {
                *places.last_mut().expect("it was pushed just now") = choice.at;
            }
        }
        take(step, population, &mut ops);
        if let Some(choice) = &mut choice {
            choice.ends.push(ops.len());
            ops.push(Op::Stay);
        }
        step_of.resize(ops.len(), nth);
    }
    choice.into_iter().for_each(|choice| choice.end(&mut ops));
    ops.push(match then {
        Then::Again(step) => Op::Goto(places[usize::from(*step)]),
        Then::Stay => Op::Stay,
        Then::Close => Op::Close,
    });
    step_of.extend(step_of.last().copied());
    (ops, step_of)
}

/// Adds the operations of a step. A repeated one is there several times, so that no connection has to count.
fn take(step: &Step, population: &Population, ops: &mut Vec<Op>) {
    let mut jumps: Vec<usize> = Vec::new();
    let mut jump = |ops: &mut Vec<Op>, condition: Condition, skips| {
        jumps.push(ops.len());
        ops.push(Op::Jump { condition, to: 0, skips });
    };
    if let Some(condition) = &step.only_if {
        jump(ops, condition.negated(), true);
    }
    let bound = step.repeat.as_ref().map(|repeat| &repeat.bound);
    // Copies share what is constant in it.
    let own = operation(&step.act, population);
    for nth in 1..=step.times() {
        if let Some(Bound::While(condition)) = bound {
            jump(ops, condition.negated(), nth == 1);
        }
        let (mut op, think) = own.clone();
        let is_last = nth == step.times();
        if let Some(Bound::Until(condition)) = bound
            && is_last
            && let Some(check) = op.check_mut()
        {
            check.until = Some(condition.clone());
        }
        ops.push(op);
        // A think time of zero needs no operation.
        ops.extend((think.max > Nanos::ZERO).then_some(Op::Wait(think)));
        if let Some(Bound::Until(condition)) = bound {
            jump(ops, condition.clone(), false);
        }
    }
    let end = ops.len() as u16;
    for at in jumps {
        if let Op::Jump { to, .. } = &mut ops[at] {
            *to = end;
        }
    }
}

/// The operation of a step, and the think time after it.
fn operation(act: &Act, population: &Population) -> (Op, Think) {
    match act {
        Act::Request { request, think } => (Op::Request(Request::new(request.clone(), population)), *think),
        Act::Upgrade { think, .. } => (Op::Upgrade, *think),
        Act::Send { message, expected: Some(reply), think } => {
            (Op::Exchange(Message::new(message, Check::new(reply))), *think)
        }
        Act::Send { message, expected: None, think } => {
            (Op::Send(Message::new(message, Check::default())), *think)
        }
        Act::Expect { expected, think } => (Op::Expect(Check::new(expected)), *think),
        Act::Wait(time) => (Op::Wait(*time), Think::default()),
        Act::Close => (Op::Close, Think::default()),
    }
}

/// Consecutive steps with weights: one of them is done.
struct Choice {
    /// Index of its [`Op::Choose`].
    at: u16,
    steps: Vec<(u32, u16)>,
    /// Index of the last operation of each step, which leads to the end of the choice.
    ends: Vec<usize>,
}

impl Choice {
    fn begin(ops: &mut Vec<Op>) -> Choice {
        let at = ops.len() as u16;
        ops.push(Op::Stay);
        Choice { at, steps: Vec::new(), ends: Vec::new() }
    }

    fn add(&mut self, weight: u32, at: u16) {
        let before = self.steps.last().map_or(0, |(sum, _)| *sum);
        self.steps.push((before.saturating_add(weight), at));
    }

    /// Ends the choice: the next operation follows it.
    fn end(self, ops: &mut [Op]) {
        let next = ops.len() as u16;
        self.ends.iter().for_each(|end| ops[*end] = Op::Goto(next));
        ops[usize::from(self.at)] = Op::Choose(self.steps.into());
    }
}

/// The operation chosen by weight; `drawn` is below the sum of the weights.
pub(crate) fn chosen(steps: &[(u32, u16)], drawn: u64) -> u16 {
    let at = steps.partition_point(|(sum, _)| u64::from(*sum) <= drawn);
    steps[at].1
}
