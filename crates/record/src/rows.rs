//! The rows in which a plan's destinations are counted: at most `MAX_DESTINATIONS`, each for one or more adjacent destinations.

use plan::Plan;
use samples::{MAX_DESTINATIONS, name_of, row_of};

/// The names of the rows; empty with only one destination.
pub fn names(plan: &Plan) -> Vec<String> {
    rows(plan).map(|(first, last)| name_of(&first, &last)).collect()
}

/// The first and last destination of each row; empty with only one destination.
pub fn rows(plan: &Plan) -> impl Iterator<Item = (String, String)> {
    let all = plan.destinations();
    let rows = if all.len() < 2 { 0 } else { all.len().min(MAX_DESTINATIONS) };
    (0..rows).map(move |row| {
        let last = first_of(row + 1, all.len()) - 1;
        (all[first_of(row, all.len())].to_string(), all[last].to_string())
    })
}

/// The first of `n` destinations that is counted in this row or a later one.
pub fn first_of(row: usize, n: usize) -> usize {
    (0..n).find(|at| row_of(*at, n) >= row).unwrap_or(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_several_has_its_first_and_last() {
        let bounds: Vec<usize> = (0..=64).map(|row| first_of(row, 130)).collect();
        assert!(bounds.windows(2).all(|two| (2..=3).contains(&(two[1] - two[0]))), "{bounds:?}");
        assert_eq!((bounds[0], bounds[64]), (0, 130));
        assert_eq!((0..=5).map(|row| first_of(row, 5)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    }
}
