//! Aggregates the ticks of an agent's shards into one tick per second for each worker, that is, for all shards with the same role.
//!
//! A worker's tick ends with the second, or where its full load ends, like a shard's: the tick in which the phase becomes
//! [`Phase::Drain`] shows when the load ended, and the state at that time.

use std::collections::VecDeque;

use run::Update;
use samples::{Phase, Tick};
use units::Nanos;

use super::{Machine, ramp_down::ends_early};
use crate::message::{EVERY, Sums};

/// The aggregation state.
pub(super) struct Counting {
    shards: Vec<Shard>,
    workers: Vec<Worker>,
    /// When the next ticks of the workers end.
    ends: Nanos,
    /// Ticks that ended early because the threads were suspended.
    cut: VecDeque<Vec<Tick>>,
}

struct Shard {
    worker: u32,
    /// A tick without events, after the worker's last one: the shard's state.
    before: Tick,
    /// Counts since then; only up to the end of the shard's load, if the worker's load has not ended.
    news: Option<Tick>,
    /// Counts after the end of the shard's load, while that of the worker has not ended.
    after: Option<Tick>,
    /// When the shard's load ended; [`Nanos::NEVER`] before.
    ended: Nanos,
    /// The shard is lost: nothing is expected from it.
    is_lost: bool,
}

#[derive(Clone, Default)]
struct Worker {
    sums: Sums,
    /// Maximum number of its shards' concurrent connections since its last tick, calculated like a conductor does.
    most_open: u64,
    /// Its load has ended in all shards, and a tick has ended there.
    has_ended: bool,
}

impl Shard {
    fn of(worker: u32) -> Shard {
        let before = Tick { ramped_at: Nanos::NEVER, ..Tick::default() };
        Shard { worker, before, news: None, after: None, ended: Nanos::NEVER, is_lost: false }
    }

    /// Takes all counts since the worker's last tick.
    fn take_all(&mut self) -> Option<Tick> {
        match (self.news.take(), self.after.take()) {
            (Some(mut news), Some(after)) => {
                news.extend(&after);
                Some(news)
            }
            (news, after) => news.or(after),
        }
    }

    /// The latest state.
    fn last(&self) -> &Tick {
        self.after.as_ref().or(self.news.as_ref()).unwrap_or(&self.before)
    }

    /// Whether its counts reach this time.
    fn has_counted_to(&self, until: Nanos) -> bool {
        self.after.as_ref().or(self.news.as_ref()).is_some_and(|last| last.until >= until)
    }
}

impl Counting {
    /// `shards`: the worker of each shard.
    pub(super) fn new(workers: usize, shards: &[u32]) -> Counting {
        Counting {
            shards: shards.iter().copied().map(Shard::of).collect(),
            workers: vec![Worker::default(); workers],
            ends: EVERY,
            cut: VecDeque::new(),
        }
    }

    /// Adds workers with their shards. `shards`: the worker of each shard, as an index among the added ones.
    pub(super) fn add(&mut self, workers: usize, shards: &[u32]) {
        let before = self.workers.len() as u32;
        self.shards.extend(shards.iter().map(|worker| Shard::of(before + worker)));
        self.workers.resize_with(self.workers.len() + workers, Worker::default);
    }

    pub(super) fn take(&mut self, shard: u32, tick: &Tick) {
        // Counts from before a suspension of the threads belong to another second than those after it.
        let is_before = |news: &Tick| news.until < self.ends && tick.until >= self.ends + EVERY;
        if self.shards[shard as usize].news.as_ref().is_some_and(is_before) {
            let ticks = self.end_ticks(Shard::take_all);
            self.cut.push_back(ticks);
        }
        let shard = &mut self.shards[shard as usize];
        let worker = &mut self.workers[shard.worker as usize];
        worker.sums.add(tick);
        let has_ended = shard.ended != Nanos::NEVER;
        if tick.phase == Phase::Drain && !has_ended {
            shard.ended = tick.until;
        }
        // The worker's tick must not extend beyond the end of its load, which is known only when all its shards have ended theirs.
        let is_after = has_ended && !worker.has_ended;
        let counted = if is_after { &mut shard.after } else { &mut shard.news };
        match counted {
            Some(sum) => sum.extend(tick),
            none => *none = Some(tick.clone()),
        }
        let of = shard.worker;
        let open: u64 = self.shards.iter().filter(|own| own.worker == of).map(|own| own.last().open).sum();
        let most_open = &mut self.workers[of as usize].most_open;
        *most_open = (*most_open).max(open + tick.most_open.saturating_sub(tick.open));
    }

    pub(super) fn lose(&mut self, shard: u32) {
        self.shards[shard as usize].is_lost = true;
    }

    /// Whether the load of all workers has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.workers.iter().all(|worker| worker.has_ended)
    }

    /// Whether a shard waits for responses, or has not reported the end of its load.
    pub(super) fn awaits(&self) -> bool {
        let awaits = |shard: &Shard| shard.ended == Nanos::NEVER || shard.last().waiting > 0;
        self.shards.iter().any(|shard| !shard.is_lost && awaits(shard))
    }

    /// The next ticks of the workers: when all shards have counted to the end of the second, or when the load of a worker has ended. With
    /// `has_ended`, all remaining counts. Call until it returns `None`.
    pub(super) fn poll(&mut self, has_ended: bool) -> Option<Vec<Tick>> {
        if let Some(ticks) = self.cut.pop_front() {
            return Some(ticks);
        }
        let ends = (0..self.workers.len() as u32).find_map(|worker| Some((worker, self.end_of(worker)?)));
        if let Some((worker, at)) = ends {
            return Some(self.end_load(worker, at));
        }
        let is_complete = |shard: &Shard| shard.is_lost || shard.has_counted_to(self.ends);
        if !self.shards.iter().any(|shard| shard.has_counted_to(Nanos::ZERO))
            || !has_ended && !self.shards.iter().all(is_complete)
        {
            return None;
        }
        Some(self.end_ticks(Shard::take_all))
    }

    /// When the load of a worker ended, if it has in all its shards and no tick has ended there yet.
    fn end_of(&self, worker: u32) -> Option<Nanos> {
        let own = || self.shards.iter().filter(|shard| shard.worker == worker);
        let is_over = !self.workers[worker as usize].has_ended
            && own().all(|shard| shard.is_lost || shard.ended != Nanos::NEVER);
        let last = own().map(|shard| shard.ended).filter(|at| *at != Nanos::NEVER).max();
        last.filter(|_| is_over)
    }

    /// The tick with which the load of a worker ends; the other workers get a tick without events.
    fn end_load(&mut self, worker: u32, at: Nanos) -> Vec<Tick> {
        self.workers[worker as usize].has_ended = true;
        let mut ticks = self.end_ticks(|shard| if shard.worker == worker { shard.news.take() } else { None });
        for shard in self.shards.iter_mut().filter(|shard| shard.worker == worker) {
            shard.news = shard.after.take();
        }
        // A shard that ended earlier may have counted further in the worker's last tick.
        ticks[worker as usize].until = at;
        ticks
    }

    /// Sums, for each worker, what `take` returns for its shards.
    fn end_ticks(&mut self, take: impl Fn(&mut Shard) -> Option<Tick>) -> Vec<Tick> {
        let mut ticks: Vec<Option<Tick>> = vec![None; self.workers.len()];
        for shard in &mut self.shards {
            let tick = take(shard).unwrap_or_else(|| shard.before.clone());
            // The state remains until the next tick.
            shard.before = state_after(&tick);
            match &mut ticks[shard.worker as usize] {
                Some(sum) => sum.merge(&tick),
                none => *none = Some(tick),
            }
        }
        let mut ticks: Vec<Tick> = ticks.into_iter().map(Option::unwrap_or_default).collect();
        for (worker, tick) in self.workers.iter_mut().zip(&mut ticks) {
            tick.most_open = std::mem::replace(&mut worker.most_open, tick.open);
        }
        let until = ticks.iter().map(|tick| tick.until).max().unwrap_or_default();
        self.ends = Nanos((until.0 / EVERY.0 + 1) * EVERY.0);
        ticks
    }

    pub(super) fn take_sums(&mut self) -> Vec<Sums> {
        std::mem::take(&mut self.workers).into_iter().map(|worker| worker.sums).collect()
    }
}

/// A tick without events, after this one.
fn state_after(tick: &Tick) -> Tick {
    let &Tick { index, until, phase, open, resolved, waiting, unsettled, owed, ramped_at, .. } = tick;
    let state = Tick { index, from: until, until, phase, open, resolved, ..Tick::default() };
    Tick { waiting, unsettled, owed, ramped_at, ..state }
}

/// A tick of a part that ends early: its outstanding requests are not failures of the target, and are repeated by the agent that takes
/// over the part.
fn cut_short(tick: &Tick) -> Tick {
    let mut tick = tick.clone();
    tick.counts.revoked += std::mem::take(&mut tick.counts.unanswered);
    tick
}

/// Takes the ticks of all shards. `why`: the part ends early. Returns whether all shards have ended.
pub(super) fn gather(machine: &mut impl Machine, counting: &mut Counting, why: &mut Option<String>) -> bool {
    loop {
        match machine.next() {
            Update::Tick(shard, tick) if why.is_some() => counting.take(shard, &cut_short(tick)),
            Update::Tick(shard, tick) => counting.take(shard, tick),
            Update::Lost(shard) => {
                counting.lose(shard);
                why.get_or_insert_with(|| ends_early("one of its threads has ended"));
            }
            Update::Back(_) | Update::Joined(_) => {}
            Update::Nothing => return false,
            Update::Ended => return true,
        }
    }
}

#[cfg(test)]
mod tests;
