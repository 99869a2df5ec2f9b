//! Suggestions for a mistyped name: the nearest known one, or all of them.

use strsim::osa_distance;

/// The name in `known` nearest to `word`: the first that `word` abbreviates; or the one at the least edit distance, at most a third of the
/// letters of `word` (but 1 to 3); or the longest name that `word` continues, as `thinktime` continues `think`.
pub fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str> + Clone) -> Option<&'k str> {
    let is_begun = word.len() >= SHORTEST_BEGINNING;
    if let Some(whole) = known.clone().find(|candidate| is_begun && candidate.starts_with(word)) {
        return Some(whole);
    }
    let most = (word.chars().count() / 3).clamp(1, 3);
    let near = known.clone().map(|candidate| (osa_distance(word, candidate), candidate));
    let (far, candidate) = near.min_by_key(|(far, _)| *far)?;
    let begins = |candidate: &&str| candidate.len() >= SHORTEST_BEGUN && word.starts_with(candidate);
    if far <= most { Some(candidate) } else { known.filter(begins).max_by_key(|candidate| candidate.len()) }
}

/// Fewest octets of a word that may abbreviate a name.
const SHORTEST_BEGINNING: usize = 3;
/// Fewest octets of a name that a mistyped word may continue: too many words start with a shorter one.
const SHORTEST_BEGUN: usize = 5;

/// The name in `known` nearest to `word`; all of them if none is near.
pub(crate) fn nearest_or_all<'k>(word: &str, known: impl Iterator<Item = &'k str> + Clone) -> String {
    nearest(word, known.clone()).map_or_else(|| one_of(known), str::to_owned)
}

/// `a, b or c`.
pub(crate) fn one_of<N: AsRef<str>>(names: impl Iterator<Item = N>) -> String {
    let names: Vec<N> = names.collect();
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_near_and_another_name_is_not() {
        check("thnik", Some("think"));
        check("connection", Some("connections"));
        check("conections", Some("connections"));
        check("targte", Some("target"));
        check("fro", Some("for"));
        check("THINK", None);
        check("colour", None);
        check("form", Some("for"));
        check("conn", Some("connections"));
        check("tar", Some("target"));
        check("thinktime", Some("think"));
        check("format", None);
        check("co", None);
        check("bar", None);
        check("", None);
        check(&"x".repeat(100_000), None);
    }

    fn check(word: &str, expected: Option<&str>) {
        let known = ["target", "think", "connections", "for", "of"];
        assert_eq!(nearest(word, known.into_iter()), expected, "{word:?}");
    }

    #[test]
    fn counts_letters() {
        for (a, b, expected) in [("", "", 0), ("ab", "ba", 1), ("kitten", "sitting", 3), ("abc", "", 3)] {
            assert_eq!(osa_distance(a, b), expected, "{a} {b}");
        }
    }
}
