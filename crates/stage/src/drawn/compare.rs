//! The client's books against the server's, and the verdict against both.

use plan::Plan;
use samples::{Tick, Verdict};

use super::{books::Books, load::Habit};
use crate::RunResult;

/// What has been played.
pub(super) struct Played<'a> {
    pub(super) result: &'a RunResult,
    pub(super) books: &'a Books,
    pub(super) habit: Habit,
    /// Its requests have bodies.
    pub(super) has_bodies: bool,
    /// Its connections stay, instead of coming for a number of requests.
    pub(super) is_held: bool,
    /// As the network has counted them.
    pub(super) dials: u64,
    /// Bytes that nobody read: the client's, and the server's.
    pub(super) unread: [u64; 2],
    /// How it is judged: without a threshold, and by each of [`THRESHOLDS`].
    pub(super) plans: &'a [Plan],
}

/// By what each run is judged besides.
pub(super) const THRESHOLDS: [&str; 2] = ["answered>=100%", "latency.p99<1m"];

impl Played<'_> {
    pub(super) fn compare(&self) {
        self.compare_requests();
        self.compare_connections();
        self.compare_bytes();
        self.compare_verdicts();
    }

    fn tick(&self) -> &Tick {
        &self.result.whole
    }

    fn compare_requests(&self) {
        let (t, b) = (self.tick(), self.books);
        let c = &t.counts;
        assert!(t.imbalance.is_none(), "{:?}", t.imbalance);
        assert_eq!(c.due, c.answered + c.failed_requests + c.unanswered + c.missed + c.revoked, "due: {c:?}");
        let settled = c.answered + c.failed_requests + c.unanswered + c.withdrawn + c.revoked;
        assert_eq!(c.sent, settled, "sent: {c:?}");
        assert!(b.received <= c.sent, "received: {c:?} {b:?}");
        let doubtful = b.doubtful;
        assert!(b.right.contains(c.answered - c.wrong, doubtful), "right responses: {c:?} {b:?}");
        assert!(b.wrong.contains(c.wrong, doubtful), "wrong responses: {c:?} {b:?}");
        assert!(c.answered <= b.most_answered(), "responses: {c:?} {b:?}");
        for (status, &n) in t.status.iter().enumerate() {
            let own = b.statuses.get(&(status as u16)).copied().unwrap_or_default();
            assert!(own.contains(n, doubtful) || self.habit.is_echo(), "status {status}: {n}, {b:?}");
        }
        assert!(c.withdrawn <= b.excused, "withdrawn: {c:?} {b:?}");
        assert!(b.unserved <= c.failed_requests + c.unanswered, "failed and unanswered: {c:?} {b:?}");
    }

    fn compare_connections(&self) {
        let (c, b) = (&self.tick().counts, self.books);
        let connected = c.opened + c.redialled;
        assert_eq!(c.dialled, connected + c.failed + c.given_up, "dialled: {c:?}");
        assert_eq!(self.dials, c.dialled, "dials: {c:?}");
        assert!(
            (connected..=connected + c.failed + c.given_up).contains(&b.accepted),
            "accepted: {c:?} {b:?}"
        );
        assert!(c.closed <= b.announced, "announced: {c:?} {b:?}");
        // Who comes for some requests has lost a connection that is closed before, as announced or not.
        let lost = if self.is_held { b.blamed } else { b.blamed + b.announced };
        assert!(c.dropped <= lost, "lost: {c:?} {b:?}");
    }

    fn compare_bytes(&self) {
        let (c, b) = (&self.tick().counts, self.books);
        let [by_client, by_server] = self.unread;
        let sent = b.bytes_in + b.partial_bytes + by_client;
        let counted = sent.saturating_sub(b.farewell_bytes)..=sent;
        // Of a body that does not end, what a window did not take is never sent.
        let is_right =
            if self.has_bodies { counted.start() <= &c.bytes_out } else { counted.contains(&c.bytes_out) };
        assert!(is_right, "bytes out: {sent}, {c:?} {b:?}");
        assert!(c.bytes_in + by_server <= b.bytes_out, "bytes in: {by_server} unread, {c:?} {b:?}");
        let is_uniform = !self.habit.is_echo() && !self.habit.has_streams && !self.has_bodies;
        if is_uniform && b.received > 0 {
            // Requests are alike: their number follows from their bytes, also of those that the server has not read.
            assert_eq!(c.sent * b.request_bytes, c.bytes_out, "{c:?} {b:?}");
            let unread = b.partial_bytes + by_client;
            assert_eq!(
                c.sent - b.received,
                unread / b.request_bytes,
                "received: {unread} unread, {c:?} {b:?}"
            );
        }
    }

    fn compare_verdicts(&self) {
        let (t, b) = (self.tick(), self.books);
        let c = &t.counts;
        let due = c.due - c.revoked;
        let right = c.answered - c.wrong;
        for (plan, threshold) in self.plans.iter().zip([""].into_iter().chain(THRESHOLDS)) {
            let s = self.result.judge(plan);
            let r = &s.requests;
            let sum = r.answered + r.failed + r.unanswered + r.missed + r.lost;
            assert_eq!(r.due, sum, "{r:?}");
            // Of a number of requests also those that no shard came to, where the load has ended before they were due.
            let never_due = r.due - due;
            let number = plan.populations[0].requests;
            assert!(never_due == 0 || number == Some(r.due) && never_due == r.missed - c.missed, "{r:?}");
            let due = r.due;
            let unbalanced = s.reasons.iter().find(|reason| reason.contains("do not balance"));
            assert_eq!(unbalanced, None);
            let may_pass = match threshold {
                "" => {
                    right == due
                        && c.given_up == 0
                        && b.right.most() + b.doubtful >= due
                        && s.faults.is_empty()
                }
                "answered>=100%" => c.answered == due && b.most_answered() >= due,
                _ => {
                    let lost = due.saturating_sub(b.most_answered());
                    let in_ramp = t.ramp_latency.count() + t.ramp_latency.censored();
                    lost.saturating_sub(in_ramp) * 100 <= due
                }
            };
            let passes = s.verdict == Verdict::Pass;
            assert!(may_pass || !passes, "passes by {threshold:?}: {:?} {c:?} {b:?}", s.headline);
            let is_good = b.right.sure == b.received && due == right && due > 0 && s.faults.is_empty();
            let is_good = is_good && c.dropped + c.closed == 0 && t.latency.count() > 0;
            assert!(passes || !is_good || c.given_up + c.failed > 0, "{threshold:?}: {:?} {c:?}", s.reasons);
        }
    }
}
