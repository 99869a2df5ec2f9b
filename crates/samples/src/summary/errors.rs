//! The error rate.

use super::{Connections, Requests};
use crate::{
    fault::{Fault, FaultCount, Stage},
    merge::merged,
};

merged! {
    /// What failed, and of how much: the error rate.
    #[derive(Copy)]
    pub struct Errors {
        /// Faults of any kind, requests unanswered at the end, and requests missed. A response that ends its connection is one.
        pub count: u64,
        /// Requests due, and connections that failed while none was under way; where none was due, dials.
        pub of: u64,
    }
}

impl Errors {
    /// Of a run with these faults, connections and requests.
    pub fn new(faults: &[FaultCount], connections: &Connections, requests: &Requests) -> Errors {
        let sum = |is: &dyn Fn(&FaultCount) -> bool| -> u64 {
            let is_one = |f: &&FaultCount| !Fault::target(f.stage, f.kind).follows_response();
            faults.iter().filter(is_one).filter(|f| is(f)).map(|f| f.count).sum()
        };
        let (all, due) = (sum(&|_| true), requests.sent + requests.missed);
        let count = all + requests.unanswered + requests.missed;
        if due == 0 {
            return Errors { count, of: connections.dialled() };
        }
        let of_exchanges = sum(&|f| f.stage == Stage::Exchange);
        let lost_in_exchanges = sum(&|f| f.stage == Stage::Exchange && !f.kind.is_of_response());
        // A server of TLS 1.3 refuses a client after its first request, and an upgrade may follow a login: such a fault ends a
        // request, as those of exchanges do.
        let before_exchanges = sum(&|f| [Stage::Dial, Stage::Tls, Stage::Handshake].contains(&f.stage));
        let of_open = before_exchanges.saturating_sub(connections.failed);
        let resolved = requests.answered + requests.unanswered + lost_in_exchanges;
        let of_requests = of_exchanges + of_open.min(requests.sent.saturating_sub(resolved));
        Errors { count, of: due + all - of_requests }
    }

    /// As a share (0..=1); none of nothing.
    pub fn share(&self) -> Option<f64> {
        (self.of > 0).then(|| self.count as f64 / self.of as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Kind;

    /// (opened, failed) connections, (sent, answered, missed, unanswered) requests, faults: errors and what they are of.
    fn check(
        (opened, failed): (u64, u64),
        (sent, answered, missed, unanswered): (u64, u64, u64, u64),
        faults: &[(Stage, Kind, u64)],
        expected: (u64, u64),
    ) {
        let of = |(stage, kind, n): &(Stage, Kind, u64)| FaultCount::new(Fault::target(*stage, *kind), *n);
        let faults: Vec<FaultCount> = faults.iter().map(of).collect();
        let connections = Connections { opened, failed, ..Connections::default() };
        let requests = Requests { sent, answered, missed, unanswered, ..Requests::default() };
        let errors = Errors::new(&faults, &connections, &requests);
        assert_eq!((errors.count, errors.of), expected, "{connections:?} {requests:?} {faults:?}");
    }

    #[test]
    fn errors_are_of_requests_and_of_what_kept_them_from_being_sent() {
        check((0, 0), (0, 0, 0, 0), &[], (0, 0));
        check((10, 0), (1_000, 1_000, 0, 0), &[], (0, 1_000));
        check((10, 0), (1_000, 997, 5, 3), &[(Stage::Exchange, Kind::WrongStatus, 7)], (15, 1_005));
        check((10, 4), (1_000, 1_000, 0, 0), &[(Stage::Dial, Kind::Refused, 4)], (4, 1_004));
        check(
            (10, 2),
            (100, 100, 0, 0),
            &[(Stage::Tls, Kind::Expired, 2), (Stage::Hold, Kind::Closed, 1)],
            (3, 103),
        );
        // Each connection is dropped after its only request: half of all that happened failed.
        check((10, 0), (10, 10, 0, 0), &[(Stage::Hold, Kind::Closed, 10)], (10, 20));
        // Of ten logins two are refused and one lacks the token; each of these connections ends.
        check(
            (10, 0),
            (10, 10, 0, 0),
            &[
                (Stage::Exchange, Kind::WrongStatus, 2),
                (Stage::Hold, Kind::MissingValue, 2),
                (Stage::Exchange, Kind::MissingValue, 1),
            ],
            (3, 10),
        );
        // Connections on which nothing is sent.
        check(
            (8, 2),
            (0, 0, 0, 0),
            &[(Stage::Dial, Kind::Timeout, 2), (Stage::Hold, Kind::Reset, 3)],
            (5, 10),
        );
        // All that was due failed: each once.
        check((0, 20), (0, 0, 0, 0), &[(Stage::Dial, Kind::Refused, 20)], (20, 20));
        assert_eq!(Errors { count: 1, of: 8 }.share(), Some(0.125));
        assert_eq!(Errors::default().share(), None);
    }

    #[test]
    fn a_request_that_a_fault_of_another_stage_ends_is_one() {
        let refused = |n| [(Stage::Tls, Kind::CertificateRequired, n)];
        // With TLS 1.3 the alert comes after the request.
        check((5, 0), (5, 0, 0, 0), &refused(5), (5, 5));
        // No request was outstanding: the connections are among what failed.
        check((5, 0), (5, 5, 0, 0), &refused(5), (5, 10));
        check((0, 5), (20, 20, 0, 0), &refused(5), (5, 25));
        // Three failed before they were open; two requests still wait for their responses, in the middle of a run.
        check((5, 3), (107, 100, 0, 0), &refused(8), (8, 110));
        // After ten logins, four upgrades are refused.
        check((10, 0), (20, 16, 0, 0), &[(Stage::Handshake, Kind::WrongStatus, 4)], (4, 20));
    }
}
