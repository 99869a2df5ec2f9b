//! A plan becomes a run: preparation, shards, phases, and the judgement at the end.
//!
//! ```text
//! Plan ─► prepare ─► workers ─► conduct ─► judge ─► Summary
//!         (refuse)   (shards)   (phases)    └ slope
//! ```

mod conduct;
mod judge;
mod listeners;
mod prepare;
mod slope;
mod workers;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use host::{Finding, Root};
use plan::Plan;
use samples::{Sink, Summary};

pub use prepare::{Prepared, Refusal, fitting, need, prepare};
pub use slope::{Line, slope};

/// Set by a signal: end the run, write the summary.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// End the run.
    pub fn set(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether it was asked for.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Runs a plan on this machine; the sinks see it as it happens.
///
/// # Errors
/// A [`Refusal`]: this machine cannot do it. What the target does is in the summary, never an error.
pub fn run(
    plan: &Plan,
    root: &Root,
    sinks: &mut [&mut dyn Sink],
    interrupt: &Interrupt,
    warn: &mut dyn FnMut(&Finding),
) -> Result<Summary, Refusal> {
    let prepared = prepare(plan, root)?;
    prepared.warnings.iter().for_each(&mut *warn);
    let target = conduct::target(plan, root);
    let workers = workers::start(plan, &prepared)?;
    let record = conduct::conduct(plan, root, target, workers, sinks, interrupt)?;
    let summary = judge::judge(plan, &record);
    for sink in sinks {
        sink.finish(&summary);
    }
    Ok(summary)
}
