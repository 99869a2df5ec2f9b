//! The commands that a refusal of `run` suggests: with what else the user typed.

use plan::{Flag, Flags, flag::Takes};
use units::shell_word;

use crate::{EXIT_MACHINE, Failure};

/// What is before the arguments where the fix of a finding is the same run with another value.
const RUN: &str = ": throng run ";

impl Failure {
    /// The same; the commands of a refusal have the other flags of the run, too.
    pub(crate) fn with_flags(self, flags: &Flags) -> Failure {
        if self.status != EXIT_MACHINE {
            return self;
        }
        let lines = self.lines.iter().map(|line| completed(line, flags)).collect();
        Failure { lines, ..self }
    }
}

/// A line of a refusal, whose command has a target and what it changes: without the rest it would be another run. Values that may be
/// secret are not shown, as in what is stored.
fn completed(line: &str, flags: &Flags) -> String {
    let Some((before, fix)) = line.split_once(RUN) else { return line.to_owned() };
    let (command, remark) = match fix.split_once("  # ") {
        Some((command, remark)) => (command, format!("  # {remark}")),
        None => (fix, String::new()),
    };
    let changed: Vec<&str> =
        command.split(' ').filter_map(|arg| Flag::named(arg).map(|flag| flag.name)).collect();
    // The target is no flag by that name: it is in the command.
    let typed = flags
        .pairs()
        .into_iter()
        .filter_map(|(name, value)| Some((Flag::named(&format!("--{name}"))?, value)));
    let kept = typed.filter(|(flag, _)| !changed.contains(&flag.name)).flat_map(|(flag, value)| {
        let name = flag.short.map_or_else(|| flag.place(), |short| format!("-{short}"));
        if flag.takes == Takes::Nothing { vec![name] } else { vec![name, value] }
    });
    let kept: String =
        plan::args_without_secrets(kept).iter().map(|arg| format!(" {}", shell_word(arg))).collect();
    format!("{before}{RUN}{command}{kept}{remark}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::flag;

    #[test]
    fn a_suggested_run_keeps_the_flags_that_it_does_not_change() {
        let flags = Flags::new("http://t/")
            .with(&flag::CONNECTIONS, "1m")
            .with(&flag::DURATION, "30s")
            .with(&flag::HEADER, "Authorization: Bearer x")
            .with(&flag::INSECURE, "")
            .with(&flag::THRESHOLD, "held >= 99%");
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
