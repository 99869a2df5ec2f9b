//! The books of the drawn server, to be compared with the client's.

use std::collections::BTreeMap;

use engine::Job;
use samples::Tick;
use units::Nanos;

/// Timer wheels tick in milliseconds; a timer may be this late on either side.
pub(super) const SLACK: Nanos = Nanos::from_millis(5);

/// A request that waited longer did not cross with the close of its connection: `LONGEST_UNREAD` of the client.
pub(super) const CROSSING: Nanos = Nanos::from_secs(1);

/// From the order to the client to end until its run is over, with a margin.
const ENDING: Nanos = Nanos::from_millis(600);

/// A number of events: those that the client surely saw, and those that it may have seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Range {
    pub(super) sure: u64,
    pub(super) perhaps: u64,
}

impl Range {
    pub(super) fn most(self) -> u64 {
        self.sure + self.perhaps
    }

    fn count(&mut self, is_sure: bool) {
        *if is_sure { &mut self.sure } else { &mut self.perhaps } += 1;
    }
}

/// The counts of the server.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Connections accepted.
    pub(super) accepted: u64,
    /// Connections whose end the server announced.
    pub(super) announced: u64,
    /// Connections that the client may count as lost: the server closed them, or failed to respond rightly and in time.
    pub(super) blamed: u64,
    /// Complete requests; an upgrade is part of a dial.
    pub(super) received: u64,
    /// Responses that were complete, in time and as expected.
    pub(super) right: Range,
    /// Responses that were complete and in time, but not as expected.
    pub(super) wrong: Range,
    /// Both, by status.
    pub(super) statuses: BTreeMap<u16, Range>,
    /// Requests on connections on which any bytes may be taken for a response: right, wrong or none.
    pub(super) doubtful: u64,
    /// Requests that may have met an announced close.
    pub(super) excused: u64,
    /// Requests that surely had no response, nor met an announced end: none of them is due again.
    pub(super) unserved: u64,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    /// Closing messages among the bytes received: time and length. At the end of the run, the client does not count them.
    farewells: Vec<(Nanos, u64)>,
    /// Size of the first request, where all have the same.
    pub(super) request_bytes: u64,
    /// Whether the client has ended its run.
    is_over: bool,
    /// Over a layer: connections on which the client sent an alert, and those that it ended in good order without close_notify.
    pub(super) alerts: u64,
    pub(super) unsaid: u64,
    /// Connections on which the server sent close_notify or unreadable data, and which the client has not ended.
    pub(super) ignored: u64,
    /// Connections that the server flooded, and those of them that the client has not ended.
    pub(super) flooded: u64,
    pub(super) borne: u64,
    /// Connections on which input arrived that is not a response.
    pub(super) odd: u64,
    /// The longest time from a complete request to its complete response.
    pub(super) longest: Nanos,
    pub(super) standstill: Standstill,
    /// For each right response that the client surely reads after a stall: the least that it must subtract.
    pub(super) taken_off: Vec<Nanos>,
    /// Bytes of requests that were incomplete when their connection ended.
    pub(super) partial_bytes: u64,
}

/// Times between the two sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// One-way delay; the maximum is never if segments may be lost.
    pub(super) least: Nanos,
    pub(super) most: Nanos,
    /// The client's timeout, and by how much its stalls extend it.
    pub(super) timeout: Nanos,
    pub(super) stalled: Nanos,
    /// The longest that a request which meets an announced close may have waited.
    pub(super) crossing: Nanos,
    /// The longest time to send a request with its body.
    pub(super) upload: Nanos,
}

impl Times {
    /// Whether a client should have reacted by now to an end announced at `ended`.
    pub(super) fn is_ignored(self, ended: Nanos, now: Nanos) -> bool {
        now.since(ended).0 > self.most.0.saturating_mul(2).saturating_add(ENDING.0)
    }
}

/// When the client stands still, from which its server knows what it must subtract from latencies.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    pub(super) stalls: Vec<(Nanos, Nanos)>,
    /// Minimum and maximum delay of a response.
    pub(super) delay: (Nanos, Nanos),
}

impl Standstill {
    /// The least that the client subtracts for a request that arrived at `asked` and had its response at `done`; `None` unless
    /// the response surely arrives in a stall and before the timeout. It is read when that stall ends, and no stall until then is
    /// charged to the server.
    pub(super) fn taken_off(&self, asked: Nanos, done: Nanos, times: Times) -> Option<Nanos> {
        let (first, last) = (done + self.delay.0, done + self.delay.1);
        let nth = self.stalls.iter().position(|(from, until)| *from <= first && last < *until)?;
        let (_, read) = self.stalls[nth];
        let of_it = || self.stalls.iter().filter(|(_, until)| (asked..=read).contains(until));
        let stalled = Nanos(of_it().map(|(from, until)| until.since(asked.max(*from)).0).sum());
        // A stall counts from when the thread wanted its next turn: it checks for orders this often.
        let unknown = |stalls: usize| Nanos(stalls as u64 * Job::PERIOD.0 / 2);
        let rest = Nanos(read.since(asked).0 - stalled.0) + unknown(nth + 1);
        let is_in_time = rest + self.delay.1 + times.upload + SLACK < times.timeout;
        let taken_off = stalled.since(unknown(of_it().count()));
        (is_in_time && taken_off >= Tick::STALL).then_some(taken_off)
    }
}

/// A request without a response so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Number of its stream, if there are several.
    pub(super) id: u32,
    pub(super) at: Nanos,
    /// The client will have a part of the response when it sees the end of the connection: the request is not due again.
    pub(super) has_part: bool,
}

/// A completed response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// Its status; `None` if the protocol has none.
    pub(super) status: Option<u16>,
    pub(super) is_right: bool,
    /// Whether the client surely takes it for a response.
    pub(super) is_sure: bool,
}

/// The page of one connection in the books.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) asked: Vec<Asked>,
    /// Since when its end is announced; zero: at once, for good.
    announced: Option<Nanos>,
    has_announced: bool,
    is_blamed: bool,
    /// Whether output may be taken for something else.
    is_in_doubt: bool,
    /// Whether requests may have waited long before it was accepted.
    is_slow: bool,
    /// Whether requests with a body may have begun that are incomplete.
    has_uploads: bool,
    /// Sure responses that may still be under way.
    recent: Vec<Recent>,
}

/// A response, completed at `done`.
#[derive(Debug)]
struct Recent {
    done: Nanos,
    outcome: Outcome,
    taken_off: Option<Nanos>,
}

impl Books {
    /// The most responses that the client may have counted.
    pub(super) fn most_answered(&self) -> u64 {
        self.right.most() + self.wrong.most() + self.doubtful
    }

    /// Responses with this status.
    pub(super) fn of_status(&self, status: u16) -> Range {
        self.statuses.get(&status).copied().unwrap_or_default()
    }

    /// Counts a complete request.
    pub(super) fn received(&mut self, page: &mut Page, asked: Asked, bytes: usize) {
        self.received += 1;
        if self.request_bytes == 0 {
            self.request_bytes = bytes as u64;
        }
        page.asked.push(asked);
    }

    /// Counts the response to `id`: it has been handed to the network completely.
    pub(super) fn completed(
        &mut self,
        page: &mut Page,
        id: u32,
        mut outcome: Outcome,
        now: Nanos,
        times: Times,
    ) {
        let Some(at) = page.asked.iter().position(|asked| asked.id == id) else { return };
        let asked = page.asked.remove(at).at;
        let waited = now.since(asked);
        self.longest = self.longest.max(waited);
        let way = |way: Nanos| Nanos(way.0.saturating_mul(2));
        let is_late = waited + way(times.least) > times.timeout + times.stalled + SLACK;
        let in_time = !page.is_slow
            && waited.0.saturating_add(way(times.most).0).saturating_add(times.upload.0 + SLACK.0)
                < times.timeout.0;
        page.is_blamed |= !in_time || !outcome.is_right;
        // An announcement belongs to the response it came with.
        page.announced = page.announced.filter(|from| *from == Nanos::ZERO);
        if is_late || page.is_in_doubt {
            self.doubtful += u64::from(page.is_in_doubt);
            self.unserved += u64::from(is_late && !page.is_in_doubt);
            return;
        }
        let is_read = outcome.is_sure && outcome.is_right && !page.is_slow && !self.is_over;
        let taken_off = is_read.then(|| self.standstill.taken_off(asked, now, times)).flatten();
        self.taken_off.extend(taken_off);
        outcome.is_sure &= in_time && !self.is_over;
        self.count(outcome);
        let kept = way(times.most).0.saturating_add(SLACK.0).max(ENDING.0);
        page.recent.retain(|recent| now.since(recent.done).0 <= kept);
        page.recent.push(Recent { done: now, outcome, taken_off });
    }

    fn count(&mut self, Outcome { status, is_right, is_sure }: Outcome) {
        let own = if is_right { &mut self.right } else { &mut self.wrong };
        own.count(is_sure);
        status.into_iter().for_each(|status| self.statuses.entry(status).or_default().count(is_sure));
    }

    fn doubt(&mut self, Outcome { status, is_right, is_sure }: Outcome) {
        if !is_sure {
            return;
        }
        let own = if is_right { &mut self.right } else { &mut self.wrong };
        let status = status.and_then(|status| self.statuses.get_mut(&status));
        for range in [Some(own), status].into_iter().flatten() {
            range.sure -= 1;
            range.perhaps += 1;
        }
    }

    /// The server floods the connection: what is under way may arrive when the client has ended it.
    pub(super) fn flooded(&mut self, page: &mut Page, now: Nanos, times: Times, crossing: u64) {
        self.flooded += 1;
        // Requests that the server does not read may meet an announced end.
        self.excused += crossing;
        // Whether the end is seen or not.
        self.blamed += 1;
        page.blame();
        page.slow_down();
        self.doubt_recent(page, now, times.most.0.saturating_mul(2).saturating_add(SLACK.0));
    }

    /// An idle connection is closed with a 408, which a request under way may take for its response.
    pub(super) fn time_out(&mut self, page: &mut Page) {
        self.announced(page, Nanos::ZERO);
        self.doubtful += 1;
    }

    /// The requests selected by `which` get no response; `is_excused`: they may be due again.
    pub(super) fn forget(&mut self, page: &mut Page, which: impl Fn(u32) -> bool, is_excused: bool) {
        let before = page.asked.len();
        page.asked.retain(|asked| !which(asked.id));
        let forgotten = before - page.asked.len();
        let forgotten = forgotten as u64;
        match is_excused {
            true => self.excused += forgotten,
            false if page.is_in_doubt => {}
            false => self.unserved += forgotten,
        }
        self.doubtful += if page.is_in_doubt { forgotten } else { 0 };
        page.is_blamed |= forgotten > 0;
    }

    /// The end of the connection is announced from `from` on.
    pub(super) fn announced(&mut self, page: &mut Page, from: Nanos) {
        self.announced += u64::from(!std::mem::replace(&mut page.has_announced, true));
        page.announced = Some(page.announced.map_or(from, |before| before.min(from)));
    }

    /// The server closed the connection; up to `crossing` requests may be under way to it.
    pub(super) fn closed(&mut self, page: &mut Page, now: Nanos, times: Times, crossing: u64) {
        self.blamed += 1;
        self.leave_in_doubt(page, crossing);
        self.excuse(page, now, times, crossing);
        page.asked.clear();
    }

    /// Counts the requests without a response that may be due again, because they crossed with the announced end.
    fn excuse(&mut self, page: &Page, now: Nanos, times: Times, crossing: u64) {
        let Some(from) = page.announced else { return self.leave_unserved(page, |_| true) };
        let tolerance = times.most.0.saturating_mul(2).saturating_add(100_000_000);
        let may_cross = |asked: &&Asked| {
            !asked.has_part
                && now.since(asked.at).0 <= times.crossing.0.saturating_add(tolerance)
                && asked.at.0.saturating_add(tolerance) >= from.0
        };
        self.excused += page.asked.iter().filter(may_cross).count() as u64;
        self.leave_unserved(page, |asked| !may_cross(&asked));
        if now.0.saturating_add(tolerance) >= from.0 {
            // Requests that await a response occupy places that others under way cannot have.
            self.excused += crossing.saturating_sub(page.asked.len() as u64);
        }
    }

    /// A connection on which any bytes may be taken for a response has ended: requests under way to it may have one, too.
    fn leave_in_doubt(&mut self, page: &Page, crossing: u64) {
        if page.is_in_doubt {
            self.doubtful += page.asked.len() as u64 + crossing;
            self.odd += 1;
        }
    }

    /// Counts the requests without a response that are not due again.
    fn leave_unserved(&mut self, page: &Page, is_one: impl Fn(&Asked) -> bool) {
        if !page.is_in_doubt {
            self.unserved += page.asked.iter().filter(|asked| is_one(asked)).count() as u64;
        }
    }

    /// The client ended the connection: what was under way to it may be unread.
    pub(super) fn gone(&mut self, page: &mut Page, now: Nanos, times: Times, crossing: u64) {
        self.blamed += u64::from(page.is_blamed || page.has_uploads || !page.asked.is_empty());
        self.leave_in_doubt(page, crossing);
        page.asked.iter_mut().for_each(|asked| asked.has_part = false);
        // Only a close announced for at once lets the client end a connection on which requests wait.
        page.announced = page.announced.filter(|from| *from == Nanos::ZERO);
        self.excuse(page, now, times, if page.has_uploads { crossing } else { 0 });
        page.asked.clear();
        self.doubt_recent(page, now, times.most.0.saturating_mul(2).saturating_add(SLACK.0));
    }

    /// Counts the bytes of a closing message.
    pub(super) fn farewell(&mut self, now: Nanos, bytes: u64) {
        self.farewells.push((now, bytes));
    }

    /// Bytes of the closing messages at the end of the run.
    pub(super) fn farewell_bytes(&self) -> u64 {
        self.farewells.iter().map(|(_, bytes)| bytes).sum()
    }

    /// The client has ended its run.
    pub(super) fn end(&mut self, page: &mut Page, now: Nanos, times: Times, crossing: u64) {
        self.is_over = true;
        self.farewells.retain(|(at, _)| now.since(*at) <= ENDING);
        page.asked.iter_mut().for_each(|asked| asked.has_part = false);
        // Including requests under way: unsolicited bytes may be taken for their replies.
        self.leave_in_doubt(page, crossing);
        self.excuse(page, now, times, if page.has_uploads { crossing } else { 0 });
        page.asked.clear();
        self.doubt_recent(page, now, times.most.0.saturating_mul(2).saturating_add(ENDING.0));
    }

    fn doubt_recent(&mut self, page: &mut Page, now: Nanos, within_ns: u64) {
        for Recent { done, outcome, taken_off } in page.recent.drain(..) {
            if now.since(done).0 <= within_ns {
                self.doubt(outcome);
                if let Some(at) = self.taken_off.iter().position(|other| Some(*other) == taken_off) {
                    self.taken_off.swap_remove(at);
                }
            }
        }
    }
}

impl Page {
    /// The page of an accepted connection; `is_slow`: perhaps long after it was dialled.
    pub(super) fn new(is_slow: bool) -> Page {
        Page { is_slow, ..Page::default() }
    }

    /// Whether this request is still open.
    pub(super) fn has(&self, id: u32) -> bool {
        self.asked.iter().any(|asked| asked.id == id)
    }

    /// Part of the response to this request was sent.
    pub(super) fn has_part(&mut self, id: u32) {
        self.asked.iter_mut().filter(|asked| asked.id == id).for_each(|asked| asked.has_part = true);
    }

    /// Output from now on, and what was just sent, may be taken for something else.
    pub(super) fn doubt(&mut self) {
        self.is_in_doubt = true;
        self.is_blamed = true;
    }

    /// A request with a body has begun.
    pub(super) fn upload(&mut self) {
        self.has_uploads = true;
    }

    /// Input from now on may have been sent long before.
    pub(super) fn slow_down(&mut self) {
        self.is_slow = true;
    }

    /// The client has reason to count the connection as lost.
    pub(super) fn blame(&mut self) {
        self.is_blamed = true;
    }
}
