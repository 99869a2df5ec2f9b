//! The probe: requests on a schedule that is independent of the population, so that its latency shows what an independent user sees.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use units::Status;

use crate::{
    encode::{self, STATUSES},
    fault::{Fault, Faults, Kind, Stage},
    latency::Latency,
    merge::merged,
    quantiles::Quantiles,
};

merged! {
    /// Counts and times of the probe in a period; merges like a tick.
    pub struct Probe {
        /// Requests that were sent, or given up before.
        pub sent: u64,
        /// Requests with a correct response.
        pub answered: u64,
        /// Failed: not dialled, lost, timed out, or with a wrong response.
        pub failed: u64,
        /// Without a response or a fault when the run ended.
        pub unanswered: u64,
        /// What went wrong, with requests and with their connections.
        #[cfg_attr(test, ts(type = "FaultCount[]"))]
        pub faults: Faults,
        /// Responses by status.
        #[serde(with = "encode::statuses")]
        #[cfg_attr(test, ts(type = "Record<string, number>"))]
        pub status: Box<[u64; STATUSES]> = Box::new([0; STATUSES]),
        /// From due to the complete correct response, on kept connections.
        pub kept: Latency,
        /// The same on a fresh connection each, its dial and handshake included.
        pub fresh: Latency,
        /// Of both, those that were due at full load.
        pub held: Latency,
        /// From when a dial of the probe was due until it was connected.
        pub connect: Latency,
    }
}

impl Probe {
    /// What requests met instead of a correct response, the most frequent first.
    pub fn failures(&self) -> Vec<ProbeFailure> {
        let mut all: BTreeMap<String, u64> = self.unexpected_statuses().into_iter().collect();
        for (fault, count) in self.faults.by_kind() {
            if let Some(what) = failure(fault) {
                *all.entry(what).or_default() += count;
            }
        }
        let mut failures: Vec<ProbeFailure> =
            all.into_iter().map(|(what, count)| ProbeFailure { what, count }).collect();
        failures.sort_by_key(|failure| Reverse(failure.count));
        failures
    }

    /// The unexpected statuses with their counts. Which statuses the plan expected is not recorded; it follows from the number of wrong
    /// ones, which equals the count of either all error statuses or all statuses.
    fn unexpected_statuses(&self) -> Vec<(String, u64)> {
        let wrong = self.faults.by_kind().filter(|(fault, _)| fault.kind == Kind::WrongStatus);
        let wrong: u64 = wrong.map(|(_, count)| count).sum();
        if wrong == 0 {
            return Vec::new();
        }
        let all = || (0u16..).zip(self.status.iter().copied()).filter(|(_, count)| *count > 0);
        let is_error = |status: u16| status > 0 && !(200..300).contains(&status);
        let sets = [all().filter(|(status, _)| is_error(*status)).collect(), all().collect::<Vec<_>>()];
        let is_wrong = |set: &Vec<(u16, u64)>| set.iter().map(|(_, count)| count).sum::<u64>() == wrong;
        match sets.into_iter().find(is_wrong) {
            Some(set) => {
                set.into_iter().map(|(of, count)| (format!("status {}", Status(of)), count)).collect()
            }
            None => vec![("unexpected status".to_owned(), wrong)],
        }
    }
}

/// What a request met by this fault, except a wrong status; `None` if the fault is that of a connection without a request.
fn failure(fault: Fault) -> Option<String> {
    let what = fault.kind.name().replace('-', " ");
    match (fault.stage, fault.kind) {
        (_, Kind::WrongStatus) | (Stage::Hold | Stage::Close, _) => None,
        (Stage::Exchange, Kind::Reset | Kind::Closed) => Some(format!("connection {what}")),
        (Stage::Exchange, _) => Some(what),
        (stage, _) => Some(format!("{} {what}", stage.name())),
    }
}

/// What requests of the probe met instead of a correct response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ProbeFailure {
    /// `status 503`, `timeout`, `connection reset`, `dial refused`.
    pub what: String,
    /// How often.
    pub count: u64,
}

/// The probe in the summary; times in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ProbeSummary {
    /// Requests per second as configured.
    pub rate: f64,
    /// Begun.
    pub sent: u64,
    /// Requests with a correct response.
    pub answered: u64,
    /// Requests without a correct response.
    pub failed: u64,
    /// Without a response when the run ended.
    pub unanswered: u64,
    /// What those without a correct response met, the most frequent first.
    pub failures: Vec<ProbeFailure>,
    /// Of all with a response.
    pub latency_us: Quantiles,
    /// Of those on kept connections.
    pub kept_us: Quantiles,
    /// Of those on fresh ones.
    pub fresh_us: Quantiles,
    /// Of those that were due at full load, kept and fresh.
    pub held_us: Quantiles,
    /// Dial to connection.
    pub connect_us: Quantiles,
    /// The probe's times by the number of open connections, ascending.
    pub by_connections: Vec<ProbePoint>,
}

impl ProbeSummary {
    /// ` (status 503, timeout)`: what failed requests met, the most frequent first; empty if unknown.
    pub fn failed_by(&self) -> String {
        let named: Vec<&str> =
            self.failures.iter().take(MOST_NAMED).map(|failure| failure.what.as_str()).collect();
        if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
    }
}

/// Most failures that are named.
const MOST_NAMED: usize = 3;

/// The probe while this many connections were open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ProbePoint {
    /// Connections of the population, on average over the requests that ended.
    pub connections: u64,
    /// Median time to a response, kept and fresh together.
    pub latency_p50_us: f64,
    /// 99th percentile of it.
    pub latency_p99_us: f64,
    /// The share (0..=1) of the requests that had no response: in neither of these.
    pub no_response: f64,
    /// 99th percentile of the connect time.
    pub connect_p99_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_requests_met_is_named() {
        let check = |faults: &[(Stage, Kind, u64)], statuses: &[(u16, u64)], expected: &str| {
            let mut probe = Probe::default();
            for (stage, kind, n) in faults {
                (0..*n).for_each(|_| probe.faults.count(Fault::target(*stage, *kind)));
            }
            statuses.iter().for_each(|(status, n)| probe.status[usize::from(*status)] = *n);
            let failures = probe.failures();
            assert_eq!(ProbeSummary { failures, ..ProbeSummary::default() }.failed_by(), expected);
        };
        let wrong = |n| (Stage::Exchange, Kind::WrongStatus, n);
        check(&[], &[(200, 20)], "");
        check(&[wrong(3)], &[(200, 20), (503, 3)], " (status 503)");
        let others = [(Stage::Exchange, Kind::Timeout, 4), (Stage::Exchange, Kind::Reset, 2)];
        check(&[&[wrong(3)], &others[..]].concat(), &[(503, 3)], " (timeout, status 503, connection reset)");
        // Status 404 is expected: whether 200 is too, the number says.
        check(&[wrong(3)], &[(200, 3)], " (status 200)");
        check(&[wrong(3)], &[(404, 20), (503, 3)], " (unexpected status)");
        check(&[], &[(404, 20)], "");
        // One that was kept was closed between two requests.
        check(&[(Stage::Hold, Kind::Closed, 1), (Stage::Dial, Kind::Refused, 5)], &[], " (dial refused)");
        check(&[(Stage::Exchange, Kind::WrongLength, 1)], &[(200, 1)], " (wrong length)");
    }
}
