//! What all labs came to, as a page of Markdown: for each text what it claimed, what was run, what came of it.

use std::{collections::BTreeSet, fs};

use units::Bytes;

use crate::{
    across::{self, across},
    drift::{DRIFT_HEAD, Drift},
    experiment::Experiment,
    file::Lab,
    findings::filled,
    outcome::{Machine, Outcome, Subject},
    table::{Spread, then_and_now},
};

/// In a lab's folder: what was claimed and found, in words.
const FINDINGS: &str = "findings.md";

/// Repetitions of one trial.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// Which.
    pub subject: &'a Subject,
    /// The oldest first; at least one.
    pub outcomes: Vec<&'a Outcome>,
}

impl Group<'_> {
    /// A figure of the summary, of those repetitions that have it.
    pub fn spread(&self, path: &str) -> Option<Spread> {
        Spread::of(self.outcomes.iter().filter_map(|outcome| outcome.figure(path)).collect())
    }
}

/// Those that repeat each other, in the order of their first.
pub fn groups(outcomes: &[Outcome]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for outcome in outcomes {
        match groups.iter_mut().find(|group| *group.subject == outcome.subject) {
            Some(group) => group.outcomes.push(outcome),
            None => groups.push(Group { subject: &outcome.subject, outcomes: vec![outcome] }),
        }
    }
    groups
}

/// The page. Pictures are in the folder `experiments` beside it.
///
/// # Errors
/// A place in a lab's findings that names nothing.
pub fn document(labs: &[Lab], outcomes: &[Outcome]) -> Result<String, String> {
    let mut text = HEAD.to_owned();
    let machines: BTreeSet<String> = outcomes.iter().map(|outcome| outcome.machine.told()).collect();
    text += &format!("Where: {}.\n", machines.into_iter().collect::<Vec<_>>().join("; "));
    text += "\n## All servers\n\n";
    text += &table(&across::HEAD, &across(outcomes));
    text += ACROSS;
    for lab in labs {
        let own: Vec<Outcome> =
            outcomes.iter().filter(|outcome| outcome.subject.lab == lab.name).cloned().collect();
        text += &section(lab, &own)?;
    }
    Ok(text)
}

const HEAD: &str = "\
# Experiments

What the source texts claimed, and what came of it here. Made by `throng lab compare --results labs/results.jsonl --markdown docs/experiments.md` from the
outcomes that are kept in that file; `throng lab run NAME --times 3 --results FILE` makes such ones on any machine. A figure is the median of its
repetitions, with the least and the most behind it. *Then* is at the text's size, *now* at the scale that is named. Where both ends were on one machine, as here,
they shared its processors.

";

const ACROSS: &str = "
Connections per GB (10⁹ bytes of all the server's processes, as resident; the kernel's memory is not in it) and p99 are of the experiment in which a server held the
most; the other two are the best of all its experiments. The loads differ (see below): side by side under the same load are `bench/labs` and `bench/serve-cost`.
";

impl Machine {
    fn told(&self) -> String {
        format!("{} cores, {} of memory, Linux {}", self.cores, Bytes(self.memory_bytes).brief(), self.kernel)
    }
}

fn section(lab: &Lab, outcomes: &[Outcome]) -> Result<String, String> {
    let groups = groups(outcomes);
    let mut text =
        format!("\n## {}\n\n*{}.* [The lab](../labs/{}/README.md)\n\n", lab.title, lab.text, lab.name);
    let file = lab.folder.join(FINDINGS);
    if let Ok(findings) = fs::read_to_string(&file) {
        text += &filled(&findings, &groups).map_err(|why| format!("{}: {why}", file.display()))?;
    }
    if groups.is_empty() {
        text += "\nNothing of it was run.\n";
        return Ok(text);
    }
    for plot in &lab.plots {
        let shown = plot.experiments.join(", ");
        text += &format!("\n![{}: {shown}](experiments/{})\n", lab.title, plot.file(lab));
    }
    text += &versions(outcomes);
    for experiment in lab.experiments.iter().chain(&lab.soak) {
        let own = groups.iter().filter(|group| group.subject.experiment == experiment.name);
        for (nth, group) in own.enumerate() {
            if nth == 0 {
                text += &format!("\n### {}\n", experiment.title);
            }
            text += &one(lab, experiment, group, &groups);
        }
    }
    Ok(text)
}

fn versions(outcomes: &[Outcome]) -> String {
    let of = |outcome: &Outcome| format!("`{}` is {}", outcome.subject.server, outcome.server_version);
    let told: BTreeSet<String> =
        outcomes.iter().filter(|outcome| !outcome.server_version.is_empty()).map(of).collect();
    if told.is_empty() {
        String::new()
    } else {
        format!("\n{}.\n", told.into_iter().collect::<Vec<_>>().join("; "))
    }
}

/// A trial's figures, and what stopped it.
fn one(lab: &Lab, experiment: &Experiment, group: &Group, all: &[Group]) -> String {
    let last = group.outcomes[group.outcomes.len() - 1];
    let mut how = last.how(lab);
    let n = group.outcomes.len();
    how.push(if n == 1 { "once".to_owned() } else { format!("{n} times") });
    let variant = group.subject.variant.as_ref().map_or(String::new(), |variant| format!(", {variant}"));
    let mut text = format!("\n**{}{variant}** ({})\n\n", group.subject.server, how.join(", "));
    let rows: Vec<[String; 3]> = then_and_now(&experiment.then, &group.outcomes);
    text += &table(&["", "then", "now"], &rows);
    text += &format!("\n`throng {}`\n", last.words.join(" ").replace('`', "'"));
    let mut ends: Vec<(String, usize)> = Vec::new();
    for outcome in &group.outcomes {
        let headline = outcome.headline();
        match ends.iter_mut().find(|(end, _)| *end == headline) {
            Some((_, n)) => *n += 1,
            None => ends.push((headline, 1)),
        }
    }
    for (end, times) in ends {
        let times = if times == n { String::new() } else { format!("{times} of {n}: ") };
        text += &format!("\n> {times}{end}\n");
    }
    if let Some(lifted) = &experiment.lifted {
        let is = |other: &&Group| {
            other.subject.experiment == *lifted && other.subject.server == group.subject.server
        };
        let told = all.iter().find(is).map(|other| other.outcomes[other.outcomes.len() - 1].headline());
        text.extend(told.map(|told| format!("\nWith that limit lifted (`{lifted}`): {told}\n")));
    }
    text + &drift(last) + &pauses(last)
}

fn drift(outcome: &Outcome) -> String {
    if outcome.drift.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; 5]> = outcome.drift.iter().map(Drift::row).collect();
    format!("\n{}", table(&DRIFT_HEAD, &rows))
}

fn pauses(outcome: &Outcome) -> String {
    let Some(longest) = outcome.pauses.iter().max_by(|a, b| a.ms.total_cmp(&b.ms)) else {
        return String::new();
    };
    format!("\nThe longest that its garbage collector did: {}.\n", longest.told())
}

fn table<const N: usize>(head: &[&str; N], rows: &[[String; N]]) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let mut text =
        line(head.to_vec()) + &line((0..N).map(|nth| if nth == 0 { "---" } else { "---:" }).collect());
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        text += &line(cells.iter().map(String::as_str).collect());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::{collections::BTreeMap, path::PathBuf};

    fn lab(folder: PathBuf) -> Lab {
        let experiment = |name: &str, limit: Option<&str>| {
            let mut experiment: Experiment =
                toml::from_str(&format!("name = \"{name}\"\ntitle = \"{name} it\"")).unwrap();
            experiment.lifted = limit.map(str::to_owned);
            experiment.then = BTreeMap::from([("requests.per_s".to_owned(), 100.0)]);
            experiment
        };
        Lab {
            name: "own".to_owned(),
            folder,
            title: "Our own".to_owned(),
            text: "no text".to_owned(),
            servers: Vec::new(),
            experiments: vec![experiment("limit", Some("more")), experiment("more", None)],
            soak: None,
            plots: Vec::new(),
        }
    }

    fn outcome(experiment: &str, per_s: f64, headline: &str) -> Outcome {
        Outcome {
            machine: Machine { kernel: "6.1".to_owned(), cores: 2, memory_bytes: 24 << 30 },
            subject: Subject {
                lab: "own".to_owned(),
                experiment: experiment.to_owned(),
                server: "ours".to_owned(),
                scale: 0.5,
                ..Subject::default()
            },
            words: vec!["run".to_owned(), "http://x/".to_owned()],
            summary: json!({"headline": headline, "requests": {"per_s": per_s}}),
            ..Outcome::default()
        }
    }

    #[test]
    fn a_page_of_all_labs() {
        let folder = std::env::temp_dir().join(format!("throng-lab-document-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(FINDINGS), "It was {{limit/ours requests.per_s}}.\n").unwrap();
        let outcomes = [
            outcome("limit", 10.0, "limited at 20"),
            outcome("limit", 30.0, "limited at 20"),
            outcome("more", 50.0, "pass"),
            outcome("limit", 20.0, "limited at 21"),
        ];
        let text = document(&[lab(folder.clone())], &outcomes).unwrap();
        for expected in [
            "Where: 2 cores, 24.0 GiB of memory, Linux 6.1.\n",
            "| own · ours | – | – | 50 | – |\n",
            "## Our own\n\n*no text.* [The lab](../labs/own/README.md)\n\nIt was 20.\n",
            "### limit it\n\n**ours** (scale 0.5, 3 times)\n\n|  | then | now |\n| --- | ---: | ---: |\n| requests/s | 100 | 20 (10 to 30) |\n",
            "`throng run http://x/`\n\n> 2 of 3: limited at 20\n\n> 1 of 3: limited at 21\n\nWith that limit lifted (`more`): pass\n",
            "**ours** (scale 0.5, once)\n",
        ] {
            assert!(text.contains(expected), "{expected}\n---\n{text}");
        }
        fs::write(folder.join(FINDINGS), "{{x}}").unwrap();
        assert!(
            document(&[lab(folder.clone())], &outcomes)
                .unwrap_err()
                .ends_with("line 1: not EXPERIMENT/SERVER PATH: x")
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
