//! The figures of a summary: their paths, short names and units.

use units::{ParseError, Status, Unit};

use super::meant::meant;
use crate::Population;
use crate::nearest::{nearest, one_of};

/// One number of the summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Path in the summary's JSON: `latency_us.p99`. `faults` is the sum of all fault counts.
    pub path: String,
    /// Path of the figure that percentages refer to; `None`: no percentage is allowed.
    pub whole: Option<String>,
    /// Path of the count that the figure depends on: if that is zero, nothing was measured.
    pub about: Option<String>,
    /// Whether it is a response time of the target, which cannot be judged if the generator was late.
    pub is_latency: bool,
    /// Its unit; for percentages see [`Figure::whole`].
    pub unit: Unit,
    /// Whether it was named by its path, not by its short name.
    pub(crate) is_path: bool,
}

/// Distributions: path, short name, and whether it includes time of the target.
pub(super) const DISTRIBUTIONS: &[(&str, &str, bool)] = &[
    ("latency_us", "latency", true),
    ("ramp_latency_us", "ramp_latency", true),
    ("connect_us", "connect", true),
    ("tls_us", "tls", true),
    ("tls_resumed_us", "tls_resumed", true),
    ("handshake_us", "handshake", true),
    ("first_byte_us", "first_byte", true),
    ("gap_us", "gap", true),
    ("delay_us", "delay", true),
    ("spread_us", "spread", true),
    ("ping_rtt_us", "ping_rtt", true),
    ("lag_us", "lag", false),
    ("probe.latency_us", "probe", true),
    ("probe.fresh_us", "probe.fresh", true),
    ("probe.kept_us", "probe.kept", true),
    ("probe.held_us", "probe.held", true),
    ("probe.connect_us", "probe.connect", true),
];

/// Figures of each distribution; all but `count` are times.
pub(super) const QUANTILES: [&str; 12] =
    ["count", "mean", "stdev", "min", "p50", "p75", "p90", "p95", "p99", "p999", "p9999", "max"];

const WANTED: Option<&str> = Some("connections.wanted");
const OPENED: Option<&str> = Some("connections.opened");
const DUE: Option<&str> = Some("requests.due");
const SENT: Option<&str> = Some("requests.sent");
const ANSWERED: Option<&str> = Some("requests.answered");
const TRIED: Option<&str> = Some("errors.of");
const PUSHES: Option<&str> = Some("pushes.count");
const NUMBERED: Option<&str> = Some("pushes.numbered");
const BROADCASTS: Option<&str> = Some("pushes.broadcasts");
const PROBED: Option<&str> = Some("probe.sent");

/// A figure that is not part of a distribution.
struct Row {
    path: &'static str,
    /// Short name; empty if there is none.
    short: &'static str,
    unit: Unit,
    /// See [`Figure::whole`].
    whole: Option<&'static str>,
    /// See [`Figure::about`].
    about: Option<&'static str>,
}

const fn row(path: &'static str, short: &'static str, unit: Unit, of: [Option<&'static str>; 2]) -> Row {
    let [whole, about] = of;
    Row { path, short, unit, whole, about }
}

const PLAIN: &[Row] = &[
    row("faults", "", Unit::Count, [None, TRIED]),
    row("errors.count", "errors", Unit::Count, [TRIED, TRIED]),
    row("errors.of", "", Unit::Count, [None, None]),
    row("threads", "", Unit::Count, [None, None]),
    row("seed", "", Unit::Count, [None, None]),
    row("ramp_s", "ramp", Unit::Seconds, [None, None]),
    row("duration_s", "duration", Unit::Seconds, [None, None]),
    row("elapsed_s", "elapsed", Unit::Seconds, [None, None]),
    row("connections.wanted", "wanted", Unit::Count, [None, None]),
    row("connections.opened", "opened", Unit::Count, [WANTED, WANTED]),
    row("connections.failed", "failed", Unit::Count, [WANTED, WANTED]),
    row("connections.given_up", "given_up", Unit::Count, [WANTED, WANTED]),
    row("connections.peak", "peak", Unit::Count, [WANTED, WANTED]),
    row("connections.held", "held", Unit::Count, [WANTED, WANTED]),
    row("connections.dropped", "dropped", Unit::Count, [WANTED, OPENED]),
    row("connections.dropped_in_drain", "dropped_in_drain", Unit::Count, [WANTED, OPENED]),
    row("connections.closed", "closed", Unit::Count, [WANTED, OPENED]),
    row("connections.redialled", "redialled", Unit::Count, [WANTED, OPENED]),
    row("connections.finished", "finished", Unit::Count, [WANTED, OPENED]),
    row("connections.seen_by_target", "seen_by_target", Unit::Count, [WANTED, WANTED]),
    row("connections.open_per_s", "open_per_s", Unit::PerSecond, [None, WANTED]),
    row("requests.due", "due", Unit::Count, [None, None]),
    row("requests.sent", "sent", Unit::Count, [DUE, DUE]),
    // Of calls that stay open, none is due at the end, and none may be answered.
    row("requests.answered", "answered", Unit::Count, [DUE, TRIED]),
    row("requests.wrong", "wrong", Unit::Count, [DUE, ANSWERED]),
    row("requests.failed", "", Unit::Count, [DUE, SENT]),
    row("requests.unanswered", "unanswered", Unit::Count, [DUE, SENT]),
    row("requests.missed", "missed", Unit::Count, [DUE, DUE]),
    row("requests.lost", "", Unit::Count, [DUE, DUE]),
    row("requests.told", "told", Unit::Count, [None, None]),
    row("requests.messages", "messages", Unit::Count, [None, None]),
    row("pushes.count", "pushes", Unit::Count, [None, None]),
    row("pushes.per_s", "", Unit::PerSecond, [None, PUSHES]),
    row("pushes.bytes", "", Unit::Bytes, [None, PUSHES]),
    row("pushes.bytes_max", "", Unit::Bytes, [None, PUSHES]),
    row("pushes.unread", "", Unit::Count, [PUSHES, PUSHES]),
    row("pushes.ahead", "", Unit::Count, [PUSHES, PUSHES]),
    row("pushes.numbered", "", Unit::Count, [PUSHES, PUSHES]),
    row("pushes.lost", "lost", Unit::Count, [NUMBERED, NUMBERED]),
    row("pushes.duplicates", "duplicates", Unit::Count, [NUMBERED, NUMBERED]),
    row("pushes.out_of_order", "out_of_order", Unit::Count, [NUMBERED, NUMBERED]),
    row("pushes.restarts", "", Unit::Count, [NUMBERED, NUMBERED]),
    row("pushes.broadcasts", "broadcasts", Unit::Count, [None, None]),
    row("pushes.complete", "", Unit::Count, [BROADCASTS, BROADCASTS]),
    row("requests.per_s", "per_s", Unit::PerSecond, [None, DUE]),
    row("requests.bytes_in", "bytes_in", Unit::Bytes, [None, OPENED]),
    row("requests.bytes_out", "bytes_out", Unit::Bytes, [None, OPENED]),
    row("requests.bytes_in_per_s", "bytes_in_per_s", Unit::BytesPerSecond, [None, OPENED]),
    row("requests.bytes_out_per_s", "bytes_out_per_s", Unit::BytesPerSecond, [None, OPENED]),
    row("requests.body_bytes_in", "body_bytes_in", Unit::Bytes, [None, ANSWERED]),
    row("generator.cpu_s", "", Unit::Seconds, [None, None]),
    row("generator.system_s", "", Unit::Seconds, [None, None]),
    row("generator.over_s", "", Unit::Seconds, [None, None]),
    row("generator.cpu_share", "", Unit::Share, [None, None]),
    row("generator.stall_us", "", Unit::Micros, [None, None]),
    row("generator.rss_bytes", "", Unit::Bytes, [None, None]),
    row("generator.user_bytes_per_connection", "", Unit::Bytes, [None, None]),
    row("target_cost.pid", "", Unit::Count, [None, None]),
    row("target_cost.cpu_s", "", Unit::Seconds, [None, None]),
    row("target_cost.over_s", "", Unit::Seconds, [None, None]),
    row("target_cost.rss_bytes", "", Unit::Bytes, [None, None]),
    row("target_cost.user_bytes_per_connection", "", Unit::Bytes, [None, None]),
    row("kernel_bytes_per_connection.value", "kernel_bytes_per_connection", Unit::Bytes, [None, None]),
    row("probe.rate", "", Unit::PerSecond, [None, None]),
    row("probe.sent", "", Unit::Count, [None, None]),
    row("probe.answered", "", Unit::Count, [PROBED, PROBED]),
    row("probe.failed", "", Unit::Count, [PROBED, PROBED]),
    row("probe.unanswered", "", Unit::Count, [PROBED, PROBED]),
];

/// Figures that never exceed their whole; so do counts of single statuses, which are not listed.
const PARTS: [&str; 14] = [
    "errors.count",
    "connections.held",
    "connections.peak",
    "requests.sent",
    "requests.answered",
    "requests.wrong",
    "requests.failed",
    "requests.unanswered",
    "requests.missed",
    "requests.lost",
    "pushes.complete",
    "probe.answered",
    "probe.failed",
    "probe.unanswered",
];

/// Headings for the list of figures, with the prefixes of their paths.
const GROUPS: [(&str, &[&str]); 7] = [
    ("failures", &["faults", "errors."]),
    ("connections", &["connections."]),
    ("requests", &["requests."]),
    ("pushes", &["pushes."]),
    ("the probe", &["probe."]),
    ("costs", &["generator.", "target_cost.", "kernel_bytes_per_connection."]),
    ("the run", &["threads", "seed", "ramp_s", "duration_s", "elapsed_s"]),
];

/// Introductions to the list of all figures: after a suggestion, and alone.
const BESIDE: &str = "; all figures:";
const ALONE: &str = "one of:";

/// Keeps the list of all figures only in the last of several messages.
pub(crate) fn list_once<'m>(messages: impl DoubleEndedIterator<Item = &'m mut String>) {
    let listed = listed();
    for text in messages.rev().filter(|text| text.ends_with(&listed)).skip(1) {
        text.truncate(text.len() - listed.len());
        if text.ends_with(BESIDE) {
            text.truncate(text.len() - BESIDE.len());
        } else if text.ends_with(ALONE) {
            text.truncate(text.len() - ALONE.len());
            *text += "one of those below";
        }
    }
}

/// Width of the list of figures, in columns.
const WIDTH: usize = 100;

/// Prefixes of the number of responses with one status: `requests.status.404`, `status.404`, `status.NOT_FOUND`.
const STATUS: [&str; 2] = ["requests.status.", "status."];

impl Figure {
    /// Every figure of a whole run; one status stands for all.
    pub fn all() -> Vec<Figure> {
        let of_times =
            |(path, ..): &(&str, &str, bool)| QUANTILES.map(|quantile| format!("{path}.{quantile}"));
        let times = DISTRIBUTIONS.iter().flat_map(of_times);
        let others = PLAIN.iter().map(|row| row.path.to_owned());
        let paths = times.chain(others).chain([format!("{}200", STATUS[0])]);
        paths.filter_map(|path| of_all(&path)).collect()
    }

    /// A figure named by its path.
    pub(crate) fn new(path: String, unit: Unit) -> Figure {
        Figure { path, whole: None, about: None, is_latency: false, unit, is_path: true }
    }

    /// Finds the figure of this name: of the whole run, a population, or a step.
    pub(crate) fn named(name: &str, names: &Names) -> Result<Figure, ParseError> {
        of_all(name).or_else(|| names.find(name)).ok_or_else(|| {
            let (all, listed) = (self::names(), listed());
            let near = || nearest(name, all.iter().map(String::as_str)).map(str::to_owned);
            let fix = names.meant(name).unwrap_or_else(|| match meant(name).or_else(near) {
                Some(near) => format!("{near}{BESIDE}{listed}"),
                None => format!("{ALONE}{listed}"),
            });
            ParseError::new(name, "a figure of the summary", fix)
        })
    }

    /// Whether it is part of its whole, so that its percentage is at most 100.
    pub(super) fn is_part(&self) -> bool {
        PARTS.iter().any(|part| self.path.ends_with(*part)) || self.path.contains(STATUS[0])
    }

    /// Whether it is `errors`, by its short name.
    pub(super) fn is_error_rate(&self) -> bool {
        self.path.ends_with("errors.count") && !self.is_path
    }

    /// Its population, and the path below that; `None` for the whole run.
    pub fn of_population(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix("populations.")?.split_once('.')
    }

    /// Its population; `None` for the whole run.
    pub fn population(&self) -> Option<&str> {
        Some(self.of_population()?.0)
    }

    /// Its step; `None` for a population or the whole run.
    pub fn step(&self) -> Option<&str> {
        Some(self.of_population()?.1.strip_prefix("steps.")?.split_once('.')?.0)
    }

    /// Whether it is the number of held connections.
    pub fn is_of_held(&self) -> bool {
        self.path.ends_with("connections.held")
    }

    /// Whether it is the number of held connections, although all connections that it counts come and go.
    pub(super) fn is_never_held(&self, populations: &[Population]) -> bool {
        let of = self.population();
        let is_counted = |own: &&Population| of.is_none_or(|name| own.name == name);
        let mut counted = populations.iter().filter(is_counted).peekable();
        self.is_of_held() && counted.peek().is_some() && counted.all(Population::closes_its_connections)
    }

    /// The same figure for the part of the run at `place`.
    fn below(self, place: &str) -> Figure {
        let below = |path: String| format!("{place}.{path}");
        let (path, whole, about) = (below(self.path), self.whole.map(below), self.about.map(below));
        Figure { path, whole, about, ..self }
    }
}

/// Names of populations and their steps.
pub(crate) struct Names<'a>(Vec<(&'a str, Vec<&'a str>)>);

impl Names<'_> {
    #[cfg(test)]
    pub(super) fn made_up<'a>(names: &'a [(&'a str, &'a [&'a str])]) -> Names<'a> {
        Names(names.iter().map(|(population, steps)| (*population, steps.to_vec())).collect())
    }

    pub(crate) fn of(populations: &[Population]) -> Names<'_> {
        Names(populations.iter().map(|p| (p.name.as_str(), p.step_names())).collect())
    }

    /// The names in a finished run; `steps` have their population's name in front.
    pub(crate) fn listed<'a>(populations: &'a [String], steps: &'a [String]) -> Names<'a> {
        let of = |population: &'a String| {
            let own = |step: &'a String| step.strip_prefix(population.as_str())?.strip_prefix('.');
            (population.as_str(), steps.iter().filter_map(own).collect())
        };
        Names(populations.iter().map(of).collect())
    }

    /// Finds `users.latency.p99` or `users.login.latency.p99`. A population cannot have the name of a figure; if a step has, the figure
    /// wins.
    fn find(&self, name: &str) -> Option<Figure> {
        let (population, rest) = name.split_once('.')?;
        let (_, steps) = self.0.iter().find(|(known, _)| *known == population)?;
        let place = format!("populations.{population}");
        of_any(rest, OF_POPULATIONS).map(|figure| figure.below(&place)).or_else(|| {
            let (step, figure) = rest.split_once('.').filter(|(step, _)| steps.contains(step))?;
            let of_step = of_any(figure, OF_STEPS)?.below(&format!("{place}.steps.{step}"));
            // A step that never began has no figures, so the requests due are those of the population.
            let about = of_step.about.as_ref().map(|_| format!("{place}.requests.due"));
            Some(Figure { about, ..of_step })
        })
    }

    /// A suggestion for a wrong name that begins with the name of a population.
    fn meant(&self, name: &str) -> Option<String> {
        let (population, rest) = name.split_once('.')?;
        let (_, steps) = self.0.iter().find(|(known, _)| *known == population)?;
        if of_all(rest).is_some() {
            return Some(format!("{rest}, of the whole run"));
        }
        let (step, figure) = rest.split_once('.').filter(|(_, figure)| of_all(figure).is_some())?;
        if of_any(figure, OF_STEPS).is_none() {
            return of_any(figure, OF_POPULATIONS)
                .map(|_| format!("{population}.{figure}, of all its steps"));
        }
        let full = |step: &str| format!("{population}.{step}.{figure}");
        match nearest(step, steps.iter().copied()) {
            Some(near) => Some(full(near)),
            None if steps.len() > 1 => Some(one_of(steps.iter().map(|step| full(step)))),
            None => Some(format!("{population}.{figure}")),
        }
    }
}

/// The figure of this name, if its path begins with one of `figures`.
fn of_any(name: &str, figures: &[&str]) -> Option<Figure> {
    of_all(name).filter(|figure| figures.iter().any(|of| figure.path.starts_with(of)))
}

/// Prefixes of figures that the summary also has per step.
const OF_STEPS: &[&str] = &["latency_us.", "ramp_latency_us.", "faults"];

/// Prefixes of figures that the summary also has per population.
const OF_POPULATIONS: &[&str] = &[
    "connections.",
    "requests.",
    "faults",
    "errors",
    "latency_us.",
    "ramp_latency_us.",
    "connect_us.",
    "tls_us.",
    "tls_resumed_us.",
    "handshake_us.",
    "first_byte_us.",
    "gap_us.",
    "delay_us.",
    "spread_us.",
    "ping_rtt_us.",
    "pushes.",
];

fn of_all(name: &str) -> Option<Figure> {
    distribution(name).or_else(|| plain(name)).or_else(|| status(name)).or_else(|| seen(name))
}

fn distribution(name: &str) -> Option<Figure> {
    let (of, quantile) = name.rsplit_once('.')?;
    let (path, _, is_latency) =
        DISTRIBUTIONS.iter().find(|(path, short, _)| [*path, *short].contains(&of))?;
    let (is_count, is_path) = (quantile == "count", of == *path);
    let figure = Figure::new(format!("{path}.{quantile}"), if is_count { Unit::Count } else { Unit::Micros });
    let is_known = QUANTILES.contains(&quantile);
    is_known.then_some(Figure { is_latency: *is_latency && !is_count, is_path, ..figure })
}

fn plain(name: &str) -> Option<Figure> {
    let is_it = |row: &&Row| row.path == name || !row.short.is_empty() && row.short == name;
    let Row { path, unit, whole, about, .. } = PLAIN.iter().find(is_it)?;
    let [whole, about] = [whole, about].map(|of| of.map(str::to_owned));
    Some(Figure { whole, about, is_path: *path == name, ..Figure::new((*path).to_owned(), *unit) })
}

fn status(name: &str) -> Option<Figure> {
    let digits = STATUS.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let code = Status::parse(digits).filter(|code| code.is_grpc() || (100..1000).contains(&code.0))?;
    // Without responses, their statuses are unknown.
    let (whole, about) = (DUE.map(str::to_owned), ANSWERED.map(str::to_owned));
    Some(Figure { whole, about, ..Figure::new(format!("requests.status.{code}"), Unit::Count) })
}

/// A figure about hosts or costs, by its path only. Which ones exist depends on the host: a missing one is reported as not measured.
fn seen(name: &str) -> Option<Figure> {
    let rest = ["cost.", "observed."].iter().find_map(|of| name.strip_prefix(of))?;
    let is_path = rest.split('.').all(|key| {
        !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    });
    is_path.then(|| Figure::new(name.to_owned(), Unit::Number))
}

/// All accepted names, with one status as an example.
fn names() -> Vec<String> {
    let mut names: Vec<String> = vec!["requests.status.200".to_owned(), "status.200".to_owned()];
    for (path, short, _) in DISTRIBUTIONS {
        for of in [short, path] {
            names.extend(QUANTILES.iter().map(|quantile| format!("{of}.{quantile}")));
        }
    }
    for Row { path, short, .. } in PLAIN {
        names
            .extend([short, path].into_iter().filter(|name| !name.is_empty()).map(|name| (*name).to_owned()));
    }
    names
}

/// All figures by their shortest names; each group begins on a new line.
fn listed() -> String {
    let times: Vec<&str> = DISTRIBUTIONS.iter().map(|(_, short, _)| *short).collect();
    let quantiles = QUANTILES.map(|quantile| format!(".{quantile}")).join(" ");
    let mut lines = wrapped(&format!("times: {}, each with {quantiles}", times.join(", ")));
    for (group, of) in GROUPS {
        let is_own = |path: &str| of.iter().any(|of| path.starts_with(of));
        let own = PLAIN.iter().filter(|row| is_own(row.path));
        let mut names: Vec<&str> =
            own.map(|row| if row.short.is_empty() { row.path } else { row.short }).collect();
        if is_own(STATUS[0]) {
            names.push("status.CODE");
        }
        lines += &wrapped(&format!("{group}: {}", names.join(", ")));
    }
    lines + &wrapped("of one population: POPULATION.FIGURE; any number of the summary's JSON: its path")
}

/// Wraps a text to [`WIDTH`] columns; continuation lines are indented further.
fn wrapped(text: &str) -> String {
    let (mut lines, mut column) = (String::new(), WIDTH);
    for word in text.split(' ') {
        if column + 1 + word.len() > WIDTH {
            let indent = if lines.is_empty() { "  " } else { "    " };
            lines += "\n";
            lines += indent;
            column = indent.len();
        } else {
            lines.push(' ');
            column += 1;
        }
        lines += word;
        column += word.len();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_listed() {
        let listed = listed();
        for name in names() {
            let (of, quantile) = name.rsplit_once('.').unwrap_or(("", &name));
            let is_there = |name: &str| listed.split([' ', ',', ';', ':', '\n']).any(|word| word == name);
            let short = PLAIN.iter().find(|row| row.path == name).map_or(name.as_str(), |row| row.short);
            let is_distribution = DISTRIBUTIONS.iter().any(|(path, short, _)| [*path, *short].contains(&of));
            let is_listed = match () {
                () if is_distribution && QUANTILES.contains(&quantile) => is_there(&format!(".{quantile}")),
                () if name.contains("status.") => is_there("status.CODE"),
                () => is_there(short) || is_there(&name),
            };
            assert!(is_listed, "{name}: {listed}");
        }
    }

    #[test]
    fn the_list_has_a_line_or_more_for_each_group() {
        let listed = listed();
        let lines: Vec<&str> = listed.lines().skip(1).collect();
        assert!(lines.iter().all(|line| line.len() <= WIDTH && line.starts_with("  ")), "{listed}");
        let begins = lines.iter().filter(|line| !line.starts_with("    ")).count();
        assert_eq!(begins, 1 + GROUPS.len() + 1, "{listed}");
        assert!(listed.contains("\n  failures: faults, errors, errors.of\n"), "{listed}");
    }

    #[test]
    fn every_name_denotes_one_figure() {
        let names = names();
        for name in &names {
            Figure::named(name, &Names::of(&[])).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
        }
    }
}
