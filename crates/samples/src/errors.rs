//! The error rate.

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
    /// Of a run with these faults, dials, and requests sent, missed and unanswered.
    pub fn new(faults: &[FaultCount], dials: u64, [sent, missed, unanswered]: [u64; 3]) -> Errors {
        let is_one = |f: &&FaultCount| !Fault::target(f.stage, f.kind).follows_response();
        let faults_at = |stages: &[Stage]| -> u64 {
            faults.iter().filter(is_one).filter(|f| stages.contains(&f.stage)).map(|f| f.count).sum()
        };
        let due = sent + missed;
        let (all, of_requests) = (faults_at(Stage::ALL), faults_at(&[Stage::Exchange]));
        Errors { count: all + unanswered + missed, of: if due > 0 { due + all - of_requests } else { dials } }
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

    /// (opened, failed) connections, (sent, missed, unanswered) requests, faults: errors and what they are of.
    fn check(opened: (u64, u64), due: (u64, u64, u64), faults: &[(Stage, Kind, u64)], expected: (u64, u64)) {
        let faults: Vec<FaultCount> =
            faults.iter().map(|(stage, kind, n)| FaultCount::new(Fault::target(*stage, *kind), *n)).collect();
        let errors = Errors::new(&faults, opened.0 + opened.1, [due.0, due.1, due.2]);
        assert_eq!((errors.count, errors.of), expected, "{opened:?} {due:?} {faults:?}");
    }

    #[test]
    fn errors_are_of_requests_and_of_what_kept_them_from_being_sent() {
        check((0, 0), (0, 0, 0), &[], (0, 0));
        check((10, 0), (1_000, 0, 0), &[], (0, 1_000));
        check((10, 0), (1_000, 5, 3), &[(Stage::Exchange, Kind::WrongStatus, 7)], (15, 1_005));
        check((10, 4), (1_000, 0, 0), &[(Stage::Dial, Kind::Refused, 4)], (4, 1_004));
        check(
            (10, 2),
            (100, 0, 0),
            &[(Stage::Tls, Kind::Expired, 2), (Stage::Hold, Kind::Closed, 1)],
            (3, 103),
        );
        // Each connection is dropped after its only request: half of all that happened failed.
        check((10, 0), (10, 0, 0), &[(Stage::Hold, Kind::Closed, 10)], (10, 20));
        // Of ten logins two are refused and one lacks the token; each of these connections ends.
        check(
            (10, 0),
            (10, 0, 0),
            &[
                (Stage::Exchange, Kind::WrongStatus, 2),
                (Stage::Hold, Kind::MissingValue, 2),
                (Stage::Exchange, Kind::MissingValue, 1),
            ],
            (3, 10),
        );
        // Connections on which nothing is sent.
        check((8, 2), (0, 0, 0), &[(Stage::Dial, Kind::Timeout, 2), (Stage::Hold, Kind::Reset, 3)], (5, 10));
        // All that was due failed: each once.
        check((0, 20), (0, 0, 0), &[(Stage::Dial, Kind::Refused, 20)], (20, 20));
        assert_eq!(Errors { count: 1, of: 8 }.share(), Some(0.125));
        assert_eq!(Errors::default().share(), None);
    }
}
