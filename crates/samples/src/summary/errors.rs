//! The error rate.

use crate::{counts::Counts, merge::merged};

merged! {
    /// What failed, and of how much: the error rate.
    #[derive(Copy)]
    pub struct Errors {
        /// Requests due without a right response, and what failed of connections on which none was due.
        pub count: u64,
        /// Requests due, and what failed of connections on which none was due; where no request was due at all, dials.
        pub of: u64,
    }
}

impl Errors {
    /// The error rate for these counts.
    pub fn new(counts: &Counts) -> Errors {
        let of_connections = counts.connection_faults + counts.given_up;
        let count = counts.wrong + counts.without_response() + of_connections;
        let of = match counts.due() {
            0 => counts.opened + counts.failed + counts.given_up,
            due => due + of_connections,
        };
        Errors { count, of }
    }

    /// The rate as a share (0..=1); `None` if nothing was due.
    pub fn share(&self) -> Option<f64> {
        (self.of > 0).then(|| self.count as f64 / self.of as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_of_what_was_due_and_of_what_kept_it_from_being_due() {
        let check = |set: &dyn Fn(&mut Counts), expected: (u64, u64)| {
            let mut counts = Counts::default();
            set(&mut counts);
            let errors = Errors::new(&counts);
            assert_eq!((errors.count, errors.of), expected, "{counts:?}");
        };
        check(&|_| {}, (0, 0));
        check(&|c| (c.opened, c.due, c.answered) = (10, 1_000, 1_000), (0, 1_000));
        // Each request counts once, whatever happened to it.
        check(
            &|c| {
                (c.due, c.sent, c.answered, c.wrong) = (1_010, 1_005, 990, 7);
                (c.failed_requests, c.unanswered, c.missed) = (12, 3, 5);
            },
            (27, 1_010),
        );
        // Requests ended by throng were not due.
        check(&|c| (c.due, c.sent, c.answered, c.revoked) = (12, 12, 10, 2), (0, 10));
        // Dials without a due request.
        check(&|c| (c.opened, c.failed, c.connection_faults, c.due) = (10, 4, 4, 1_000), (4, 1_004));
        // The load ended while three were being dialled.
        check(&|c| (c.opened, c.given_up, c.due, c.answered) = (10, 3, 100, 100), (3, 103));
        // Connections on which nothing is sent.
        check(&|c| (c.opened, c.failed, c.connection_faults) = (8, 2, 5), (5, 10));
        check(&|c| (c.failed, c.connection_faults) = (20, 20), (20, 20));
        assert_eq!(Errors { count: 1, of: 8 }.share(), Some(0.125));
        assert_eq!(Errors::default().share(), None);
    }
}
