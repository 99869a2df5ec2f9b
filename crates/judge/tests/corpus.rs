//! The corpus: stored runs with their true causes, judged by today's rules. `cargo xtask corpus` prints which are right, unknown or wrong.

#![allow(clippy::print_stdout, reason = "the table is what it is run for")]

use std::{collections::BTreeMap, fs::File, io::Read, path::Path};

use regex::RegexBuilder;
use samples::{Cause, Limit, Summary};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A record of `corpus/records`, made by `corpus/record`.
#[derive(Deserialize)]
struct Recorded {
    name: String,
    truth: Truth,
    measured: Box<RawValue>,
}

/// The truth about a run, known from the configuration of the server or path, never from throng's output.
#[derive(Deserialize)]
struct Truth {
    #[serde(rename = "is")]
    kind: Kind,
    /// Verdicts that are right.
    verdicts: Vec<String>,
    #[serde(default)]
    side: String,
    /// Any of them is right; of a limit none: there is no name for it, and `unknown` is right; of a healthy server those that were seen, and did no
    /// harm.
    #[serde(default)]
    causes: Vec<String>,
    /// The lowest and the highest right number of connections.
    at: Option<(u64, u64)>,
    /// A regular expression that sentence, detail or fix must match.
    says: Option<String>,
    /// The same of a part of the limit.
    sentence: Option<String>,
    detail: Option<String>,
    fix: Option<String>,
    /// The same of the last line and the reasons of the verdict.
    reason: Option<String>,
    /// What none of all these may match.
    never: Option<String>,
    certainty: Option<String>,
    /// The lowest and the highest right number of connections held.
    held: Option<(u64, u64)>,
}

/// Whether a text matches a regular expression, ignoring case; true without an expression.
fn matches(pattern: &Option<String>, text: &str) -> bool {
    let one = |pattern: &String| RegexBuilder::new(pattern).case_insensitive(true).build();
    pattern.as_ref().is_none_or(|pattern| one(pattern).expect("a regular expression").is_match(text))
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Healthy,
    Limited,
    Unknowable,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Score {
    Right,
    Unknown,
    Wrong(&'static str),
}

impl Truth {
    fn score(&self, summary: &Summary) -> Score {
        let is_right = self.verdicts.iter().any(|verdict| verdict == summary.verdict.name());
        let limit = summary.limit.as_ref().filter(|limit| limit.cause != Cause::Unknown);
        match (is_right, self.kind, summary.verdict.name()) {
            (false, Kind::Healthy, _) => Score::Wrong("false fail"),
            (false, _, "pass") => Score::Wrong("false pass"),
            (false, ..) => Score::Wrong("other verdict"),
            (true, ..) => match limit.map_or_else(|| self.without_cause(), |limit| self.of(limit)) {
                Score::Right => self.further(summary),
                other => other,
            },
        }
    }

    fn without_cause(&self) -> Score {
        if self.kind == Kind::Limited && !self.causes.is_empty() { Score::Unknown } else { Score::Right }
    }

    fn of(&self, limit: &Limit) -> Score {
        // The judge left open which side it is.
        if self.kind == Kind::Limited && limit.side == samples::Side::Unknown {
            return Score::Unknown;
        }
        let is_other = self.kind == Kind::Limited && limit.side.name() != self.side;
        if is_other || !self.causes.iter().any(|cause| cause == limit.cause.name()) {
            return Score::Wrong("cause");
        }
        let text = format!("{}\n{}\n{}", limit.sentence, limit.detail, limit.fix);
        match self.at {
            Some((least, most)) if !(least..=most).contains(&limit.at_connections) => Score::Wrong("number"),
            _ if !matches(&self.says, &text) => Score::Wrong("sentence"),
            _ => Score::Right,
        }
    }

    /// What has to be right whatever the cause is, and where there is none.
    fn further(&self, summary: &Summary) -> Score {
        let limit = summary.limit.as_ref();
        let [sentence, detail, fix, certainty] = limit
            .map_or([""; 4], |limit| [&limit.sentence, &limit.detail, &limit.fix, limit.certainty.name()]);
        let reasons = format!("{}\n{}", summary.headline, summary.reasons.join("\n"));
        let parts =
            [(&self.sentence, sentence), (&self.detail, detail), (&self.fix, fix), (&self.reason, &*reasons)];
        let is_said = parts.iter().all(|(pattern, text)| matches(pattern, text));
        let all = parts.map(|(_, text)| text).join("\n");
        let held = summary.connections.held;
        match self.held {
            Some((least, most)) if !(least..=most).contains(&held) => Score::Wrong("number held"),
            _ if self.certainty.as_deref().is_some_and(|right| right != certainty) => {
                Score::Wrong("certainty")
            }
            _ if !is_said || self.never.is_some() && matches(&self.never, &all) => Score::Wrong("sentence"),
            _ => Score::Right,
        }
    }

    /// What the table calls it.
    fn name(&self) -> String {
        match self.kind {
            Kind::Healthy => "healthy".to_owned(),
            Kind::Unknowable => "not knowable".to_owned(),
            Kind::Limited if self.causes.is_empty() => format!("{}: another cause", self.side),
            Kind::Limited => format!("{}: {}", self.side, self.causes[0]),
        }
    }
}

fn read(file: &Path) -> Recorded {
    let open = File::open(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(open).read_to_string(&mut text).expect("compressed by corpus/record");
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// Numbers of right, unknown and wrong results.
#[derive(Clone, Copy, Default)]
struct Counts([u64; 3]);

impl Counts {
    fn add(&mut self, score: Score) {
        let place = match score {
            Score::Right => 0,
            Score::Unknown => 1,
            Score::Wrong(_) => 2,
        };
        self.0[place] += 1;
    }

    fn all(self) -> u64 {
        self.0.iter().sum()
    }
}

fn said(summary: &Summary) -> String {
    let limit = summary.limit.as_ref();
    let limit =
        limit.map(|limit| format!("{} {}: {}", limit.side.name(), limit.cause.name(), limit.sentence));
    format!("{}, {}", summary.verdict.name(), limit.unwrap_or_else(|| "no cause".to_owned()))
}

/// The details of the limit, and the last line with its reasons.
fn details(summary: &Summary) -> String {
    let limit = summary.limit.as_ref();
    let parts =
        limit.map(|limit| format!("{}\n    {}\n    {}", limit.certainty.name(), limit.detail, limit.fix));
    let held = summary.connections.held;
    format!("    {}\n    {held} held; {}; {:?}", parts.unwrap_or_default(), summary.headline, summary.reasons)
}

/// Judges all records of a part; prints those that are not right, unless the part is held out.
fn judge_all(part: &str, is_open: bool) -> Counts {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/records").join(part);
    let mut files: Vec<_> =
        folder.read_dir().expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    // Also prints all sentences, which helps to write labels.
    let is_wordy = std::env::var_os("THRONG_SAID").is_some();
    let (mut by_truth, mut whole) = (BTreeMap::<String, Counts>::new(), Counts::default());
    let mut wrong = BTreeMap::<&str, u64>::new();
    for file in files {
        let recorded = read(&file);
        let summary =
            judge::rejudge(recorded.measured.get()).unwrap_or_else(|why| panic!("{}: {why}", recorded.name));
        let score = recorded.truth.score(&summary);
        by_truth.entry(recorded.truth.name()).or_default().add(score);
        whole.add(score);
        if let Score::Wrong(what) = score {
            *wrong.entry(what).or_default() += 1;
        }
        let Recorded { name, truth, .. } = &recorded;
        match score {
            _ if !is_open => {}
            Score::Right if !is_wordy => {}
            Score::Right => println!("  right    {name}: {}", said(&summary)),
            Score::Unknown => println!("  unknown  {name}: {}", truth.name()),
            Score::Wrong(what) => {
                println!("  wrong    {name} ({what}): {}; said: {}", truth.name(), said(&summary))
            }
        }
        if is_open && is_wordy {
            println!("{}", details(&summary));
        }
    }
    let how: Vec<String> = wrong.iter().map(|(what, n)| format!("{n} by its {what}")).collect();
    println!("\n  {part}: wrong: {}", if how.is_empty() { "none".to_owned() } else { how.join(", ") });
    println!("\n  {:<34}right unknown wrong", format!("{part}: what was true"));
    for (truth, Counts([right, unknown, wrong])) in by_truth {
        println!("  {truth:<34}{right:>5} {unknown:>7} {wrong:>5}");
    }
    whole
}

/// Fewest right and most wrong results, tuned and held out: results must not get worse. To be set again after new records or a better
/// judge.
const REACHED: [(u64, u64); 2] = [(539, 8), (257, 9)];

#[test]
fn stored_runs_are_judged_as_they_were() {
    // Rules must not be written with knowledge of the records that measure them.
    let is_open = std::env::var_os("THRONG_HELD_OUT").is_some();
    let parts = [("tuned", judge_all("tuned", true)), ("held out", judge_all("held_out", is_open))];
    println!();
    for (name, whole) in parts {
        let Counts([right, unknown, wrong]) = whole;
        println!("{name}: {right} right, {unknown} unknown, {wrong} wrong of {}", whole.all());
    }
    for ((name, Counts([right, _, wrong])), (least, most)) in parts.into_iter().zip(REACHED) {
        assert!(
            right >= least && wrong <= most,
            "{name}: it was at least {least} right and at most {most} wrong"
        );
    }
}
