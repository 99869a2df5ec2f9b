//! What the drawn server has counted: the other side of the client's books.

use std::collections::BTreeMap;

use units::Nanos;

use super::hard::Standstill;

/// Wheels tick in milliseconds, and a timer may come that much late at either end.
pub(super) const SLACK: Nanos = Nanos::from_millis(5);

/// A request that has waited for longer did not cross with the close of its connection: the client's `CROSSING`.
pub(super) const CROSSING: Nanos = Nanos::from_secs(1);

/// From the time at which the client is told to end to that at which its run is over, and a little.
const ENDING: Nanos = Nanos::from_millis(600);

/// Of how many it is certain what the client saw, and of how many it is not.
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

/// All that the server has counted.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Connections.
    pub(super) accepted: u64,
    /// Those whose end the server has announced.
    pub(super) announced: u64,
    /// Those that the client may call lost: the server has closed them, or not responded rightly and in time on them.
    pub(super) blamed: u64,
    /// Whole requests; an upgrade is part of a dial.
    pub(super) received: u64,
    /// Requests whose response was complete, in time and as expected.
    pub(super) right: Range,
    /// The same, but not as expected.
    pub(super) wrong: Range,
    /// Of both, by status.
    pub(super) statuses: BTreeMap<u16, Range>,
    /// Requests on connections on which anything may be taken for a response: right, wrong or none.
    pub(super) doubtful: u64,
    /// Requests that may have met an announced close.
    pub(super) excused: u64,
    /// Requests that surely had no response, nor an end that was announced when they were sent: none of them is due again.
    pub(super) unserved: u64,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    /// Of those that came in, the ones that say goodbye, and when: in the end a client counts them no more.
    farewells: Vec<(Nanos, u64)>,
    /// Of the first request, where all are alike.
    pub(super) request_bytes: u64,
    /// The client has ended its run.
    is_over: bool,
    /// Over a layer: connections on which the client has said that what it was sent is not right; and those that it has ended in good order
    /// without saying so.
    pub(super) alerts: u64,
    pub(super) unsaid: u64,
    /// Those on which the server has said that it sends nothing more, or what cannot be read, and that the client has not ended.
    pub(super) ignored: u64,
    /// Connections that the server floods, and those of them that the client has not ended.
    pub(super) flooded: u64,
    pub(super) borne: u64,
    /// Connections on which something came that is no response.
    pub(super) odd: u64,
    /// The longest from a whole request to its whole response.
    pub(super) longest: Nanos,
    pub(super) standstill: Standstill,
    /// Of each right response that the client surely reads after a stall: what it takes off it at least.
    pub(super) taken_off: Vec<Nanos>,
    /// Bytes of requests that were not complete when their connection ended.
    pub(super) partial_bytes: u64,
}

/// How long things take between the two sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// One way; never, where segments may be lost.
    pub(super) least: Nanos,
    pub(super) most: Nanos,
    /// The client's, and by how much it is longer where the client stands still.
    pub(super) timeout: Nanos,
    pub(super) stalled: Nanos,
    /// For how long a request may have waited that meets an announced close.
    pub(super) crossing: Nanos,
    /// The most that a request takes to leave, with its body.
    pub(super) upload: Nanos,
}

impl Times {
    /// Whether a client should have acted by now on an end that was announced then.
    pub(super) fn is_ignored(self, ended: Nanos, now: Nanos) -> bool {
        now.since(ended).0 > self.most.0.saturating_mul(2).saturating_add(ENDING.0)
    }
}

/// A request without a response so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Of its stream, where there are several.
    pub(super) id: u32,
    pub(super) at: Nanos,
    /// The client has a part of its response by the time at which it sees the end of the connection: it is not due again.
    pub(super) has_part: bool,
}

/// A response that was completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// None is counted where there is none.
    pub(super) status: Option<u16>,
    pub(super) is_right: bool,
    /// Whether the client surely takes it for a response.
    pub(super) is_sure: bool,
}

/// One connection's page.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) asked: Vec<Asked>,
    /// From when on its end is announced: zero is at once, and stays so.
    announced: Option<Nanos>,
    has_announced: bool,
    is_blamed: bool,
    /// What is sent on it may be taken for something else.
    is_in_doubt: bool,
    /// Requests may have waited for long before it was accepted.
    is_slow: bool,
    /// Requests may have begun that are not complete.
    has_uploads: bool,
    /// Sure responses that may be under way.
    recent: Vec<Recent>,
}

/// A response that was completed at this time.
#[derive(Debug)]
struct Recent {
    done: Nanos,
    outcome: Outcome,
    taken_off: Option<Nanos>,
}

impl Books {
    /// The most responses that the client may have.
    pub(super) fn most_answered(&self) -> u64 {
        self.right.most() + self.wrong.most() + self.doubtful
    }

    /// Of responses with this status.
    pub(super) fn of_status(&self, status: u16) -> Range {
        self.statuses.get(&status).copied().unwrap_or_default()
    }

    /// A request is complete.
    pub(super) fn received(&mut self, page: &mut Page, asked: Asked, bytes: usize) {
        self.received += 1;
        if self.request_bytes == 0 {
            self.request_bytes = bytes as u64;
        }
        page.asked.push(asked);
    }

    /// The response to `id` has been handed to the network, whole.
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
        // An announcement is of the response that it came with.
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

    /// The server floods it: what is under way may come when the client has ended it.
    pub(super) fn flooded(&mut self, page: &mut Page, now: Nanos, times: Times, crossing: u64) {
        self.flooded += 1;
        // Requests that it does not read may meet an end that it announces.
        self.excused += crossing;
        // Whether its end is seen or not.
        self.blamed += 1;
        page.blame();
        page.slow_down();
        self.doubt_recent(page, now, times.most.0.saturating_mul(2).saturating_add(SLACK.0));
    }

    /// An idle connection is closed with a 408: a request that meets that may take it for its response.
    pub(super) fn time_out(&mut self, page: &mut Page) {
        self.announced(page, Nanos::ZERO);
        self.doubtful += 1;
    }

    /// Some requests get no response; whether they may be due again.
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

    /// The end of the connection is announced, from then on.
    pub(super) fn announced(&mut self, page: &mut Page, from: Nanos) {
        self.announced += u64::from(!std::mem::replace(&mut page.has_announced, true));
        page.announced = Some(page.announced.map_or(from, |before| before.min(from)));
    }

    /// Closed by the server; up to `crossing` requests may be under way to it.
    pub(super) fn closed(&mut self, page: &mut Page, now: Nanos, times: Times, crossing: u64) {
        self.blamed += 1;
        self.leave_in_doubt(page, crossing);
        self.excuse(page, now, times, crossing);
        page.asked.clear();
    }

    /// Requests without a response that are due again: they may have crossed with the announced end.
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
            // Those that wait for a response have places that no other can have.
            self.excused += crossing.saturating_sub(page.asked.len() as u64);
        }
    }

    /// The end of a connection on which anything may be taken for a response: also what is under way to it may have one.
    fn leave_in_doubt(&mut self, page: &Page, crossing: u64) {
        if page.is_in_doubt {
            self.doubtful += page.asked.len() as u64 + crossing;
            self.odd += 1;
        }
    }

    /// Those of the requests without a response that are not due again.
    fn leave_unserved(&mut self, page: &Page, is_one: impl Fn(&Asked) -> bool) {
        if !page.is_in_doubt {
            self.unserved += page.asked.iter().filter(|asked| is_one(asked)).count() as u64;
        }
    }

    /// Ended by the client: what was under way to it may not have been read.
    pub(super) fn gone(&mut self, page: &mut Page, now: Nanos, times: Times, crossing: u64) {
        self.blamed += u64::from(page.is_blamed || page.has_uploads || !page.asked.is_empty());
        self.leave_in_doubt(page, crossing);
        page.asked.iter_mut().for_each(|asked| asked.has_part = false);
        // Only a close that was announced for at once lets it end a connection on which requests wait.
        page.announced = page.announced.filter(|from| *from == Nanos::ZERO);
        self.excuse(page, now, times, if page.has_uploads { crossing } else { 0 });
        page.asked.clear();
        self.doubt_recent(page, now, times.most.0.saturating_mul(2).saturating_add(SLACK.0));
    }

    /// Bytes have come that say goodbye.
    pub(super) fn farewell(&mut self, now: Nanos, bytes: u64) {
        self.farewells.push((now, bytes));
    }

    /// Of them, those of the end.
    pub(super) fn farewell_bytes(&self) -> u64 {
        self.farewells.iter().map(|(_, bytes)| bytes).sum()
    }

    /// The client has ended its run.
    pub(super) fn end(&mut self, page: &mut Page, now: Nanos, times: Times, crossing: u64) {
        self.is_over = true;
        self.farewells.retain(|(at, _)| now.since(*at) <= ENDING);
        page.asked.iter_mut().for_each(|asked| asked.has_part = false);
        // Also what is under way to it: something unsolicited may be the reply.
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
    /// Of a connection that was accepted; `is_slow`: perhaps long after it was dialled.
    pub(super) fn new(is_slow: bool) -> Page {
        Page { is_slow, ..Page::default() }
    }

    /// Whether this request has no end yet.
    pub(super) fn has(&self, id: u32) -> bool {
        self.asked.iter().any(|asked| asked.id == id)
    }

    /// A part of a response has been sent.
    pub(super) fn has_part(&mut self, id: u32) {
        self.asked.iter_mut().filter(|asked| asked.id == id).for_each(|asked| asked.has_part = true);
    }

    /// What is sent on it from now on may be taken for something else, and so may what was just sent.
    pub(super) fn doubt(&mut self) {
        self.is_in_doubt = true;
        self.is_blamed = true;
    }

    /// A request has begun that has a body.
    pub(super) fn upload(&mut self) {
        self.has_uploads = true;
    }

    /// What comes from now on may have been sent long before.
    pub(super) fn slow_down(&mut self) {
        self.is_slow = true;
    }

    /// The client has reason to call it lost.
    pub(super) fn blame(&mut self) {
        self.is_blamed = true;
    }
}
