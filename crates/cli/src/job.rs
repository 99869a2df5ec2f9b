//! The job of a run for its fleet, for `throng run --fleet` and for runs started through the API.

use fleet::{Job, OnLost, Shares};
use plan::{Flags, flag};

use crate::{mistakes::Mistakes, plans::Scenario};

/// The job for agents: flags, scenario, and how the fleet shares the load.
pub(crate) fn read(flags: &Flags, scenario: Option<&Scenario>, mistakes: &mut Mistakes) -> Job {
    let agents = agents(flags, mistakes);
    let on_lost = mistakes.read("--on-lost", flags.get(&flag::ON_LOST), OnLost::parse).unwrap_or_default();
    let shares = mistakes.read("--share", flags.get(&flag::SHARE), Shares::parse).unwrap_or_default();
    // Only the coordinator samples the target.
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

/// Parses the required number of agents; `None` if it is not given.
pub(crate) fn agents(flags: &Flags, mistakes: &mut Mistakes) -> Option<u32> {
    mistakes.read("--agents", flags.get(&flag::AGENTS), |text| match text.parse() {
        Ok(n @ 1..) => Ok(n),
        _ => Err(format!("{text:?} is not a number of agents; use 1 or more")),
    })
}
