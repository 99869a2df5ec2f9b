//! The table of figures: each number of a summary that a condition, a comparison or a document may name. A row's path and getter come from
//! the same field expression, so they cannot differ; a new figure is its field and its row.

use units::Unit;

use crate::{Figures, Quantiles, StepSummary, Summary};

/// A number that is not part of a distribution.
#[derive(Debug)]
pub struct Number {
    /// Path in the summary's JSON, below the population if it is of one.
    pub path: &'static str,
    /// Short name; empty if there is none.
    pub short: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Path of the figure that percentages refer to; `None`: a percentage of it means nothing.
    pub(crate) whole: Option<&'static str>,
    /// Path of the count that it depends on: if that is zero, nothing was measured.
    pub(crate) about: Option<&'static str>,
    /// Whether it never exceeds its whole.
    pub(crate) is_part: bool,
    pub(crate) get: Get,
}

/// Where a number is in a summary.
#[derive(Debug)]
pub(crate) enum Get {
    /// Only of the whole run.
    Run(fn(&Summary) -> Option<f64>),
    /// Of the whole run and of each population.
    Load(fn(&Figures) -> Option<f64>),
    /// The same, and of each step.
    Step(fn(&Figures) -> Option<f64>, fn(&StepSummary) -> Option<f64>),
}

/// A distribution of times.
#[derive(Debug)]
pub struct Times {
    /// Path in the summary's JSON, as of a [`Number`].
    pub path: &'static str,
    /// Short name.
    pub short: &'static str,
    /// Whether it includes time of the target.
    pub is_of_target: bool,
    pub(crate) get: GetTimes,
}

/// Where a distribution is in a summary; see [`Get`].
#[derive(Debug)]
pub(crate) enum GetTimes {
    Run(fn(&Summary) -> Option<&Quantiles>),
    Load(fn(&Figures) -> &Quantiles),
    Step(fn(&Figures) -> &Quantiles, fn(&StepSummary) -> &Quantiles),
}

/// A field of a summary as a figure.
trait AsFigure {
    fn as_figure(&self) -> Option<f64>;
}

macro_rules! as_figure {
    ($($kind:ty),+) => {$(
        impl AsFigure for $kind {
            fn as_figure(&self) -> Option<f64> {
                Some(*self as f64)
            }
        }
    )+};
}

as_figure!(u32, u64, f64);

impl<T: AsFigure> AsFigure for Option<T> {
    fn as_figure(&self) -> Option<f64> {
        self.as_ref()?.as_figure()
    }
}

/// What a number refers to, for its row: `of` a whole that percentages are of and `about` a count without which nothing was measured;
/// a `part` is at most its whole.
struct Of(Option<&'static str>, Option<&'static str>, bool);

/// It refers to nothing.
const ALONE: Of = Of(None, None, false);

const fn about(count: &'static str) -> Of {
    Of(None, Some(count), false)
}

const fn of(whole: &'static str, about: &'static str) -> Of {
    Of(Some(whole), Some(about), false)
}

const fn part(whole: &'static str, about: &'static str) -> Of {
    Of(Some(whole), Some(about), true)
}

const fn number(path: &'static str, short: &'static str, unit: Unit, of: Of, get: Get) -> Number {
    let Of(whole, about, is_part) = of;
    Number { path, short, unit, whole, about, is_part, get }
}

/// A row: `run` or `load`, its field, its short name, its unit, and what it refers to.
macro_rules! row {
    (run $first:ident? $(.$rest:ident)+, $short:literal, $unit:ident, $of:expr) => {
        number(
            concat!(stringify!($first), $(".", stringify!($rest)),+),
            $short,
            Unit::$unit,
            $of,
            Get::Run(|s| s.$first.as_ref()?$(.$rest)+.as_figure()),
        )
    };
    (run $first:ident $(.$rest:ident)*, $short:literal, $unit:ident, $of:expr) => {
        number(
            concat!(stringify!($first), $(".", stringify!($rest)),*),
            $short,
            Unit::$unit,
            $of,
            Get::Run(|s| s.$first$(.$rest)*.as_figure()),
        )
    };
    (load $first:ident $(.$rest:ident)*, $short:literal, $unit:ident, $of:expr) => {
        number(
            concat!(stringify!($first), $(".", stringify!($rest)),*),
            $short,
            Unit::$unit,
            $of,
            Get::Load(|s| s.$first$(.$rest)*.as_figure()),
        )
    };
}

const WANTED: &str = "connections.wanted";
const OPENED: &str = "connections.opened";
pub(super) const DUE: &str = "requests.due";
const SENT: &str = "requests.sent";
pub(super) const ANSWERED: &str = "requests.answered";
const TRIED: &str = "errors.of";
const PUSHES: &str = "pushes.count";
const NUMBERED: &str = "pushes.numbered";
const BROADCASTS: &str = "pushes.broadcasts";
const PROBED: &str = "probe.sent";
/// All faults; what had no response without one counts in it when it is judged.
pub(super) const FAULTS: &str = "faults";

/// Faults of all kinds.
fn count(faults: &[crate::FaultCount]) -> Option<f64> {
    Some(faults.iter().map(|fault| fault.count as f64).fold(0.0, |sum, n| sum + n))
}

/// All numbers that are not of distributions, in the order in which they are listed.
pub static NUMBERS: &[Number] = &[
    number(FAULTS, "", Unit::Count, about(TRIED), Get::Step(|s| count(&s.faults), |s| count(&s.faults))),
    row!(load errors.count, "errors", Count, part(TRIED, TRIED)),
    row!(load errors.of, "", Count, ALONE),
    row!(run threads, "", Count, ALONE),
    row!(run seed, "", Count, ALONE),
    row!(run ramp_s, "ramp", Seconds, ALONE),
    row!(run duration_s, "duration", Seconds, ALONE),
    row!(run elapsed_s, "elapsed", Seconds, ALONE),
    row!(load connections.wanted, "wanted", Count, ALONE),
    row!(load connections.opened, "opened", Count, of(WANTED, WANTED)),
    row!(load connections.failed, "failed", Count, of(WANTED, WANTED)),
    row!(load connections.given_up, "given_up", Count, of(WANTED, WANTED)),
    row!(load connections.peak, "peak", Count, part(WANTED, WANTED)),
    row!(load connections.held, "held", Count, part(WANTED, WANTED)),
    row!(load connections.dropped, "dropped", Count, of(WANTED, OPENED)),
    row!(load connections.dropped_in_drain, "dropped_in_drain", Count, of(WANTED, OPENED)),
    row!(load connections.closed, "closed", Count, of(WANTED, OPENED)),
    row!(load connections.redialled, "redialled", Count, of(WANTED, OPENED)),
    row!(load connections.finished, "finished", Count, of(WANTED, OPENED)),
    row!(load connections.seen_by_target, "seen_by_target", Count, of(WANTED, WANTED)),
    row!(load connections.open_per_s, "open_per_s", PerSecond, about(WANTED)),
    row!(load connections.arriving, "", Count, of(WANTED, WANTED)),
    row!(load connections.lost, "", Count, of(WANTED, WANTED)),
    row!(load connections.bent_at, "", Count, of(WANTED, WANTED)),
    row!(load connections.accept_per_s, "", PerSecond, about(WANTED)),
    row!(load connections.forced, "", Count, of(WANTED, WANTED)),
    row!(load connections.unaccepted, "", Count, of(WANTED, WANTED)),
    row!(load connections.quiet_s, "", Seconds, about(OPENED)),
    row!(load requests.due, "due", Count, ALONE),
    row!(load requests.sent, "sent", Count, part(DUE, DUE)),
    // Of calls that stay open, none is due at the end, and none may be answered.
    row!(load requests.answered, "answered", Count, part(DUE, TRIED)),
    row!(load requests.wrong, "wrong", Count, part(DUE, ANSWERED)),
    row!(load requests.kept, "", Count, part(DUE, ANSWERED)),
    row!(load requests.failed, "", Count, part(DUE, SENT)),
    row!(load requests.unanswered, "unanswered", Count, part(DUE, SENT)),
    row!(load requests.missed, "missed", Count, part(DUE, DUE)),
    row!(load requests.lost, "", Count, part(DUE, DUE)),
    row!(load requests.told, "told", Count, ALONE),
    row!(load requests.messages, "messages", Count, ALONE),
    row!(load pushes.count, "pushes", Count, ALONE),
    row!(load pushes.per_s, "", PerSecond, about(PUSHES)),
    row!(load pushes.bytes, "", Bytes, about(PUSHES)),
    row!(load pushes.bytes_max, "", Bytes, about(PUSHES)),
    row!(load pushes.unread, "", Count, of(PUSHES, PUSHES)),
    row!(load pushes.ahead, "", Count, of(PUSHES, PUSHES)),
    row!(load pushes.clock_offset_us, "", Micros, about(PUSHES)),
    row!(load pushes.numbered, "", Count, of(PUSHES, PUSHES)),
    row!(load pushes.lost, "lost", Count, of(NUMBERED, NUMBERED)),
    row!(load pushes.duplicates, "duplicates", Count, of(NUMBERED, NUMBERED)),
    row!(load pushes.out_of_order, "out_of_order", Count, of(NUMBERED, NUMBERED)),
    row!(load pushes.restarts, "", Count, of(NUMBERED, NUMBERED)),
    row!(load pushes.broadcasts, "broadcasts", Count, about(PUSHES)),
    row!(load pushes.complete, "", Count, part(BROADCASTS, BROADCASTS)),
    row!(load requests.per_s, "per_s", PerSecond, about(DUE)),
    row!(load requests.bytes_in, "bytes_in", Bytes, about(OPENED)),
    row!(load requests.bytes_out, "bytes_out", Bytes, about(OPENED)),
    row!(load requests.bytes_in_per_s, "bytes_in_per_s", BytesPerSecond, about(OPENED)),
    row!(load requests.bytes_out_per_s, "bytes_out_per_s", BytesPerSecond, about(OPENED)),
    row!(load requests.body_bytes_in, "body_bytes_in", Bytes, about(ANSWERED)),
    row!(run generator.cpu_s, "", Seconds, ALONE),
    row!(run generator.system_s, "", Seconds, ALONE),
    row!(run generator.over_s, "", Seconds, ALONE),
    row!(run generator.cpu_share, "", Share, ALONE),
    row!(run generator.stall_us, "", Micros, ALONE),
    row!(run generator.rss_bytes, "", Bytes, ALONE),
    row!(run generator.user_bytes_per_connection, "", Bytes, ALONE),
    row!(run target_cost?.pid, "", Count, ALONE),
    row!(run target_cost?.cpu_s, "", Seconds, ALONE),
    row!(run target_cost?.over_s, "", Seconds, ALONE),
    row!(run target_cost?.rss_bytes, "", Bytes, ALONE),
    row!(run target_cost?.user_bytes_per_connection, "", Bytes, ALONE),
    row!(run kernel_bytes_per_connection?.value, "kernel_bytes_per_connection", Bytes, ALONE),
    row!(run probe?.rate, "", PerSecond, ALONE),
    row!(run probe?.sent, "", Count, ALONE),
    row!(run probe?.answered, "", Count, part(PROBED, PROBED)),
    row!(run probe?.failed, "", Count, part(PROBED, PROBED)),
    row!(run probe?.unanswered, "", Count, part(PROBED, PROBED)),
];

/// A row: its field, its short name, and whether it includes time of the target.
macro_rules! times {
    (run $field:ident, $short:literal, $is_of_target:literal) => {
        times!(stringify!($field), $short, $is_of_target, GetTimes::Run(|s| Some(&s.$field)))
    };
    (probe $field:ident, $short:literal) => {
        times!(
            concat!("probe.", stringify!($field)),
            $short,
            true,
            GetTimes::Run(|s| Some(&s.probe.as_ref()?.$field))
        )
    };
    (load $field:ident, $short:literal) => {
        times!(stringify!($field), $short, true, GetTimes::Load(|s| &s.$field))
    };
    (step $field:ident, $short:literal) => {
        times!(stringify!($field), $short, true, GetTimes::Step(|s| &s.$field, |s| &s.$field))
    };
    ($path:expr, $short:literal, $is_of_target:literal, $get:expr) => {
        Times { path: $path, short: $short, is_of_target: $is_of_target, get: $get }
    };
}

/// All distributions, in the order in which they are listed.
pub static TIMES: &[Times] = &[
    times!(step latency_us, "latency"),
    times!(step ramp_latency_us, "ramp_latency"),
    times!(load connect_us, "connect"),
    times!(load tls_us, "tls"),
    times!(load tls_resumed_us, "tls_resumed"),
    times!(load handshake_us, "handshake"),
    times!(load first_byte_us, "first_byte"),
    times!(load gap_us, "gap"),
    times!(load delay_us, "delay"),
    times!(load spread_us, "spread"),
    times!(load ping_rtt_us, "ping_rtt"),
    times!(run lag_us, "lag", false),
    times!(probe latency_us, "probe"),
    times!(probe fresh_us, "probe.fresh"),
    times!(probe kept_us, "probe.kept"),
    times!(probe held_us, "probe.held"),
    times!(probe connect_us, "probe.connect"),
];

/// Latency in the seconds in which all runs of a comparison had the same load; only a comparison knows it.
pub(super) static AT_EQUAL_LOAD: Times = Times {
    path: "equal_load_us",
    short: "equal_load",
    is_of_target: true,
    get: GetTimes::Run(|s| s.equal_load_us.as_ref()),
};

/// Headings for a list of the numbers, with the prefixes of their paths.
pub const GROUPS: [(&str, &[&str]); 7] = [
    ("failures", &["faults", "errors."]),
    ("connections", &["connections."]),
    ("requests", &["requests."]),
    ("pushes", &["pushes."]),
    ("the probe", &["probe."]),
    ("costs", &["generator.", "target_cost.", "kernel_bytes_per_connection."]),
    ("the run", &["threads", "seed", "ramp_s", "duration_s", "elapsed_s"]),
];
