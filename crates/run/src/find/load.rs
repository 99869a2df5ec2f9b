//! The plan of a step: the user's plan with another load, and, if the server closes idle connections, with shorter pauses. Also checks
//! which plans can be searched.

use judge::longest_pause;
use plan::{Activity, Hold, Plan, Population, Ramp, Share, Stage, Think};
use record::Record;
use samples::IdleTimeout;
use units::{Count, Nanos, Rate};

use super::By;
use crate::Refusal;

/// Shortest and longest pause, as fractions of the idle timeout.
const SHORTEST: f64 = 0.3;
const LONGEST: f64 = 0.6;

impl By {
    /// The plan with this load, held for `dwell`. Several populations share it in the proportions of the user's plan.
    pub fn plan(self, plan: &Plan, load: u64, dwell: Nanos) -> Plan {
        // Whether such a variant exists is checked before a step.
        let variant = self.variant(load).and_then(Result::ok).map(|variant| variant.plan);
        let mut plan = Plan { seed: plan.seed, ..variant.unwrap_or_else(|| plan.clone()) };
        let ramp = match self {
            By::Burst => Ramp::Within(Nanos::ZERO),
            _ => plan.stages[0].ramp,
        };
        let of = (0..plan.populations.len() as u16).collect();
        plan.stages =
            vec![Stage { name: "step".to_owned(), of, to: Share::ALL, ramp, hold: Hold::For(dwell) }];
        if matches!(self, By::Number(_)) {
            return plan;
        }
        let load = load.saturating_sub(self.probes_per_s(&plan)).max(1);
        let weights: Vec<f64> = plan.populations.iter().map(|population| self.weight(population)).collect();
        for (population, n) in plan.populations.iter_mut().zip(dealt(load, &weights)) {
            let mut keys = population.load.keys();
            match self {
                By::Arrival => {
                    let all = u64::from(n).saturating_mul(dwell.0) / Nanos::from_secs(1).0;
                    keys.arrive = Some(Rate::per_s(n));
                    keys.total = Some(u32::try_from(all.max(1)).unwrap_or(u32::MAX));
                    population.calls = population.calls.or(Some(1));
                }
                // Populations of arrivals stay as they are.
                By::Connections | By::Burst => keys.connections = Some(n),
                By::Rate => keys.rate = Some(Rate::per_s(n)),
                By::Number(_) => {}
            }
            population.load = keys.load();
        }
        plan
    }

    /// Whether a search can increase this quantity.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn check(self, plan: &Plan) -> Result<(), Refusal> {
        if let Some(Err(why)) = self.variant(self.first()) {
            return Err(why);
        }
        let all = || plan.populations.iter();
        let has_steps = |population: &Population| matches!(population.activity, Activity::Steps { .. });
        let is_silent = |population: &Population| population.activity == Activity::Idle;
        let why = match self {
            By::Arrival if !all().all(has_steps) => {
                "a connection that arrives is closed after its requests, and there are none; use connections or burst"
            }
            By::Arrival if plan.thresholds.iter().any(|threshold| threshold.is_of_held()) => {
                "a threshold is on connections held, and those that arrive are closed after their requests; use errors < 1%, answered >= 99% or finished >= 99%, or connections"
            }
            By::Rate if all().any(is_silent) => {
                "without a message there is nothing to send; add --message ping, or use connections or burst"
            }
            By::Connections | By::Burst | By::Rate if all().all(Population::comes_and_goes) => {
                "connections arrive at a rate, and none is held; use arrival"
            }
            _ => return Ok(()),
        };
        Err(format!("{why}: {:?}", self.name()).into())
    }

    /// The smallest possible load: each population takes part, and a rate includes the probe's requests.
    pub(super) fn least(self, plan: &Plan) -> u64 {
        if matches!(self, By::Number(_)) {
            return self.least_number();
        }
        let take_part = plan.populations.iter().filter(|population| self.weight(population) > 0.0);
        (take_part.count() as u64).max(1) + self.probes_per_s(plan)
    }

    /// The smallest number with a valid plan, up to the first load. Binary search: assumes that all numbers above it are valid.
    fn least_number(self) -> u64 {
        let is_refused = |load| self.variant(load).is_some_and(|variant| variant.is_err());
        let (mut refused, mut least) = (0, if is_refused(1) { self.first() } else { 1 });
        while least - refused > 1 {
            let middle = refused.midpoint(least);
            if is_refused(middle) { refused = middle } else { least = middle }
        }
        least
    }

    /// Whether the search has a load up to `most`.
    ///
    /// # Errors
    /// All its loads are larger; contains the smallest one. Or there is no valid plan with `most`.
    pub fn check_most(self, plan: &Plan, most: u64) -> Result<(), Refusal> {
        if let Some(Err(why)) = self.variant(most) {
            return Err(why);
        }
        let (least, probes) = (self.least(plan), self.probes_per_s(plan));
        let why = match Count(probes) {
            _ if most >= least => return Ok(()),
            Count(0) => "each population takes part".to_owned(),
            n => {
                format!("each load includes the probe's {n} requests/s; use a larger one, or a lower --probe")
            }
        };
        Err(format!("must be at least {}, because {why}: {most}", Count(least)).into())
    }

    /// The probe's part of a load, in requests per second.
    fn probes_per_s(self, plan: &Plan) -> u64 {
        let probe = plan.probe.as_ref().filter(|_| self == By::Rate);
        probe.map_or(0, |probe| probe.rate.per_s_f64().round() as u64)
    }

    /// A population's weight in the load.
    fn weight(self, population: &Population) -> f64 {
        match (self, population.load.rate()) {
            (By::Rate | By::Arrival, Some(rate)) => rate.per_s_f64(),
            _ if population.comes_and_goes() => 0.0,
            _ => f64::from(population.load.connections()),
        }
    }
}

/// Splits `n` in these proportions, with at least 1 for each nonzero weight. The sum is `n` if possible.
fn dealt(n: u64, weights: &[f64]) -> Vec<u32> {
    let all: f64 = weights.iter().sum();
    let (mut so_far, mut given) = (0.0, 0);
    let share = |weight: &f64| {
        so_far += weight;
        let until = (n as f64 * so_far / all.max(f64::MIN_POSITIVE)).round() as u64;
        let own = until.saturating_sub(given).max(u64::from(*weight > 0.0));
        given += own;
        u32::try_from(own).unwrap_or(u32::MAX)
    };
    weights.iter().map(share).collect()
}

/// The time after which the server closes idle connections, as announced (`Keep-Alive: timeout`) or as observed in this step, whichever
/// is shorter. `None` if unknown.
pub(super) fn idle_timeout(record: &Record) -> Option<Nanos> {
    let announced = Some(Nanos::from_secs(record.totals.keep_alive_s)).filter(|time| *time > Nanos::ZERO);
    announced.into_iter().chain(judge::idle_timeout(record)).min()
}

/// The plan with pauses shorter than the idle timeout; `None` if they already are.
pub(super) fn outlasted(plan: &Plan, timeout: Nanos) -> Option<(Plan, IdleTimeout)> {
    if plan.populations.iter().all(|population| longest_pause(population) < timeout) {
        return None;
    }
    // Rounded down to tenths of a second.
    let part = |share: f64| Nanos((timeout.0 as f64 * share) as u64 / 100_000_000 * 100_000_000);
    let think = Think::even(part(SHORTEST), part(LONGEST));
    let mut plan = plan.clone();
    plan.populations.iter_mut().for_each(|population| population.set_think(think));
    let think_s = [think.min, think.max].map(Nanos::secs_f64);
    Some((plan, IdleTimeout { timeout_s: timeout.secs_f64(), think_s }))
}

#[cfg(test)]
mod tests {
    use plan::{Environment, Flags, flag};

    use super::*;

    fn plan_of(flags: Flags) -> Plan {
        let resolve = |_: &str| Err("no names here".to_owned());
        let around = Environment { cores: 1, seed: 1, resolve: &resolve };
        plan::from_flags(&flags, &around).expect("it is right")
    }

    #[test]
    fn a_number_of_the_scenario_makes_a_run_of_its_own() {
        let base = Plan { seed: 7, ..plan_of(Flags::new("http://127.0.0.1:1/")) };
        let by = By::number("threads", (3, ""), |load| match load {
            9.. => Err("too many".to_owned().into()),
            _ => Ok(crate::Variant {
                plan: Plan { threads: load as u32, ..plan_of(Flags::new("http://127.0.0.1:1/")) },
                text: Some(format!("threads = {load}")),
                flag: None,
            }),
        });
        let plan = by.plan(&base, 5, Nanos::from_secs(2));
        let hold: Vec<Hold> = plan.stages.iter().map(|stage| stage.hold).collect();
        assert_eq!((plan.threads, plan.seed, hold), (5, 7, vec![Hold::For(Nanos::from_secs(2))]));
        assert_eq!((by.name(), by.unit(), by.least(&base), by.first()), ("threads", "threads", 1, 3));
        let unit = By::number("chat.rate", (400, "/s"), |_| Err(String::new().into())).unit();
        assert_eq!(unit, "/s (chat.rate)");
        let most = |n| by.check_most(&base, n).map_err(|why| why.clone());
        assert_eq!((most(8), most(9)), (Ok(()), Err("too many".to_owned().into())));
        // Whatever the figures, the run judges itself.
        let s = samples::Summary { verdict: samples::Verdict::Pass, ..Default::default() };
        assert_eq!(super::super::reasons(by, 5, &s, None), Vec::<String>::new());
        // An agent gets the scenario file of each step.
        let sent = serde_json::to_string(&by).expect("it is plain");
        assert_eq!((sent.as_str(), serde_json::from_str(&sent).ok()), ("\"Number\"", Some(By::Number(None))));
        assert_eq!(By::Number(None).plan(&base, 5, Nanos::from_secs(2)).threads, base.threads);
    }

    #[test]
    fn a_search_by_a_number_begins_where_the_file_takes_it() {
        let base = plan_of(Flags::new("http://127.0.0.1:1/"));
        let by = |value: u64, least: u64| {
            let variant = crate::Variant { plan: base.clone(), text: None, flag: None };
            By::number("threads", (value, ""), move |load| match load {
                load if load < least => Err(format!("at least {least}").into()),
                _ => Ok(variant.clone()),
            })
        };
        for (value, least) in [(1, 1), (100, 1), (100, 2), (100, 37), (100, 100)] {
            let by = by(value, least);
            assert_eq!((by.check(&base), by.least(&base)), (Ok(()), least), "{value}");
        }
        assert_eq!(by(3, 4).check(&base), Err("at least 4".to_owned().into()));
    }

    #[test]
    fn a_load_by_rate_has_the_probes_requests() {
        let plan = plan_of(Flags::new("http://127.0.0.1:1/").with(&flag::PROBE, "20/s"));
        assert_eq!(
            By::Rate.check_most(&plan, 20).expect_err("all of it is the probe's").to_string(),
            "must be at least 21, because each load includes the probe's 20 requests/s; use a larger one, or a lower --probe: 20"
        );
        assert_eq!(By::Rate.check_most(&plan, 21), Ok(()));
        let rate_of = |load| By::Rate.plan(&plan, load, Nanos::from_secs(1)).populations[0].load.rate();
        assert_eq!([21, 100].map(rate_of), [1, 80].map(|per_s| Some(Rate::per_s(per_s))));
        // Where connections are counted, the probe's are excluded.
        assert_eq!(By::Connections.check_most(&plan, 1), Ok(()));
        let held = By::Connections.plan(&plan, 1, Nanos::from_secs(1)).populations[0].load.connections();
        assert_eq!(held, 1);
    }

    #[test]
    fn a_search_that_compares_begins_beside_an_idle_target() {
        let flags = || Flags::new("http://127.0.0.1:1/");
        let probed = || flags().with(&flag::PROBE, "20/s");
        let check = |flags: Flags, by: By, most: u64, first: u64| {
            let plan = plan_of(flags);
            let search = by.search(&plan, by.least(&plan), most);
            assert_eq!(search.propose().map(|step| step.load), Some(first), "{by:?} {most}");
        };
        check(probed(), By::Connections, 4_000, 5);
        check(probed(), By::Connections, 400, 4);
        check(probed(), By::Burst, 30, 1);
        check(probed(), By::Arrival, 1_000_000, 10);
        check(probed(), By::Rate, 1_000, 31);
        // There is no smaller load.
        check(probed(), By::Rate, 21, 21);
        // Thresholds replace the comparison, and without a probe there is nothing to compare.
        check(probed().with(&flag::THRESHOLD, "faults == 0"), By::Connections, 400, 400);
        check(flags(), By::Connections, 4_000, 500);
    }

    #[test]
    fn the_least_load_has_every_population() {
        let one = plan_of(Flags::new("http://127.0.0.1:1/"));
        let two = Plan { populations: [&one.populations[..], &one.populations[..]].concat(), ..one.clone() };
        assert_eq!([&one, &two].map(|plan| By::Connections.least(plan)), [1, 2]);
        assert!(By::Burst.check_most(&two, 1).is_err_and(|why| why.to_string().contains("at least 2")));
    }

    #[test]
    fn a_search_that_would_show_nothing_is_refused() {
        let all = [By::Connections, By::Arrival, By::Burst, By::Rate];
        let check = |flags: Flags, expected: [bool; 4]| {
            let plan = plan_of(flags.clone());
            assert_eq!(all.map(|by| by.check(&plan).is_ok()), expected, "{flags:?}");
        };
        check(Flags::new("http://127.0.0.1:1/"), [true; 4]);
        check(Flags::new("ws://127.0.0.1:1/"), [true, false, true, true]);
        check(Flags::new("tcp://127.0.0.1:1").with(&flag::MESSAGE, "ping"), [true, false, true, true]);
        check(Flags::new("tcp://127.0.0.1:1"), [true, false, true, false]);
        let arrivals = Flags::new("http://127.0.0.1:1/").with(&flag::ARRIVE, "9/s").with(&flag::TOTAL, 9);
        check(arrivals, [false, true, false, false]);
        let judged = |threshold| Flags::new("http://127.0.0.1:1/").with(&flag::THRESHOLD, threshold);
        check(judged("held >= 99%"), [true, false, true, true]);
        check(judged("errors < 1%"), [true; 4]);
    }

    #[test]
    fn a_load_is_dealt_out_in_proportion() {
        for (n, weights, expected) in [
            (700, &[50.0][..], &[700][..]),
            (700, &[500_000.0, 2_000.0], &[697, 3]),
            (10, &[1.0, 1.0, 1.0], &[3, 4, 3]),
            (10, &[1.0, 0.0, 1.0], &[5, 0, 5]),
            (2, &[1.0, 1_000.0], &[1, 1]),
            (u64::MAX, &[1.0], &[u32::MAX]),
        ] {
            assert_eq!(dealt(n, weights), expected, "{n} {weights:?}");
        }
    }

    /// The server announces a timeout; 50 connections were closed after 3 s of silence, while others were open for longer.
    #[test]
    fn a_pause_that_others_survived_is_no_idle_timeout() {
        let check = |announced_s: u64, survived_s: u64, expected_s: Option<u64>| {
            let mut r = record::fixture::record();
            (0..50).for_each(|_| r.totals.silence.record(Nanos::from_secs(3)));
            r.totals.keep_alive_s = announced_s;
            r.totals.longest_silence = Nanos::from_secs(survived_s);
            let seen = idle_timeout(&r).map(|time| time.secs_f64().round() as u64);
            assert_eq!(seen, expected_s, "{announced_s} {survived_s}");
        };
        check(0, 0, Some(3));
        check(0, 2, Some(3));
        check(0, 9, None);
        // An announced timeout applies in any case.
        check(5, 9, Some(5));
        check(2, 0, Some(2));
    }
}
