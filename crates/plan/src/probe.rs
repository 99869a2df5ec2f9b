//! The probe: what an independent user sees while the load is held. It consists of two populations that do not count as load.

use units::{Nanos, Rate};

use crate::{Act, Activity, Load, Population, Reconnect, Target, Then};

/// Requests on an independent schedule: every other one on a fresh connection, the rest on a few kept connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Request rate of both kinds together; never zero.
    pub rate: Rate,
    /// One population per [`ProbeKind`], in that order. They take turns in one schedule.
    pub populations: [Population; 2],
}

/// The populations of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum ProbeKind {
    /// Opens a connection for each request, and closes it after the response.
    Fresh,
    /// Keeps a few connections, and opens another when all of them await responses.
    Kept,
}

/// Connections that are kept.
const KEPT: u32 = 2;
/// Most further connections, of both kinds together, however slow the target is.
const MOST: u64 = 1_024;

impl Probe {
    /// A probe that repeats the first act of a connection of `like`, with its target and timeout.
    pub fn new(rate: Rate, like: Population) -> Probe {
        // A request lasts for at most one dial and one response.
        let longest = Nanos(like.timeout.0.saturating_mul(2));
        let most = rate.due(longest).clamp(1, MOST) as u32;
        let activity = first_of(like.activity);
        let population = |name: &str, connections, idle| Population {
            streams: like.streams.map(|_| 1),
            grpc: like.grpc.clone(),
            headers: like.headers.clone(),
            load: Load::Rate { connections, rate },
            timeout: like.timeout,
            reconnect: Reconnect::OnDemand { idle },
            ..Population::new(name, like.target.clone(), like.tls.clone(), activity.clone())
        };
        let fresh = population("probe-fresh", most.div_ceil(2), 0);
        Probe { rate, populations: [fresh, population("probe-kept", KEPT + most / 2, KEPT)] }
    }

    /// The target of both populations.
    pub fn target(&self) -> &Target {
        &self.populations[0].target
    }

    /// Connections open at a time if the target takes `response` for each accept and each response.
    pub fn usually_open(&self, response: Nanos) -> u32 {
        let at_once = self.rate.due(Nanos(response.0.saturating_mul(2))).saturating_add(1);
        u32::try_from(at_once).unwrap_or(u32::MAX).saturating_add(KEPT).min(self.places())
    }

    /// Most connections open at a time.
    pub fn places(&self) -> u32 {
        self.populations.iter().map(Population::most_open).sum()
    }
}

/// Reduces an activity to its first act, repeated forever.
fn first_of(activity: Activity) -> Activity {
    let Activity::Steps { mut steps, .. } = activity else { return activity };
    steps.truncate(1);
    for step in &mut steps {
        step.act.take_think();
        (step.weight, step.only_if, step.repeat) = (None, None, None);
        if let Act::Request { request, .. } = &mut step.act {
            // The probe's connections have neither variables nor cookies.
            request.expect.captures.clear();
            request.redirects = 0;
        }
    }
    Activity::Steps { steps, then: Then::Again(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::plan;

    #[test]
    fn it_is_the_first_request_of_the_load_at_a_rate_of_its_own() {
        for more in
            [&[][..], &[("--think", "1s")], &[("--arrive", "9/s"), ("--total", "9"), ("--calls", "3")]]
        {
            let plan = plan(&[more, &[("--probe", "10/s"), ("--timeout", "3s")]].concat());
            let probe = plan.probe.expect("it was asked for");
            let [fresh, kept] = &probe.populations;
            let rate = Rate::per_s(10);
            assert_eq!(fresh.load, Load::Rate { connections: 30, rate });
            assert_eq!(kept.load, Load::Rate { connections: 32, rate });
            assert_eq!(fresh.reconnect, Reconnect::OnDemand { idle: 0 });
            assert_eq!(kept.reconnect, Reconnect::OnDemand { idle: 2 });
            for own in [fresh, kept] {
                assert_eq!((own.calls, own.timeout), (None, Nanos::from_secs(3)));
                assert_eq!(own.activity, crate::tests::plan(&[]).populations[0].activity, "{more:?}");
            }
        }
    }
}
