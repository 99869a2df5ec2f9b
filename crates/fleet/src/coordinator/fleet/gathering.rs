//! Finds the agents at a server, and checks whether they suffice.

use std::collections::BTreeMap;

use units::{Clock, Count, Nanos};

use super::SILENT;
use crate::{
    error::{Error, Waiting},
    link::{Inbox, Link},
    message::{HERE, Here, Offer, PROTOCOL, WHO},
};

/// Maximum time for agents to reply to an inquiry.
const GATHERS: Nanos = Nanos::from_millis(1_200);
/// Maximum time to wait for more agents.
const WAITS: Nanos = Nanos::from_secs(120);
/// Polling interval for the end of the wait.
const LOOKS: Nanos = Nanos::from_millis(50);

/// Bytes of a message besides an offer.
const AROUND: usize = 1_024;

/// All agents of this protocol, busy or not. Returns early once the requested number has replied.
///
/// # Errors
/// An agent has another version, NATS refuses the subscription, or Ctrl-C.
pub(super) fn agents(
    link: &Link,
    clock: &Clock,
    wanted: Option<u32>,
    fingerprint: &str,
    waiting: &mut Waiting,
) -> Result<Vec<Here>, Error> {
    let inbox: Inbox<Here> = link.subscribe(HERE.to_owned())?;
    link.send(WHO.to_owned(), &());
    let start = clock.now();
    let mut found: BTreeMap<String, Here> = BTreeMap::new();
    let mut said = String::new();
    loop {
        let left = || {
            found.values().filter_map(|here| here.run.as_ref()).filter(|busy| busy.fingerprint == fingerprint)
        };
        let free = found.values().filter(|here| is_usable(here)).count() as u32;
        waiting.go_on(|| joined(found.values(), wanted))?;
        let waits = match wanted {
            Some(wanted) if left().next().is_none() && free < wanted => WAITS,
            // Whether that run has lost its coordinator is known in a moment.
            _ if left().any(|busy| busy.silent < SILENT) => GATHERS + SILENT,
            _ => GATHERS,
        };
        let now = clock.now();
        let left_of_it = (start + waits).since(now);
        if left_of_it == Nanos::ZERO {
            break;
        }
        if waits == WAITS && now >= start + GATHERS {
            let joined = joined(found.values(), wanted);
            if said != joined {
                (waiting.say)(&format!("{joined}; waiting for at most {}", WAITS.brief()));
                said = joined;
            }
        }
        if let Some(here) = inbox.next(left_of_it.min(LOOKS)).filter(Here::has_names) {
            found.insert(here.who.id.clone(), here);
        }
    }
    let agents: Vec<Here> = found.into_values().collect();
    if let Some(other) = agents.iter().find(|here| here.protocol != PROTOCOL) {
        let why = format!("agent {} is throng {}; use one version for all", other.who.id, other.version);
        return Err(Error::Refused(why));
    }
    Ok(agents)
}

/// Describes the progress: how many of the requested agents are free, and why others are not.
fn joined<'h>(agents: impl Iterator<Item = &'h Here> + Clone, wanted: Option<u32>) -> String {
    let free = agents.clone().filter(|here| is_usable(here)).count() as u32;
    let all = Count(wanted.unwrap_or(free).into());
    let of_all = wanted.map_or_else(|| all.of("agent"), |_| format!("{free} of {}", all.of("agent")));
    match others(agents) {
        None => format!("{of_all} {} joined", all.one_or("has", "have")),
        Some(others) => format!("{of_all} {} free; {others}", all.one_or("is", "are")),
    }
}

/// Describes why agents are not free; `None` if all are.
fn others<'h>(agents: impl Iterator<Item = &'h Here>) -> Option<String> {
    let (mut drain, mut busy) = (0, BTreeMap::<&str, u64>::new());
    for here in agents {
        match &here.run {
            Some(of) => *busy.entry(&of.run).or_default() += 1,
            // An agent also drains while it calibrates.
            None => drain += u64::from(here.is_draining),
        }
    }
    let drain = Count(drain);
    let drain =
        (drain.0 > 0).then(|| format!("{drain} {} draining or calibrating", drain.one_or("is", "are")));
    let busy = busy.iter().map(|(run, agents)| {
        let agents = Count(*agents);
        format!("{agents} {} part in run {run}", agents.one_or("takes", "take"))
    });
    let all: Vec<String> = drain.into_iter().chain(busy).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

pub(super) fn is_usable(here: &Here) -> bool {
    here.run.is_none() && !here.is_draining
}

/// Whether enough of these agents are free.
pub(super) fn enough(agents: &[Here], wanted: Option<u32>) -> Result<(), Error> {
    let free = agents.iter().filter(|here| is_usable(here)).count() as u32;
    match wanted {
        Some(wanted) if free < wanted => Err(Error::Missing(joined(agents.iter(), Some(wanted)))),
        _ if free > 0 => Ok(()),
        _ => Err(Error::Missing(match others(agents.iter()) {
            Some(others) => format!("no agent is free; {others}"),
            None => "no agents have joined; start some with throng agent --nats URL".to_owned(),
        })),
    }
}

/// Whether an offer fits into a message.
pub(super) fn fits(link: &Link, offer: &Offer) -> Result<(), Error> {
    let (size, most) = (serde_json::to_vec(offer).expect("an offer is data").len(), link.longest());
    if size + AROUND > most {
        return Err(Error::TooLarge(format!(
            "the scenario takes {size} bytes in a message; raise max_payload of the NATS server, or put values into a table: {most}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Busy;

    fn agent(id: &str, run: Option<&str>, is_draining: bool) -> Here {
        let busy = |run: &str| Busy {
            run: run.to_owned(),
            fingerprint: String::new(),
            term: 0,
            silent: Nanos::ZERO,
        };
        Here { is_draining, run: run.map(busy), ..Here::free(id) }
    }

    #[test]
    fn what_was_waited_for_is_said() {
        for (free, wanted, expected) in [
            (0, Some(1), "0 of 1 agent has joined"),
            (1, Some(3), "1 of 3 agents have joined"),
            (1, None, "1 agent has joined"),
            (12, None, "12 agents have joined"),
        ] {
            let agents: Vec<Here> = (0..free).map(|n| agent(&n.to_string(), None, false)).collect();
            assert_eq!(joined(agents.iter(), wanted), expected);
        }
    }

    #[test]
    fn agents_that_are_not_free_are_counted_by_what_keeps_them() {
        let mut agents = vec![
            agent("a", None, false),
            agent("b", None, true),
            agent("c", Some("r1"), false),
            agent("d", Some("r1"), true),
            agent("e", Some("r2"), false),
        ];
        let others = "1 is draining or calibrating, 2 take part in run r1, 1 takes part in run r2";
        assert_eq!(joined(agents.iter(), Some(3)), format!("1 of 3 agents are free; {others}"));
        assert_eq!(
            enough(&agents, Some(3)),
            Err(Error::Missing(format!("1 of 3 agents are free; {others}")))
        );
        assert_eq!((enough(&agents, Some(1)), enough(&agents, None)), (Ok(()), Ok(())));
        agents.remove(0);
        assert_eq!(enough(&agents, None), Err(Error::Missing(format!("no agent is free; {others}"))));
        let none = "no agents have joined; start some with throng agent --nats URL";
        assert_eq!(enough(&[], None), Err(Error::Missing(none.to_owned())));
    }
}
