//! From flags as typed to a [`Plan`], or to all that is wrong with them at once.

use crate::target::Resolve;
use crate::{Expect, Hold, IoChoice, Live, Plan, Ramp, Reconnect, Scheme, Sources, Target, Think};
use std::fmt;
use std::net::IpAddr;
use units::{Count, Misread, Nanos, Rate, Spans};

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
    /// `--think`, a time or a range; default 0.
    pub think: Option<String>,
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
    let connections = m.read("--connections", &flags.connections, 50, connections);
    let ramp = m.read("--ramp", &flags.ramp, Ramp::Adaptive, ramp);
    let hold = m.read("--duration", &flags.duration, Hold::For(Nanos::from_secs(10)), hold);
    let think = m.read("--think", &flags.think, Think::default(), Think::parse);
    let timeout = m.read("--timeout", &flags.timeout, Nanos::from_secs(10), timeout);
    let expect = m.read("--expect", &flags.expect, Expect::default(), |text| expect(text, target.as_ref()));
    let reconnect = m.read("--reconnect", &flags.reconnect, Reconnect::Planned, reconnect);
    let threads = m.read("--threads", &flags.threads, around.cores.clamp(1, MOST_THREADS), threads);
    let seed = m.read("--seed", &flags.seed, around.seed, seed);
    let io = m.read("--io", &flags.io, IoChoice::Auto, IoChoice::parse);
    let live = m.read("--live", &flags.live, Live::Auto, live);
    match target {
        Some(target) if mistakes.0.is_empty() => Ok(Plan {
            target,
            connections,
            ramp,
            hold,
            think,
            timeout,
            expect,
            reconnect,
            sources,
            threads,
            seed,
            io,
            live,
        }),
        _ => Err(mistakes.0),
    }
}

/// Those found so far.
struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// The value of a flag; where it is absent or a mistake, the default, which in the second case nobody
    /// sees.
    fn read<T, E: fmt::Display>(
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
        let read = text.ok_or_else(|| "it is missing: write http://host:port/".to_owned());
        read.and_then(|text| Target::parse(text, v4, resolve)).map_err(|why| self.add("target", why)).ok()
    }

    fn add(&mut self, place: &str, why: impl fmt::Display) {
        self.0.push(Mistake { place: place.to_owned(), text: why.to_string() });
    }
}

/// More threads than this are a slip of the finger.
const MOST_THREADS: u32 = 1_024;

fn connections(text: &str) -> Result<u32, Misread> {
    within(text, u32::MAX, "a number of connections", "1 to 4,294,967,295, as 100k or 1m")
}

fn threads(text: &str) -> Result<u32, Misread> {
    within(text, MOST_THREADS, "a number of threads", "1 to 1024")
}

/// A count from 1 to `most`.
fn within(text: &str, most: u32, wanted: &'static str, cure: &str) -> Result<u32, Misread> {
    let count = Count::parse(text).ok().and_then(|count| u32::try_from(count.0).ok());
    count.filter(|n| (1..=most).contains(n)).ok_or_else(|| Misread::new(text, wanted, cure))
}

fn ramp(text: &str) -> Result<Ramp, Misread> {
    match (Rate::parse(text), Nanos::parse(text)) {
        (Ok(rate), _) if rate.is_zero() => Err(Misread::new(text, "a rate that arrives", "20k/s")),
        (Ok(rate), _) => Ok(Ramp::Rate(rate)),
        (_, Ok(time)) => Ok(Ramp::Within(time)),
        // A bare number most likely wants a rate, and the misread says how to write that one.
        (Err(misread), _) if Count::parse(text).is_ok() => Err(misread),
        _ => Err(Misread::new(text, "a rate or a time", "20k/s or 30s")),
    }
}

fn hold(text: &str) -> Result<Hold, Misread> {
    if text == "forever" { Ok(Hold::Forever) } else { Nanos::parse(text).map(Hold::For) }
}

fn timeout(text: &str) -> Result<Nanos, Misread> {
    match Nanos::parse(text)? {
        Nanos::ZERO => Err(Misread::new(text, "a limit that anything could keep", "10s")),
        limit => Ok(limit),
    }
}

fn expect(text: &str, target: Option<&Target>) -> Result<Expect, String> {
    if target.is_some_and(|target| target.scheme == Scheme::Tcp) {
        return Err(format!("tcp:// has no answer to check, leave it out: {text:?}"));
    }
    Expect::parse(text, target.map(|target| target.path.numbers()))
}

fn reconnect(text: &str) -> Result<Reconnect, String> {
    match text {
        "planned" => Ok(Reconnect::Planned),
        "never" => Ok(Reconnect::Never),
        _ if Spans::parse(text).is_ok() => {
            Err(format!("a back-off is not available in this version, write planned or never: {text:?}"))
        }
        _ => Err(Misread::new(text, "a way to reconnect", "planned or never").to_string()),
    }
}

fn seed(text: &str) -> Result<u64, Misread> {
    // Exactly as a run prints it: no suffix, so that a seed has one spelling.
    text.parse().map_err(|_| Misread::new(text, "a seed", "a whole number, as 42"))
}

fn live(text: &str) -> Result<Live, String> {
    match text {
        "auto" => Ok(Live::Auto),
        "line" => Ok(Live::Line),
        "classic" => Ok(Live::Classic),
        "off" => Ok(Live::Off),
        "tui" => Err(format!("it is not available in this version, write line: {text:?}")),
        _ => Err(Misread::new(text, "a live view", "auto, line, classic or off").to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExpectedLength, Network};
    use proptest::prelude::*;

    const URL: &str = "http://127.0.0.1:1/";

    fn plan(flags: &Flags) -> Result<Plan, Vec<Mistake>> {
        let resolve = |name: &str| match name {
            "localhost" => Ok(["::1", "127.0.0.1"].map(|text| text.parse().unwrap()).to_vec()),
            _ => Err("no such host".to_owned()),
        };
        from_flags(flags, &Surroundings { cores: 2, seed: 77, resolve: &resolve })
    }

    /// The flags of a command line: the target, then pairs of flag and value.
    fn flags(line: &[&str]) -> Flags {
        let mut flags = Flags { target: line.first().map(|text| (*text).to_owned()), ..Flags::default() };
        for pair in line.get(1..).unwrap_or_default().chunks(2) {
            let slot = match pair[0] {
                "-c" => &mut flags.connections,
                "--ramp" => &mut flags.ramp,
                "-d" => &mut flags.duration,
                "--think" => &mut flags.think,
                "--timeout" => &mut flags.timeout,
                "--expect" => &mut flags.expect,
                "--reconnect" => &mut flags.reconnect,
                "--sources" => &mut flags.sources,
                "--threads" => &mut flags.threads,
                "--seed" => &mut flags.seed,
                "--io" => &mut flags.io,
                "--live" => &mut flags.live,
                flag => panic!("no flag {flag}"),
            };
            *slot = Some(pair[1].to_owned());
        }
        flags
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let plan = plan(&flags(&[URL])).unwrap();
        let expected = Plan {
            target: plan.target.clone(),
            connections: 50,
            ramp: Ramp::Adaptive,
            hold: Hold::For(Nanos::from_secs(10)),
            think: Think { min: Nanos::ZERO, max: Nanos::ZERO },
            timeout: Nanos::from_secs(10),
            expect: Expect { status: None, length: None },
            reconnect: Reconnect::Planned,
            sources: Sources::Automatic,
            threads: 2,
            seed: 77,
            io: IoChoice::Auto,
            live: Live::Auto,
        };
        assert_eq!(plan, expected);
    }

    #[test]
    fn every_flag_arrives() {
        #[rustfmt::skip]
        let line = [
            "http://127.0.0.{1..2}:80/?length={rand 1 4096}", "-c", "1m", "--ramp", "20k/s", "-d", "forever", "--think", "5s..45s",
            "--timeout", "3s", "--expect", "status=200,length=$1", "--reconnect", "never", "--sources", "127.1.0.0/16",
            "--threads", "8", "--seed", "42", "--io", "epoll", "--live", "classic",
        ];
        let plan = plan(&flags(&line)).unwrap();
        let expected = Plan {
            target: plan.target.clone(),
            connections: 1_000_000,
            ramp: Ramp::Rate(Rate::per_s(20_000)),
            hold: Hold::Forever,
            think: Spans { min: Nanos::from_secs(5), max: Nanos::from_secs(45) },
            timeout: Nanos::from_secs(3),
            expect: Expect { status: Some(200), length: Some(ExpectedLength::Drawn(0)) },
            reconnect: Reconnect::Never,
            sources: Sources::Listed(vec![Network::parse("127.1.0.0/16").unwrap()]),
            threads: 8,
            seed: 42,
            io: IoChoice::Epoll,
            live: Live::Classic,
        };
        assert_eq!(plan, expected);
        assert_eq!((plan.target.destinations.len(), plan.target.path.numbers()), (2, 1));
    }

    #[test]
    fn edges_are_accepted() {
        check(&[URL, "-c", "400m"], &[]);
        check(&[URL, "-c", "4294967295"], &[]);
        check(&[URL, "--ramp", "30s"], &[]);
        check(&[URL, "--ramp", "0s"], &[]);
        check(&[URL, "-d", "0"], &[]);
        check(&[URL, "--think", "1s"], &[]);
        check(&[URL, "--threads", "1024"], &[]);
        check(&[URL, "--seed", "18446744073709551615"], &[]);
        check(&[URL, "--io", "uring", "--live", "line"], &[]);
        check(&[URL, "--live", "off", "--io", "auto", "--reconnect", "planned"], &[]);
        check(&["tcp://127.0.0.1:9", "--live", "auto"], &[]);
        check(&["http://localhost/", "--sources", "::1"], &[]);
    }

    #[test]
    fn mistakes_are_named_with_their_cure() {
        check(&[], &["target: it is missing: write http://host:port/"]);
        check(&["gopher://x/"], &["target: \"gopher\" is not a scheme: write http:// or tcp://"]);
        check(
            &[URL, "-c", "many"],
            &[
                "--connections: \"many\" is not a number of connections: write 1 to 4,294,967,295, as 100k or 1m",
            ],
        );
        for text in ["0", "4294967296", "5g"] {
            let wrong = format!(
                "--connections: {text:?} is not a number of connections: write 1 to 4,294,967,295, as 100k or 1m"
            );
            check(&[URL, "-c", text], &[&wrong]);
        }
        check(&[URL, "--ramp", "30"], &["--ramp: \"30\" is not a rate: write 30/s"]);
        check(&[URL, "--ramp", "20k"], &["--ramp: \"20k\" is not a rate: write 20k/s"]);
        check(&[URL, "--ramp", "fast"], &["--ramp: \"fast\" is not a rate or a time: write 20k/s or 30s"]);
        check(&[URL, "--ramp", "0/s"], &["--ramp: \"0/s\" is not a rate that arrives: write 20k/s"]);
        check(&[URL, "-d", "10"], &["--duration: \"10\" is not a time: write 10s"]);
        check(&[URL, "--think", "9s..2s"], &["--think: \"9s..2s\" is not a range of times: write 2s..9s"]);
        check(
            &[URL, "--timeout", "0"],
            &["--timeout: \"0\" is not a limit that anything could keep: write 10s"],
        );
        check(
            &[URL, "--expect", "length=$1"],
            &["--expect: the target draws no number, write {rand 1 4096} in it: \"$1\""],
        );
        check(
            &["tcp://127.0.0.1:9", "--expect", "status=200"],
            &["--expect: tcp:// has no answer to check, leave it out: \"status=200\""],
        );
        check(
            &[URL, "--reconnect", "1s..30s"],
            &[
                "--reconnect: a back-off is not available in this version, write planned or never: \"1s..30s\"",
            ],
        );
        check(
            &[URL, "--reconnect", "always"],
            &["--reconnect: \"always\" is not a way to reconnect: write planned or never"],
        );
        check(
            &[URL, "--sources", "here"],
            &["--sources: \"here\" is not an address: write 127.0.0.2 or 127.1.0.0/16"],
        );
        check(
            &[URL, "--sources", "::1"],
            &["target: it has no IPv6 address, the family of --sources: \"127.0.0.1\""],
        );
        for text in ["0", "1025", "few"] {
            let wrong = format!("--threads: {text:?} is not a number of threads: write 1 to 1024");
            check(&[URL, "--threads", text], &[&wrong]);
        }
        check(&[URL, "--seed", "-1"], &["--seed: \"-1\" is not a seed: write a whole number, as 42"]);
        check(
            &[URL, "--io", "kqueue"],
            &["--io: \"kqueue\" is not a way to do I/O: write auto, uring or epoll"],
        );
        check(&[URL, "--live", "tui"], &["--live: it is not available in this version, write line: \"tui\""]);
        check(
            &[URL, "--live", "on"],
            &["--live: \"on\" is not a live view: write auto, line, classic or off"],
        );
    }

    #[test]
    fn all_mistakes_come_at_once() {
        #[rustfmt::skip]
        check(
            &["gopher://x/", "-c", "many", "--think", "9s..2s", "--expect", "length=$1"],
            &[
                "target: \"gopher\" is not a scheme: write http:// or tcp://",
                "--connections: \"many\" is not a number of connections: write 1 to 4,294,967,295, as 100k or 1m",
                "--think: \"9s..2s\" is not a range of times: write 2s..9s",
            ],
        );
    }

    proptest! {
        #[test]
        fn any_words_give_a_plan_or_printable_mistakes(
            target in "(http|tcp|x)?(://)?[a-z0-9{}\\[\\]:./?$ \\-]{0,20}(\\{rand [0-9]{1,20} [0-9]{1,20}\\})?\\PC{0,3}",
            words in proptest::collection::vec("[0-9a-z.,:/$=µ \u{1b}\n-]{0,12}|\\PC{0,6}", 12),
        ) {
            let names = ["-c", "--ramp", "-d", "--think", "--timeout", "--expect", "--reconnect", "--sources", "--threads"];
            let names = names.iter().chain(&["--seed", "--io", "--live"]);
            let mut line = vec![target.as_str()];
            line.extend(names.zip(&words).flat_map(|(name, word)| [*name, word.as_str()]));
            match plan(&flags(&line)) {
                Ok(plan) => prop_assert!(!plan.target.destinations.is_empty()),
                Err(mistakes) => {
                    prop_assert!(!mistakes.is_empty());
                    let printed: String = mistakes.iter().map(Mistake::to_string).collect();
                    prop_assert!(!printed.contains(char::is_control), "{:?}", printed);
                }
            }
        }
    }

    fn check(line: &[&str], mistakes: &[&str]) {
        let found = plan(&flags(line)).err().unwrap_or_default();
        assert_eq!(found.iter().map(Mistake::to_string).collect::<Vec<_>>(), mistakes, "{line:?}");
    }
}
