//! From flags as typed to a [`Plan`], or to all that is wrong with them at once.

use crate::target::Resolve;
use crate::{
    Activity, Answer, Expect, ExpectedLength, Format, Hold, Influx, IoChoice, Live, Observe, Otlp, Plan,
    Population, Probe, Program, Ramp, Reconnect, Request, Scheme, Share, Sources, Stage, Target, Text, Think,
    Threshold,
};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use units::{Count, Misread, Nanos, Rate, Spans};

use self::load::Loaded;
pub(crate) use self::load::a_rate;

mod load;

/// The words of `throng run`, each as typed; `None` was not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// TARGET.
    pub target: Option<String>,
    /// `--connections`, default 50.
    pub connections: Option<String>,
    /// `--ramp`, a rate or a time; default adaptive.
    pub ramp: Option<String>,
    /// `--duration`, a time or `forever`; default 10s.
    pub duration: Option<String>,
    /// `--rate`, requests a second in all; absent: each connection goes by its own time.
    pub rate: Option<String>,
    /// `--arrive`, new connections a second, each for `--calls`; absent: connections are held.
    pub arrive: Option<String>,
    /// `--total`, connections that arrive in all.
    pub total: Option<String>,
    /// `--calls`, requests of a connection that arrives, default 1.
    pub calls: Option<String>,
    /// `--probe`, requests a second of the probe lane; absent: none.
    pub probe: Option<String>,
    /// `--think`, a time or a range; default 0.
    pub think: Option<String>,
    /// `--ping`, a time; default 30s, of WebSocket and of TCP with a message.
    pub ping: Option<String>,
    /// `--message`, default `ping` of WebSocket, none of TCP.
    pub message: Option<String>,
    /// `--timeout`, default 10s.
    pub timeout: Option<String>,
    /// `--expect`; by default 2xx and complete framing.
    pub expect: Option<String>,
    /// `--reconnect`, default `planned`.
    pub reconnect: Option<String>,
    /// `--sources`, default automatic.
    pub sources: Option<String>,
    /// `--threads`, default one a core.
    pub threads: Option<String>,
    /// `--seed`, by default random.
    pub seed: Option<String>,
    /// `--io`, default `auto`.
    pub io: Option<String>,
    /// `--live`, default `auto`.
    pub live: Option<String>,
    /// `--format`, a tool or TOOL:POPULATION; default our own.
    pub format: Option<String>,
    /// `--threshold`, each time it was given.
    pub thresholds: Vec<String>,
    /// `--target-gc`.
    pub target_gc: bool,
    /// `--observe`, by default nobody.
    pub observe: Option<String>,
    /// `--observe-token-file`, by default no token.
    pub observe_token_file: Option<String>,
    /// `--prometheus`, by default no endpoint.
    pub prometheus: Option<String>,
    /// `--dashboard`, by default none.
    pub dashboard: Option<String>,
    /// `--dashboard-token-file`, by default no token.
    pub dashboard_token_file: Option<String>,
    /// `--influx`, by default nobody.
    pub influx: Option<String>,
    /// `--influx-token-file`, by default no token.
    pub influx_token_file: Option<String>,
    /// `--otlp`, by default nobody.
    pub otlp: Option<String>,
    /// `--tag`, each time it was given.
    pub tags: Vec<String>,
}

/// What the machine tells the planner; an argument, so that a test needs no machine.
pub struct Surroundings<'a> {
    /// Processors that this process may use.
    pub cores: u32,
    /// A random number, used where `--seed` is absent.
    pub seed: u64,
    /// Looks up a name; the error is a short reason.
    pub resolve: &'a dyn Fn(&str) -> Result<Vec<IpAddr>, String>,
}

/// Something that the user wrote and we cannot do. Prints `--ramp: "30" is not a rate: write 30/s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The flag, or `target`.
    pub place: String,
    /// What is wrong, with the text, and the cure.
    pub text: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Resolves the flags; all mistakes are reported at once.
pub fn from_flags(flags: &Flags, around: &Surroundings) -> Result<Plan, Vec<Mistake>> {
    let mut mistakes = Mistakes(Vec::new());
    let m = &mut mistakes;
    // The sources' family decides which addresses of the target are taken.
    let sources = m.read("--sources", &flags.sources, Sources::Automatic, Sources::parse);
    let target = m.target(flags.target.as_deref(), sources.is_v4(), around.resolve);
    let scheme = target.as_ref().map(|target| target.scheme);
    let Loaded { load, calls, ramp, hold } = m.load(flags, scheme);
    let rate = m.probe(flags, scheme);
    let think = m.read("--think", &flags.think, Think::default(), |text| think(text, scheme));
    let message = m.message(&flags.ping, &flags.message, scheme);
    let timeout = m.read("--timeout", &flags.timeout, DEFAULT_TIMEOUT, timeout);
    let expect = m.read("--expect", &flags.expect, Expect::default(), |text| expect(text, target.as_ref()));
    let reconnect = m.read("--reconnect", &flags.reconnect, Reconnect::Planned, reconnect);
    let main = target.map(|target| {
        let activity = activity(&target, think, expect, message);
        Population { name: "main".to_owned(), target, load, calls, timeout, reconnect, activity }
    });
    let probe = rate.zip(main.clone()).map(|(rate, does)| Probe { rate, does });
    let populations: Vec<Population> = main.into_iter().collect();
    let plan = Plan {
        text: flags.target.clone().unwrap_or_default(),
        program: Program::compile(&populations).expect("one step is not too much"),
        populations,
        stages: vec![Stage { name: "up".to_owned(), of: vec![0], to: Share::ALL, ramp, hold }],
        probe,
        tables: Vec::new(),
        sources,
        threads: around.cores.clamp(1, MOST_THREADS),
        seed: around.seed,
        io: IoChoice::Auto,
        live: Live::Auto,
        format: Format::OWN,
        thresholds: Vec::new(),
        target_gc: false,
        observe: None,
        prometheus: None,
        dashboard: None,
        influx: None,
        otlp: None,
        tags: Vec::new(),
    };
    let plan = m.over(plan, flags, around);
    if mistakes.0.is_empty() { Ok(plan) } else { Err(mistakes.0) }
}

/// What each connection does: one request again and again, or one message, or nothing.
fn activity(target: &Target, think: Think, expect: Expect, message: Option<(Nanos, String)>) -> Activity {
    match message {
        Some((every, text)) => Activity::Ping { every, text: Text::fixed(&text) },
        None if target.scheme.has_requests() => {
            let answer = Answer { basic: expect, ..Answer::default() };
            Activity::again(Request::get(target.path.clone(), answer), think)
        }
        None => Activity::Idle,
    }
}

/// Those found so far.
pub(crate) struct Mistakes(pub(crate) Vec<Mistake>);

impl Mistakes {
    /// Those of flags that a scenario file does not go with: it says by itself what each connection does.
    pub(crate) fn beside_a_scenario(flags: &Flags) -> Mistakes {
        let load = [
            ("--calls", &flags.calls),
            ("--probe", &flags.probe),
            ("--think", &flags.think),
            ("--ping", &flags.ping),
            ("--message", &flags.message),
            ("--timeout", &flags.timeout),
            ("--expect", &flags.expect),
            ("--reconnect", &flags.reconnect),
        ];
        let mut mistakes = Mistakes(Vec::new());
        for (flag, text) in load.iter().filter_map(|(flag, given)| Some((flag, given.as_ref()?))) {
            mistakes.add(flag, format!("cannot be used with a scenario file; set it in the file: {text:?}"));
        }
        mistakes
    }

    /// The plan with what the flags say of the run, whatever the load.
    pub(crate) fn over(&mut self, plan: Plan, flags: &Flags, around: &Surroundings) -> Plan {
        let threads = self.read("--threads", &flags.threads, plan.threads, threads);
        let seed = self.read("--seed", &flags.seed, plan.seed, seed);
        let io = self.read("--io", &flags.io, plan.io, IoChoice::parse);
        let live = self.read("--live", &flags.live, plan.live, live);
        let format =
            self.read("--format", &flags.format, plan.format, |text| Format::parse(text, &plan.populations));
        let own = self.thresholds(&flags.thresholds, &plan.populations);
        let thresholds = [plan.thresholds, own].concat();
        let observe = self.observe(flags, around.resolve);
        let prometheus = self.read("--prometheus", &flags.prometheus, None, |text| endpoint(text).map(Some));
        let dashboard = self.dashboard(flags);
        let influx = self.influx(flags, around.resolve);
        let tags = self.tags(&flags.tags);
        let read = |url: &str| Otlp::parse(url, around.resolve).map(Some);
        let otlp = self.read("--otlp", &flags.otlp, None, read);
        let target_gc = flags.target_gc;
        if target_gc && flags.observe.is_some() {
            self.add("--target-gc", "throng observe cannot collect a JVM's heap; remove one of the two");
        }
        let outputs =
            Plan { target_gc, thresholds, observe, prometheus, dashboard, influx, otlp, tags, ..plan };
        Plan { threads, seed, io, live, format, ..outputs }
    }

    /// The value of a flag; where it is absent or a mistake, the default, which in the second case nobody
    /// sees.
    pub(crate) fn read<T, E: fmt::Display>(
        &mut self,
        place: &str,
        text: &Option<String>,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> T {
        match text.as_deref().map(parse) {
            None => default,
            Some(Ok(value)) => value,
            Some(Err(why)) => {
                self.add(place, why);
                default
            }
        }
    }

    fn target(&mut self, text: Option<&str>, v4: Option<bool>, resolve: Resolve) -> Option<Target> {
        let read = text.ok_or_else(|| "missing; use http://host:port/".to_owned());
        read.and_then(|text| Target::parse(text, v4, &[], resolve))
            .map_err(|why| self.add("target", why))
            .ok()
    }

    /// How often WebSocket and TCP send, and what.
    fn message(
        &mut self,
        ping: &Option<String>,
        text: &Option<String>,
        scheme: Option<Scheme>,
    ) -> Option<(Nanos, String)> {
        if scheme.is_some_and(Scheme::has_requests) {
            for (flag, _) in
                [("--ping", ping), ("--message", text)].iter().filter(|(_, given)| given.is_some())
            {
                self.add(flag, "not for http://; remove it, or use --think for the time between requests");
            }
            return None;
        }
        let every = self.read("--ping", ping, Nanos::from_secs(30), Nanos::parse);
        if let (Some(scheme), None) = (scheme.filter(|scheme| scheme.needs_message()), text) {
            if let Some(ping) = ping {
                self.add(
                    "--ping",
                    format!("{scheme} sends nothing without a message; add --message ping: {ping:?}"),
                );
            }
            return None;
        }
        let text = self.read("--message", text, "ping".to_owned(), |text| message(text, scheme));
        Some((every, text))
    }

    fn thresholds(&mut self, texts: &[String], populations: &[Population]) -> Vec<Threshold> {
        let mut read = Vec::new();
        for text in texts {
            match Threshold::parse(text, populations) {
                Ok(threshold) => read.push(threshold),
                Err(why) => self.add("--threshold", why),
            }
        }
        read
    }

    /// What the run is called, each once.
    fn tags(&mut self, texts: &[String]) -> Vec<String> {
        let mut read = Vec::new();
        for text in texts {
            match tag(text) {
                Ok(tag) if read.contains(&tag) => {}
                Ok(tag) => read.push(tag),
                Err(why) => self.add("--tag", why),
            }
        }
        read
    }

    fn observe(&mut self, flags: &Flags, resolve: Resolve) -> Option<Observe> {
        if let (None, Some(file)) = (&flags.observe, &flags.observe_token_file) {
            self.add("--observe-token-file", format!("requires --observe http://HOST:PORT: {file:?}"));
        }
        let read = |text: &str| Observe::parse(text, flags.observe_token_file.clone(), resolve).map(Some);
        self.read("--observe", &flags.observe, None, read)
    }

    fn influx(&mut self, flags: &Flags, resolve: Resolve) -> Option<Influx> {
        if let (None, Some(file)) = (&flags.influx, &flags.influx_token_file) {
            let why = "requires --influx http://HOST:8086/api/v2/write?org=O&bucket=B";
            self.add("--influx-token-file", format!("{why}: {file:?}"));
        }
        let read = |text: &str| Influx::parse(text, flags.influx_token_file.clone(), resolve).map(Some);
        self.read("--influx", &flags.influx, None, read)
    }

    pub(crate) fn add(&mut self, place: &str, why: impl fmt::Display) {
        self.0.push(Mistake { place: place.to_owned(), text: why.to_string() });
    }
}

impl Mistakes {
    /// Where the live page is.
    fn dashboard(&mut self, flags: &Flags) -> Option<SocketAddr> {
        let has_token = flags.dashboard_token_file.is_some();
        if has_token && flags.dashboard.is_none() {
            self.add("--dashboard-token-file", "requires --dashboard");
        }
        self.read("--dashboard", &flags.dashboard, None, |text| match endpoint(text)? {
            at if has_token || at.ip().is_loopback() => Ok(Some(at)),
            at => Err(format!(
                "without --dashboard-token-file only loopback is allowed; use 127.0.0.1:{}: {at}",
                at.port()
            )),
        })
    }
}

/// A word that a stored run is called by.
///
/// # Errors
/// It has letters in it that a tag may not have.
pub fn tag(text: &str) -> Result<String, String> {
    let is_tag = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    if is_tag {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "may have letters, digits, -, _ and . only: \
    {text:?}"
        ))
    }
}

/// Where to listen: a port alone is one of this machine's own.
fn endpoint(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let wrong = |_| format!("{text:?} is not an address and port; use 127.0.0.1:9464, or 9464 for the same");
    port.or_else(|_| text.parse()).map_err(wrong)
}

/// Limit of a dial, a handshake and an answer where nothing else is said.
pub(crate) const DEFAULT_TIMEOUT: Nanos = Nanos::from_secs(10);

/// More threads than this are a slip of the finger.
pub(crate) const MOST_THREADS: u32 = 1_024;

pub(crate) fn connections(text: &str) -> Result<u32, Misread> {
    within(text, u32::MAX, "a number of connections", "1 to 4,294,967,295, as 100k or 1m")
}

pub(crate) fn threads(text: &str) -> Result<u32, Misread> {
    within(text, MOST_THREADS, "a number of threads", "1 to 1024")
}

/// A count from 1 to `most`.
pub(crate) fn within(text: &str, most: u32, wanted: &'static str, cure: &str) -> Result<u32, Misread> {
    let count = Count::parse(text).ok().and_then(|count| u32::try_from(count.0).ok());
    count.filter(|n| (1..=most).contains(n)).ok_or_else(|| Misread::new(text, wanted, cure))
}

pub(crate) fn ramp(text: &str) -> Result<Ramp, Misread> {
    match (Rate::parse(text), Nanos::parse(text)) {
        (Ok(_), _) => a_rate(text, "20k/s").map(Ramp::Rate),
        (_, Ok(time)) => Ok(Ramp::Within(time)),
        // A bare number most likely wants a rate, and the misread says how to write that one.
        (Err(misread), _) if Count::parse(text).is_ok() => Err(misread),
        _ => Err(Misread::new(text, "a rate or a time", "20k/s or 30s")),
    }
}

pub(crate) fn hold(text: &str) -> Result<Hold, Misread> {
    if text == "forever" { Ok(Hold::Forever) } else { Nanos::parse(text).map(Hold::For) }
}

fn think(text: &str, scheme: Option<Scheme>) -> Result<Think, String> {
    match scheme.filter(|scheme| !scheme.has_requests()) {
        None => Think::parse(text).map_err(|misread| misread.to_string()),
        Some(scheme) => {
            Err(format!("not for {scheme}, which sends a message per --ping; use --ping 30s: {text:?}"))
        }
    }
}

/// Octets of the longest message: the largest that is sent in one piece.
const LONGEST_MESSAGE: usize = 65_536;

fn message(text: &str, scheme: Option<Scheme>) -> Result<String, String> {
    match text.len() {
        0 if scheme.is_some_and(Scheme::needs_message) => {
            Err("an empty message has no echo; use a non-empty text: \"\"".to_owned())
        }
        0..=LONGEST_MESSAGE => Ok(text.to_owned()),
        length => Err(format!("at most {} octets: {}", Count(LONGEST_MESSAGE as u64), Count(length as u64))),
    }
}

pub(crate) fn timeout(text: &str) -> Result<Nanos, Misread> {
    match Nanos::parse(text)? {
        Nanos::ZERO => Err(Misread::new(text, "a timeout greater than 0", "10s")),
        limit => Ok(limit),
    }
}

fn expect(text: &str, target: Option<&Target>) -> Result<Expect, String> {
    let scheme = target.map(|target| target.scheme);
    if let Some(scheme) = scheme.filter(|scheme| !scheme.has_requests()) {
        return Err(format!("{scheme} has no status or length; remove it: {text:?}"));
    }
    let expect = Expect::parse(text, target.map(|target| target.path.numbers()))?;
    expect.length.map_or(Ok(()), ExpectedLength::is_kept).map(|()| expect)
}

pub(crate) fn reconnect(text: &str) -> Result<Reconnect, Misread> {
    match text {
        "planned" => Ok(Reconnect::Planned),
        "never" => Ok(Reconnect::Never),
        _ => match Spans::parse(text) {
            Ok(span) if span.min == Nanos::ZERO => {
                Err(Misread::new(text, "a back-off greater than 0", "1s..30s"))
            }
            Ok(span) => Ok(Reconnect::Backoff(span)),
            Err(_) => Err(Misread::new(text, "a way to reconnect", "planned, never or 1s..30s")),
        },
    }
}

pub(crate) fn seed(text: &str) -> Result<u64, Misread> {
    // Exactly as a run prints it: no suffix, so that a seed has one spelling.
    text.parse().map_err(|_| Misread::new(text, "a seed", "a whole number, as 42"))
}

fn live(text: &str) -> Result<Live, Misread> {
    match text {
        "auto" => Ok(Live::Auto),
        "tui" => Ok(Live::Tui),
        "line" => Ok(Live::Line),
        "classic" => Ok(Live::Classic),
        "off" => Ok(Live::Off),
        _ => Err(Misread::new(text, "a live view", "auto, tui, line, classic or off")),
    }
}

#[cfg(test)]
mod tests;
