//! The thresholds of a run that is not over, against what was measured so far.

use plan::Plan;
use samples::{Connections, Figures, Phase, ThresholdResult, Tick};
use serde_json::{Value, json};
use units::Nanos;

use super::{counted, errors, requests, thresholds, times};

/// In place of a time that is longer than all that were measured.
const BEYOND: &str = "longer than all measured";

/// What was measured so far, of the ticks that sinks are shown.
pub struct Interim<'p> {
    plan: &'p Plan,
    all: SoFar,
    populations: Vec<SoFar>,
}

/// The sum of a population's ticks, or of all.
#[derive(Default)]
struct SoFar {
    totals: Tick,
    elapsed: Nanos,
    at_load: Nanos,
    wanted: u64,
    peak: u64,
    /// In the ramp none are held yet.
    held: Option<u64>,
}

impl<'p> Interim<'p> {
    /// Of a run that has not begun.
    pub fn new(plan: &'p Plan) -> Interim<'p> {
        let several = if plan.populations.len() > 1 { plan.populations.len() } else { 0 };
        let populations = (0..several).map(|_| SoFar::default()).collect();
        Interim { plan, all: SoFar::default(), populations }
    }

    /// How each threshold stands, in their order: before the first tick, nothing was measured. A figure that only the end of a run
    /// has, such as costs, is not measured until then.
    pub fn thresholds(&self) -> Vec<ThresholdResult> {
        if self.plan.thresholds.is_empty() {
            return Vec::new();
        }
        let own: Vec<Figures> = self.populations.iter().map(SoFar::figures).collect();
        let mut all = self.all.figures();
        if !own.is_empty() {
            // Rates are those of each at its own full load.
            all.requests.per_s = own.iter().map(|figures| figures.requests.per_s).sum();
        }
        let mut json = self.all.json(&all);
        json["lag_us"] = json!(self.all.totals.lag.quantiles());
        let named = self.plan.populations.iter().zip(&self.populations).zip(&own);
        let named = named.map(|((population, own), figures)| (population.name.clone(), own.json(figures)));
        json["populations"] = Value::Object(named.collect());
        let mut results = thresholds::judge_json(&self.plan.thresholds, &json);
        for (threshold, result) in self.plan.thresholds.iter().zip(&mut results) {
            // It lies among the requests without a response: that is not the same as nothing measured.
            if result.value.is_none() && samples::censored_share(&json, &threshold.figure.path).is_some() {
                result.shown = BEYOND.to_owned();
            }
        }
        results
    }

    /// A tick more.
    pub fn add(&mut self, tick: &Tick) {
        if self.plan.thresholds.is_empty() {
            return;
        }
        self.all.add(tick);
        self.populations.iter_mut().zip(&tick.populations).for_each(|(own, tick)| own.add(tick));
    }
}

impl SoFar {
    fn add(&mut self, tick: &Tick) {
        self.elapsed = self.elapsed + tick.until.since(tick.from);
        if tick.phase == Phase::Hold {
            // Where the ramp ended within it, full load is the rest.
            let since = if tick.ramped_at == Nanos::NEVER { tick.from } else { tick.ramped_at };
            self.at_load = self.at_load + tick.until.since(tick.from.max(since));
        }
        self.wanted = self.wanted.max(tick.wanted);
        self.peak = self.peak.max(tick.open);
        match tick.phase {
            // After the load has ended connections are closed as planned.
            Phase::Ramp | Phase::Drain => {}
            Phase::Hold | Phase::Pause => self.held = Some(tick.open),
        }
        self.totals.extend(tick);
    }

    fn figures(&self) -> Figures {
        let connections =
            Connections { wanted: self.wanted, peak: self.peak, ..counted(&self.totals.counts) };
        let mut figures = Figures {
            duration_s: self.at_load.secs_f64(),
            elapsed_s: self.elapsed.secs_f64(),
            connections,
            requests: requests(&self.totals, self.at_load, self.elapsed),
            ..times(&self.totals)
        };
        figures.errors = errors(&figures);
        figures
    }

    /// As a summary has them; what is not known before the end is left out.
    fn json(&self, figures: &Figures) -> Value {
        let mut json = serde_json::to_value(figures).expect("figures have only plain fields");
        json["connections"]["held"] = json!(self.held);
        for name in ["open_per_s", "dropped_in_drain"] {
            json["connections"][name] = Value::Null;
        }
        (json["ramp_s"], json["threads"]) = (Value::Null, Value::Null);
        if self.at_load == Nanos::ZERO {
            json["requests"]["per_s"] = Value::Null;
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::plan;

    const EXPRS: [&str; 6] = [
        "latency.p99 < 200ms",
        "held >= 99%",
        "errors < 10%",
        "requests.per_s >= 100/s",
        "target_cost.cpu_s < 5",
        "generator.cpu_s < 5",
    ];

    /// A second of this phase, with responses of which some failed.
    fn second(n: u64, phase: Phase, open: u64, [good, bad]: [u64; 2]) -> Tick {
        let (from, until) = (Nanos::from_secs(n), Nanos::from_secs(n + 1));
        let mut tick =
            Tick { from, until, phase, open, wanted: 100, ramped_at: Nanos::NEVER, ..Tick::default() };
        (tick.counts.sent, tick.counts.answered) = (good + bad, good + bad);
        if phase != Phase::Ramp {
            tick.ramped_at = Nanos::from_secs(1);
            tick.counts.answered_at_load = good + bad;
            (0..good + bad).for_each(|_| tick.latency.record(Nanos::from_millis(10)));
        }
        let wrong = samples::Fault::target(samples::Stage::Exchange, samples::Kind::WrongStatus);
        (0..bad).for_each(|_| tick.faults.count(wrong));
        tick
    }

    /// The ticks so far, and of each threshold what was measured and whether it is met.
    fn check(ticks: &[Tick], expected: [(Option<f64>, bool); 6]) {
        let plan = plan(&EXPRS);
        let mut interim = Interim::new(&plan);
        ticks.iter().for_each(|tick| interim.add(tick));
        let results = interim.thresholds();
        for ((result, expr), (value, pass)) in results.iter().zip(EXPRS).zip(expected) {
            assert_eq!((result.expr.as_str(), result.pass), (expr, pass), "{result:?}");
            let near = match (result.value, value) {
                (Some(is), Some(value)) => (is - value).abs() <= value * 0.01,
                (is, value) => is == value,
            };
            assert!(near, "{result:?}: {value:?}");
        }
        assert_eq!(results.len(), EXPRS.len());
    }

    #[test]
    fn thresholds_stand_as_what_was_measured_so_far() {
        let none = (None, false);
        let ramp = second(0, Phase::Ramp, 60, [80, 0]);
        let hold = second(1, Phase::Hold, 100, [150, 10]);
        let lost = second(2, Phase::Hold, 70, [0, 40]);
        check(&[], [none, none, none, none, none, none]);
        // In the ramp nothing is held, and there is no full load.
        check(std::slice::from_ref(&ramp), [none, none, (Some(0.0), true), none, none, none]);
        let measured = [
            (Some(10_000.0), true),
            (Some(100.0), true),
            (Some(1_000.0 / 240.0), true),
            (Some(160.0), true),
            none,
            none,
        ];
        check(&[ramp.clone(), hold.clone()], measured);
        let measured = [
            (Some(10_000.0), true),
            (Some(70.0), false),
            (Some(5_000.0 / 280.0), false),
            (Some(100.0), true),
            none,
            none,
        ];
        check(&[ramp.clone(), hold.clone(), lost.clone()], measured);
        // What the end closes was held before.
        let drain = Tick { phase: Phase::Drain, ..second(3, Phase::Drain, 0, [0, 0]) };
        check(&[ramp, hold, lost, drain], measured);
    }

    #[test]
    fn a_percentile_among_requests_without_a_response_is_not_nothing() {
        let plan = plan(&["latency.p99 < 200ms", "latency.p50 < 200ms"]);
        let mut interim = Interim::new(&plan);
        let mut tick = second(1, Phase::Hold, 100, [90, 0]);
        (0..10).for_each(|_| tick.latency.censor());
        interim.add(&tick);
        let [p99, p50] = &interim.thresholds()[..] else { panic!("two") };
        assert_eq!((p99.value, p99.pass, p99.shown.as_str()), (None, false, BEYOND));
        assert!(p50.pass, "{p50:?}");
    }

    #[test]
    fn without_thresholds_nothing_is_added_up() {
        let plan = plan(&[]);
        let mut interim = Interim::new(&plan);
        interim.add(&second(1, Phase::Hold, 100, [5, 0]));
        assert_eq!((interim.thresholds(), interim.all.elapsed), (Vec::new(), Nanos::ZERO));
    }
}
