//! The operations of connections as text, for comparisons.

use super::*;
use crate::{Act, Expectation, Population, Request, Then, Think};
use std::fmt;

/// All operations, numbered, with their steps.
pub(super) fn program(plan: &Plan) -> String {
    let mut all = String::new();
    let mut nth = 0;
    for (of, population) in plan.populations.iter().enumerate() {
        for (name, ops) in population.step_names().iter().zip(steps(population, nth)) {
            all += &format!("{of}.{name}:\n");
            for op in ops {
                all += &format!("{nth:>5}  {op}\n");
                nth += 1;
            }
        }
    }
    all
}

/// The operations of all populations.
pub(super) fn operations(plan: &Plan) -> Vec<String> {
    let mut all = Vec::new();
    for population in &plan.populations {
        let ops = steps(population, all.len());
        all.extend(ops.into_iter().flatten());
    }
    all
}

/// The operations of each step; the first operation has the number `start`.
fn steps(population: &Population, start: usize) -> Vec<Vec<String>> {
    let (steps, then) = match &population.activity {
        Activity::Idle => return vec![vec!["stay".to_owned()]],
        Activity::Ping { every, text } => {
            return vec![vec![format!("ping {:?} each {every}", text.to_string())]];
        }
        Activity::Steps { steps, then } => (steps, then),
    };
    let mut all: Vec<Vec<String>> = steps.iter().map(|step| act(&step.act)).collect();
    let last = match then {
        Then::Again(at) => {
            let before: usize = all[..usize::from(*at)].iter().map(Vec::len).sum();
            format!("goto {}", start + before)
        }
        Then::Stay => "stay".to_owned(),
        Then::Close => "close".to_owned(),
    };
    all.last_mut().expect("at least one step").push(last);
    assert_eq!(all.iter().map(Vec::len).sum::<usize>(), population.operations());
    all
}

fn act(act: &Act) -> Vec<String> {
    let thinks = |think: &Think| (think.max > Nanos::ZERO).then(|| format!("wait {think}"));
    let expects = |expected: &Expectation| format!("expect {expected}");
    match act {
        Act::Request { request, think } => {
            [format!("request {request}")].into_iter().chain(thinks(think)).collect()
        }
        Act::Upgrade { path, think, .. } => {
            [format!("upgrade {path}")].into_iter().chain(thinks(think)).collect()
        }
        Act::Send { message, expected, think } => {
            let send = format!("send {:?}", message.to_string());
            [send].into_iter().chain(expected.as_ref().map(expects)).chain(thinks(think)).collect()
        }
        Act::Expect { expected, think } => [expects(expected)].into_iter().chain(thinks(think)).collect(),
        Act::Wait(time) => vec![format!("wait {time}")],
        Act::Close => vec!["close".to_owned()],
    }
}

/// The request of the first step.
pub(super) fn request(plan: &Plan) -> &Request {
    let Activity::Steps { steps, .. } = &plan.populations[0].activity else { panic!("it has steps") };
    let Act::Request { request, .. } = &steps[0].act else { panic!("a request") };
    request
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        self.headers.iter().try_for_each(|(name, value)| write!(f, ", {name}: {value}"))?;
        self.body.iter().try_for_each(|body| write!(f, ", body {:?}", body.to_string()))?;
        write!(f, " -> {}", self.expect)
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.status.map(|status| format!("status {status}")));
        parts.extend(self.length.map(|length| format!("length {length}")));
        parts.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        parts.extend(self.body.iter().map(|body| format!("body {body:?}")));
        parts.extend(self.json.iter().map(|(pointer, value)| format!("{pointer}: {value}")));
        parts.extend(self.echo.then(|| "echo".to_owned()));
        parts.extend(self.captures.iter().map(|own| format!("{} from {}", own.name, own.from)));
        f.write_str(if parts.is_empty() { "any" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}
