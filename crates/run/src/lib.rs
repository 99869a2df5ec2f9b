//! Runs a plan: prepares the machine, starts the workers, leads them through the stages, and has the result judged.
//!
//! ```text
//! Plan ─► prepare ─► workers ─► conduct ─► judge ─► Summary
//!         (refuse)   (shards)   (phases)
//!                               observe
//! ```
//!
//! The decisions are made in [`Conductor`], which is pure; the simulation and a fleet of agents use it with other workers. What stands
//! around it, `conduct`, connects it to the sinks, to signals, to the [`observe`] crate and, after the load, to `experiments`. `find`
//! repeats this with one load after another.

mod conduct;
mod conductor;
mod experiments;
mod find;
mod interrupt;
mod one_user;
mod prepare;
mod schedule;
mod workers;

use host::Root;
use observe::Observer;
use plan::Plan;
use samples::{Calibration, CalibrationShare, Sink, Sinks, Summary};
use units::{caught, failpoint};

use conduct::conduct;

pub use conductor::{Conductor, Step, filed, second_of};
pub use find::{
    By, Find, Here, Next, Number, Shown, Variant, WorkerSource, find, most, most_per_s, not_begun, reasons,
    with_some_room,
};
pub use interrupt::Interrupt;
pub use judge::{find_command, judge, judge_step, rejudge};
pub use observe::{listeners, queues, settle};
pub use one_user::one_user;
pub use prepare::{Prepared, Refusal, check_tls, choose_io, fitting, need, prepare, prepare_part};
pub use record::Record;
pub use schedule::{Order, Paced, Progress, Schedule};
pub use workers::{Ground, Threads, Update, Workers, stop};

/// Runs a plan on prepared workers, which `begin` starts. The sinks receive the run while it happens.
pub fn run_on<W: Workers>(
    plan: &Plan,
    root: &Root,
    workers: &mut W,
    begin: impl FnOnce(&mut W) -> Ground,
    sinks: &mut [&mut dyn Sink],
    interrupt: &Interrupt,
) -> Summary {
    let observer = Observer::start(plan, root);
    let ground = begin(workers);
    let record = conduct(plan, observer, workers, &ground, sinks, interrupt, None);
    end(plan, &record, &[], sinks)
}

/// Judges a run and passes the summary to the sinks. If the judge panics, the summary is invalid but keeps the measured figures.
fn end(plan: &Plan, record: &Record, calibrations: &[Calibration], sinks: &mut [&mut dyn Sink]) -> Summary {
    let judge = || {
        failpoint("judge");
        judge::judge(plan, record)
    };
    let judged = caught(judge);
    caught(|| keep(plan, record, judged.as_ref(), sinks));
    let mut summary = judged.unwrap_or_else(|| judge::unjudged(plan, record));
    summary.rig = CalibrationShare::of(calibrations, &summary);
    if let Some(why) = judge::failed_agent(record) {
        summary.fail(&why);
    }
    summary.note_failure();
    Sinks::new(sinks).finish(&summary);
    summary.note_failure();
    summary
}

/// Passes the record, as it is stored, to the sinks. Debug builds, and therefore all tests, check that the stored record is judged like
/// the live one.
fn keep(plan: &Plan, record: &Record, judged: Option<&Summary>, sinks: &mut [&mut dyn Sink]) {
    let stored = judge::stored(plan, record);
    debug_assert!(stored.is_ok(), "a record has only plain fields: {:?}", stored.err());
    let Ok(stored) = stored else { return };
    Sinks::new(sinks).measured(&stored);
    if cfg!(debug_assertions)
        && let Some(live) = judged
    {
        let replayed = rejudge(&stored).expect("what was stored can be read");
        assert_eq!(replayed.headline, live.headline, "of the stored run");
        let differs = judge::difference(&replayed, live);
        assert_eq!(differs, None, "of the stored run: {}", live.headline);
    }
}

/// Runs a plan on this machine. The sinks receive the run while it happens; `say` gets the notices that precede the start, one line each.
/// `calibrations` are the calibrations of this machine, latest first.
///
/// # Errors
/// A [`Refusal`] if this machine cannot carry out the plan. Failures of the target are part of the summary, never an error.
pub fn run(
    plan: &Plan,
    root: &Root,
    sinks: &mut [&mut dyn Sink],
    interrupt: &Interrupt,
    calibrations: &[Calibration],
    say: &mut dyn FnMut(&str),
) -> Result<Summary, Refusal> {
    let prepared = prepare(plan, root)?;
    prepared.print_notices(say);
    prepare::notice_long(plan).iter().for_each(|notice| say(notice));
    let observer = Observer::start(plan, root);
    let mut workers = Threads::start(plan, &prepared)?;
    let ground = workers.ground();
    let record = conduct(plan, observer, &mut workers, &ground, sinks, interrupt, None);
    workers.join();
    Ok(end(plan, &record, calibrations, sinks))
}
