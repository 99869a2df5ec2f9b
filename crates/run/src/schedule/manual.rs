//! Manual control: a user may pause a run and change its load, up to the planned one. A pause shifts the remaining schedule; nothing that
//! would have been due during a pause is made up for.

use engine::{Control, RateProfile};
use plan::Share;
use samples::Command;
use units::{Count, Nanos, Rate, percent};

use super::{Order, Schedule, State};

/// Size of one step up or down, in millionths: a tenth of the planned load.
const STEP: u32 = 100_000;

/// Changes by commands.
#[derive(Debug)]
pub(super) struct ManualControl {
    /// Share of the planned load to apply.
    share: Share,
    /// When the pause began, and which populations were at full load then; `None` if not paused.
    paused: Option<(Nanos, Vec<u16>)>,
    /// The share set during a pause, to be applied when it ends.
    next: Option<Share>,
}

impl ManualControl {
    /// No changes: the load as planned.
    pub(super) fn still() -> ManualControl {
        ManualControl { share: Share::ALL, paused: None, next: None }
    }

    /// The level that remains of a planned one.
    pub(super) fn of(&self, level: Share) -> Share {
        level.part(self.share.millionths(), Share::ALL.millionths())
    }
}

impl Schedule<'_> {
    /// Whether the load is paused.
    pub fn is_paused(&self) -> bool {
        self.manual.paused.is_some()
    }

    /// Applies a command, given the open connections of each population. Returns a description of the change, or `None` if there is none.
    pub fn apply(&mut self, command: Command, now: Nanos, open: &[u64]) -> Option<String> {
        match (command, self.is_paused()) {
            (Command::Pause, false) => {
                self.pause(now);
                Some("paused".to_owned())
            }
            (Command::Resume, true) => {
                self.resume(now);
                if let Some(share) = self.manual.next.take() {
                    self.set_to(share, now, open);
                }
                Some("resumed".to_owned())
            }
            (command, is_paused) => {
                let before = self.manual.next.unwrap_or(self.manual.share);
                let (share, what) = self.share_of(command, before)?;
                if share == before {
                    return None;
                }
                if is_paused {
                    self.manual.next = Some(share);
                    return Some(format!("{what} when resumed"));
                }
                self.set_to(share, now, open);
                Some(what)
            }
        }
    }

    /// The share of the planned load after a command, starting from `from`, and its description in the unit of the command.
    fn share_of(&self, command: Command, from: Share) -> Option<(Share, String)> {
        let millionths = match command {
            Command::Up => from.millionths() / STEP * STEP + STEP,
            // Not below a tenth.
            Command::Down => match from.millionths().div_ceil(STEP) {
                0 | 1 => return None,
                tenths => (tenths - 1) * STEP,
            },
            Command::Load(millionths) if (1..=Share::ALL.millionths()).contains(&millionths) => millionths,
            Command::Connections(n) => {
                let populations = 0..self.plan.populations.len() as u16;
                let all: u64 = populations.map(|population| self.plan.connections(population)).sum();
                let share = Share::nearest(n, all)?;
                let part = percent(f64::from(share.millionths()) / f64::from(Share::ALL.millionths()));
                let (n, all) = (Count(share.of(all)), Count(all).of("connection"));
                return Some((share, format!("load {n} of {all} ({part})")));
            }
            _ => return None,
        };
        let share = Share::of_millionths(millionths);
        Some((share, format!("load {} %", share.to_string().trim_end_matches('%'))))
    }

    fn pause(&mut self, now: Nanos) {
        self.orders.push(Order::All(Control::Pause(true)));
        let holding = (0..).zip(&self.progress).filter(|(_, progress)| progress.hold_from != Nanos::NEVER);
        let holding: Vec<u16> = holding.map(|(population, _)| population).collect();
        holding.iter().for_each(|population| self.end_hold(*population, now));
        // Rate profiles pause too, also for populations that are moving.
        for population in 0..self.progress.len() as u16 {
            self.order_profile(population, RateProfile::Steady(Rate::default()), now);
        }
        self.orders.push(Order::Probe(Control::Hold(Nanos::NEVER)));
        self.orders.push(Order::All(Control::Until(Nanos::NEVER)));
        self.manual.paused = Some((now, holding));
    }

    /// Ends the pause, once every shard has received the orders.
    fn resume(&mut self, now: Nanos) {
        let Some((paused_at, holding)) = self.manual.paused.take() else { return };
        let applied = now + self.notice;
        let pause = applied.since(paused_at);
        self.descents.iter_mut().for_each(|descent| descent.since = descent.since + pause);
        self.state = match self.state {
            State::Moving(since, Nanos::ZERO) => State::Moving(since + pause, Nanos::ZERO),
            State::Moving(since, earliest) => State::Moving(since + pause, earliest + pause),
            State::Holding(until) => State::Holding(until.max(paused_at) + pause),
        };
        for population in 0..self.progress.len() as u16 {
            self.go_on_at(population, self.progress(population).level, paused_at, applied);
        }
        for population in holding {
            self.progress_mut(population).hold_from = applied;
            self.orders.push(Order::Population(population, Control::Hold(applied)));
        }
        // Dials that were due during the pause are not made up for.
        for population in self.moving().collect::<Vec<_>>() {
            if self.descents.iter().all(|descent| descent.population != population) {
                self.dial_on(population, now);
            }
        }
        if let State::Holding(until) = self.state {
            self.orders.push(Order::Probe(Control::Hold(applied)));
            self.end_with(until);
        }
        // Must be the last order: a paused shard treats a rate profile as a new one, and makes up for nothing.
        self.orders.push(Order::All(Control::Pause(false)));
    }

    fn set_to(&mut self, share: Share, now: Nanos, open: &[u64]) {
        if share == std::mem::replace(&mut self.manual.share, share) {
            return;
        }
        self.applied = now + self.notice;
        let (since, earliest) = match self.state {
            State::Moving(since, earliest) => {
                // Count the move so far; a new one begins now.
                self.ramped = self.ramping_any(now);
                for population in self.moving().collect::<Vec<_>>() {
                    self.progress_mut(population).add_ramp(now.since(since));
                }
                (now, earliest)
            }
            State::Holding(until) => {
                // If the load was resumed just now, full load begins in the future.
                let begun = self.progress.iter().map(|progress| progress.hold_from);
                let begun = begun.filter(|from| *from != Nanos::NEVER).fold(now, Nanos::max);
                self.left = until.since(begun);
                (begun, Nanos::ZERO)
            }
        };
        for (population, open) in (0..).zip(open) {
            self.move_manually(population, now, *open);
        }
        self.orders.push(Order::All(Control::Until(Nanos::NEVER)));
        self.state = State::Moving(since, earliest);
    }

    fn move_manually(&mut self, population: u16, now: Nanos, open: u64) {
        let applied = self.applied;
        let level = self.manual.of(self.progress(population).planned);
        if level == std::mem::replace(&mut self.progress_mut(population).level, level) {
            return;
        }
        self.descents.retain(|descent| descent.population != population);
        self.go_on_at(population, level, now, applied);
        let own = self.of(population);
        if own.comes_and_goes() {
            return;
        }
        let connections = level.of(own.load.connections().into()) as u32;
        self.progress_mut(population).connections = connections;
        // In the middle of a ramp fewer connections are open than ordered, so a lower level may still require dials.
        self.leave_hold(population, u64::from(connections) < open, now);
        self.dial_on(population, now);
    }

    /// Orders a population to dial its missing connections at the stage's rate.
    fn dial_on(&mut self, population: u16, now: Nanos) {
        let progress = self.progress_mut(population);
        progress.moved_at = now;
        let (connections, profile) = (progress.connections, progress.dials.map(RateProfile::Steady));
        self.orders.push(Order::Load(population, connections, profile, now + self.notice));
    }

    /// Orders the rate profile of a level from `from` on. A slope in progress at `then` continues for its remaining time.
    fn go_on_at(&mut self, population: u16, level: Share, then: Nanos, from: Nanos) {
        let Some(rate) = self.of(population).load.rate() else { return };
        let to = level.of_rate(rate);
        let progress = self.progress_mut(population);
        let slope = progress.slope.take().filter(|slope| slope.left(then) > Nanos::ZERO);
        let profile = match slope {
            None => RateProfile::Steady(to),
            Some(slope) => {
                let (now, over) = (slope.rate(then), slope.left(then));
                progress.slope = Some(Slope { from: now, to, over, began: from });
                RateProfile::Slope { from: now, to, over }
            }
        };
        self.order_profile(population, profile, from);
    }

    /// Orders a rate profile, if the population has a rate and has started it.
    pub(super) fn order_profile(&mut self, population: u16, profile: RateProfile, from: Nanos) {
        let goes_by_rate = self.of(population).load.rate().is_some();
        if self.progress(population).has_held && goes_by_rate {
            self.orders.push(Order::Population(population, Control::RateProfile(profile, from)));
        }
    }
}

/// A linear change of a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slope {
    pub(super) from: Rate,
    pub(super) to: Rate,
    pub(super) over: Nanos,
    pub(super) began: Nanos,
}

impl Slope {
    fn left(&self, now: Nanos) -> Nanos {
        (self.began + self.over).since(now)
    }

    fn rate(&self, now: Nanos) -> Rate {
        let (from, to) = (self.from.per_s_f64(), self.to.per_s_f64());
        let way = now.since(self.began).secs_f64() / self.over.secs_f64().max(1e-9);
        Rate::from_per_s_f64(from + (to - from) * way.min(1.0))
    }
}
