//! What all labs came to, as a page of Markdown: for each text what it claimed, what was run, what came of it.

mod findings;

use std::{collections::BTreeSet, fs};

use units::Bytes;

use crate::{
    across::{self, across},
    drift::DRIFT_HEAD,
    experiment::Experiment,
    file::Lab,
    outcome::{Machine, Outcome, Subject},
    pauses::Pause,
    picture::picture,
    table::{Spread, common_scale, side_by_side},
};

use findings::filled;

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
    /// Those whose figures count: that are valid, or all where none is.
    pub fn counted(&self) -> Vec<&Outcome> {
        let valid: Vec<&Outcome> =
            self.outcomes.iter().copied().filter(|outcome| outcome.is_valid()).collect();
        if valid.is_empty() { self.outcomes.clone() } else { valid }
    }

    /// A figure of the summary, of those repetitions that have it.
    pub fn spread(&self, path: &str) -> Option<Spread> {
        Spread::of(self.counted().iter().filter_map(|outcome| outcome.figure(path)).collect())
    }

    /// The latest.
    pub fn last(&self) -> &Outcome {
        self.outcomes[self.outcomes.len() - 1]
    }

    /// How the repetitions ended: those that ended alike by the last one's words.
    fn ends(&self) -> String {
        let kind = |outcome: &Outcome| {
            ["verdict", "outcome", "limit.side", "limit.cause"]
                .map(|path| outcome.word(path).map(str::to_owned))
        };
        let mut ends: Vec<(&Outcome, usize)> = Vec::new();
        for outcome in &self.outcomes {
            match ends.iter_mut().find(|(end, _)| kind(end) == kind(outcome)) {
                Some((end, n)) => (*end, *n) = (outcome, *n + 1),
                None => ends.push((outcome, 1)),
            }
        }
        let n = self.outcomes.len();
        let told = |(end, times): &(&Outcome, usize)| {
            if *times == n { end.headline() } else { format!("{times} of {n}: {}", end.headline()) }
        };
        ends.iter().map(told).collect::<Vec<_>>().join("; ")
    }
}

/// Those that repeat each other on one machine, in the order of their first.
pub fn groups(outcomes: &[Outcome]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for outcome in outcomes {
        let is = |group: &&mut Group| {
            *group.subject == outcome.subject && group.outcomes[0].machine == outcome.machine
        };
        match groups.iter_mut().find(is) {
            Some(group) => group.outcomes.push(outcome),
            None => groups.push(Group { subject: &outcome.subject, outcomes: vec![outcome] }),
        }
    }
    groups
}

/// What all labs came to, to be written.
pub struct Page {
    /// Markdown.
    pub text: String,
    /// Names and texts (SVG) of its pictures, which belong into the folder `experiments` beside it.
    pub pictures: Vec<(String, String)>,
}

impl Page {
    /// Of these labs.
    ///
    /// # Errors
    /// A place in a lab's findings that names nothing.
    pub fn of(labs: &[Lab], outcomes: &[Outcome]) -> Result<Page, String> {
        let mut page = Page { text: HEAD.to_owned(), pictures: Vec::new() };
        let machines: BTreeSet<String> = outcomes.iter().map(|outcome| outcome.machine.told()).collect();
        page.text += &format!("Where: {}.\n", machines.into_iter().collect::<Vec<_>>().join("; "));
        page.text += "\n## All servers\n\n";
        let rows: Vec<Vec<String>> = across(outcomes).into_iter().map(|row| row.to_vec()).collect();
        page.text += &table(&across::HEAD, &rows);
        page.text += ACROSS;
        for lab in labs {
            let own: Vec<Outcome> =
                outcomes.iter().filter(|outcome| outcome.subject.lab == lab.name).cloned().collect();
            page.add(lab, &own)?;
        }
        Ok(page)
    }

    /// What one lab came to.
    fn add(&mut self, lab: &Lab, outcomes: &[Outcome]) -> Result<(), String> {
        let groups = groups(outcomes);
        let about = if lab.text.is_empty() { String::new() } else { format!("*{}.* ", lab.text) };
        self.text += &format!("\n## {}\n\n{about}[The lab](../labs/{}/README.md)\n\n", lab.title, lab.name);
        let file = lab.folder.join(FINDINGS);
        if let Ok(findings) = fs::read_to_string(&file) {
            self.text += &filled(&findings, &groups).map_err(|why| format!("{}: {why}", file.display()))?;
        }
        if groups.is_empty() {
            self.text += "\nNot run.\n";
            return Ok(());
        }
        for plot in &lab.plots {
            let Some(svg) = picture(plot, outcomes) else { continue };
            let (shown, file) = (plot.experiments.join(", "), plot.file(lab));
            self.text += &format!("\n![{}: {shown}](experiments/{file})\n", lab.title);
            self.pictures.push((file, svg));
        }
        self.text += &versions(outcomes);
        for experiment in lab.experiments.iter().chain(&lab.soak) {
            let own: Vec<&Group> =
                groups.iter().filter(|group| group.subject.experiment == experiment.name).collect();
            if !own.is_empty() {
                self.text += &one(lab, experiment, &own, &groups);
            }
        }
        Ok(())
    }
}

const HEAD: &str = "\
# Experiments

The claims of the source texts, and the results here. Generated by `throng lab compare --results labs/results.jsonl --markdown docs/experiments.md` from
the results in that file; `throng lab run NAME --times 3 --results FILE` produces such results on any machine. A figure is the median of its repetitions, with
minimum and maximum in brackets. *Then* is at the text's size, *now* at the given scale. If both ends were on one machine, as here, they shared its processors.

";

const ACROSS: &str = "
Connections per GB (10⁹ bytes of resident memory of all the server's processes, without the kernel's memory) and p99 are from the experiment in which a server
held the most; the other two are the best of all its experiments. The loads differ (see below): `bench/labs` and `bench/serve-cost` compare under the same load.
";

impl Machine {
    fn told(&self) -> String {
        format!("{} cores, {} of memory, Linux {}", self.cores, Bytes(self.memory_bytes).brief(), self.kernel)
    }
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

/// An experiment's figures, side by side, and what stopped each.
fn one(lab: &Lab, experiment: &Experiment, own: &[&Group], all: &[Group]) -> String {
    let mut text = format!("\n### {}\n\n", experiment.title);
    let mut names: Vec<String> = own.iter().map(|group| group.subject.name()).collect();
    let counted: Vec<Vec<&Outcome>> = own.iter().map(|group| group.counted()).collect();
    let columns: Vec<&[&Outcome]> = counted.iter().map(Vec::as_slice).collect();
    if common_scale(&columns).is_none() {
        for (name, group) in names.iter_mut().zip(own) {
            *name += &format!(", at scale {}", group.subject.scale);
        }
    }
    let mut head: Vec<&str> = ["", "then"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut rows = side_by_side(&experiment.then, &columns);
    if experiment.then.is_empty() {
        head.remove(1);
        rows.iter_mut().for_each(|row| drop(row.remove(1)));
    }
    text += &table(&head, &rows);
    text += &format!("\n`throng {}`\n\n", own[0].last().words.join(" ").replace('`', "'"));
    for (group, name) in own.iter().zip(&names) {
        let n = group.outcomes.len();
        let times = if n == 1 { "once".to_owned() } else { format!("{n} times") };
        let how = group.last().how(lab).into_iter().chain([times]).collect::<Vec<_>>().join(", ");
        text += &format!("- **{name}** ({how}): {}", group.ends());
        let met = experiment.lifted.as_ref().filter(|_| !group.last().summary["limit"].is_null());
        if let Some(lifted) = met {
            let is = |other: &&Group| {
                let (one, this) = (other.subject, group.subject);
                one.experiment == *lifted && (&one.server, one.scale) == (&this.server, this.scale)
            };
            let told = all.iter().find(is).map(|other| other.last().headline());
            text.extend(told.map(|told| format!(". With this limit lifted (`{lifted}`): {told}")));
        }
        text.push('\n');
    }
    for (group, name) in own.iter().zip(&names) {
        text += &drift(name, group.last());
        text += &pauses(name, group);
    }
    text
}

/// What a soak changed.
fn drift(name: &str, outcome: &Outcome) -> String {
    if outcome.drift.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = outcome.drift.iter().map(|drift| drift.row().to_vec()).collect();
    format!("\n**{name}** ({}):\n\n{}", outcome.at, table(&DRIFT_HEAD, &rows))
}

/// Number of the longest pauses shown for a run; for a soak all stored ones are shown.
const PAUSES: usize = 3;

/// The longest pauses of a garbage collector beside the longest responses of those seconds, of all repetitions.
fn pauses(name: &str, group: &Group) -> String {
    let is_soak = !group.last().drift.is_empty();
    let counted = if is_soak { vec![group.last()] } else { group.counted() };
    let mut longest: Vec<&Pause> = counted.iter().flat_map(|outcome| &outcome.pauses).collect();
    if !is_soak {
        longest.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        longest.truncate(PAUSES);
    }
    if longest.is_empty() {
        return String::new();
    }
    let mut text = format!("\nLongest garbage collection pauses of {name}:\n\n");
    text.extend(longest.iter().map(|pause| format!("- {}\n", pause.told())));
    text
}

fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let rule = head.iter().enumerate().map(|(nth, _)| if nth == 0 { "---" } else { "---:" }).collect();
    let mut text = line(head.to_vec()) + &line(rule);
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
            if limit.is_some() {
                experiment.then = BTreeMap::from([("requests.per_s".to_owned(), 100.0.into())]);
            }
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
            summary: json!({
                "verdict": headline.split(' ').next(), "headline": headline, "requests": {"per_s": per_s},
                "limit": headline.contains(" at ").then(|| json!({"cause": "open-files"})),
            }),
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
            outcome("limit", 30.0, "fail"),
            outcome("limit", 9_999.0, "invalid"),
            outcome("more", 50.0, "pass"),
            outcome("limit", 20.0, "limited at 21"),
        ];
        let Page { text, pictures } = Page::of(&[lab(folder.clone())], &outcomes).unwrap();
        assert_eq!(pictures, []);
        for expected in [
            "Where: 2 cores, 24.0 GiB of memory, Linux 6.1.\n",
            "| own · ours | – | – | 50 | – |\n",
            "## Our own\n\n*no text.* [The lab](../labs/own/README.md)\n\nIt was 20.\n",
            "### limit it\n\n|  | then | ours |\n| --- | ---: | ---: |\n| requests/s | 100 | 20 (10 to 30) |\n\n`throng run http://x/`\n",
            "- **ours** (scale 0.5, 4 times): 2 of 4: limited at 21; 1 of 4: fail; 1 of 4: invalid. With this limit lifted (`more`): pass\n",
            "### more it\n\n|  | ours |\n| --- | ---: |\n| requests/s | 50 |\n",
            "- **ours** (scale 0.5, once): pass\n",
        ] {
            assert!(text.contains(expected), "{expected}\n---\n{text}");
        }
        fs::write(folder.join(FINDINGS), "{{x}}").unwrap();
        assert!(
            Page::of(&[lab(folder.clone())], &outcomes)
                .err()
                .unwrap()
                .ends_with("line 1: not EXPERIMENT/SERVER PATH: x")
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
