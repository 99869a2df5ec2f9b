//! Whether runs can be compared at all: the same plan on the same machine, come to its end.

use samples::Verdict;

use super::{Group, Run};

/// What speaks against it: each once, with the runs that it is true of.
pub(super) fn warnings(groups: &[Group]) -> Vec<String> {
    let base = &groups[0].runs[0];
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for run in groups.iter().flat_map(|group| &group.runs) {
        for what in against(base, run).into_iter().chain(of(run)) {
            match found.iter_mut().find(|(known, _)| *known == what) {
                Some((_, runs)) if runs.contains(&run.id.as_str()) => {}
                Some((_, runs)) => runs.push(&run.id),
                None => found.push((what, vec![&run.id])),
            }
        }
    }
    found.extend(shared(groups));
    let line = |(what, runs): (String, Vec<&str>)| {
        format!("{what}: {} {}", if runs.len() == 1 { "run" } else { "runs" }, runs.join(", "))
    };
    found.into_iter().map(line).collect()
}

/// A run of one group that is in another one too.
fn shared(groups: &[Group]) -> Option<(String, Vec<&str>)> {
    let is_in = |group: &Group, run: &Run| group.runs.iter().any(|own| own.id == run.id);
    let times = |run: &Run| groups.iter().filter(|group| is_in(group, run)).count();
    let mut twice: Vec<&str> = Vec::new();
    for run in groups.iter().flat_map(|group| &group.runs).filter(|run| times(run) > 1) {
        if !twice.contains(&run.id.as_str()) {
            twice.push(&run.id);
        }
    }
    (!twice.is_empty()).then(|| ("in more than one group".to_owned(), twice))
}

/// What differs from the base.
fn against(base: &Run, run: &Run) -> Vec<String> {
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
    // A kernel keeps a little more or less for itself from one boot to the next.
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
    let (there, own) = (load_words(&b.words), load_words(&r.words));
    if there != own {
        let only = |of: &[String], not: &[String]| {
            let only: Vec<&str> = of.iter().filter(|word| !not.contains(word)).map(String::as_str).collect();
            if only.is_empty() { "nothing".to_owned() } else { only.join(" ") }
        };
        differs("plan", &only(&own, &there), &only(&there, &own));
    }
    found
}

/// What makes its figures doubtful.
fn of(run: &Run) -> Vec<String> {
    let Some(summary) = &run.summary else {
        return vec!["unfinished, so it has few figures".to_owned()];
    };
    let mut found = Vec::new();
    match summary.verdict {
        Verdict::Invalid => found.push("verdict invalid, throng itself was the limit".to_owned()),
        Verdict::Interrupted => found.push("verdict interrupted, it ended early".to_owned()),
        Verdict::Pass | Verdict::Fail => {}
    }
    if !summary.asks.is_empty() {
        found.push("controlled manually".to_owned());
    }
    found
}

/// Flags that do not change the load: where results go, what it is called, how it is judged.
const NO_LOAD: &[&str] = &[
    "--seed",
    "--tag",
    "--live",
    "--format",
    "--threshold",
    "--json",
    "--csv",
    "--jsonl",
    "--hlog",
    "--out",
    "--report",
    "--dashboard",
    "--prometheus",
    "--influx",
    "--influx-token-file",
    "--otlp",
    "--observe",
    "--observe-token-file",
];

/// The words that say what the load is, a flag together with its value, in an order that is always the same.
fn load_words(words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        let is_flag = |word: &str| word.len() > 1 && word.starts_with('-');
        if !is_flag(word) {
            found.push(word.clone());
            continue;
        }
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
            _ => (word.as_str(), rest.next_if(|next| !is_flag(next)).cloned()),
        };
        let flag = match flag {
            "-c" => "--connections",
            "-d" => "--duration",
            flag => flag,
        };
        if !NO_LOAD.contains(&flag) {
            found.push(value.map_or(flag.to_owned(), |value| format!("{flag} {value}")));
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(one: &str, other: &str, expected: bool) {
        let words = |line: &str| load_words(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(words(one) == words(other), expected, "{one} | {other}");
    }

    #[test]
    fn a_plan_is_the_same_whatever_is_written_where() {
        let run = "run http://t/ -c 200 -d 2s";
        check(run, "run http://t/ -d 2s --connections=200", true);
        check(run, "run -c 200 -d 2s http://t/ --seed 7 --json - --tag a --tag b --live off", true);
        check(run, "run http://t/ -c 200 -d 2s --csv=m.csv --threshold faults<1", true);
        check(run, "run http://t/ -c 300 -d 2s", false);
        check(run, "run http://u/ -c 200 -d 2s", false);
        check(run, "run http://t/ -c 200 -d 2s --think 1s", false);
        check("run t --total 5 --calls 3", "run t --total 3 --calls 5", false);
        check("run t --probe --think 1s", "run t --think 1s --probe", true);
    }
}
