//! A run that another conductor led, judged as any other: the simulation's, in virtual time and without a host to look at.

use plan::{Part, Plan, Whose};
use samples::{Summary, Tick};
use units::Nanos;

use crate::{
    By, Course, find,
    judge::judge,
    record::{Crowd, Record},
};

/// What the shards have handed over so far, as the judge wants it.
pub struct Played {
    record: Record,
}

/// What is known when a tick comes.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Connections open in all shards, and in those of the tick's population.
    pub open: u64,
    /// Of the population.
    pub own: u64,
    /// Until when all shards of the population have reported.
    pub complete: Nanos,
    /// The tick is the first one of its shard in which the load had ended, or an earlier one.
    pub is_load: bool,
}

/// How the load of a population ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Connections open then.
    pub open: u64,
    /// When its last first dial was decided.
    pub ramped_at: Nanos,
    /// When its load had ended in all of its shards.
    pub at: Nanos,
}

impl Played {
    /// Of a plan that begins at time zero, in these parts.
    pub fn new(plan: &Plan, parts: &[Part]) -> Played {
        let shards = |nth| parts.iter().filter(|part| part.whose == Whose::Population(nth)).count() as u32;
        let populations = 0..plan.populations.len() as u16;
        let crowds: Vec<Crowd> = populations.map(|nth| Crowd::of(plan, nth, shards(nth))).collect();
        let threads = crowds.iter().map(|crowd| crowd.shards).sum();
        Played { record: Record { crowds, threads, ..Record::empty(plan) } }
    }

    /// Takes the next tick of a shard of `whose`.
    pub fn take(&mut self, course: &Course, whose: Whose, tick: &Tick, seen: Seen) {
        let record = &mut self.record;
        record.totals.extend(tick);
        record.losses.take(tick);
        record.peak = record.peak.max(seen.open);
        if let Some(probe) = &tick.probe {
            record.curve.add(seen.open, probe);
        }
        let Whose::Population(nth) = whose else { return };
        let crowd = &mut record.crowds[usize::from(nth)];
        crowd.began.get_or_insert(Nanos::ZERO);
        crowd.take(tick, seen.own, seen.complete, course.progress(nth).hold_from);
        crowd.dropped_in_drain += if seen.is_load { 0 } else { tick.counts.dropped };
    }

    /// The load has ended, in each population like this.
    pub fn end(&mut self, plan: &Plan, course: &Course, populations: &[Ended]) {
        let record = &mut self.record;
        record.ended = populations.iter().map(|own| own.at).max().unwrap_or_default();
        record.ramp = course.ramping_any(record.ended);
        for (nth, (crowd, own)) in (0..).zip(record.crowds.iter_mut().zip(populations)) {
            let population = &plan.populations[usize::from(nth)];
            crowd.keep_held(own.open);
            crowd.end(population, course, nth, (own.ramped_at, own.at, record.ended));
            if population.comes_and_goes() {
                record.ramp = record.ramp.max(crowd.ramp);
            }
        }
    }

    /// The summary, with its verdict.
    pub fn judge(&self, plan: &Plan) -> Summary {
        judge(plan, &self.record)
    }

    /// The same for a step of a search with this load; and why it does not pass, if so.
    pub fn judge_step(&self, plan: &Plan, by: By, load: u64) -> (Summary, Vec<String>) {
        let summary = self.judge(plan);
        let reasons = find::reasons(by, load, &summary, None);
        (summary, reasons)
    }
}
