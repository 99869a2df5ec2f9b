//! The ramp: how many first dials are made, and when; by a schedule, or adaptively, as fast as the target accepts them.

use plan::{Part, Ramp as Planned, Turn};
use samples::Congestion;
use units::{Nanos, Rate};

use super::{progress::Progress, window::Window};
use crate::pace::{RateProfile, Schedule};

/// Without a schedule this many shards begin at once, each further one this much later than the previous one: the first dials of
/// all shards together must probe the target, not overload it.
pub(super) const AT_ONCE: u32 = 8;
pub(super) const APART: Nanos = Nanos::from_micros(3_125);
/// A shard that is later than this with its requests does not dial in an adaptive ramp.
const LATE: Nanos = Nanos::from_millis(2);
/// Part of the time until the deadline within which all dials are to be made.
const IN_TIME: f64 = 0.9;

/// A first dial to make now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dial {
    pub(crate) due: Nanos,
    /// The target did not accept it in time, but the ramp must end.
    pub(crate) forced: bool,
}

/// What determines when the next dial is due.
#[expect(clippy::large_enum_variant, reason = "a shard has one for each population")]
enum By {
    Schedule(Schedule),
    Window(Window),
}

/// The ramp of a shard.
pub(super) struct Ramp {
    by: By,
    /// Maximum dial rate of all shards together without a schedule, if known.
    most_per_s: Option<f64>,
    /// When the first dial of the present schedule is due, and the number of its dials made.
    from: Nanos,
    dialled: u64,
    /// When the last dial was made.
    last: Nanos,
    to_dial: u32,
    /// The next rate profile, and when it begins.
    next: Option<(RateProfile, Nanos)>,
    /// When the schedule ends.
    until: Nanos,
    /// First dials made or still to be made, over all orders.
    ordered: u64,
    progress: Progress,
    /// The window made no progress, or its time is over: the remaining connections are dialled at a fixed rate.
    gave_up: bool,
}

impl Ramp {
    /// No dials before an order comes.
    pub(super) fn new(part: &Part) -> Ramp {
        Ramp {
            by: By::Window(Window::new(share(part), turn(part))),
            most_per_s: None,
            from: Nanos::NEVER,
            dialled: 0,
            last: Nanos::NEVER,
            to_dial: 0,
            next: None,
            until: Nanos::NEVER,
            ordered: 0,
            progress: Progress::new(Nanos::ZERO),
            gave_up: false,
        }
    }

    /// Orders `to_dial` first dials from `from` on; without a rate profile, as fast as the target accepts them. An existing
    /// window keeps what it has learnt of the target.
    pub(super) fn order(&mut self, to_dial: u32, profile: Option<RateProfile>, part: &Part, from: Nanos) {
        let later = (part.turn().before() + 1).saturating_sub(AT_ONCE.into());
        let from = if profile.is_none() { from + Nanos(later * APART.0) } else { from };
        self.ordered = self.ordered - u64::from(self.to_dial) + u64::from(to_dial);
        self.last = from;
        (self.from, self.dialled, self.to_dial, self.next) = (from, 0, to_dial, None);
        (self.progress, self.gave_up) = (Progress::new(from), false);
        match (profile, &self.by) {
            (Some(profile), _) => self.begin(profile, part, from),
            (None, By::Window(_)) => {}
            (None, _) => self.open_window(part, from),
        }
    }

    fn open_window(&mut self, part: &Part, now: Nanos) {
        let mut window = Window::new(share(part), turn(part));
        self.most_per_s.iter().for_each(|most| window.limit(*most, now));
        self.by = By::Window(window);
    }

    /// Limits unscheduled dials to this rate, of all shards together.
    pub(super) fn limit(&mut self, most: Rate, now: Nanos) {
        let most = most.per_s_f64();
        self.most_per_s = Some(most);
        if let By::Window(window) = &mut self.by {
            window.limit(most, now);
        }
    }

    /// The congestion that unscheduled dials met since the last call.
    pub(super) fn take_met(&mut self) -> Congestion {
        match &mut self.by {
            By::Window(window) => window.take_met(),
            By::Schedule(_) => Congestion::default(),
        }
    }

    /// Sets the rate profile, of all shards together, for connections still to be dialled at `from`; the current one applies
    /// until then.
    pub(super) fn set_profile(&mut self, profile: RateProfile, from: Nanos) {
        self.next = Some((profile, from));
    }

    /// Switches to the next rate profile, once everything due before its beginning has been dialled.
    pub(super) fn change(&mut self, part: &Part, now: Nanos) {
        let Some((profile, from)) = self.next.filter(|(_, from)| now >= *from) else { return };
        let is_behind = match &self.by {
            By::Schedule(schedule) => {
                schedule.within(from.since(self.from)).next_after(self.dialled) != Nanos::NEVER
            }
            By::Window(_) => false,
        };
        if !is_behind {
            self.begin(profile, part, from);
        }
    }

    /// Begins this rate profile at `from` for the connections still to be dialled; none is due before.
    pub(super) fn begin(&mut self, profile: RateProfile, part: &Part, from: Nanos) {
        (self.from, self.dialled, self.next) = (from, 0, None);
        let schedule = Schedule::share(profile, self.to_dial.into(), part.turn());
        self.by = By::Schedule(schedule);
    }

    /// Delays what was due in a pause, from `since` until now, by the length of the pause.
    pub(super) fn put_off(&mut self, since: Nanos, now: Nanos) {
        let later = |at: Nanos| at + now.since(at.max(since));
        self.from = later(self.from);
        self.next = self.next.map(|(profile, from)| (profile, later(from)));
    }

    /// No scheduled dial is due from `at` on; never: no such limit.
    pub(super) fn end_at(&mut self, at: Nanos) {
        self.until = at;
    }

    /// Ends the ramp: calls `give_up` with the due time of each dial that was due by `now` and not made.
    pub(super) fn end(&mut self, part: &Part, now: Nanos, give_up: &mut impl FnMut(Nanos)) {
        loop {
            self.change(part, now);
            let (due, _) = self.due(now, 0, Nanos::ZERO, Nanos::ZERO, 0);
            if due == 0 {
                break;
            }
            (0..due).for_each(|_| give_up(self.take(now).due));
        }
        self.to_dial = 0;
    }

    /// Whether an order has come.
    pub(super) fn is_ordered(&self) -> bool {
        self.from != Nanos::NEVER
    }

    pub(super) fn is_over(&self) -> bool {
        self.to_dial == 0
    }

    /// First dials made or still to be made, over all orders.
    pub(super) fn ordered(&self) -> u64 {
        self.ordered
    }

    /// A first dial succeeded or failed after this time.
    pub(super) fn learn_dial(&mut self, took: Nanos, ok: bool, now: Nanos) {
        if let By::Window(window) = &mut self.by {
            window.learn_dial(took, ok, now);
        }
    }

    /// The time of the TLS handshake of a first dial; see [`Window::learn_handshake`].
    pub(super) fn learn_handshake(&mut self, took: Nanos, resumed: bool) -> Nanos {
        match &mut self.by {
            By::Window(window) => window.learn_handshake(took, resumed),
            By::Schedule(_) => Nanos::ZERO,
        }
    }

    /// The first response on a connection, or its failure; see [`Window::learn`].
    pub(super) fn learn(&mut self, took: Nanos, ok: bool, now: Nanos) {
        self.progress.learn(ok, now);
        if let By::Window(window) = &mut self.by {
            window.learn(took, ok, now);
        }
    }

    /// Ends a window that makes no progress or has used its time: the remaining dials are made at a fixed rate, so that the ramp
    /// ends.
    pub(super) fn check_end(&mut self, part: &Part, outstanding: u32, timeout: Nanos, now: Nanos) {
        let By::Window(window) = &self.by else { return };
        if self.to_dial == 0 || now < self.from {
            return;
        }
        let left = f64::from(self.to_dial);
        let deadline = self.deadline(part, timeout);
        let per_s = if outstanding > 0 && self.progress.is_stuck(timeout, now) {
            left / timeout.secs_f64()
        } else if now >= self.from + deadline {
            window
                .accepted(now)
                .unwrap_or(0.0)
                .max(left / (f64::from(Planned::OVERTIME) * deadline.secs_f64()))
        } else {
            return;
        };
        let profile = RateProfile::Steady(Rate::from_per_s_f64(per_s));
        self.by = By::Schedule(Schedule::share(profile, self.to_dial.into(), Turn::ALWAYS));
        (self.from, self.dialled, self.gave_up) = (now, 0, true);
    }

    /// The time that the window has for the dials of this order.
    fn deadline(&self, part: &Part, timeout: Nanos) -> Nanos {
        let all = (self.dialled + u64::from(self.to_dial)) as f64 / share(part);
        Planned::deadline(all as u64, timeout)
    }

    /// Dials due since the last one at the rate that completes the ramp in time; 0 while first responses come faster than that.
    pub(super) fn least(&self, part: &Part, timeout: Nanos, now: Nanos) -> u32 {
        let By::Window(window) = &self.by else { return 0 };
        let all = (self.dialled + u64::from(self.to_dial)) as f64;
        let per_s = all / (IN_TIME * self.deadline(part, timeout).secs_f64());
        if window.per_s(now) < per_s { (per_s * now.since(self.last).secs_f64()) as u32 } else { 0 }
    }

    /// The number of dials due now, and when to call again. `behind`: how late the shard is with its requests; `least`: see
    /// [`Ramp::least`].
    pub(super) fn due(
        &mut self,
        now: Nanos,
        outstanding: u32,
        patience: Nanos,
        behind: Nanos,
        least: u32,
    ) -> (u32, Nanos) {
        let changes = self.next.map_or(Nanos::NEVER, |(_, from)| from).min(self.until);
        match &mut self.by {
            _ if now < self.from => (0, self.from.min(changes)),
            // Requests that are already late come first: a ramp ahead of them would leave its backlog to the hold phase.
            By::Window(_) if self.to_dial > 0 && behind > LATE && least == 0 => (0, now),
            By::Window(window) => {
                let (room, next) = window.room(outstanding, least, patience, now);
                (room.min(self.to_dial), if self.to_dial > 0 { next } else { Nanos::NEVER })
            }
            By::Schedule(schedule) => {
                let schedule = match changes {
                    Nanos::NEVER => *schedule,
                    changes => schedule.within(changes.since(self.from)),
                };
                let due = schedule.due(now.since(self.from)).saturating_sub(self.dialled);
                let due = due.min(self.to_dial.into());
                let next = schedule.next_after(self.dialled + due);
                (due as u32, (self.from + next).min(changes))
            }
        }
    }

    /// Counts the next dial as made.
    pub(super) fn take(&mut self, now: Nanos) -> Dial {
        let due = match &mut self.by {
            By::Window(window) => {
                window.begin(now);
                now
            }
            By::Schedule(schedule) => self.from + schedule.time_of(self.dialled),
        };
        self.dialled += 1;
        self.last = now;
        self.to_dial -= 1;
        Dial { due, forced: self.gave_up }
    }
}

/// A shard's share of first dials.
fn share(part: &Part) -> f64 {
    part.turn().share()
}

/// The turn of the shard, as a fraction of the time in which every shard has one turn.
fn turn(part: &Part) -> f64 {
    part.turn().first()
}
