//! What an agent's shards count, second by second: all shards of a role as one worker.
//!
//! A tick of a worker ends with the second, or where its full load ends: when that was, and what was so then, is read from the tick
//! in which its phase becomes [`Phase::Drain`], as from that of a shard.

use std::collections::VecDeque;

use run::Update;
use samples::{Phase, Tick};
use units::Nanos;

use super::{Machine, ramp_down::ends_early};
use crate::{message::EVERY, seal::Sums};

/// Ticks of shards on their way to ticks of workers.
pub(super) struct Counting {
    shards: Vec<Shard>,
    workers: Vec<Worker>,
    /// When the next ticks of the workers end.
    ends: Nanos,
    /// Ticks of the workers that ended where the threads stood still.
    cut: VecDeque<Vec<Tick>>,
}

struct Shard {
    worker: u32,
    /// A tick in which nothing happens, after the worker's last one.
    before: Tick,
    /// Counted since then; up to the end of its load, if the worker's has not ended.
    news: Option<Tick>,
    /// What followed the end of its load while that of the worker had not ended.
    after: Option<Tick>,
    /// When its load ended; never, before it has.
    ended: Nanos,
    /// Nothing is waited for from it.
    is_lost: bool,
}

#[derive(Clone, Default)]
struct Worker {
    sums: Sums,
    /// The most connections that its shards had open at once, as a run's conductor counts them, since its last tick.
    most_open: u64,
    /// Its load has ended in all its shards, and a tick of it has ended with that.
    has_ended: bool,
}

impl Shard {
    fn of(worker: u32) -> Shard {
        let before = Tick { ramped_at: Nanos::NEVER, ..Tick::default() };
        Shard { worker, before, news: None, after: None, ended: Nanos::NEVER, is_lost: false }
    }

    /// All that it counted since the worker's last tick.
    fn take_all(&mut self) -> Option<Tick> {
        match (self.news.take(), self.after.take()) {
            (Some(mut news), Some(after)) => {
                news.extend(&after);
                Some(news)
            }
            (news, after) => news.or(after),
        }
    }

    /// With what it was like at last.
    fn last(&self) -> &Tick {
        self.after.as_ref().or(self.news.as_ref()).unwrap_or(&self.before)
    }

    /// Whether it has counted to this time.
    fn has_counted_to(&self, until: Nanos) -> bool {
        self.after.as_ref().or(self.news.as_ref()).is_some_and(|last| last.until >= until)
    }
}

impl Counting {
    /// `shards`: which of the workers each belongs to.
    pub(super) fn new(workers: usize, shards: &[u32]) -> Counting {
        Counting {
            shards: shards.iter().copied().map(Shard::of).collect(),
            workers: vec![Worker::default(); workers],
            ends: EVERY,
            cut: VecDeque::new(),
        }
    }

    /// Adds workers and their shards, which count from now on; `shards`: which of these workers each belongs to.
    pub(super) fn add(&mut self, workers: usize, shards: &[u32]) {
        let before = self.workers.len() as u32;
        self.shards.extend(shards.iter().map(|worker| Shard::of(before + worker)));
        self.workers.resize_with(self.workers.len() + workers, Worker::default);
    }

    pub(super) fn take(&mut self, shard: u32, tick: &Tick) {
        // What was counted before the threads stood still is of another second than what comes of that.
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
        // Its tick is not to go beyond the end of the worker's load, which is not known before all its shards have ended theirs.
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

    /// Whether a shard waits for responses, or has not reported yet that its load has ended.
    pub(super) fn awaits(&self) -> bool {
        let awaits = |shard: &Shard| shard.ended == Nanos::NEVER || shard.last().waiting > 0;
        self.shards.iter().any(|shard| !shard.is_lost && awaits(shard))
    }

    /// The ticks of the workers, if all shards have counted to the end of the second, or the load of a worker has ended; or what is
    /// left, where the shards have ended. There may be more.
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

    /// When the load of a worker ended, if it has in all its shards and no tick has ended with it yet.
    fn end_of(&self, worker: u32) -> Option<Nanos> {
        let own = || self.shards.iter().filter(|shard| shard.worker == worker);
        let is_over = !self.workers[worker as usize].has_ended
            && own().all(|shard| shard.is_lost || shard.ended != Nanos::NEVER);
        let last = own().map(|shard| shard.ended).filter(|at| *at != Nanos::NEVER).max();
        last.filter(|_| is_over)
    }

    /// The tick with which the load of a worker ends, and of each other one a tick of nothing.
    fn end_load(&mut self, worker: u32, at: Nanos) -> Vec<Tick> {
        self.workers[worker as usize].has_ended = true;
        let mut ticks = self.end_ticks(|shard| if shard.worker == worker { shard.news.take() } else { None });
        for shard in self.shards.iter_mut().filter(|shard| shard.worker == worker) {
            shard.news = shard.after.take();
        }
        // A shard that ended before may have counted further in the worker's last tick.
        ticks[worker as usize].until = at;
        ticks
    }

    /// Of each shard what `take` takes of it, added up for each worker.
    fn end_ticks(&mut self, take: impl Fn(&mut Shard) -> Option<Tick>) -> Vec<Tick> {
        let mut ticks: Vec<Option<Tick>> = vec![None; self.workers.len()];
        for shard in &mut self.shards {
            let tick = take(shard).unwrap_or_else(|| shard.before.clone());
            // What it is like stays so until it says otherwise.
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

/// A tick in which nothing happens, after this one.
fn state_after(tick: &Tick) -> Tick {
    let &Tick { index, until, phase, open, resolved, waiting, unsettled, owed, ramped_at, .. } = tick;
    let state = Tick { index, from: until, until, phase, open, resolved, ..Tick::default() };
    Tick { waiting, unsettled, owed, ramped_at, ..state }
}

/// A tick of a part that ends before its time: outstanding requests are no failures of the target, and the agent that takes over the
/// part sends them again.
fn cut_short(tick: &Tick) -> Tick {
    let mut tick = tick.clone();
    tick.counts.revoked += std::mem::take(&mut tick.counts.unanswered);
    tick
}

/// Takes what the shards have counted; `why`: they end before their time; whether all have ended.
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
