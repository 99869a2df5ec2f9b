//! Names of figures: of the whole run, of populations and of steps, with suggestions for wrong ones.

use samples::{Figure, GROUPS, NUMBERS, Number, STATUS, Statistic, TIMES};
use units::ParseError;

use super::meant::meant;
use crate::Population;
use crate::nearest::{nearest, one_of};

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

    /// Finds the figure of this name: of the whole run, a population, or a step.
    pub(crate) fn figure(&self, name: &str) -> Result<Figure, ParseError> {
        Figure::of_run(name).or_else(|| self.find(name)).ok_or_else(|| {
            let (all, listed) = (all_names(), listed());
            let near = || nearest(name, all.iter().map(String::as_str)).map(str::to_owned);
            let fix = self.meant(name).unwrap_or_else(|| match meant(name).or_else(near) {
                Some(near) => format!("{near}{BESIDE}{listed}"),
                None => format!("{ALONE}{listed}"),
            });
            ParseError::new(name, "a figure of the summary", fix)
        })
    }

    /// Finds `users.latency.p99` or `users.login.latency.p99`. A population cannot have the name of a figure; if a step has, the figure
    /// wins.
    fn find(&self, name: &str) -> Option<Figure> {
        let (population, rest) = name.split_once('.')?;
        let (_, steps) = self.0.iter().find(|(known, _)| *known == population)?;
        Figure::of_population(population, rest).or_else(|| {
            let (step, figure) = rest.split_once('.').filter(|(step, _)| steps.contains(step))?;
            Figure::of_step(population, step, figure)
        })
    }

    /// A suggestion for a wrong name that begins with the name of a population.
    fn meant(&self, name: &str) -> Option<String> {
        let (population, rest) = name.split_once('.')?;
        let (_, steps) = self.0.iter().find(|(known, _)| *known == population)?;
        if Figure::of_run(rest).is_some() {
            return Some(format!("{rest}, of the whole run"));
        }
        let (step, figure) = rest.split_once('.').filter(|(_, figure)| Figure::of_run(figure).is_some())?;
        if Figure::of_step(population, step, figure).is_none() {
            return Figure::of_population(population, figure)
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

/// All accepted names, with one status as an example.
fn all_names() -> Vec<String> {
    let of_times = TIMES.iter().flat_map(|times| [times.short, times.path]);
    let times = of_times.flat_map(|of| Statistic::ALL.map(|(statistic, _)| format!("{of}.{statistic}")));
    let numbers = NUMBERS.iter().flat_map(|row| [row.short, row.path]).filter(|name| !name.is_empty());
    let status = ["status.200".to_owned(), format!("{STATUS}200")];
    status.into_iter().chain(times).chain(numbers.map(str::to_owned)).collect()
}

/// All figures by their shortest names; each group begins on a new line.
fn listed() -> String {
    let times: Vec<&str> = TIMES.iter().map(|times| times.short).collect();
    let statistics = Statistic::ALL.map(|(name, _)| format!(".{name}")).join(" ");
    let mut lines = wrapped(&format!("times: {}, each with {statistics}", times.join(", ")));
    for (group, of) in GROUPS {
        let is_own = |path: &str| of.iter().any(|of| path.starts_with(of));
        let shortest = |row: &Number| if row.short.is_empty() { row.path } else { row.short };
        let own = NUMBERS.iter().filter(|row| is_own(row.path));
        let mut names: Vec<&str> = own.map(shortest).collect();
        if is_own(STATUS) {
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
        for name in all_names() {
            let (of, quantile) = name.rsplit_once('.').unwrap_or(("", &name));
            let is_there = |name: &str| listed.split([' ', ',', ';', ':', '\n']).any(|word| word == name);
            let short = NUMBERS.iter().find(|row| row.path == name).map_or(name.as_str(), |row| row.short);
            let is_distribution = TIMES.iter().any(|times| [times.path, times.short].contains(&of));
            let is_listed = match () {
                () if is_distribution && Statistic::named(quantile).is_some() => {
                    is_there(&format!(".{quantile}"))
                }
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
        let names = all_names();
        for name in &names {
            Names::of(&[]).figure(name).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
        }
    }
}
