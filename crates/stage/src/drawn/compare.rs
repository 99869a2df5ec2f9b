//! Compares the client's books with the server's, and the verdict with both.

use plan::Plan;
use samples::{Fault, Kind, Rule, Tick, Verdict};
use units::Nanos;

use super::{
    books::{Books, Range},
    load::{Carries, Habit},
};
use crate::RunResult;

/// A played run.
pub(super) struct Played<'a> {
    pub(super) result: &'a RunResult,
    /// The sum of all ticks of all shards, including the probe's.
    pub(super) all: &'a Tick,
    /// Whether there is a probe.
    pub(super) has_probe: bool,
    pub(super) books: &'a Books,
    pub(super) habit: Habit,
    /// Whether its requests have bodies.
    pub(super) has_bodies: bool,
    /// Whether there is a layer (TLS).
    pub(super) has_layer: bool,
    /// Whether connections are held, instead of arriving for a number of requests.
    pub(super) is_held: bool,
    /// Whether only the server can make a dial slow.
    pub(super) is_prompt: bool,
    /// Dials counted by the network.
    pub(super) dials: u64,
    /// Bytes that were never read: from the client, and from the server.
    pub(super) unread: [u64; 2],
    /// The plans by which it is judged, one per threshold.
    pub(super) plans: &'a [(&'static str, Plan)],
    /// The most that a measured latency may exceed the server's time, if known.
    pub(super) slowest: Option<Nanos>,
}

impl Habit {
    /// The thresholds by which each run is judged; the first is none.
    pub(super) fn thresholds(self) -> &'static [&'static str] {
        match self.carries {
            Carries::Requests => {
                &["", "answered>=100%", "latency.p99<1m", "status.503==0", "status.200>=99%"]
            }
            Carries::Calls | Carries::Messages => &["", "answered>=100%", "latency.p99<1m"],
        }
    }
}

/// Maximum bytes of a head, a record or a server's part of a handshake.
const LONGEST_KEPT: u64 = 1_500;

/// Whether the fault is a record that cannot be opened, or is not allowed.
fn is_breach(fault: &Fault) -> bool {
    matches!(fault.detail.rule(), Some(Rule::RecordMac | Rule::TlsUnexpected))
}

impl Played<'_> {
    pub(super) fn compare(&self) {
        self.compare_requests();
        self.compare_connections();
        self.compare_bytes();
        self.compare_layers();
        self.compare_hardships();
        self.compare_verdicts();
    }

    fn compare_requests(&self) {
        let (t, b) = (self.all, self.books);
        let c = &t.counts;
        assert!(t.imbalance.is_none(), "{:?}", t.imbalance);
        assert_eq!(c.due, c.answered + c.failed_requests + c.unanswered + c.missed + c.revoked, "due: {c:?}");
        let settled = c.answered + c.failed_requests + c.unanswered + c.withdrawn + c.revoked;
        assert_eq!(c.sent, settled, "sent: {c:?}");
        assert!(b.received <= c.sent, "received: {c:?} {b:?}");
        assert!(self.fits(b.right, c.answered - c.wrong), "right responses: {c:?} {b:?}");
        assert!(self.fits(b.wrong, c.wrong), "wrong responses: {c:?} {b:?}");
        let most = if self.has_probe { b.received + b.doubtful } else { b.most_answered() };
        assert!(c.answered <= most, "responses: {c:?} {b:?}");
        for (status, &n) in t.status.iter().enumerate() {
            let own = b.of_status(status as u16);
            assert!(self.fits(own, n) || self.habit.is_echo(), "status {status}: {n}, {b:?}");
        }
        // The probe dials on demand and repeats requests that met the close of an idle connection.
        assert!(c.withdrawn <= b.excused || self.has_probe, "withdrawn: {c:?} {b:?}");
        let unserved = if self.has_probe { 0 } else { b.unserved };
        assert!(unserved <= c.failed_requests + c.unanswered, "failed and unanswered: {c:?} {b:?}");
    }

    /// Whether `n` responses agree with the server's count. The probe has its own timeout and expectation.
    fn fits(&self, counted: Range, n: u64) -> bool {
        (counted.sure..=counted.most() + self.books.doubtful).contains(&n) || self.has_probe
    }

    fn compare_connections(&self) {
        let (c, b) = (&self.all.counts, self.books);
        let connected = c.opened + c.redialled;
        assert_eq!(c.dialled, connected + c.failed + c.given_up, "dialled: {c:?}");
        assert_eq!(self.dials, c.dialled, "dials: {c:?}");
        assert!(
            (connected..=connected + c.failed + c.given_up).contains(&b.accepted),
            "accepted: {c:?} {b:?}"
        );
        assert!(c.closed <= b.announced || self.has_probe, "announced: {c:?} {b:?}");
        // Arrivals lose a connection that is closed before their last request, as announced or not.
        let lost = if self.is_held { b.blamed } else { b.blamed + b.announced };
        assert!(c.dropped <= lost, "lost: {c:?} {b:?}");
        assert!(c.dropped + c.failed <= lost || !self.is_prompt, "lost, and not opened: {c:?} {b:?}");
    }

    fn compare_bytes(&self) {
        let (c, b) = (&self.all.counts, self.books);
        let [by_client, by_server] = self.unread;
        let sent = b.bytes_in + b.partial_bytes + by_client;
        let counted = sent.saturating_sub(b.farewell_bytes())..=sent;
        // The part of an unfinished body, or of unread replies, that no window took is never sent.
        let is_right = if self.has_bodies || b.flooded > 0 {
            counted.start() <= &c.bytes_out
        } else {
            counted.contains(&c.bytes_out)
        };
        assert!(is_right, "bytes out: {sent}, {c:?} {b:?}");
        // Bytes kept of a partial head, record or handshake are counted when their connection ends; bytes that come in the turn
        // in which the client ends are not. What the client does not read of a flood never leaves the server.
        let kept = c.dialled * LONGEST_KEPT;
        let received = c.bytes_in + by_server;
        let most = if b.flooded > 0 { u64::MAX } else { received + kept };
        let is_right = (received..=most).contains(&b.bytes_out);
        assert!(is_right, "bytes in: {by_server} unread, {kept} kept, {c:?} {b:?}");
        assert!(self.all.answer_sizes.sum() <= c.bytes_in, "bytes of responses: {c:?}");
        let is_uniform = !self.habit.is_echo() && !self.habit.has_streams && !self.has_bodies;
        if is_uniform && self.has_layer {
            // The books include the overhead of sealing.
            assert!(c.sent * b.request_bytes <= c.bytes_out, "{c:?} {b:?}");
        } else if is_uniform && b.received > 0 {
            // Requests are alike: their number follows from their bytes, even for those that the server has not read.
            assert_eq!(c.sent * b.request_bytes, c.bytes_out, "{c:?} {b:?}");
            let unread = b.partial_bytes + by_client;
            assert_eq!(
                c.sent - b.received,
                unread / b.request_bytes,
                "received: {unread} unread, {c:?} {b:?}"
            );
        }
    }

    /// How throng handles the hardships of some servers, and its own stalls.
    fn compare_hardships(&self) {
        let (t, b) = (self.all, self.books);
        assert_eq!(b.borne, 0, "floods without an end: {b:?}");
        let is_odd = |fault: &Fault| fault.kind == Kind::BadAnswer;
        let odd: u64 = t.faults.iter().filter(|(fault, _)| is_odd(fault)).map(|(_, n)| n).sum();
        let is_certain = self.habit.is_http1() && !self.has_layer && !self.has_probe;
        assert!(odd <= b.odd || !is_certain, "no responses: {odd}, {:?} {b:?}", t.faults);
        // No server loses 2^32 messages between two that arrive.
        assert!(t.pushes.skipped <= t.pushes.numbered << 32, "skipped: {:?}", t.pushes);
        // With several stalls within a request, none is charged to the target.
        let times = [&t.latency, &t.ramp_latency];
        let most =
            times.into_iter().filter_map(|times| times.quantiles().stalled).map(|stalled| stalled.most);
        let (most, least) = (most.fold(0.0, f64::max), b.taken_off.iter().max());
        let has_taken = least.is_none_or(|least| most >= least.0 as f64 / 1e3);
        assert!(has_taken, "a stall is not throng's: {most} us < {least:?}, {:?}", b.standstill);
        // Withdrawn requests wait for another connection.
        if let Some(slowest) = self.slowest.filter(|_| t.counts.redialled == 0) {
            assert!(
                t.latency.max() <= b.longest + slowest,
                "{} > {} + {slowest}",
                t.latency.max(),
                b.longest
            );
        }
    }

    /// The client sends the alerts and close_notify that the layer requires.
    fn compare_layers(&self) {
        let b = self.books;
        // A flood blocks what either side has to send.
        if b.flooded > 0 {
            return;
        }
        assert_eq!((b.unsaid, b.ignored), (0, 0), "{b:?}");
        // Each request under way on such a connection has failed. No alert follows a body that a full window has not taken.
        let breaches: u64 =
            self.all.faults.iter().filter(|(fault, _)| is_breach(fault)).map(|(_, n)| n).sum();
        let least = match (self.has_bodies, self.habit.has_streams) {
            (true, _) => 0,
            (false, true) => breaches.min(1),
            (false, false) => breaches,
        };
        assert!((least..=breaches).contains(&b.alerts), "alerts: {breaches}, {b:?}");
    }

    fn compare_verdicts(&self) {
        let (t, b) = (&self.result.whole, self.books);
        let c = &t.counts;
        let due = c.due - c.revoked;
        let right = c.answered - c.wrong;
        for (threshold, plan) in self.plans {
            let s = self.result.judge(plan);
            let r = &s.requests;
            let sum = r.answered + r.failed + r.unanswered + r.missed + r.lost;
            assert_eq!(r.due, sum, "{r:?}");
            // A fixed number of requests includes those that no shard came to, if the load ended before they were due.
            let never_due = r.due - due;
            let number = plan.populations[0].requests;
            assert!(never_due == 0 || number == Some(r.due) && never_due == r.missed - c.missed, "{r:?}");
            let due = r.due;
            let unbalanced = s.reasons.iter().find(|reason| reason.contains("do not balance"));
            assert_eq!(unbalanced, None);
            let may_pass = match *threshold {
                "" => {
                    right == due
                        && c.given_up == 0
                        && b.right.most() + b.doubtful >= due
                        && s.faults.is_empty()
                }
                "answered>=100%" => c.answered == due && b.most_answered() >= due,
                "status.503==0" => c.answered > 0 && (b.of_status(503).sure == 0 || self.has_probe),
                "status.200>=99%" => (b.of_status(200).most() + b.doubtful) * 100 >= due * 99,
                _ => {
                    let lost = due.saturating_sub(b.most_answered());
                    let in_ramp = t.ramp_latency.count() + t.ramp_latency.censored();
                    lost.saturating_sub(in_ramp) * 100 <= due
                }
            };
            let passes = s.verdict == Verdict::Pass;
            assert!(may_pass || !passes, "passes by {threshold:?}: {:?} {c:?} {b:?}", s.headline);
            // What the server did wrong is a failure, however late throng was.
            let is_wrong = threshold.is_empty() && b.wrong.sure > 0 && !self.has_probe;
            assert!(s.verdict == Verdict::Fail || !is_wrong, "{}: {:?} {b:?}", s.verdict.name(), s.reasons);
            let is_good = b.right.sure == b.received && due == right && due > 0 && s.faults.is_empty();
            let is_good = is_good && c.dropped + c.closed == 0 && t.latency.count() > 0;
            assert!(passes || !is_good || c.given_up + c.failed > 0, "{threshold:?}: {:?} {c:?}", s.reasons);
        }
    }
}
