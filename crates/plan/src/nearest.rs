//! Suggestions for a mistyped name: the nearest one, or all of them.

/// The one of `known` that is nearest to `word`, at a distance of at most a third of its letters, or of one.
pub(crate) fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let most = (word.chars().count() / 3).clamp(1, 3);
    let near = known.map(|candidate| (distance(word, candidate, most), candidate));
    let (far, candidate) = near.min_by_key(|(far, _)| *far)?;
    (far <= most).then_some(candidate)
}

/// `a, b or c`.
pub(crate) fn one_of<'k>(names: impl Iterator<Item = &'k str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => names.concat(),
    }
}

/// The number of letters to insert, delete or replace, or of neighbours to swap, to turn `a` into `b` (optimal string
/// alignment). Distances beyond `most` are returned as `most + 1`.
fn distance(a: &str, b: &str, most: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > most {
        return most + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i];
        for j in 1..=b.len() {
            let replaced = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
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
            assert_eq!(distance(a, b, 9), expected, "{a} {b}");
        }
    }
}
