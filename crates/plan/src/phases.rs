//! The protocol of a WebSocket connection at each step, if it sends HTTP requests before its upgrade.

use crate::{Act, Activity, Population, Step, Then};

/// The protocol at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Http,
    WebSocket,
    /// Before the dial, or during a pause before it.
    Closed,
}

impl Population {
    /// For each step, whether it uses HTTP before the upgrade; empty if no step does.
    pub fn http_steps(&self) -> Vec<bool> {
        let Activity::Steps { steps, .. } = &self.activity else { return Vec::new() };
        if !self.target.scheme.is_upgraded() || !steps.iter().any(is_of_http) {
            return Vec::new();
        }
        phases(steps).into_iter().map(|(at, _)| at == Phase::Http).collect()
    }
}

/// Whether a step is only possible before the upgrade.
fn is_of_http(step: &Step) -> bool {
    matches!(step.act, Act::Request { .. } | Act::Upgrade { .. })
}

/// The protocol at each step, and after it.
fn phases(steps: &[Step]) -> Vec<(Phase, Phase)> {
    let mut phase = Phase::Closed;
    let mut all: Vec<(Phase, Phase)> = Vec::new();
    for step in steps {
        let (at, after) = match step.act {
            Act::Request { .. } => (Phase::Http, Phase::Http),
            Act::Upgrade { .. } => (Phase::Http, Phase::WebSocket),
            Act::Send { .. } | Act::Expect { .. } => (Phase::WebSocket, Phase::WebSocket),
            Act::Wait(_) => (phase, phase),
            Act::Close => (phase, Phase::Closed),
        };
        all.push((at, after));
        phase = after;
    }
    // A pause before the first step of a connection takes the protocol of that step: the dial precedes it.
    let mut next = Phase::WebSocket;
    for (at, after) in all.iter_mut().rev() {
        if *after == Phase::Closed && *at == Phase::Closed {
            (*at, *after) = (next, next);
        }
        next = *at;
    }
    all
}

/// Why this order of steps is impossible, with the index of the step; `None` for the index if `then` is wrong.
pub(crate) fn wrong_order(steps: &[Step], then: Then) -> Option<(Option<usize>, String)> {
    let all = phases(steps);
    let before = |at: usize| if at == 0 { Phase::Closed } else { all[at - 1].1 };
    for (at, step) in steps.iter().enumerate() {
        let why = match (before(at), is_of_http(step)) {
            (Phase::WebSocket, true) => {
                "the connection is a WebSocket by now; add a step with close = true before it"
            }
            _ => continue,
        };
        return Some((Some(at), why.to_owned()));
    }
    let Then::Again(to) = then else { return None };
    let (end, begin) = (all.last()?.1, all[usize::from(to)].0);
    let why = match (end, begin) {
        (Phase::WebSocket, Phase::Http) => {
            "begins again with a request, but the connection is a WebSocket by then; end with close = true, or name \
            a step after the upgrade"
        }
        (Phase::Http, Phase::WebSocket) => "leads to a message, but the connection is not upgraded by then",
        _ => return None,
    };
    Some((None, why.to_owned()))
}
