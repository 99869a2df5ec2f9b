//! The load by hand: whoever watches a run may pause it, and step its load down and up again.

use engine::{Control, Tempo};
use plan::Share;
use samples::Ask;
use units::{Nanos, Rate};

use super::{Course, Order, State};

/// Tenths of the planned load, between one and ten.
const STEPS: u32 = 10;

/// What was changed by hand.
#[derive(Debug)]
pub(super) struct Hand {
    /// Of the load that the stages want, in [`STEPS`].
    steps: u32,
    /// Since when it is paused, and who was at full load then.
    paused: Option<(Nanos, Vec<u16>)>,
}

impl Hand {
    /// As planned.
    pub(super) fn still() -> Hand {
        Hand { steps: STEPS, paused: None }
    }

    /// What is left of a planned level.
    pub(super) fn of(&self, level: Share) -> Share {
        level.part(self.steps, STEPS)
    }
}

impl Course<'_> {
    /// Whether the load rests by hand.
    pub fn is_paused(&self) -> bool {
        self.hand.paused.is_some()
    }

    /// Does what was asked, where it changes anything; says what that is.
    pub fn heed(&mut self, ask: Ask, now: Nanos) -> Option<String> {
        match (ask, self.is_paused()) {
            (Ask::Pause, false) => {
                self.pause(now);
                Some("paused".to_owned())
            }
            (Ask::Resume, true) => {
                self.resume(now);
                Some("resumed".to_owned())
            }
            (Ask::Up, false) => self.step_to((self.hand.steps + 1).min(STEPS), now),
            (Ask::Down, false) => self.step_to((self.hand.steps - 1).max(1), now),
            _ => None,
        }
    }

    fn pause(&mut self, now: Nanos) {
        self.orders.push(Order::All(Control::Rest(true)));
        let holding = (0..).zip(&self.progress).filter(|(_, progress)| progress.hold_from != Nanos::NEVER);
        let holding: Vec<u16> = holding.map(|(population, _)| population).collect();
        holding.iter().for_each(|population| self.end_hold(*population, now));
        // Schedules rest too, also of those that are on their way.
        for population in 0..self.progress.len() as u16 {
            self.order_tempo(population, Tempo::Steady(Rate::default()), now);
        }
        self.orders.push(Order::Probe(Control::Hold(Nanos::NEVER)));
        self.orders.push(Order::All(Control::Until(Nanos::NEVER)));
        self.hand.paused = Some((now, holding));
    }

    /// Goes on, from when every shard has heard of it.
    fn resume(&mut self, now: Nanos) {
        let Some((paused_at, holding)) = self.hand.paused.take() else { return };
        let heard = now + self.notice;
        let pause = heard.since(paused_at);
        self.descents.iter_mut().for_each(|descent| descent.since = descent.since + pause);
        self.state = match self.state {
            State::Moving(since, Nanos::ZERO) => State::Moving(since + pause, Nanos::ZERO),
            State::Moving(since, earliest) => State::Moving(since + pause, earliest + pause),
            State::Holding(until) => State::Holding(until.max(paused_at) + pause),
        };
        for population in 0..self.progress.len() as u16 {
            self.go_on_at(population, self.progress(population).level, paused_at, heard);
        }
        for population in holding {
            self.progress_mut(population).hold_from = heard;
            self.orders.push(Order::Population(population, Control::Hold(heard)));
        }
        // What a schedule would have dialled meanwhile is not made up for.
        for population in self.moving().collect::<Vec<_>>() {
            if self.descents.iter().all(|descent| descent.population != population) {
                self.dial_on(population, now);
            }
        }
        if let State::Holding(until) = self.state {
            self.orders.push(Order::Probe(Control::Hold(heard)));
            self.end_with(until);
        }
        // Last: whoever rests takes a schedule as one that begins, and makes up for nothing.
        self.orders.push(Order::All(Control::Rest(false)));
    }

    fn step_to(&mut self, steps: u32, now: Nanos) -> Option<String> {
        if steps == std::mem::replace(&mut self.hand.steps, steps) {
            return None;
        }
        self.heard = now + self.notice;
        let earliest = match self.state {
            State::Moving(since, earliest) => {
                // Their way so far; what comes begins now.
                self.ramped = self.ramping_any(now);
                for population in self.moving().collect::<Vec<_>>() {
                    self.progress_mut(population).ramped(now.since(since));
                }
                earliest
            }
            State::Holding(until) => {
                self.left = until.since(now);
                Nanos::ZERO
            }
        };
        for population in 0..self.progress.len() as u16 {
            self.move_by_hand(population, now);
        }
        self.orders.push(Order::All(Control::Until(Nanos::NEVER)));
        self.state = State::Moving(now, earliest);
        Some(format!("load {} %", steps * 100 / STEPS))
    }

    fn move_by_hand(&mut self, population: u16, now: Nanos) {
        let heard = self.heard;
        let level = self.hand.of(self.progress(population).planned);
        if level == std::mem::replace(&mut self.progress_mut(population).level, level) {
            return;
        }
        self.descents.retain(|descent| descent.population != population);
        self.go_on_at(population, level, now, heard);
        let own = self.of(population);
        if own.comes_and_goes() {
            return;
        }
        self.progress_mut(population).connections = level.of(own.load.connections().into()) as u32;
        self.leave_hold(population, now);
        self.dial_on(population, now);
    }

    /// What a population has to dial it dials as its stage says.
    fn dial_on(&mut self, population: u16, now: Nanos) {
        let progress = self.progress_mut(population);
        progress.moved_at = now;
        let (connections, tempo) = (progress.connections, progress.dials.map(Tempo::Steady));
        self.orders.push(Order::Load(population, connections, tempo, now + self.notice));
    }

    /// The tempo that goes with a level, from this time on; a slope that was under way at `then` has the rest of its time.
    fn go_on_at(&mut self, population: u16, level: Share, then: Nanos, from: Nanos) {
        let Some(rate) = self.of(population).load.rate() else { return };
        let to = level.of_rate(rate);
        let progress = self.progress_mut(population);
        let slope = progress.slope.take().filter(|slope| slope.left(then) > Nanos::ZERO);
        let tempo = match slope {
            None => Tempo::Steady(to),
            Some(slope) => {
                let (now, over) = (slope.rate(then), slope.left(then));
                progress.slope = Some(Slope { from: now, to, over, began: from });
                Tempo::Slope { from: now, to, over }
            }
        };
        self.order_tempo(population, tempo, from);
    }

    /// Of what goes by a rate, and has begun.
    pub(super) fn order_tempo(&mut self, population: u16, tempo: Tempo, from: Nanos) {
        let goes_by_rate = self.of(population).load.rate().is_some();
        if self.progress(population).has_held && goes_by_rate {
            self.orders.push(Order::Population(population, Control::Tempo(tempo, from)));
        }
    }
}

/// A rate on its way.
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
