//! Completes the commands that `run` suggests in refusals and summaries with the other flags that the user typed. Without them, a
//! suggested command would be for another run.

use plan::{
    Flag, Flags,
    flag::{self, Role, Takes},
};
use samples::{Command, Header, Limit, Samples, Sink, Sinks, Summary, Tick};
use units::shell_word;

use crate::{EXIT_MACHINE, Failure, args::refused_by_find, search};

/// The text before the arguments of a fix that suggests the same run with another value.
const RUN: &str = ": throng run ";

impl Failure {
    /// Adds the run's other flags to the commands of a refusal.
    pub(crate) fn with_flags(self, flags: &Flags) -> Failure {
        if self.status != EXIT_MACHINE {
            return self;
        }
        let lines = self.lines.iter().map(|line| completed(line, flags)).collect();
        Failure { lines, ..self }
    }
}

/// Completes the command in a line of a refusal, which contains only the target and the changed flag. Secret values are replaced, as
/// in stored records.
fn completed(line: &str, flags: &Flags) -> String {
    let Some((before, fix)) = line.split_once(RUN) else { return line.to_owned() };
    let (command, remark) = match fix.split_once("  # ") {
        Some((command, remark)) => (command, format!("  # {remark}")),
        None => (fix, String::new()),
    };
    let changed: Vec<&str> =
        command.split(' ').filter_map(|arg| Flag::named(arg).map(|flag| flag.name)).collect();
    let kept = typed(flags).filter(|(flag, _)| !changed.contains(&flag.name));
    format!("{before}{RUN}{command}{}{remark}", words(kept))
}

/// The typed flags with their values, except for the target.
fn typed(flags: &Flags) -> impl Iterator<Item = (&'static Flag, String)> {
    let pairs = flags.pairs().into_iter();
    pairs.filter_map(|(name, value)| Some((Flag::named(&format!("--{name}"))?, value)))
}

/// The flags as further arguments for a shell: ` -k -H 'Accept: a'`.
fn words(flags: impl Iterator<Item = (&'static Flag, String)>) -> String {
    let args = flags.flat_map(|(flag, value)| {
        let name = flag.short.map_or_else(|| flag.place(), |short| format!("-{short}"));
        if flag.takes == Takes::Nothing { vec![name] } else { vec![name, value] }
    });
    plan::args_without_secrets(args).iter().map(|arg| format!(" {}", shell_word(arg))).collect()
}

/// Adds the run's other flags to the searches that a summary suggests, as far as a search accepts them.
pub(crate) fn with_searches(summary: Summary, flags: &Flags) -> Summary {
    let complete = |text: String| with_search(text, flags);
    let limit = |limit: Limit| Limit { fix: complete(limit.fix), ..limit };
    Summary {
        headline: complete(summary.headline),
        reasons: summary.reasons.into_iter().map(complete).collect(),
        limit: summary.limit.map(limit),
        ..summary
    }
}

fn with_search(text: String, flags: &Flags) -> String {
    let command = run::find_command(flags.get(&flag::TARGET).unwrap_or_default());
    match text.split_once(command.as_str()) {
        Some((before, how)) => format!("{before}{command}{}{how}", words(of_search(how, flags))),
        None => text,
    }
}

/// The flags of a run that a search keeps. Its load is not among them: `how` contains the arguments for it, after the target.
fn of_search(how: &str, flags: &Flags) -> impl Iterator<Item = (&'static Flag, String)> {
    let (by_rate, by_connections) = (how.starts_with(" --by rate"), !how.starts_with(" --by "));
    typed(flags).filter(move |(own, value)| match own.role {
        _ if own.role.is_output() || refused_by_find(own, value).is_some() => false,
        // Connections that pause between requests may need steps as long as the run.
        Role::Load => own.name == flag::DURATION.name && by_connections && search::step_time(value).is_ok(),
        // The search determines when requests are due.
        Role::Work => !by_rate || ![flag::THINK.name, flag::PING.name].contains(&own.name),
        _ => ![flag::THRESHOLD.name, flag::SEED.name].contains(&own.name),
    })
}

/// Sinks that get the summary [with completed searches](with_searches).
pub(crate) struct WithSearches<'a, 's> {
    pub(crate) flags: &'a Flags,
    pub(crate) sinks: Sinks<'a, 's>,
}

impl Sink for WithSearches<'_, '_> {
    fn begin(&mut self, header: &Header) {
        self.sinks.begin(header);
    }

    fn tick(&mut self, tick: &Tick, looks: &Samples) {
        self.sinks.tick(tick, looks);
    }

    fn late(&mut self, tick: &Tick) {
        self.sinks.late(tick);
    }

    fn ask(&mut self) -> Option<Command> {
        self.sinks.ask()
    }

    fn measured(&mut self, json: &str) {
        self.sinks.measured(json);
    }

    fn finish(&mut self, summary: &Summary) {
        self.sinks.finish(&with_searches(summary.clone(), self.flags));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed_as(target: &str, connections: &str, threshold: &str) -> Flags {
        Flags::new(target)
            .with(&flag::CONNECTIONS, connections)
            .with(&flag::DURATION, "30s")
            .with(&flag::HEADER, "Authorization: Bearer x")
            .with(&flag::INSECURE, "")
            .with(&flag::THRESHOLD, threshold)
    }

    #[test]
    fn a_suggested_search_keeps_the_flags_that_a_search_has() {
        let flags = typed_as("https://t/?a&b", "20", "latency.p99 < 5ms")
            .with(&flag::THINK, "1s")
            .with(&flag::TIMEOUT, "2s")
            .with(&flag::JSON, "a.json")
            .with(&flag::DASHBOARD, "127.0.0.1:0")
            .with(&flag::SEED, 7);
        let check = |how: &str, kept: &str| {
            let text = |kept: &str| format!("search it (throng find 'https://t/?a&b'{kept}{how}), or not");
            let summary = Summary {
                headline: format!("fail: {}", text("")),
                reasons: vec![format!("warning: {}", text("")), "other".to_owned()],
                limit: Some(Limit { fix: text(""), ..Limit::default() }),
                ..Summary::default()
            };
            let found = with_searches(summary, &flags);
            assert_eq!(found.headline, format!("fail: {}", text(kept)));
            assert_eq!(found.reasons, [format!("warning: {}", text(kept)), "other".to_owned()]);
            assert_eq!(found.limit.map(|limit| limit.fix), Some(text(kept)));
        };
        let header = "-H 'Authorization: ***' -k";
        check(" --by rate -c 20 --threshold 'latency.p99 < 5ms'", &format!(" {header} --timeout 2s"));
        check(" --by arrival", &format!(" {header} --think 1s --timeout 2s"));
        check(" --threshold 'latency.p99 < 5ms'", &format!(" -d 30s {header} --think 1s --timeout 2s"));
    }

    #[test]
    fn a_suggested_run_keeps_the_flags_that_it_does_not_change() {
        let flags = typed_as("http://t/", "1m", "held >= 99%");
        let check = |status, line: &str, expected: &str| {
            let lines = vec![line.to_owned()];
            assert_eq!(Failure { status, lines }.with_flags(&flags).lines, [expected]);
        };
        let memory = "memory: 1.0 GiB available, 9.0 GiB needed: throng run http://t/ -c 10000";
        let others = "-d 30s -H 'Authorization: ***' -k --threshold 'held >= 99%'";
        check(EXIT_MACHINE, memory, &format!("{memory} {others}"));
        let more = "  # or free memory";
        check(EXIT_MACHINE, &format!("{memory}{more}"), &format!("{memory} {others}{more}"));
        let slower = "cores: 1: throng run http://t/ -c 1000000 -d 5s";
        let rest = "-H 'Authorization: ***' -k --threshold 'held >= 99%'";
        check(EXIT_MACHINE, slower, &format!("{slower} {rest}"));
        for line in ["open files: 20 allowed: ulimit -n 1000", "the scenario cannot be read"] {
            check(EXIT_MACHINE, line, line);
        }
        check(crate::EXIT_USAGE, memory, memory);
    }
}
