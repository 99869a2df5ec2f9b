//! Whether runs are comparable: the same plan on the same machine, and a normal end.

use samples::Verdict;

use super::{Group, Run};

/// Reasons against a comparison, each once and with its runs. `load_args`: selects the arguments of a command line that define the load.
pub(super) fn warnings<'a>(groups: &'a [Group], load_args: &dyn Fn(&[String]) -> Vec<String>) -> Vec<String> {
    let runs = || groups.iter().flat_map(|group| &group.runs);
    let base = &groups[0].runs[0];
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    let mut add = |what: String, run: &'a Run| match found.iter_mut().find(|(known, _)| *known == what) {
        Some((_, runs)) if runs.contains(&run.id.as_str()) => {}
        Some((_, runs)) => runs.push(&run.id),
        None => found.push((what, vec![&run.id])),
    };
    for run in runs() {
        against(base, run, load_args).into_iter().chain(of(run)).for_each(|what| add(what, run));
    }
    let is_in = |group: &Group, run: &Run| group.runs.iter().any(|own| own.id == run.id);
    for run in runs().filter(|run| groups.iter().filter(|group| is_in(group, run)).count() > 1) {
        add("in more than one group".to_owned(), run);
    }
    let line = |(what, runs): (String, Vec<&str>)| {
        format!("{what}: {} {}", if runs.len() == 1 { "run" } else { "runs" }, runs.join(", "))
    };
    found.into_iter().map(line).collect()
}

/// Differences from the base.
fn against(base: &Run, run: &Run, load_args: &dyn Fn(&[String]) -> Vec<String>) -> Vec<String> {
    let (b, r) = (&base.record, &run.record);
    let mut found = Vec::new();
    let mut differs = |what: &str, own: &dyn std::fmt::Display, there: &dyn std::fmt::Display| {
        found.push(format!("different {what} ({own}, base {there})"));
    };
    if b.host.kernel != r.host.kernel {
        differs("kernel", &r.host.kernel, &b.host.kernel);
    }
    if b.host.cores != r.host.cores {
        differs("number of cores", &r.host.cores, &b.host.cores);
    }
    // The memory that a kernel reserves varies slightly between boots.
    if b.host.memory_bytes.abs_diff(r.host.memory_bytes) > b.host.memory_bytes / 100 {
        let size = |bytes| units::Bytes(bytes).brief().to_string();
        differs("memory", &size(r.host.memory_bytes), &size(b.host.memory_bytes));
    }
    if b.header.io != r.header.io {
        differs("io", &r.header.io, &b.header.io);
    }
    if b.version != r.version {
        differs("version of throng", &r.version, &b.version);
    }
    let (there, own) = (load_args(&b.words), load_args(&r.words));
    if there != own {
        let only = |of: &[String], not: &[String]| {
            let only: Vec<&str> = of.iter().filter(|arg| !not.contains(arg)).map(String::as_str).collect();
            if only.is_empty() { "nothing".to_owned() } else { only.join(" ") }
        };
        differs("plan", &only(&own, &there), &only(&there, &own));
    }
    found
}

/// Reasons to doubt the run's figures.
fn of(run: &Run) -> Vec<String> {
    let mut found = Vec::new();
    match run.verdict() {
        None => found.push("unfinished, so it has few figures".to_owned()),
        Some(Verdict::Invalid) => found.push("verdict invalid, throng itself was the limit".to_owned()),
        Some(Verdict::Interrupted) => found.push("verdict interrupted, it ended early".to_owned()),
        Some(Verdict::Pass | Verdict::Fail) => {}
    }
    if !run.summary.asks.is_empty() {
        found.push("controlled manually".to_owned());
    }
    found
}
