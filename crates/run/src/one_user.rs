//! Takes the steps of one user and shows each: `throng try`. There is no conductor, no record and no verdict.

use std::{
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::Duration,
};

use engine::{Control, RateProfile, Transcriber};
use host::Root;
use plan::{Activity, Plan, Reconnect};
use samples::transcript::{Entry, Event, Piece};
use units::{Nanos, Rate};

use crate::{Interrupt, Order, Refusal, Threads, Update, Workers, prepare, workers::stop_within};

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Longest wait for the protocol's closing messages.
const CLOSES_WITHIN: Nanos = Nanos::from_secs(1);
/// The one dial is due at once.
const AT_ONCE: RateProfile = RateProfile::Steady(Rate::per_s(1_000));

/// Carries out the plan [of one user](Plan::of_one_user); `take` gets each entry of the transcript as it is written. Ends after `rounds`
/// responses if the user sends the same message again and again, otherwise after the last step; early if the connection is lost, or on a
/// signal.
///
/// # Errors
/// A [`Refusal`] if this machine cannot carry out the plan. Failures of the target are entries.
pub fn one_user(
    plan: &Plan,
    root: &Root,
    (rounds, shows_secrets): (u16, bool),
    interrupt: &Interrupt,
    take: &mut dyn FnMut(&Entry),
) -> Result<(), Refusal> {
    let prepared = prepare(plan, root)?;
    let (out, entries) = mpsc::channel();
    let transcriber = Transcriber::new(out, shows_secrets);
    let mut workers = Threads::transcribed(plan, &prepared, plan.parts(|_| 1), Some(transcriber))?;
    workers.begin();
    workers.order(Order::Load(0, 1, Some(AT_ONCE), workers.began()));
    let mut end = End::of(plan, rounds);
    while !interrupt.is_set() && !end.is_reached {
        match entries.recv_timeout(LOOK) {
            Ok(entry) => {
                take(&entry);
                end.read(&entry.event);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        // The ticks are not needed, but the shard waits for them to come back.
        while let Update::Tick(..) = workers.next(Nanos::ZERO) {}
    }
    close(&mut workers, &entries, end.is_open, take);
    workers.join();
    Ok(())
}

/// Closes the connection in good order; passes on what is said of that.
fn close(workers: &mut Threads, entries: &Receiver<Entry>, mut is_open: bool, take: &mut dyn FnMut(&Entry)) {
    workers.order(Order::DRAIN);
    workers.order(Order::All(Control::Release));
    let deadline = workers.now() + CLOSES_WITHIN;
    while is_open && workers.now() < deadline {
        let Ok(entry) = entries.recv_timeout(LOOK) else { continue };
        is_open = !matches!(entry.event, Event::End(_));
        if matches!(
            entry.event,
            Event::Sent(Piece::Control(_)) | Event::Received(Piece::Control(_)) | Event::End(_)
        ) {
            take(&entry);
        }
    }
    stop_within(workers, CLOSES_WITHIN);
}

/// When nothing more is to be tried.
struct End {
    is_reached: bool,
    /// Whether the connection is open.
    is_open: bool,
    /// Responses that are still awaited, if only their number says when it is over.
    left: Option<u16>,
    /// The last step, and whether it has begun.
    last: (Option<u16>, bool),
    is_replaced: bool,
}

impl End {
    fn of(plan: &Plan, rounds: u16) -> End {
        let own = &plan.populations[0];
        let (left, last) = match &own.activity {
            Activity::Idle => (None, None),
            Activity::Ping { .. } => (Some(rounds), None),
            // The end of a step that is repeated is that of its last repetition.
            Activity::Steps { steps, .. } => {
                let is_once = steps.last().is_some_and(|last| last.repeat.is_none());
                (None, (steps.len() as u16).checked_sub(1).filter(|_| is_once))
            }
        };
        End {
            is_reached: false,
            is_open: false,
            left,
            last: (last, false),
            is_replaced: own.reconnect != Reconnect::Never,
        }
    }

    fn read(&mut self, event: &Event) {
        match event {
            Event::Step(step) => self.last.1 = Some(*step) == self.last.0,
            Event::Response(_) | Event::Failed(_) => {
                self.left = self.left.map(|left| left.saturating_sub(1));
                self.is_reached |= self.last.1 || self.left == Some(0);
            }
            Event::Open(_) => self.is_open = true,
            Event::Done => self.is_reached = true,
            Event::End(fault) => {
                self.is_open = false;
                self.is_reached |= fault.is_some() || !self.is_replaced;
            }
            _ => {}
        }
    }
}
