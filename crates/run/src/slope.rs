//! Cost per connection as a slope: ordinary least squares.

/// A fitted line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// What one more `x` adds to `y`.
    pub slope: f64,
    /// Share of the variance explained (R²).
    pub r2: f64,
}

/// The line through `(x, y)` with the least squared error in `y`; none with fewer than three points or without
/// two different `x`.
pub fn slope(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in points {
        xx += (x - mean_x).powi(2);
        xy += (x - mean_x) * (y - mean_y);
        yy += (y - mean_y).powi(2);
    }
    (xx > 0.0).then(|| Line { slope: xy / xx, r2: if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(points: &[(f64, f64)], expected: Option<(f64, f64)>) {
        let got = slope(points).map(|l| ((l.slope * 1e6).round() / 1e6, (l.r2 * 1e6).round() / 1e6));
        assert_eq!(got, expected, "{points:?}");
    }

    #[test]
    fn lines_are_found() {
        check(&[], None);
        check(&[(1.0, 1.0), (2.0, 2.0)], None);
        check(&[(5.0, 1.0), (5.0, 2.0), (5.0, 3.0)], None);
        check(&[(0.0, 1000.0), (10.0, 1800.0), (20.0, 2600.0)], Some((80.0, 1.0)));
        check(&[(0.0, 7.0), (1.0, 7.0), (2.0, 7.0)], Some((0.0, 1.0)));
        // By hand: means 2.5 and 4.25; xx = 5, xy = 6.5, yy = 8.75.
        check(&[(1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (4.0, 6.0)], Some((1.3, 0.965714)));
    }
}
