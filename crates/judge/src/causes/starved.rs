use super::*;
use crate::{probe, starved};

/// Three or more connections, and at least 1 % of them, had no response, or no handshake, by the end of the load, while the others had ten or
/// more each.
pub(crate) struct Starved {
    pub(crate) most: starved::Starved,
    /// Some of the probe's requests had a response, too.
    pub(crate) has_probe: bool,
}

impl Cause for Starved {
    const ID: &'static str = "starved";
    const OF: (Side, Name) = (Side::Target, Name::ConnectionLimit);
    // Where they wait in the accept queue, or what they sent does not arrive, that is seen.
    const YIELDS_TO: &'static str = "queue-unaccepted queue-overflowed queue-standing rejected-in-part unacknowledged no-syn-ack \
        blocked-here cut-off target-stopped throng-stopped shared-processors throng-too-slow";

    fn find(case: &Case) -> Option<Found<Starved>> {
        let most = case.most_starved().filter(|_| case.is_waiting() && !case.is_unended())?.clone();
        let (has_probe, served) = (case.summary.probe.as_ref().is_some_and(probe::is_served), most.served);
        Some(Found::inferred(Starved { most, has_probe }, served))
    }

    /// As many as it serves at a time; or of several backends or workers those of one, if they may be.
    fn sentence(&self) -> String {
        let beside = if self.has_probe { ", plus the probe's" } else { "" };
        let most = &self.most;
        if most.may_be_of_one() {
            return format!(
                "{} of {}{} had no response by the end of the load: the target serves {}{} at a time{beside}, or one of several \
                backends or workers does not respond",
                Count(most.count),
                connections(most.count + most.served),
                most.of_population(),
                most.at_most(),
                Count(most.served),
            );
        }
        let others = some(most.count, "other");
        format!("{}{beside}: {others} had no response by the end of the load", most.serves())
    }

    fn detail(&self, _: &Case) -> String {
        let or = match self.most.may_be_of_one() {
            true => ", or one of several backends or workers does not respond",
            false => "",
        };
        format!("it probably has a worker or a thread for each connection that it serves{or}")
    }

    fn fix(&self, case: &Case) -> String {
        let more = match self.most.may_be_of_one() {
            true => {
                "check that each of its backends and workers responds; if they do, raise their number or that of their threads"
            }
            false => probe::MORE_WORKERS,
        };
        case.or_less(more, FEWER)
    }
}
