//! Several sinks as one. A sink that panics gets no more ticks; the others go on.

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
    /// For each sink, whether it has not failed yet.
    works: Vec<bool>,
}

impl<'a, 's> Sinks<'a, 's> {
    /// All sinks, each of them working.
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

    /// Sinks that failed get the summary, too: they may have something to clean up. A failure in one sink is noted in the summary for the
    /// next.
    fn finish(&mut self, summary: &Summary) {
        let mut summary = summary.clone();
        for sink in self.sinks.iter_mut() {
            caught(|| sink.finish(&summary));
            summary.note_failure();
        }
    }
}
