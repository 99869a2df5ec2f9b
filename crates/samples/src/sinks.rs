//! Several sinks as one: a sink that fails sees no more of the run, and the others do.

use units::caught;

use crate::{
    observation::Samples,
    sink::{Command, Header, Sink},
    summary::Summary,
    tick::Tick,
};

/// The sinks of a run.
pub struct Sinks<'a, 's> {
    sinks: &'a mut [&'s mut dyn Sink],
    /// Of each, whether it has not failed.
    works: Vec<bool>,
}

impl<'a, 's> Sinks<'a, 's> {
    /// Those.
    pub fn new(sinks: &'a mut [&'s mut dyn Sink]) -> Sinks<'a, 's> {
        let works = vec![true; sinks.len()];
        Sinks { sinks, works }
    }

    fn each(&mut self, mut give: impl FnMut(&mut dyn Sink)) {
        for (sink, works) in self.sinks.iter_mut().zip(&mut self.works).filter(|(_, works)| **works) {
            *works = caught(|| give(&mut **sink)).is_some();
        }
    }
}

impl Sink for Sinks<'_, '_> {
    fn begin(&mut self, header: &Header) {
        self.each(|sink| sink.begin(header));
    }

    fn tick(&mut self, tick: &Tick, looks: &Samples) {
        self.each(|sink| sink.tick(tick, looks));
    }

    fn late(&mut self, tick: &Tick) {
        self.each(|sink| sink.late(tick));
    }

    fn ask(&mut self) -> Option<Command> {
        let mut command = None;
        self.each(|sink| command = command.or_else(|| sink.ask()));
        command
    }

    fn measured(&mut self, json: &str) {
        self.each(|sink| sink.measured(json));
    }

    /// Those that have failed are told, too: they may have something to give back. What fails in one of them is in the summary of the
    /// next.
    fn finish(&mut self, summary: &Summary) {
        let mut summary = summary.clone();
        for sink in self.sinks.iter_mut() {
            caught(|| sink.finish(&summary));
            summary.note_failure();
        }
    }
}
