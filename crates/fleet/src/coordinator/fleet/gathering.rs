//! Which agents there are, and whether they are enough.

use std::collections::BTreeMap;

use units::{Clock, Count, Nanos};

use super::SILENT;
use crate::{
    link::{Inbox, Link},
    message::{HERE, Here, Offer, PROTOCOL, WHO},
    waiting::Waiting,
};

/// Agents are asked for, and reply within this time.
const GATHERS: Nanos = Nanos::from_millis(1_200);
/// More agents are waited for.
const WAITS: Nanos = Nanos::from_secs(120);
/// How often it is looked whether the waiting is to end.
const LOOKS: Nanos = Nanos::from_millis(50);

/// Octets of a message around an offer.
const AROUND: usize = 1_024;

/// Agents of this protocol, busy or not; returns early once the number waited for has replied.
///
/// # Errors
/// One is of another version, NATS does not let it listen, or Ctrl-C.
pub(super) fn agents(
    link: &Link,
    clock: &Clock,
    wanted: Option<u32>,
    fingerprint: &str,
    waiting: &mut Waiting,
) -> Result<Vec<Here>, String> {
    let inbox: Inbox<Here> = link.subscribe(HERE.to_owned())?;
    link.send(WHO.to_owned(), &());
    let start = clock.now();
    let mut found: BTreeMap<String, Here> = BTreeMap::new();
    let mut said = None;
    loop {
        let left = || {
            found.values().filter_map(|here| here.run.as_ref()).filter(|busy| busy.fingerprint == fingerprint)
        };
        let free = found.values().filter(|here| is_usable(here)).count() as u32;
        waiting.go_on(|| joined(free, wanted))?;
        let waits = match wanted {
            Some(wanted) if left().next().is_none() && free < wanted => WAITS,
            // Whether the coordinator of that run is no more shows in a moment.
            _ if left().any(|busy| busy.silent < SILENT) => GATHERS + SILENT,
            _ => GATHERS,
        };
        let now = clock.now();
        let left_of_it = (start + waits).since(now);
        if left_of_it == Nanos::ZERO {
            break;
        }
        if waits == WAITS && now >= start + GATHERS && said.replace(free) != Some(free) {
            (waiting.say)(&format!("{}; waiting for at most {}", joined(free, wanted), WAITS.brief()));
        }
        if let Some(here) = inbox.next(left_of_it.min(LOOKS)).filter(Here::has_names) {
            found.insert(here.who.id.clone(), here);
        }
    }
    let agents: Vec<Here> = found.into_values().collect();
    if let Some(other) = agents.iter().find(|here| here.protocol != PROTOCOL) {
        return Err(format!("agent {} is throng {}; use one version for all", other.who.id, other.version));
    }
    Ok(agents)
}

/// How far it is with the agents that it waits for.
fn joined(free: u32, wanted: Option<u32>) -> String {
    let all = Count(wanted.unwrap_or(free).into());
    let of_all = wanted.map_or_else(|| all.of("agent"), |_| format!("{free} of {}", all.of("agent")));
    format!("{of_all} {} joined", all.one_or("has", "have"))
}

pub(super) fn is_usable(here: &Here) -> bool {
    here.run.is_none() && !here.is_draining
}

/// Whether as many as are wanted are free.
pub(super) fn enough(all: usize, free: &[Here], wanted: Option<u32>) -> Result<(), String> {
    let busy = all - free.len();
    let others = match busy {
        0 => String::new(),
        1 => ", one takes part in another run or is draining".to_owned(),
        _ => format!(", {busy} take part in another run or are draining"),
    };
    match wanted {
        Some(wanted) if (free.len() as u32) < wanted => {
            let wanted = Count(wanted.into());
            Err(format!(
                "{} of {} {} free{others}",
                free.len(),
                wanted.of("agent"),
                wanted.one_or("is", "are")
            ))
        }
        _ if free.is_empty() && busy > 0 => Err(format!("no agent is free{others}")),
        _ if free.is_empty() => {
            Err("no agents have joined; start some with throng agent --nats URL".to_owned())
        }
        _ => Ok(()),
    }
}

/// Whether an offer is no longer than a message may be.
pub(super) fn fits(link: &Link, offer: &Offer) -> Result<(), String> {
    let (size, most) = (serde_json::to_vec(offer).expect("an offer is data").len(), link.longest());
    if size + AROUND > most {
        return Err(format!(
            "the scenario takes {size} bytes in a message; raise max_payload of the NATS server, or put values into a table: {most}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_waited_for_is_said() {
        for (free, wanted, expected) in [
            (0, Some(1), "0 of 1 agent has joined"),
            (1, Some(3), "1 of 3 agents have joined"),
            (1, None, "1 agent has joined"),
            (12, None, "12 agents have joined"),
        ] {
            assert_eq!(joined(free, wanted), expected);
        }
    }
}
