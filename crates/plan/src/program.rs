//! What connections do, as one list of operations for all populations: a connection keeps its place in it.

use crate::{Act, Activity, Expectation, Population, Request, Text, Then, Think};
use units::Nanos;

/// The steps of all populations, compiled. Shared by all connections; nothing in it changes during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// In order.
    pub ops: Vec<Op>,
    /// Which of `steps` each operation belongs to.
    pub step_of: Vec<u16>,
    /// Population and name of each step, for the figures per step.
    pub steps: Vec<(u16, String)>,
    /// Where a connection of each population begins.
    pub starts: Vec<u16>,
}

/// One thing to do. After it comes the next one, but for [`Op::Goto`], [`Op::Ping`] and [`Op::Stay`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// HTTP: send this, and wait for the complete response.
    Request(Box<Request>),
    /// WebSocket, TCP: send this. The reply, if one is expected, is the next operation.
    Send(Text),
    /// WebSocket: wait for the next message; TCP: for bytes until they are as expected.
    Expect(Box<Expectation>),
    /// Idle for a time between the two, drawn uniformly. `think` is what a user does between two requests,
    /// and counts as due time of the next one; a wait does as well.
    Wait(Think),
    /// WebSocket, TCP: this message each `every`, the first after a random part of it, independent of replies; an empty
    /// text is a control ping. Never ends.
    Ping {
        /// From one to the next.
        every: Nanos,
        /// What must come back.
        text: Text,
    },
    /// Close; if there is more to do, the next operation dials again first.
    Close,
    /// Go on at the operation of this index.
    Goto(u16),
    /// Nothing more: stay open.
    Stay,
}

/// The most operations of all populations together.
pub(crate) const MAX_OPS: usize = 1 << 16;

impl Program {
    /// The program of these populations; none where it has more than 65,536 operations.
    pub fn compile(populations: &[Population]) -> Option<Program> {
        let mut program = Program::default();
        for (nth, population) in populations.iter().enumerate() {
            program.starts.push(program.next()?);
            match &population.activity {
                Activity::Idle => program.push(nth, "hold", [Op::Stay]),
                Activity::Ping { every, text } => {
                    program.push(nth, "ping", [Op::Ping { every: *every, text: text.clone() }]);
                }
                Activity::Steps { steps, then } => {
                    let mut places = Vec::with_capacity(steps.len());
                    for step in steps {
                        places.push(program.next()?);
                        program.push(nth, &step.name, operations(&step.act));
                    }
                    let last = match then {
                        Then::Again(step) => Op::Goto(places[usize::from(*step)]),
                        Then::Stay => Op::Stay,
                        Then::Close => Op::Close,
                    };
                    program.ops.push(last);
                    program.step_of.push((program.steps.len() - 1) as u16);
                }
            }
        }
        // The last operation too must have a place.
        (program.ops.len() <= MAX_OPS).then_some(program)
    }

    /// Where the next operation comes.
    fn next(&self) -> Option<u16> {
        self.ops.len().try_into().ok()
    }

    fn push(&mut self, population: usize, name: &str, ops: impl IntoIterator<Item = Op>) {
        let step = self.steps.len() as u16;
        // There are fewer populations and steps than operations.
        self.steps.push((population as u16, name.to_owned()));
        for op in ops {
            self.ops.push(op);
            self.step_of.push(step);
        }
    }
}

/// What a step is made of. A think time of zero is nothing to do.
fn operations(act: &Act) -> Vec<Op> {
    let thinking = |think: &Think| (think.max > Nanos::ZERO).then_some(Op::Wait(*think));
    match act {
        Act::Request { request, think } => {
            [Op::Request(Box::new(request.clone()))].into_iter().chain(thinking(think)).collect()
        }
        Act::Send { text, expected, think } => {
            let expected = expected.clone().map(|expected| Op::Expect(Box::new(expected)));
            [Op::Send(text.clone())].into_iter().chain(expected).chain(thinking(think)).collect()
        }
        Act::Expect { expected, think } => {
            [Op::Expect(Box::new(expected.clone()))].into_iter().chain(thinking(think)).collect()
        }
        Act::Wait(time) => vec![Op::Wait(*time)],
        Act::Close => vec![Op::Close],
    }
}
