//! `cargo xtask fuzz [TARGET] [SECONDS]`: fuzzes the targets with new inputs; `test` only runs them on the stored corpus. An input
//! that crashes a target is written to `fuzz/libfuzzer/artifacts`; move it to `fuzz/corpus` together with the fix. Inputs that only
//! increase coverage stay in `target/fuzz`, so that the corpus contains only what was put there deliberately.

use crate::command::{cargo, command, output, root};
use anyhow::{Context, Result, bail};
use std::fs;

const FOLDER: &str = "fuzz/libfuzzer";
const SECONDS: u32 = 60;

pub(crate) fn run(words: &[String]) -> Result<()> {
    let (target, seconds) = read(words)?;
    let listed = output(command("cargo", &["+nightly", "fuzz", "list", "--fuzz-dir", FOLDER])?).context(
        "needs nightly and cargo-fuzz: rustup toolchain install nightly; cargo install cargo-fuzz",
    )?;
    let limit = format!("-max_total_time={seconds}");
    for name in chosen(&listed, target)? {
        println!("{name}: {seconds} s");
        let (found, seeds) = (format!("target/fuzz/{name}"), format!("fuzz/corpus/{name}"));
        fs::create_dir_all(root()?.join(&found))?;
        cargo(&["+nightly", "fuzz", "run", "--fuzz-dir", FOLDER, name, &found, &seeds, "--", &limit])?;
    }
    Ok(())
}

/// Parses the arguments: the target, if given, and the time in seconds.
fn read(words: &[String]) -> Result<(Option<&str>, u32)> {
    let seconds = |word: &String| word.parse::<u32>().ok().filter(|n| *n > 0);
    match words {
        [] => Ok((None, SECONDS)),
        [word] => Ok(seconds(word).map_or((Some(word.as_str()), SECONDS), |n| (None, n))),
        [target, word] => {
            Ok((Some(target), seconds(word).with_context(|| format!("no number of seconds: {word}"))?))
        }
        _ => bail!("takes [TARGET] [SECONDS]: {}", words.join(" ")),
    }
}

fn chosen<'a>(listed: &'a str, target: Option<&str>) -> Result<Vec<&'a str>> {
    let names: Vec<&str> = listed.lines().filter(|name| target.is_none_or(|t| t == *name)).collect();
    if names.is_empty() {
        bail!("no such target, there are {}: {}", listed.trim().replace('\n', ", "), target.unwrap_or("any"));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], expected: Result<(Option<&str>, u32), &str>) {
        let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        let found = read(&words).map_err(|e| e.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{words:?}");
    }

    #[test]
    fn words_name_a_target_and_a_time_in_this_order() {
        check(&[], Ok((None, 60)));
        check(&["5"], Ok((None, 5)));
        check(&["http1_client"], Ok((Some("http1_client"), 60)));
        check(&["http1_client", "5"], Ok((Some("http1_client"), 5)));
        check(&["http1_client", "0"], Err("no number of seconds: 0"));
        check(&["http1_client", "long"], Err("no number of seconds: long"));
        check(&["a", "5", "b"], Err("takes [TARGET] [SECONDS]: a 5 b"));
    }

    #[test]
    fn without_a_name_all_targets_are_chosen() {
        assert_eq!(chosen("a\nb\n", None).unwrap(), ["a", "b"]);
        assert_eq!(chosen("a\nb\n", Some("b")).unwrap(), ["b"]);
        assert_eq!(chosen("a\nb\n", Some("c")).unwrap_err().to_string(), "no such target, there are a, b: c");
    }
}
