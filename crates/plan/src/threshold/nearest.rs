//! The known word that an unknown one was most likely meant to be.

/// The first of the nearest, none where even that one would have to be written anew for the most part.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.map(|known| (distance(word, known), known)).min_by_key(|(distance, _)| *distance);
    near.filter(|(distance, known)| *distance * 2 <= known.chars().count()).map(|(_, known)| known)
}

/// Least number of letters inserted, left out or exchanged (V. I. Levenshtein, 1966), row by row.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let exchanged = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("held", "hold", 1),
            ("p99", "p999", 1),
            ("ab", "ba", 2),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn the_nearest_is_near() {
        let known = || ["held", "failed", "latency.p99"].into_iter();
        assert_eq!(nearest("latncy.p99", known()), Some("latency.p99"));
        assert_eq!(nearest("hold", known()), Some("held"));
        assert_eq!(nearest("nothing like it", known()), None);
    }
}
