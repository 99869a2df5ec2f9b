//! From flags as typed to a [`Plan`], or to all that is wrong with them at once.

use crate::flag::{self, FLAGS, Flag, Role, Takes};
use crate::request::LONGEST_REQUEST;
use crate::target::Resolve;
use crate::threshold::{NEVER_HELD, list_once};
use crate::{
    Activity, Expectation, ExpectedLength, Hold, IoChoice, Observe, Plan, Population, Probe, Pushes, Ramp,
    Reconnect, Request, Scheme, Share, Sources, Stage, Target, Text, Think, Threshold,
};
use std::fmt;
use std::net::IpAddr;
use units::{Count, Nanos, ParseError, Rate, Spans};

use self::load::Loaded;
pub use self::load::{a_rate, rate_per_s};
pub(crate) use self::load::{between_pings, connections_for, requests};
pub(crate) use self::transport::{HAS_HTTP2, ONE_AT_A_TIME, requires_http2, requires_tls};

pub(crate) mod grpc;
mod load;
mod place;
pub(crate) mod request;
mod transport;

/// The flags of a command line as typed: the name of each with its value, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags(Vec<(&'static str, String)>);

impl Flags {
    /// A target alone.
    pub fn new(target: impl ToString) -> Flags {
        Flags::default().with(&flag::TARGET, target)
    }

    /// With one more value of a flag.
    #[must_use]
    pub fn with(mut self, flag: &Flag, value: impl ToString) -> Flags {
        self.0.push((flag.name, value.to_string()));
        self
    }

    /// With this value of a flag that was not given.
    #[must_use]
    pub fn or(self, flag: &Flag, value: impl ToString) -> Flags {
        if self.get(flag).is_some() { self } else { self.with(flag, value) }
    }

    /// Without a flag.
    #[must_use]
    pub fn without(mut self, flag: &Flag) -> Flags {
        self.0.retain(|(name, _)| *name != flag.name);
        self
    }

    /// Without those that say which machines apply the load: each of these makes a plan of the rest.
    #[must_use]
    pub fn without_place(mut self) -> Flags {
        self.0.retain(|(name, _)| !FLAGS.iter().any(|flag| flag.name == *name && flag.role == Role::Place));
        self
    }

    /// The value of a flag; of one that takes none, an empty text.
    pub fn get(&self, flag: &Flag) -> Option<&str> {
        self.all(flag).next()
    }

    /// Each value of a flag.
    pub fn all(&self, flag: &Flag) -> impl Iterator<Item = &str> {
        let name = flag.name;
        self.0.iter().filter(move |(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    /// All of them, as they would be typed: each name with its value.
    pub fn pairs(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    /// The flags of these [pairs](Flags::pairs).
    ///
    /// # Errors
    /// A name that is no flag's.
    pub fn from_pairs(pairs: &[(String, String)]) -> Result<Flags, String> {
        let known = |name: &str| FLAGS.iter().find(|flag| flag.name == name).map(|flag| flag.name);
        let flag = |(name, value): &(String, String)| Some((known(name)?, value.clone()));
        let read = |pair| flag(pair).ok_or_else(|| format!("no such flag: {}", pair.0));
        pairs.iter().map(read).collect::<Result<_, _>>().map(Flags)
    }

    /// A mistake for each flag that was given, where `why` refuses it with this value.
    pub fn refused(&self, why: impl Fn(&Flag, &str) -> Option<String>) -> Vec<Mistake> {
        let mut reader = FlagReader::new(self);
        for flag in FLAGS {
            if let Some(why) = self.all(flag).find_map(|value| why(flag, value)) {
                reader.refuse(flag, why);
            }
        }
        reader.mistakes
    }
}

/// The arguments of a command line that define the load: each flag with its value, sorted.
pub fn load_args(args: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = args.iter().peekable();
    while let Some(arg) = rest.next() {
        let is_flag = |arg: &str| arg.len() > 1 && arg.starts_with('-');
        if !is_flag(arg) {
            found.push(arg.clone());
            continue;
        }
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (arg.as_str(), rest.next_if(|next| !is_flag(next)).cloned()),
        };
        let flag = Flag::named(name);
        if !flag.is_some_and(|flag| flag.role.keeps_load()) {
            let name = flag.map_or(name.to_owned(), Flag::place);
            found.push(value.map_or(name.clone(), |value| format!("{name} {value}")));
        }
    }
    found.sort();
    found
}

/// Facts of the machine for the planner; an argument, so that a test needs no machine.
pub struct Environment<'a> {
    /// Processors that this process may use.
    pub cores: u32,
    /// A random number, used where `--seed` is absent.
    pub seed: u64,
    /// Resolves a name; the error is a short reason.
    pub resolve: &'a dyn Fn(&str) -> Result<Vec<IpAddr>, String>,
}

/// A usage error. Prints `--ramp: "30" is not a rate; use 30/s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The flag, or `target`.
    pub place: String,
    /// What is wrong, with the text, and the fix.
    pub text: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Resolves the flags; reports all mistakes at once.
pub fn from_flags(flags: &Flags, around: &Environment) -> Result<Plan, Vec<Mistake>> {
    let mut reader = FlagReader::new(flags);
    let r = &mut reader;
    // The sources' family decides which addresses of the target are taken.
    let sources = r.read(&flag::SOURCES, Sources::Automatic, Sources::parse);
    let target = r.target(sources.is_v4(), around.resolve);
    let scheme = target.as_ref().map(|target| target.scheme);
    let Loaded { load, calls, requests, ramp, hold } = r.load(scheme);
    let rate = r.probe(scheme);
    let think = r.read(&flag::THINK, Think::default(), |text| think(text, scheme));
    let message = r.message(scheme);
    let keep_alive = r.keep_alive(scheme);
    let timeout = r.read(&flag::TIMEOUT, DEFAULT_TIMEOUT, timeout);
    let expect = r.read(&flag::EXPECT, Expectation::default(), |text| expect(text, target.as_ref()));
    let reconnect = r.read(&flag::RECONNECT, Reconnect::Planned, reconnect);
    let tls = r.tls(target.as_ref().map(|target| target.secure));
    let streams = r.streams(scheme, think);
    let called = r.grpc(scheme);
    let sent = r.sent(target.as_ref());
    let main = target.map(|target| {
        let headers = sent.headers.clone();
        let activity = match &called {
            Some((body, grpc)) => {
                let call = grpc::call(&target, body.clone(), grpc, expect);
                Activity::again(Request { headers: sent.headers, ..call }, think)
            }
            None => activity(&target, think, message, |path| sent.request(path, expect)),
        };
        Population {
            name: "main".to_owned(),
            headers: if target.scheme.has_requests() { Vec::new() } else { headers },
            target,
            tls,
            streams,
            grpc: called.map(|(_, grpc)| grpc),
            load,
            calls,
            requests,
            timeout,
            reconnect,
            cookies: false,
            variables: Vec::new(),
            activity,
            pushes: Pushes::default(),
            keep_alive,
        }
    });
    let probe = rate.zip(main.clone()).map(|(rate, main)| Probe::new(rate, main));
    let populations: Vec<Population> = main.into_iter().collect();
    let plan = Plan {
        text: populations.first().map_or(String::new(), |main| main.target.text.clone()),
        populations,
        stages: vec![Stage { name: "up".to_owned(), of: vec![0], to: Share::ALL, ramp, hold }],
        probe,
        tables: Vec::new(),
        sources,
        threads: around.cores.clamp(1, MAX_THREADS),
        seed: around.seed,
        io: IoChoice::Auto,
        thresholds: Vec::new(),
        max_lag: DEFAULT_MAX_LAG,
        experiments: true,
        max_segment: None,
        target_gc: false,
        observe: None,
    };
    let plan = r.over(plan, around, true);
    let mut mistakes = reader.mistakes;
    list_once(mistakes.iter_mut().map(|mistake| &mut mistake.text));
    if mistakes.is_empty() { Ok(plan) } else { Err(mistakes) }
}

/// What each connection does: one request again and again, or one message, or nothing.
fn activity(
    target: &Target,
    think: Think,
    message: Option<(Nanos, String)>,
    request: impl FnOnce(Text) -> Request,
) -> Activity {
    match message {
        Some((every, text)) => Activity::Ping { every, text: Text::fixed(&text) },
        None if target.scheme.has_requests() => Activity::again(request(target.path.clone()), think),
        None => Activity::Idle,
    }
}

/// Reads flags, and keeps what is wrong with them.
pub(crate) struct FlagReader<'f> {
    flags: &'f Flags,
    pub(crate) mistakes: Vec<Mistake>,
}

impl<'f> FlagReader<'f> {
    pub(crate) fn new(flags: &'f Flags) -> FlagReader<'f> {
        FlagReader { flags, mistakes: Vec::new() }
    }

    /// Flags beside a scenario file, which defines what each connection does.
    pub(crate) fn beside_a_scenario(flags: &'f Flags) -> FlagReader<'f> {
        let why = || "cannot be used with a scenario file; set it in the file".to_owned();
        let mistakes = flags.refused(|flag, _| (flag.role == Role::Work).then(why));
        FlagReader { flags, mistakes }
    }

    pub(crate) fn get(&self, flag: &Flag) -> Option<&'f str> {
        self.flags.get(flag)
    }

    /// The value of a flag; the default if it is absent or invalid (then it is not used).
    pub(crate) fn read<T, E: fmt::Display>(
        &mut self,
        flag: &Flag,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> T {
        self.given(flag, parse).unwrap_or(default)
    }

    /// The value of a flag; none where it is absent or a mistake.
    pub(crate) fn given<T, E: fmt::Display>(
        &mut self,
        flag: &Flag,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        parse(self.get(flag)?).map_err(|why| self.add(flag, why)).ok()
    }

    /// Each value of a flag that is no mistake.
    pub(crate) fn all<T, E: fmt::Display>(
        &mut self,
        flag: &Flag,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        self.flags.all(flag).filter_map(|text| parse(text).map_err(|why| self.add(flag, why)).ok()).collect()
    }

    pub(crate) fn add(&mut self, flag: &Flag, why: impl fmt::Display) {
        self.mistakes.push(Mistake { place: flag.place(), text: why.to_string() });
    }

    /// A flag that was given and must not be here: the mistake ends with its value.
    pub(crate) fn refuse(&mut self, flag: &Flag, why: impl fmt::Display) {
        match self.get(flag) {
            Some(_) if flag.takes == Takes::Nothing => self.add(flag, why),
            Some(text) => self.add(flag, format!("{why}: {text:?}")),
            None => {}
        }
    }

    /// The plan with the flags about the run, not about the load. `knows_populations`: none was left out for a mistake.
    pub(crate) fn over(&mut self, plan: Plan, around: &Environment, knows_populations: bool) -> Plan {
        let threads = self.read(&flag::THREADS, plan.threads, threads);
        let seed = self.read(&flag::SEED, plan.seed, seed);
        let io = self.read(&flag::IO, plan.io, IoChoice::parse);
        let own = self.all(&flag::THRESHOLD, |text| match Threshold::parse(text, &plan.populations) {
            // What it names may have been left out, or whose connections are held.
            Err(why) if !knows_populations && (text.contains('.') || why.wanted == NEVER_HELD) => Ok(None),
            read => read.map(Some),
        });
        let thresholds = plan.thresholds.into_iter().chain(own.into_iter().flatten()).collect();
        let max_lag = self.read(&flag::MAX_LAG, plan.max_lag, max_lag);
        let experiments = plan.experiments && self.get(&flag::NO_EXPERIMENTS).is_none();
        let observe = self.observe(around.resolve);
        let target_gc = self.get(&flag::TARGET_GC).is_some();
        if target_gc && self.get(&flag::OBSERVE).is_some() {
            let why = "throng observe cannot collect a JVM's heap; remove one of the two";
            self.refuse(&flag::TARGET_GC, why);
        }
        Plan { threads, seed, io, thresholds, max_lag, experiments, observe, target_gc, ..plan }
    }

    /// How often WebSocket and TCP send, and what.
    fn message(&mut self, scheme: Option<Scheme>) -> Option<(Nanos, String)> {
        if scheme.is_some_and(Scheme::has_requests) {
            let not_for = not_for_requests();
            self.refuse(&flag::MESSAGE, format!("{not_for}; use --body for the content of requests"));
            return self.pings(scheme);
        }
        let every = self.read(&flag::PING, DEFAULT_PING, Nanos::parse_or_seconds);
        if !self.has_message(&flag::PING, scheme) {
            return None;
        }
        let text = self.read(&flag::MESSAGE, "ping".to_owned(), |text| message(text, scheme));
        Some((every, text))
    }

    fn observe(&mut self, resolve: Resolve) -> Option<Observe> {
        let token_file = self.get(&flag::OBSERVE_TOKEN_FILE).map(str::to_owned);
        if self.get(&flag::OBSERVE).is_none() {
            self.refuse(&flag::OBSERVE_TOKEN_FILE, "requires --observe http://HOST:PORT");
        }
        self.given(&flag::OBSERVE, |text| Observe::parse(text, token_file, resolve))
    }
}

/// `--timeout` where none is given.
pub(crate) const DEFAULT_TIMEOUT: Nanos = Nanos::from_secs(10);

/// `--duration` where none is given and connections are held.
pub(crate) const DEFAULT_HOLD: Hold = Hold::For(Nanos::from_secs(10));

/// `--ping` where none is given.
pub(crate) const DEFAULT_PING: Nanos = Nanos::from_secs(30);

/// `--max-lag` where none is given: a tenth of what people notice, and what a machine of one's own keeps.
pub const DEFAULT_MAX_LAG: Nanos = Nanos::from_millis(10);

/// More threads than this are a slip of the finger.
pub(crate) const MAX_THREADS: u32 = 1_024;

/// Requests at once on a connection of HTTP/2.
pub(crate) fn streams(text: &str) -> Result<u16, ParseError> {
    within(text, u32::from(MAX_STREAMS), "a number of streams", "1 to 1,024").map(|n| n as u16)
}

/// More streams than this no server in use allows.
const MAX_STREAMS: u16 = 1_024;

pub(crate) fn connections(text: &str) -> Result<u32, ParseError> {
    within(text, u32::MAX, "a number of connections", "1 to 4,294,967,295, as 100k or 1m")
}

/// A number of shards.
///
/// # Errors
/// It is not one from 1 to 1,024.
pub fn threads(text: &str) -> Result<u32, ParseError> {
    within(text, MAX_THREADS, "a number of threads", "1 to 1024")
}

/// A count from 1 to `most`.
pub(crate) fn within(text: &str, most: u32, wanted: &'static str, fix: &str) -> Result<u32, ParseError> {
    let count = Count::parse(text).ok().and_then(|count| u32::try_from(count.0).ok());
    count.filter(|n| (1..=most).contains(n)).ok_or_else(|| ParseError::new(text, wanted, fix))
}

pub(crate) fn ramp(text: &str) -> Result<Ramp, ParseError> {
    match (Rate::parse(text), Nanos::parse(text)) {
        (Ok(_), _) => a_rate(text, "20k/s").map(Ramp::Rate),
        (_, Ok(time)) => Ok(Ramp::Within(time)),
        // A bare number may be either.
        _ if Nanos::parse_or_seconds(text).is_ok() => {
            Err(ParseError::new(text, "a rate or a time", format!("{text}/s or {text}s")))
        }
        (Err(misread), _) if Count::parse(text).is_ok() => Err(misread),
        _ => Err(ParseError::new(text, "a rate or a time", "20k/s or 30s")),
    }
}

pub(crate) fn hold(text: &str) -> Result<Hold, ParseError> {
    if text == "forever" { Ok(Hold::Forever) } else { Nanos::parse_or_seconds(text).map(Hold::For) }
}

fn think(text: &str, scheme: Option<Scheme>) -> Result<Think, String> {
    match scheme.filter(|scheme| !scheme.has_requests()) {
        None => Think::parse_or_seconds(text).map_err(|misread| misread.to_string()),
        Some(scheme) => {
            Err(format!("not for {scheme}, which sends a message per --ping; use --ping 30s: {text:?}"))
        }
    }
}

/// Why HTTP/1.1 sends no PINGs.
pub(crate) const HAS_NO_PING: &str = "HTTP/1.1 has no PING";

/// Why what sends messages cannot be used with requests.
pub(crate) fn not_for_requests() -> String {
    format!("not for {}", Scheme::list(Scheme::PLAIN, "and", Scheme::has_requests))
}

fn message(text: &str, scheme: Option<Scheme>) -> Result<String, String> {
    match text.len() {
        0 if scheme.is_some_and(Scheme::has_bytes) => {
            Err("an empty message has no echo; use a non-empty text: \"\"".to_owned())
        }
        0..=LONGEST_REQUEST => Ok(text.to_owned()),
        length => Err(format!("at most {} octets: {}", Count(LONGEST_REQUEST as u64), Count(length as u64))),
    }
}

pub(crate) fn max_lag(text: &str) -> Result<Nanos, ParseError> {
    match Nanos::parse(text) {
        Ok(limit) if limit > Nanos::ZERO => Ok(limit),
        // Most people mean milliseconds, and a time without a unit is in seconds elsewhere.
        Err(_) if Nanos::parse_or_seconds(text).is_ok() => {
            Err(ParseError::new(text, "a time with its unit", format!("{text}ms or {text}s")))
        }
        _ => Err(ParseError::new(text, "a time greater than 0", "50ms")),
    }
}

pub(crate) fn timeout(text: &str) -> Result<Nanos, ParseError> {
    match Nanos::parse_or_seconds(text)? {
        Nanos::ZERO => Err(ParseError::new(text, "a timeout greater than 0", "10s")),
        limit => Ok(limit),
    }
}

fn expect(text: &str, target: Option<&Target>) -> Result<Expectation, String> {
    let scheme = target.map(|target| target.scheme);
    if let Some(scheme) = scheme.filter(|scheme| !scheme.has_requests()) {
        return Err(format!("{scheme} has no status or length; remove it: {text:?}"));
    }
    let numbers = target.map(|target| target.path.numbers());
    let expect = Expectation::parse(text, scheme.unwrap_or_default(), numbers)?;
    expect.length.map(ExpectedLength::kept).transpose()?;
    Ok(expect)
}

pub(crate) fn reconnect(text: &str) -> Result<Reconnect, ParseError> {
    match text {
        "planned" => Ok(Reconnect::Planned),
        "never" => Ok(Reconnect::Never),
        _ => match Spans::parse_or_seconds(text) {
            Ok(span) if span.min == Nanos::ZERO => {
                Err(ParseError::new(text, "a back-off greater than 0", "1s..30s"))
            }
            Ok(span) => Ok(Reconnect::Backoff(span)),
            Err(_) => Err(ParseError::new(text, "a way to reconnect", "planned, never or 1s..30s")),
        },
    }
}

pub(crate) fn seed(text: &str) -> Result<u64, ParseError> {
    // Exactly as a run prints it: no suffix, so that a seed has one spelling.
    text.parse().map_err(|_| ParseError::new(text, "a seed", "a whole number, as 42"))
}

#[cfg(test)]
mod tests;
