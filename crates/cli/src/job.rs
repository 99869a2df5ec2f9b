//! What a run asks of its fleet, for `throng run --fleet` and for runs by HTTP.

use fleet::{Job, OnLost, Shares};
use plan::{Flags, flag};

use crate::{mistakes::Mistakes, plans::Scenario};

/// The flags and the scenario of a run as its agents are given them.
pub(crate) fn read(flags: &Flags, scenario: Option<&Scenario>, mistakes: &mut Mistakes) -> Job {
    let agents = agents(flags, mistakes);
    let on_lost = mistakes.read("--on-lost", flags.get(&flag::ON_LOST), OnLost::parse).unwrap_or_default();
    let shares = mistakes.read("--share", flags.get(&flag::SHARE), Shares::parse).unwrap_or_default();
    // Who samples the target is the coordinator.
    let observers = [&flag::OBSERVE, &flag::OBSERVE_TOKEN_FILE];
    let flags = observers.into_iter().fold(flags.clone().without_place(), Flags::without);
    Job {
        flags: flags.pairs(),
        scenario: scenario.map(|scenario| scenario.text.clone()),
        agents,
        on_lost,
        shares,
        ..Job::default()
    }
}

/// How many agents are to take part, if that is said.
pub(crate) fn agents(flags: &Flags, mistakes: &mut Mistakes) -> Option<u32> {
    mistakes.read("--agents", flags.get(&flag::AGENTS), |text| match text.parse() {
        Ok(n @ 1..) => Ok(n),
        _ => Err(format!("{text:?} is not a number of agents; use 1 or more")),
    })
}
