//! Candidate capacities: a grid of cells, each for a range of capacities that the search does not distinguish.

/// Minimum width of a cell, as a share of the load: results of steps vary by more.
const FINEST: f64 = 0.0025;
/// Maximum width of a cell: wider ones could not hold an interval within 10 % of a result.
const COARSEST: f64 = 0.05;
/// Distance, in the logarithm of the load, of the two open cells from the ends of the range.
const BEYOND: f64 = 0.5;

/// Cells of capacity, ascending. The first cell is everything below the smallest load, the last one the largest load and more. The ratio
/// between edges is constant, but no cell is narrower than one load.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// Where cells begin: cell `k` contains the capacities from `edges[k - 1]` to before `edges[k]`.
    edges: Vec<u64>,
    /// Natural logarithm of each cell's middle.
    middles: Vec<f64>,
}

impl Grid {
    /// A grid from `least` to `most` with cells of width `ratio` (0.01: one percent).
    pub(crate) fn new(least: u64, most: u64, ratio: f64) -> Grid {
        let ratio = if ratio.is_finite() { ratio.clamp(FINEST, COARSEST) } else { COARSEST };
        let mut edges = vec![least];
        let mut edge = least;
        while edge < most {
            let next = (edge as f64 * (1.0 + ratio)) as u64;
            edge = next.max(edge.saturating_add(1)).min(most);
            edges.push(edge);
        }
        let middle = |ends: &[u64]| f64::midpoint(ends[0] as f64, ends[1] as f64).ln();
        let inner = edges.windows(2).map(middle);
        let (low, high) = ((least as f64).ln() - BEYOND, (most as f64).ln() + BEYOND);
        let middles = std::iter::once(low).chain(inner).chain([high]).collect();
        Grid { edges, middles }
    }

    /// Loads worth measuring, ascending: each separates the cells below it from the others.
    pub(crate) fn edges(&self) -> &[u64] {
        &self.edges
    }

    /// Natural logarithm of each cell's middle.
    pub(crate) fn middles(&self) -> &[f64] {
        &self.middles
    }

    /// The smallest capacity of a cell; 0 for the first.
    pub(crate) fn low(&self, cell: usize) -> u64 {
        cell.checked_sub(1).and_then(|edge| self.edges.get(edge)).copied().unwrap_or(0)
    }

    /// The largest capacity of a cell; the largest load for the last cell, which is unbounded.
    pub(crate) fn high(&self, cell: usize) -> u64 {
        self.edges.get(cell).map_or_else(|| self.low(cell), |next| next - 1)
    }

    /// Each cell's share of the range, in the logarithm of the load; 0 for the first and the last cell.
    pub(crate) fn widths(&self) -> Vec<f64> {
        let log = |edge: &u64| (*edge as f64).ln();
        let whole = self.edges.last().map_or(0.0, log) - self.edges.first().map_or(0.0, log);
        let inner = self.edges.windows(2).map(|ends| (log(&ends[1]) - log(&ends[0])) / whole);
        std::iter::once(0.0).chain(inner).chain([0.0]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(least: u64, most: u64, ratio: f64, expected: &[u64]) {
        let grid = Grid::new(least, most, ratio);
        assert_eq!(grid.edges(), expected);
        assert_eq!(grid.middles().len(), expected.len() + 1);
        // Each capacity of the range is in exactly one cell.
        assert_eq!((grid.low(0), grid.high(0)), (0, least - 1));
        for cell in 1..=expected.len() {
            assert_eq!(grid.low(cell), grid.high(cell - 1) + 1, "{cell}");
        }
        assert_eq!((grid.low(expected.len()), grid.high(expected.len())), (most, most));
        let widths: f64 = grid.widths().iter().sum();
        assert!((widths - f64::from(u8::from(most > least))).abs() < 1e-12, "{widths}");
    }

    #[test]
    fn cells_have_one_ratio_but_no_less_than_one_load() {
        check(1, 4, 0.01, &[1, 2, 3, 4]);
        check(1_000, 1_100, 0.05, &[1_000, 1_050, 1_100]);
        check(1_000, 1_100, 0.04, &[1_000, 1_040, 1_081, 1_100]);
        check(7, 7, 0.01, &[7]);
        // Ratios outside the useful range are clamped.
        check(1_000, 1_100, 9.0, &[1_000, 1_050, 1_100]);
        check(1_000, 1_003, f64::NAN, &[1_000, 1_003]);
        assert_eq!(Grid::new(1_000, 2_000, 0.0).edges()[..2], [1_000, 1_002]);
        assert_eq!(Grid::new(u64::MAX - 1, u64::MAX, 0.01).edges(), [u64::MAX - 1, u64::MAX]);
    }

    #[test]
    fn middles_are_logarithms() {
        let grid = Grid::new(1_000, 1_100, 0.05);
        let expected = [1_000f64.ln() - 0.5, 1_025f64.ln(), 1_075f64.ln(), 1_100f64.ln() + 0.5];
        assert_eq!(grid.middles(), expected);
    }
}
