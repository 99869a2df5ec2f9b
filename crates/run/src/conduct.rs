//! Connects the conductor to the real world: passes it ticks, commands and signals, delivers its orders and lines, and samples the target
//! and the hosts. A failure in here (`caught`) ends the run; what was measured until then is the result.

mod closer;

use std::mem::{Discriminant, discriminant};

use host::Root;
use observe::{Load, Observer};
use plan::Plan;
use samples::{
    AgentShare, AgentState, AgentSummary, Command, Header, Phase, Samples, Sink, Sinks, ThresholdResult, Tick,
};
use units::{Failure, Nanos, caught, failpoint};

use crate::{
    Interrupt,
    conductor::{Awaited, Conductor, Step},
    experiments::Lab,
    workers::{Ground, STOPS_WITHIN, Workers, stop_unless},
};
use record::{Record, losses::Losses, moments::Moments};

/// Polling interval while workers stop: whether to keep waiting for them.
const LOOKS: Nanos = Nanos::from_millis(100);
/// Limit of the wait for stopping workers after an urgent interrupt, or if all workers are lost and the broker, which was already waited
/// for, is disconnected. A longer wait is explained to the user.
const STOPS_SOON: Nanos = Nanos::from_secs(2);

/// How a run may be shortened: the limit of the wait for responses at the end (`None`: the longest timeout), and a predicate that ends
/// the load early.
pub(crate) type Early<'a> = (Option<Nanos>, &'a mut dyn FnMut(&Conductor, Nanos) -> bool);

/// Runs the stages until the end of the last one, then ends the load and stops the workers. A `step` of a search may end [`Early`], and
/// the only experiment after it is whether the target speaks TLS; a whole run has all experiments that its results call for.
pub(crate) fn conduct(
    plan: &Plan,
    observer: Observer,
    workers: &mut dyn Workers,
    ground: &Ground,
    sinks: &mut [&mut dyn Sink],
    interrupt: &Interrupt,
    step: Option<Early<'_>>,
) -> Record {
    let (is_whole, mut never) = (step.is_none(), |_: &Conductor, _| false);
    let (patience, is_enough): Early<'_> = match step {
        Some((patience, is_enough)) => (patience, is_enough),
        None => (None, &mut never),
    };
    let first_dial = workers.now() + workers.notice();
    let mut conductor = Conductor::new(plan, workers, ground.start, first_dial).with_patience(patience);
    (conductor.record.io, conductor.record.threads) = (ground.io.into(), ground.threads);
    let mut around = Environment::new(plan, observer, ground, sinks, interrupt);
    let watching = interrupt.watch();
    // A failure in here ends the run; its result is what was measured until then.
    caught(|| around.play(&mut conductor, workers, is_enough));
    let keeps = is_whole && around.may_ask(&mut conductor) && workers.keep();
    caught(|| around.stop(&mut conductor, workers));
    drop(watching);
    let record = around.finish(conductor, workers, keeps);
    workers.release();
    record
}

/// Runs the stages for a step of a search, starting with `held` connections of each population, `to_redial` of them currently
/// closed. Leaves the load as it is at the end of the last stage, or once `is_enough` returns true. `losses`: those of the existing
/// connections so far.
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
    // The other agents continue to report; only lost ones are final.
    record.agents.retain(|agent| agent.state == AgentState::Lost);
    record
}

struct Environment<'a, 's> {
    plan: &'a Plan,
    sinks: Sinks<'a, 's>,
    interrupt: &'a Interrupt,
    observer: Observer,
    moments: Moments,
    /// The kind of wait at the end that was last reported to the user.
    told: Option<Discriminant<Awaited>>,
}

impl<'a, 's> Environment<'a, 's> {
    fn new(
        plan: &'a Plan,
        mut observer: Observer,
        ground: &Ground,
        sinks: &'a mut [&'s mut dyn Sink],
        interrupt: &'a Interrupt,
    ) -> Environment<'a, 's> {
        observer.note_sources(plan, ground.sources.clone());
        Environment {
            plan,
            sinks: Sinks::new(sinks),
            interrupt,
            observer,
            moments: Moments::default(),
            told: None,
        }
    }

    /// Runs from the first stage to the end of the last, or until `is_enough`.
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

    /// If the end that a user requested takes long: prints what the run is waiting for, once for each reason.
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

    /// Stops the workers; what they still report is counted.
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
        // Samples are more frequent while a population's target is silent.
        let mut populations = conductor.record.populations.iter();
        self.observer.is_silent = populations.any(|measured| measured.silences.lasting().is_some());
        if has_news && (!conductor.is_holding() || self.observer.is_curious()) {
            self.sample(conductor, now);
        }
    }

    /// Whether all connections use TLS. Only then is the CPU time of throng attributed to connections with TLS.
    fn is_secured(&self) -> bool {
        self.plan.populations.iter().all(|population| population.target.secure)
    }

    fn sample(&mut self, conductor: &Conductor, now: Nanos) {
        let load = Load {
            open: conductor.open(),
            opened: conductor.sum(|tick| tick.counts.opened + tick.counts.redialled),
            answered: conductor.sum(|tick| tick.counts.answered),
            probed: conductor.sum(Tick::dials_of_probe),
            handshakes: self.is_secured().then(|| conductor.sum(Tick::handshakes)),
            dropped: conductor.sum(|tick| tick.counts.dropped),
        };
        self.observer.sample(now, conductor.phase(now), load);
    }

    /// Emits a line to the sinks, once a second.
    fn carry_line(&mut self, conductor: &mut Conductor, workers: &mut dyn Workers) {
        let now = workers.now();
        if let Some(line) = conductor.poll_line(now) {
            self.sample(conductor, now);
            self.look_closer(conductor, &line, now);
            let thresholds = conductor.thresholds(line.until);
            self.show(Tick { agents: workers.take_seconds(conductor.shown()), ..line }, thresholds);
        }
    }

    /// Passes late ticks to the sinks that store lines.
    fn show_late(&mut self, late: Vec<Tick>) {
        for tick in late {
            self.sinks.late(&tick);
        }
    }

    /// Whether experiments with the target are allowed: the run seems to have failed, and was not ended early.
    fn may_ask(&self, conductor: &mut Conductor) -> bool {
        let may = self.plan.experiments && !self.interrupt.is_set() && Failure::first().is_none();
        may && conductor.record.interrupted.is_none() && conductor.seems_wrong()
    }

    fn show(&mut self, line: Tick, thresholds: Vec<ThresholdResult>) {
        let looks = Samples { thresholds, ..self.observer.latest() };
        self.sinks.tick(&line, &looks);
        self.moments.take(&line, self.observer.take_doing());
    }

    /// Advances the conductor; returns whether the run is over.
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
        is_over && !self.observer.awaits_rejection(now)
    }

    /// Completes the record, and makes the experiments that the results call for. `keeps`: the load's connections are still open.
    fn finish(mut self, mut conductor: Conductor, workers: &mut dyn Workers, keeps: bool) -> Record {
        let (now, open) = (workers.now(), conductor.open());
        caught(|| {
            self.sample(&conductor, now);
            if ended_en_masse(&conductor) {
                self.observer.see_end(now);
            }
            // Before the last line: exporters count late ticks together with the next line, and no line follows the last one.
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
        let Environment { plan, mut observer, mut moments, interrupt, mut sinks, .. } = self;
        record.rejection = caught(|| observer.take_rejection()).flatten();
        let resets = std::mem::take(&mut observer.resets);
        // The final samples carry no thresholds: their results are in the summary.
        let (samples, doing, root) = (observer.latest(), observer.take_doing(), observer.root().clone());
        caught(|| moments.take(&line, doing));
        record.moments = moments;
        record.observed = caught(|| observer.finish(workers.now())).unwrap_or_default();
        let asked = caught(|| {
            Lab { plan, root: &root, workers, interrupt, open: keeps.then_some(open) }.ask(&record)
        });
        record.answer(asked.unwrap_or_default());
        // After the experiments: they may be reset like the load.
        record.hops = resets.finish();
        record.answers.marks().for_each(|mark| line.marks.add(mark));
        caught(|| sinks.tick(&line, &samples));
        record
    }
}

/// Whether at least as many connections were lost or failed to open as are open now: the target may have exited.
fn ended_en_masse(conductor: &Conductor) -> bool {
    let lost = conductor.sum(|tick| tick.counts.dropped + tick.counts.failed);
    lost > 0 && lost >= conductor.open()
}
