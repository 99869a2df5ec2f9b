//! Cause: some connections never get a response, while the others get many.

use super::*;
use crate::{probe, starved};

/// Three or more connections, and at least 1 % of them, had no response, or no handshake, by the end of the load, while the others had ten or
/// more each. Where more users were served after the load, with as many open, it is one of several backends or workers that does not respond (cause
/// `timeout`); where none was, a limit.
pub(crate) struct Starved {
    pub(crate) most: starved::Starved,
    /// Some of the probe's requests had a response, too.
    pub(crate) has_probe: bool,
    pub(crate) by: Which,
}

/// What keeps them without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The target serves as many at a time: none of a few more users was served while these were open.
    Limit,
    /// One of several backends or workers: some of those were.
    OneOf,
    Either,
}

impl Cause for Starved {
    const ID: &'static str = "starved";
    const OF: (Side, Name) = (Side::Target, Name::ConnectionLimit);
    // If connections wait in the accept queue, or their data does not arrive, that is observed directly.
    const YIELDS_TO: &'static str = "queue-unaccepted queue-overflowed queue-standing rejected-in-part unacknowledged no-syn-ack \
        blocked-here cut-off target-stopped throng-stopped shared-processors throng-too-slow";

    fn find(case: &Case) -> Option<Found<Starved>> {
        let most = case.most_starved().filter(|_| case.is_waiting() && !case.is_unended())?.clone();
        let (has_probe, served) = (case.summary.probe.as_ref().is_some_and(probe::is_served), most.served);
        let by = match case.evidence.answers.any_served() {
            _ if !most.may_be_of_one() => Which::Limit,
            Some(true) => Which::OneOf,
            Some(false) => Which::Limit,
            None => Which::Either,
        };
        Some(Found::inferred(Starved { most, has_probe, by }, served))
    }

    fn of(&self) -> (Side, Name) {
        if self.by == Which::OneOf { (Side::Target, Name::Timeout) } else { Self::OF }
    }

    /// As many as it serves at a time; or of several backends or workers those of one, if they may be.
    fn sentence(&self) -> String {
        let beside = if self.has_probe { ", plus the probe's" } else { "" };
        let most = &self.most;
        let had_none = || {
            let (n, all) = (Count(most.count), connections(most.count + most.served));
            format!("{n} of {all}{} had no response by the end of the load", most.of_population())
        };
        match self.by {
            Which::Limit => {
                let others = some(most.count, "other");
                format!("{}{beside}: {others} had no response by the end of the load", most.serves())
            }
            Which::OneOf => format!("{}: one of several backends or workers does not respond", had_none()),
            Which::Either => format!(
                "{}: the target serves {}{} at a time{beside}, or one of several backends or workers does not respond",
                had_none(),
                most.at_most(),
                Count(most.served)
            ),
        }
    }

    fn detail(&self, _: &Case) -> String {
        let each = "it probably has a worker or a thread for each connection that it serves";
        match self.by {
            Which::Limit => each.to_owned(),
            Which::OneOf => "after the load more users were served, with as many connections open".to_owned(),
            Which::Either => format!("{each}, or one of several backends or workers does not respond"),
        }
    }

    fn fix(&self, case: &Case) -> String {
        let more = match self.by {
            Which::Limit => probe::MORE_WORKERS,
            Which::OneOf => "check that each of its backends and workers responds",
            Which::Either => {
                "check that each of its backends and workers responds; if they do, raise their number or that of their threads"
            }
        };
        case.or_less(more, FEWER)
    }
}
