//! The parameters of a search, for `throng find` and for the HTTP API: which load it varies and up to what limit, and the defaults of
//! its steps.

use fleet::Agents;
use host::Root;
use plan::{Flag, Flags, Plan, Scheme, flag};
use run::{By, Find, Here, Interrupt, Shown};
use samples::FindSummary;
use units::{Count, Nanos};

use crate::{
    Failure, message,
    mistakes::Mistakes,
    number::{self, Plans},
    plans,
};

/// Default time at full load of each step (`--duration`).
const DWELL: &str = "2s";
/// Minimum duration of a step at full load.
const SHORTEST: Nanos = Nanos::from_secs(1);
/// Default time between requests on a connection that is only held (`--think`).
const THINK: &str = "30s..90s";
/// Default of `--probe`.
const PROBE: &str = "20/s";
/// `--rate` if only `--ping` is given, which sends no requests. The search sets the rate for each step.
const RATE: &str = "1/s";
/// `--arrive` and `--total` for `--calls`, which requires both. The search sets them for each step.
const ARRIVE: &str = "1/s";
const TOTAL: u32 = 1;

/// Default of `--max-time`.
const MAX_TIME: &str = "3m";
/// Minimum duration of a search.
const SHORTEST_SEARCH: Nanos = Nanos::from_secs(10);

/// The values of `--by`, for messages.
const KINDS: &str = "connections, arrival, burst, rate or streams; with a scenario file also the path of a number in it, as \
population.chat.connections";

/// The flags of a search, as typed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'a> {
    pub(crate) by: Option<&'a str>,
    pub(crate) max: Option<&'a str>,
    pub(crate) max_time: Option<&'a str>,
}

/// The parsed parameters of a search. A field is `None` if its flag was wrong or, for `most`, not given.
pub(crate) struct How {
    by: Option<By>,
    /// The largest load to try; `None` for the largest possible.
    pub(crate) most: Option<u64>,
    dwell: Option<Nanos>,
    max_time: Option<Nanos>,
    may_think_less: bool,
}

impl How {
    /// Parses `--by`, `--max` and the flags of a plan; also returns the flags of each step. `plans` makes the plans of a search by a
    /// number.
    pub(crate) fn read(
        asked: Asked,
        flags: Flags,
        plans: impl Plans,
        mistakes: &mut Mistakes,
    ) -> (How, Flags) {
        let Asked { by, max, max_time } = asked;
        let by = by.unwrap_or(By::Connections.name());
        let by = mistakes.read("--by", Some(by), |text| kind(text, &flags, plans));
        let most = mistakes.read("--max", max, |text| match Count::parse(text) {
            Ok(Count(0)) => Err(format!("must be at least 1; use 100k: {text:?}")),
            Ok(Count(n)) => Ok(n),
            Err(_) => Err(format!("{text:?} is not a number; use 100k")),
        });
        if let (Some(by @ By::Number(_)), None) = (by, max) {
            let name = by.name();
            mistakes.add(format!("--max: required, because nothing bounds {name}; use the largest to try"));
        }
        let max_time = mistakes.read("--max-time", max_time.or(Some(MAX_TIME)), search_time);
        if by == Some(By::Burst) && flags.get(&flag::RAMP).is_some() {
            mistakes.add("--ramp: cannot be used with --by burst, which dials all at once; remove it");
        }
        let dwell = flags.get(&flag::DURATION).unwrap_or(DWELL).to_owned();
        let dwell = mistakes.read("--duration", Some(&dwell), step_time);
        // Its mistake has been reported already.
        let flags = if dwell.is_some() { flags } else { flags.without(&flag::DURATION) };
        let thought = flags.get(&flag::THINK).map(str::to_owned);
        let flags = match plans::scenario_file(&flags) {
            // The search determines the duration of a step, regardless of the scenario's stages.
            Some(_) => flags.without(&flag::DURATION),
            None => of_step(flags, by, mistakes),
        };
        let may_think_less = thought.is_none() && flags.get(&flag::THINK).is_some();
        (How { by, most, dwell, max_time, may_think_less }, flags)
    }

    /// Checks that the plan can be used for this search.
    pub(crate) fn check(&self, plan: &Plan, mistakes: &mut Mistakes) {
        let Some(by) = self.by else { return };
        let checked = by.check(plan);
        if let Err(why) = &checked {
            mistakes.add(format!("--by: {why}"));
        }
        if let (Some(dwell), Some(probe)) = (self.dwell, &plan.probe)
            && probe.rate.per_s_f64() * dwell.secs_f64() < 1.0
        {
            mistakes.add(format!(
                "--probe: sends no request in some steps of {}; use a faster one, or a longer -d",
                dwell.brief()
            ));
        }
        // If the smallest number is refused, a larger one would only repeat the message.
        let is_known = matches!(by, By::Number(_)) && checked.is_err();
        if let Some(Err(why)) = self.most.filter(|_| !is_known).map(|most| by.check_most(plan, most)) {
            mistakes.add(format!("--max: {why}"));
        }
    }

    /// The load to vary and the duration of each step. To be called after all mistakes have been reported.
    pub(crate) fn without_mistakes(&self) -> (By, Nanos) {
        self.by.zip(self.dwell).expect("it is no mistake")
    }

    /// The search with `most` as its largest load.
    pub(crate) fn up_to(&self, most: u64) -> Find {
        let (by, dwell) = self.without_mistakes();
        let max_time = self.max_time.expect("it is no mistake");
        Find { by, most, dwell, max_time, may_think_less: self.may_think_less }
    }
}

impl Drop for How {
    /// Releases the memory of the plans that the search made.
    fn drop(&mut self) {
        if let Some(by) = self.by {
            by.release();
        }
    }
}

/// The load that `--by` names.
fn kind(text: &str, flags: &Flags, plans: impl Plans) -> Result<By, String> {
    let all = [By::Connections, By::Arrival, By::Burst, By::Rate];
    match (all.into_iter().find(|by| by.name() == text), plans::scenario_file(flags)) {
        (Some(by), _) => Ok(by),
        (None, Some(file)) => number::read(text, file, flags, plans),
        (None, None) if text == flag::STREAMS.name => {
            let (by, unread) = (Some(By::Number(None)), &mut Mistakes::default());
            Ok(number::streams(of_step(flags.clone(), by, unread), plans))
        }
        (None, None) => Err(format!("{text:?} is not supported; use {KINDS}")),
    }
}

/// The flags of a step without a scenario. `by` is `None` if it was wrong.
fn of_step(mut flags: Flags, by: Option<By>, mistakes: &mut Mistakes) -> Flags {
    if let Some(by) = by.filter(|by| !matches!(by, By::Rate | By::Number(_)))
        && flags.get(&flag::CONNECTIONS).is_some()
    {
        let (place, by) = (flag::CONNECTIONS.place(), by.name());
        mistakes
            .add(format!("{place}: cannot be used with --by {by}, which sets it; use --max for the largest"));
        flags = flags.without(&flag::CONNECTIONS);
    }
    let is_given = |flag: &Flag| flags.get(flag).is_some();
    let scheme = flags.get(&flag::TARGET).and_then(Scheme::of_target);
    let has_requests = scheme.is_some_and(Scheme::has_requests);
    let pings = !has_requests || is_given(&flag::HTTP2);
    // With other protocols these flags are refused anyway. PINGs of HTTP/2 are independent of requests.
    for (flag, is_own) in [(&flag::THINK, has_requests), (&flag::PING, !has_requests)] {
        if by == Some(By::Rate) && is_own && is_given(flag) {
            let why = "cannot be used with --by rate, which sets when requests are due; remove it";
            mistakes.add(format!("{}: {why}", flag.place()));
        }
    }
    let keeps_alive = by == Some(By::Rate) && has_requests && pings && is_given(&flag::PING);
    let says_when = is_given(&flag::THINK) || is_given(&flag::ARRIVE);
    // Whether another flag determines when the next request is due.
    let is_paced = is_given(&flag::RATE) || is_given(&flag::ARRIVE) || pings && is_given(&flag::PING);
    let holds = matches!(by, Some(By::Connections | By::Burst));
    let thinks = holds && has_requests && !is_paced;
    let is_mute = scheme.is_some_and(Scheme::has_bytes) && !is_given(&flag::MESSAGE);
    let calls = by == Some(By::Arrival) && (is_given(&flag::CALLS) || is_given(&flag::ARRIVE));
    let flags = flags.or(&flag::DURATION, DWELL);
    let flags = if is_mute { flags } else { flags.or(&flag::PROBE, PROBE) };
    let flags = if calls { flags.or(&flag::ARRIVE, ARRIVE).or(&flag::TOTAL, TOTAL) } else { flags };
    let flags = if keeps_alive && !says_when { flags.or(&flag::RATE, RATE) } else { flags };
    if thinks { flags.or(&flag::THINK, THINK) } else { flags }
}

/// Parses the maximum duration of a search.
fn search_time(text: &str) -> Result<Nanos, String> {
    bounded_time(text, "a search", SHORTEST_SEARCH, MAX_TIME)
}

/// Parses the duration of a step at full load.
pub(crate) fn step_time(text: &str) -> Result<Nanos, String> {
    bounded_time(text, "a step of a search", SHORTEST, "5s")
}

/// Parses a duration of at least `shortest`; `what` and `instead` (an example) are for the message.
fn bounded_time(text: &str, what: &str, shortest: Nanos, instead: &str) -> Result<Nanos, String> {
    match Nanos::parse_or_seconds(text) {
        Ok(time) if time >= shortest => Ok(time),
        // `forever` is refused, too, although it is a valid duration for other commands.
        _ => Err(format!("{what} lasts {shortest} or longer, and ends; use {instead}: {text:?}")),
    }
}

/// The largest load that this machine, or the agents, can generate.
///
/// # Errors
/// The target cannot be reached, or there are no agents.
pub(crate) fn most(by: By, plan: &Plan, agents: Option<&mut Agents>) -> Result<u64, String> {
    match agents {
        None => run::most(by, plan, &Root::real()).map_err(|why| why.to_string()),
        Some(agents) => agents.most(by, plan, &mut message).map_err(|why| why.to_string()),
    }
}

/// Searches on this machine or on agents; calls `show` before and after each step.
pub(crate) fn search(
    how: Find,
    plan: &Plan,
    agents: Option<&mut Agents>,
    interrupt: &Interrupt,
    show: &mut dyn FnMut(Shown<'_>),
) -> Result<FindSummary, Failure> {
    let root = Root::real();
    let found = match agents {
        None => run::find(&mut Here::new(&root), how, plan, &root, interrupt, &mut message, show),
        Some(agents) => run::find(agents, how, plan, &root, interrupt, &mut message, show),
    };
    found.map_err(Failure::machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the flags of a step, and all mistakes.
    fn read(by: Option<&str>, max: Option<&str>, flags: &Flags) -> (Flags, Vec<String>) {
        let mut mistakes = Mistakes::default();
        let asked = Asked { by, max, ..Asked::default() };
        let (_, of_step) = How::read(asked, flags.clone(), number::Files, &mut mistakes);
        (of_step, mistakes.end(()).err().map(|failure| failure.lines).unwrap_or_default())
    }

    #[test]
    fn a_number_that_is_too_small_is_no_other_text() {
        let check = |max: &str, expected: &[&str]| {
            assert_eq!(read(None, Some(max), &Flags::new("http://h/")).1, expected);
        };
        check("1", &[]);
        check("0", &["--max: must be at least 1; use 100k: \"0\""]);
        check("few", &["--max: \"few\" is not a number; use 100k"]);
    }

    #[test]
    fn all_mistakes_of_a_search_are_reported_at_once() {
        let flags = Flags::new("http://h/").with(&flag::DURATION, "long");
        let (of_step, mistakes) = read(Some("magic"), Some("few"), &flags);
        assert_eq!(mistakes.len(), 3, "{mistakes:?}");
        assert_eq!(of_step.get(&flag::DURATION), Some(DWELL), "read once");
        let flags = Flags::new("http://h/").with(&flag::THINK, "1s");
        let why = "--think: cannot be used with --by rate, which sets when requests are due; remove it";
        assert_eq!(read(Some("rate"), None, &flags).1, [why]);
        assert!(read(Some("burst"), None, &flags).1.is_empty());
        let held = Flags::new("http://h/").with(&flag::CONNECTIONS, 9);
        for by in ["connections", "burst", "arrival"] {
            let why = format!(
                "--connections: cannot be used with --by {by}, which sets it; use --max for the largest"
            );
            assert_eq!(read(Some(by), None, &held).1, [why]);
        }
        assert!(read(Some("rate"), None, &held).1.is_empty());
        let ramp = Flags::new("http://h/").with(&flag::RAMP, "9/s");
        assert!(read(Some("burst"), None, &ramp).1.concat().contains("which dials all at once"));
    }

    #[test]
    fn defaults_do_not_contradict_what_is_given() {
        let thinks = |by: &str, flags: Flags| read(Some(by), None, &flags).0.get(&flag::THINK).is_some();
        let flags = || Flags::new("http://h/");
        assert!(thinks("connections", flags()) && thinks("burst", flags()));
        assert!(!thinks("rate", flags()) && !thinks("arrival", flags()));
        assert!(!thinks("connections", flags().with(&flag::RATE, "9/s")));
        assert!(!thinks("connections", flags().with(&flag::HTTP2, "").with(&flag::PING, "9s")));
        // With gRPC, PINGs are sent beside calls.
        assert!(thinks("connections", Flags::new("grpc://h/a.B/C").with(&flag::PING, "9s")));
        let (of_step, mistakes) = read(Some("arrival"), None, &flags().with(&flag::CALLS, 9));
        assert!(mistakes.is_empty() && of_step.get(&flag::TOTAL).is_some(), "{of_step:?}");
    }

    #[test]
    fn connections_are_kept_alive_beside_a_rate_that_is_searched() {
        let ping = |target: &str| Flags::new(target).with(&flag::PING, "9s");
        for (flags, rate) in
            [(ping("http://h/").with(&flag::HTTP2, ""), Some(RATE)), (ping("grpc://h/a.B/C"), None)]
        {
            let (of_step, mistakes) = read(Some("rate"), None, &flags);
            assert_eq!((of_step.get(&flag::RATE), mistakes), (rate, Vec::new()), "{flags:?}");
        }
        // With WebSocket, PINGs are the requests whose rate is searched.
        for flags in [ping("ws://h/"), ping("ws://h/").with(&flag::HTTP2, "")] {
            let why = "--ping: cannot be used with --by rate, which sets when requests are due; remove it";
            assert_eq!(read(Some("rate"), None, &flags).1, [why], "{flags:?}");
        }
        // If the search is not for a rate, only PINGs are sent.
        let held = ping("http://h/").with(&flag::HTTP2, "");
        assert_eq!(read(Some("connections"), None, &held).0.get(&flag::RATE), None);
    }

    #[test]
    fn a_step_lasts_a_second_or_longer() {
        let wrong = |text: &str| -> Result<Nanos, String> {
            Err(format!("a step of a search lasts 1s or longer, and ends; use 5s: {text:?}"))
        };
        for (text, expected) in [("3", Ok(3)), ("3s", Ok(3)), ("1m", Ok(60))] {
            assert_eq!(step_time(text), expected.map(Nanos::from_secs), "{text}");
        }
        for text in ["forever", "500ms", "0", "long"] {
            assert_eq!(step_time(text), wrong(text));
        }
        assert_eq!(search_time("3m"), Ok(Nanos::from_secs(180)));
        let why = "a search lasts 10s or longer, and ends; use 3m: \"9s\"";
        assert_eq!(search_time("9s"), Err(why.to_owned()));
    }
}
