//! The environment of the conductor on this machine: passes it ticks, commands and signals, delivers its orders and lines,
//! and samples target and hosts.

mod closer;

use std::{
    mem::{Discriminant, discriminant},
    sync::Arc,
};

use host::Root;
use plan::Plan;
use samples::{
    AgentShare, AgentState, AgentSummary, Command, Header, Phase, Samples, Sink, Sinks, ThresholdResult, Tick,
};
use units::{Failure, Nanos, caught, failpoint};

use crate::{
    Interrupt,
    both_sides::{Ends, Sources},
    conductor::{Awaited, Conductor, Step},
    experiments::Lab,
    observe::{self, Observer},
    other_ends::OtherEnds,
    rejections::Rejections,
    resets::Resets,
    workers::{Ground, STOPS_WITHIN, Workers, stop_unless},
};
use record::{Record, losses::Losses, moments::Moments};

/// While workers stop, it looks this often whether they are still waited for.
const LOOKS: Nanos = Nanos::from_millis(100);
/// They are not waited for longer than this where a user does not wait, or all are lost and the broker is away, which was waited for
/// before. A longer wait is explained.
const STOPS_SOON: Nanos = Nanos::from_secs(2);

/// For how long responses are waited for at the end of a step, if not for the longest timeout; and whether it ends now, before its time.
pub(crate) type Early<'a> = (Option<Nanos>, &'a mut dyn FnMut(&Conductor, Nanos) -> bool);

/// What the target may be asked after the load.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// Whatever the run leaves open.
    All,
    /// In a step of a search, which goes on: only whether it speaks TLS.
    Tls,
}

/// Runs the stages until the end of the last one, or until that is [`Early`], and ends the load.
pub(crate) fn conduct(
    plan: &Plan,
    observer: Observer,
    workers: &mut dyn Workers,
    ground: &Ground,
    sinks: &mut [&mut dyn Sink],
    interrupt: &Interrupt,
    ((patience, is_enough), asking): (Early<'_>, Asking),
) -> Record {
    let first_dial = workers.now() + workers.notice();
    let mut conductor = Conductor::new(plan, workers, ground.start, first_dial).with_patience(patience);
    (conductor.record.io, conductor.record.threads) = (ground.io.into(), ground.threads);
    let mut around = Environment::new(plan, observer, ground, sinks, interrupt);
    let watching = interrupt.watch();
    // What fails in here ends the run, and what was measured until then is its result.
    caught(|| around.play(&mut conductor, workers, is_enough));
    let keeps = asking == Asking::All && around.may_ask(&mut conductor) && workers.keep();
    caught(|| around.stop(&mut conductor, workers));
    drop(watching);
    let record = around.finish(conductor, workers, keeps);
    workers.release();
    record
}

/// Runs the stages starting with `held` connections of each population, `to_redial` of which are closed for now, and leaves the load as it
/// is at the end of the last one, or once `is_enough`. `losses`: of the existing connections.
pub(crate) fn conduct_on(
    plan: &Plan,
    root: &Root,
    workers: &mut dyn Workers,
    ground: &Ground,
    (held, to_redial, losses): (&[u32], &[i64], Losses),
    interrupt: &Interrupt,
    (patience, is_enough): Early<'_>,
) -> Record {
    let observer = Observer::start(plan, root);
    let mut conductor = Conductor::going_on(plan, workers, held).with_patience(patience);
    (conductor.record.io, conductor.record.losses) = (ground.io.into(), losses);
    for (measured, before) in conductor.record.populations.iter_mut().zip(to_redial) {
        measured.to_redial_before = *before;
    }
    let sinks: &mut [&mut dyn Sink] = &mut [];
    let mut around = Environment::new(plan, observer, ground, sinks, interrupt);
    let watching = interrupt.watch();
    caught(|| around.play(&mut conductor, workers, is_enough));
    drop(watching);
    let mut record = around.finish(conductor, workers, false);
    // What the others report goes on.
    record.agents.retain(|agent| agent.state == AgentState::Lost);
    record
}

struct Environment<'a, 's> {
    plan: &'a Plan,
    sinks: Sinks<'a, 's>,
    interrupt: &'a Interrupt,
    observer: Observer,
    /// Where connections are dialled from; none if that is not this process.
    sources: Option<Arc<Sources>>,
    rejections: Rejections,
    resets: Resets,
    moments: Moments,
    ends: OtherEnds,
    /// The target's ends shortly before the end of the load.
    earlier: Option<Ends>,
    /// What the user knows to be waited for at the end.
    told: Option<Discriminant<Awaited>>,
}

impl<'a, 's> Environment<'a, 's> {
    fn new(
        plan: &'a Plan,
        observer: Observer,
        ground: &Ground,
        sinks: &'a mut [&'s mut dyn Sink],
        interrupt: &'a Interrupt,
    ) -> Environment<'a, 's> {
        Environment {
            plan,
            sinks: Sinks::new(sinks),
            interrupt,
            observer,
            sources: ground.sources.clone(),
            rejections: Rejections::default(),
            resets: Resets::of(plan, ground.sources.is_some()),
            moments: Moments::default(),
            ends: OtherEnds::default(),
            earlier: None,
            told: None,
        }
    }

    /// From the first stage to the end of the last, or until it `is_enough`.
    fn play(
        &mut self,
        conductor: &mut Conductor,
        workers: &mut dyn Workers,
        is_enough: &mut dyn FnMut(&Conductor, Nanos) -> bool,
    ) {
        let agents = workers.agents().into_iter();
        let agents = agents.map(|AgentSummary { id, wanted, cores, .. }| AgentShare { id, wanted, cores });
        let header = Header { agents: agents.collect(), ..conductor.record.header(self.plan) };
        self.sinks.begin(&header);
        conductor.give_orders(workers);
        loop {
            let came = conductor.gather(workers);
            failpoint("conductor");
            if let Some(has_news) = came {
                self.observe(conductor, has_news, workers.now());
            }
            self.carry_commands(conductor, workers.now());
            if is_enough(conductor, workers.now()) {
                conductor.end_early();
            }
            conductor.give_orders(workers);
            self.carry_line(conductor, workers);
            self.show_late(conductor.take_late());
            let is_over = self.step(conductor, workers);
            if is_over || came.is_none() {
                return;
            }
        }
    }

    fn carry_commands(&mut self, conductor: &mut Conductor, now: Nanos) {
        while let Some(command) = self.sinks.ask() {
            conductor.handle_command(command, now);
        }
        if Failure::first().is_some() {
            conductor.handle_failure();
        }
        if self.interrupt.is_set() {
            conductor.handle_signal();
            if let Some((awaited, left)) = conductor.waiting_for(now) {
                self.tell(awaited, left);
            }
        }
        if self.interrupt.is_urgent() {
            conductor.handle_command(Command::Stop, now);
        }
    }

    /// Where the end that a user asked for takes long: for what it waits, each once.
    fn tell(&mut self, awaited: Awaited, left: Nanos) {
        let kind = Some(discriminant(&awaited));
        if self.interrupt.is_urgent() || std::mem::replace(&mut self.told, kind) == kind {
            return;
        }
        let bound = if let Awaited::Responses(_) = awaited { " (--timeout)" } else { "" };
        let left = left.brief();
        self.interrupt.tell(&format!(
            "waiting for {awaited}, for at most {left}{bound}; Ctrl-C again ends the run now"
        ));
    }

    /// The workers end, and what they still report counts.
    fn stop(&mut self, conductor: &mut Conductor, workers: &mut dyn Workers) {
        let is_given_up = conductor.are_all_lost();
        stop_unless(
            workers,
            LOOKS,
            |update| conductor.handle(update),
            |workers, quiet| {
                let is_short = self.interrupt.is_urgent() || is_given_up && !workers.is_connected();
                let most = if is_short { STOPS_SOON } else { STOPS_WITHIN };
                if self.interrupt.is_set() && (STOPS_SOON..most).contains(&quiet) {
                    let agents = workers.agents().into_iter().filter(|agent| !agent.sealed);
                    let agents: Vec<String> = agents.map(|agent| format!("agent {}", agent.id)).collect();
                    if !agents.is_empty() {
                        self.tell(Awaited::Counts(agents), most.since(quiet));
                    }
                }
                quiet >= most
            },
        );
    }

    fn observe(&mut self, conductor: &Conductor, has_news: bool, now: Nanos) {
        self.mind_silence(conductor);
        if has_news && (!conductor.is_holding() || self.observer.is_curious()) {
            self.sample(conductor, now);
        }
    }

    /// Whether every connection is secured: then CPU time is that of connections with TLS.
    fn is_secured(&self) -> bool {
        self.plan.populations.iter().all(|population| population.target.secure)
    }

    fn sample(&mut self, conductor: &Conductor, now: Nanos) {
        let load = observe::Load {
            open: conductor.open(),
            opened: conductor.sum(|tick| tick.counts.opened + tick.counts.redialled),
            answered: conductor.sum(|tick| tick.counts.answered),
            probed: conductor.sum(Tick::dials_of_probe),
            handshakes: self.is_secured().then(|| conductor.sum(Tick::handshakes)),
            dropped: conductor.sum(|tick| tick.counts.dropped),
        };
        self.observer.sample(now, conductor.phase(now), load);
    }

    /// A line for the sinks, once a second.
    fn carry_line(&mut self, conductor: &mut Conductor, workers: &mut dyn Workers) {
        let now = workers.now();
        if let Some(line) = conductor.poll_line(now) {
            self.sample(conductor, now);
            self.look_closer(conductor, &line, now);
            let thresholds = conductor.thresholds(line.until);
            self.show(Tick { agents: workers.take_seconds(conductor.shown()), ..line }, thresholds);
        }
    }

    /// What came too late for its line, for the sinks that keep lines.
    fn show_late(&mut self, late: Vec<Tick>) {
        for tick in late {
            self.sinks.late(&tick);
        }
    }

    /// Whether the target may be asked what it was: something went wrong, as far as is known, and no one ended the run before its time.
    fn may_ask(&self, conductor: &mut Conductor) -> bool {
        let may = self.plan.experiments && !self.interrupt.is_set() && Failure::first().is_none();
        may && conductor.record.interrupted.is_none() && conductor.seems_wrong()
    }

    fn show(&mut self, line: Tick, thresholds: Vec<ThresholdResult>) {
        let looks = Samples { thresholds, ..self.observer.latest() };
        self.sinks.tick(&line, &looks);
        self.moments.take(&line, self.observer.take_doing());
    }

    /// From stage to stage; whether the run is over.
    fn step(&mut self, conductor: &mut Conductor, workers: &mut dyn Workers) -> bool {
        let now = workers.now();
        let Step { phase, drains, has_ended, is_over } = conductor.step(now);
        if drains {
            self.observer.end_hold(now, phase, conductor.open());
        }
        conductor.give_orders(workers);
        if phase == Phase::Hold {
            self.observer.begin_hold(now);
            self.look_for_the_other_ends(conductor, now, false);
        }
        if has_ended {
            self.sample_at_the_end(conductor, now);
        }
        is_over && !self.rejections.is_pending(now)
    }

    /// What was measured is complete, and the target is asked what that leaves open; `keeps`: the load's connections are open still.
    fn finish(mut self, mut conductor: Conductor, workers: &mut dyn Workers, keeps: bool) -> Record {
        let (now, open) = (workers.now(), conductor.open());
        caught(|| {
            self.sample(&conductor, now);
            if ended_en_masse(&conductor) {
                self.observer.see_end(now);
            }
            self.count_own();
            // Before the last line: exporters count what was late with the next line, and there is none after it.
            self.show_late(conductor.take_late());
        });
        let line = caught(|| {
            if Failure::first().is_some() {
                conductor.end_now(now);
            }
            conductor.end()
        });
        let (mut line, mut record): (Tick, Record) = (line.unwrap_or_default(), conductor.record);
        line.agents = caught(|| workers.take_seconds(u64::MAX)).flatten();
        record.agents = caught(|| workers.agents()).unwrap_or_default();
        let Environment { plan, mut observer, rejections, resets, mut moments, interrupt, mut sinks, .. } =
            self;
        caught(|| {
            record.rejection = rejections.finish(|ip| observer.is_here(ip));
        });
        // The summary has how thresholds were met.
        let (samples, doing, root) = (observer.latest(), observer.take_doing(), observer.root().clone());
        caught(|| moments.take(&line, doing));
        record.moments = moments;
        record.observed = caught(|| observer.finish(workers.now())).unwrap_or_default();
        let asked = caught(|| {
            Lab { plan, root: &root, workers, interrupt, open: keeps.then_some(open) }.ask(&record)
        });
        record.answer(asked.unwrap_or_default());
        // The experiments may meet what the load has met.
        record.hops = resets.finish();
        record.answers.marks().for_each(|mark| line.marks.add(mark));
        caught(|| sinks.tick(&line, &samples));
        record
    }
}

/// Whether as many connections were lost, or dialled in vain, as are open now: the target may have ended.
fn ended_en_masse(conductor: &Conductor) -> bool {
    let lost = conductor.sum(|tick| tick.counts.dropped + tick.counts.failed);
    lost > 0 && lost >= conductor.open()
}
