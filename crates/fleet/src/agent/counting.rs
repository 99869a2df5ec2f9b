//! What an agent's shards count, second by second: all shards of a role as one worker.

use samples::Tick;
use units::Nanos;

use crate::{message::EVERY, seal::Sums};

/// Ticks of shards on their way to ticks of workers.
pub(super) struct Counting {
    shards: Vec<Shard>,
    sums: Vec<Sums>,
    /// When the next ticks of the workers end.
    ends: Nanos,
}

struct Shard {
    worker: u32,
    /// Since the worker's last tick.
    tick: Tick,
    has_news: bool,
    /// Nothing is waited for from it.
    is_lost: bool,
}

impl Counting {
    /// `shards`: which of the workers each belongs to.
    pub(super) fn new(workers: usize, shards: &[u32]) -> Counting {
        let shard = |&worker: &u32| Shard { worker, tick: Tick::default(), has_news: false, is_lost: false };
        Counting {
            shards: shards.iter().map(shard).collect(),
            sums: vec![Sums::default(); workers],
            ends: EVERY,
        }
    }

    /// Adds workers and their shards, which count from now on; `shards`: which of these workers each belongs to.
    pub(super) fn add(&mut self, workers: usize, shards: &[u32]) {
        let before = self.sums.len() as u32;
        let more = Counting::new(workers, shards);
        self.shards
            .extend(more.shards.into_iter().map(|shard| Shard { worker: before + shard.worker, ..shard }));
        self.sums.extend(more.sums);
    }

    pub(super) fn take(&mut self, shard: u32, tick: &Tick) {
        let shard = &mut self.shards[shard as usize];
        self.sums[shard.worker as usize].add(tick);
        match shard.has_news {
            true => shard.tick.extend(tick),
            false => shard.tick = tick.clone(),
        }
        shard.has_news = true;
    }

    pub(super) fn lose(&mut self, shard: u32) {
        self.shards[shard as usize].is_lost = true;
    }

    /// The ticks of the workers, if all shards have counted to the end of the second; or what is left, where they have ended.
    pub(super) fn poll(&mut self, has_ended: bool) -> Option<Vec<Tick>> {
        let is_complete = |shard: &Shard| shard.is_lost || shard.has_news && shard.tick.until >= self.ends;
        if !self.shards.iter().any(|shard| shard.has_news)
            || !has_ended && !self.shards.iter().all(is_complete)
        {
            return None;
        }
        let mut ticks: Vec<Option<Tick>> = vec![None; self.sums.len()];
        for shard in &mut self.shards {
            let tick = if shard.has_news { std::mem::take(&mut shard.tick) } else { shard.tick.clone() };
            // What it is like stays so until it says otherwise.
            shard.tick = state_after(&tick);
            shard.has_news = false;
            match &mut ticks[shard.worker as usize] {
                Some(sum) => sum.merge(&tick),
                none => *none = Some(tick),
            }
        }
        let ticks: Vec<Tick> = ticks.into_iter().map(Option::unwrap_or_default).collect();
        let until = ticks.iter().map(|tick| tick.until).max().unwrap_or_default();
        self.ends = Nanos((until.0 / EVERY.0 + 1) * EVERY.0);
        Some(ticks)
    }

    pub(super) fn take_sums(&mut self) -> Vec<Sums> {
        std::mem::take(&mut self.sums)
    }
}

/// A tick in which nothing happens, after this one.
fn state_after(tick: &Tick) -> Tick {
    let &Tick { index, until, phase, open, resolved, waiting, owed, ramped_at, .. } = tick;
    Tick { index, from: until, until, phase, open, resolved, waiting, owed, ramped_at, ..Tick::default() }
}
