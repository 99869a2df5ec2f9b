//! Slopes, such as cost per connection: ordinary least squares without storing the points.

use samples::Fit;

/// The line through `(x, y)` with the least squared error in `y`; `None` with fewer than three points or without two different `x`.
pub fn slope(points: &[(f64, f64)]) -> Option<Fit> {
    let mut moments = Moments::default();
    points.iter().for_each(|(x, y)| moments.add(*x, *y));
    moments.line()
}

/// The sufficient statistics of a line: number of points, means, and sums of squares about the means. Plain sums of squares would lose the
/// differences between large values such as bytes (Chan, Golub, LeVeque, Algorithms for Computing the Sample Variance, The American
/// Statistician 37(3), 1983).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    n: f64,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
    span_y: Option<(f64, f64)>,
}

impl Moments {
    /// Adds a point.
    pub fn add(&mut self, x: f64, y: f64) {
        let point = Moments { n: 1.0, mean_x: x, mean_y: y, span_y: Some((y, y)), ..Moments::default() };
        *self = self.merged(&point);
    }

    /// The statistics of both sets of points.
    pub fn merged(&self, other: &Moments) -> Moments {
        let n = self.n + other.n;
        if n == 0.0 {
            return *self;
        }
        let (dx, dy) = (other.mean_x - self.mean_x, other.mean_y - self.mean_y);
        let between = self.n * other.n / n;
        let span_y = match (self.span_y, other.span_y) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (one, none) => one.or(none),
        };
        Moments {
            n,
            mean_x: self.mean_x + dx * other.n / n,
            mean_y: self.mean_y + dy * other.n / n,
            xx: self.xx + other.xx + dx * dx * between,
            xy: self.xy + other.xy + dx * dy * between,
            yy: self.yy + other.yy + dy * dy * between,
            span_y,
        }
    }

    /// Maximum minus minimum of `y`.
    pub fn span_y(&self) -> f64 {
        self.span_y.map_or(0.0, |(least, most)| most - least)
    }

    /// The line, and how well it fits (NIST/SEMATECH e-Handbook of Statistical Methods, section 4.1.4.1). If the points are running totals,
    /// their residuals are correlated, and `error` is a lower bound.
    pub fn line(&self) -> Option<Fit> {
        if self.n < 3.0 || self.xx <= 0.0 {
            return None;
        }
        let slope = self.xy / self.xx;
        // Rounding may make the residual of a perfect fit slightly negative.
        let unexplained = (self.yy - self.xy * slope).max(0.0);
        Some(Fit {
            value: slope,
            error: (unexplained / (self.n - 2.0) / self.xx).sqrt(),
            r2: if self.yy > 0.0 { 1.0 - unexplained / self.yy } else { 1.0 },
        })
    }

    /// As [`Moments::line`], for values of `y` that are read with a resolution of `grain`. Such points may lie on a line by chance,
    /// so the error is at least the effect of one step of `grain` at each point.
    pub fn line_in_steps(&self, grain: f64) -> Option<Fit> {
        let least = grain / self.xx.sqrt();
        self.line().map(|fit| Fit { error: fit.error.max(least), ..fit })
    }
}

/// Points grouped by octave of `x`, for use when it is only known at the end from which `x` on the points count.
#[derive(Clone, Copy, Debug)]
pub struct Octaves([Moments; 64]);

impl Default for Octaves {
    fn default() -> Octaves {
        Octaves([Moments::default(); 64])
    }
}

impl Octaves {
    /// Adds a point.
    pub fn add(&mut self, x: u64, y: f64) {
        self.0[x.max(1).ilog2() as usize].add(x as f64, y);
    }

    /// The points from this `x` on. The whole octave that contains `x` is included.
    pub fn from(&self, x: u64) -> Moments {
        let first = x.max(1).ilog2() as usize;
        self.0[first..].iter().fold(Moments::default(), |sum, octave| sum.merged(octave))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(points: &[(f64, f64)], expected: Option<[f64; 3]>) {
        let round = |n: f64| (n * 1e6).round() / 1e6;
        let got = slope(points).map(|l| [l.value, l.error, l.r2].map(round));
        assert_eq!(got, expected, "{points:?}");
    }

    #[test]
    fn lines_are_found() {
        check(&[], None);
        check(&[(1.0, 1.0), (2.0, 2.0)], None);
        check(&[(5.0, 1.0), (5.0, 2.0), (5.0, 3.0)], None);
        check(&[(0.0, 1000.0), (10.0, 1800.0), (20.0, 2600.0)], Some([80.0, 0.0, 1.0]));
        check(&[(0.0, 7.0), (1.0, 7.0), (2.0, 7.0)], Some([0.0, 0.0, 1.0]));
        // Computed on paper: means 2.5 and 4.25; xx = 5, xy = 6.5, yy = 8.75; unexplained 0.3, so √(0.3 / 2 / 5).
        check(&[(1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (4.0, 6.0)], Some([1.3, 0.173205, 0.965714]));
        // Uncorrelated.
        check(&[(1.0, 1.0), (2.0, -1.0), (3.0, -1.0), (4.0, 1.0)], Some([0.0, 0.632456, 0.0]));
    }

    #[test]
    fn a_line_is_no_surer_than_its_points_are_read() {
        let error = |points: &[(f64, f64)], grain| {
            let mut moments = Moments::default();
            points.iter().for_each(|(x, y)| moments.add(*x, *y));
            moments.line_in_steps(grain).map(|line| (line.error * 1e6).round() / 1e6)
        };
        // 70 ms for 200 requests, three times: xx = 80,000.
        let exact = [(0.0, 0.0), (200.0, 70_000.0), (400.0, 140_000.0)];
        assert_eq!(error(&exact, 10_000.0), Some(35.355_339));
        assert_eq!(error(&exact, 0.0), Some(0.0));
        // The scatter of these points is larger than the resolution.
        let scattered = [(1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (4.0, 6.0)];
        assert_eq!(error(&scattered, 0.1), Some(0.173_205));
        assert_eq!(error(&exact[..2], 10_000.0), None);
    }

    #[test]
    fn large_numbers_keep_small_differences() {
        let base = 64e9;
        let points: Vec<(f64, f64)> =
            (0..1000).map(|i| (1e6 + f64::from(i), base + 3.0 * f64::from(i))).collect();
        let line = slope(&points).unwrap();
        assert!((line.value - 3.0).abs() < 1e-6 && line.r2 > 0.999_999, "{line:?}");
    }

    #[test]
    fn early_points_can_be_left_out() {
        let mut octaves = Octaves::default();
        // 4,096 bytes per connection, but 100 from 1,000 on.
        for x in (0..100_000u64).step_by(500) {
            octaves.add(x, if x < 1_000 { x as f64 * 4096.0 } else { 4.1e6 + x as f64 * 100.0 });
        }
        let line = octaves.from(100_000 / 8).line().unwrap();
        assert!((line.value - 100.0).abs() < 1e-6, "{line:?}");
        assert!(octaves.from(0).line().unwrap().value > 101.0);
        assert_eq!(octaves.from(1 << 20).line(), None);
        assert_eq!(octaves.from(0).span_y(), 4.1e6 + 99_500.0 * 100.0);
    }

    proptest! {
        /// The octaves together yield the same line as all points.
        #[test]
        fn classes_merge(points in proptest::collection::vec((0u64..1_000_000, -1e6..1e6f64), 3..50)) {
            let mut octaves = Octaves::default();
            points.iter().for_each(|(x, y)| octaves.add(*x, *y));
            let all: Vec<(f64, f64)> = points.iter().map(|(x, y)| (*x as f64, *y)).collect();
            match (octaves.from(0).line(), slope(&all)) {
                (Some(a), Some(b)) => {
                    prop_assert!((a.value - b.value).abs() <= 1e-6 * b.value.abs().max(1.0), "{:?} {:?}", a, b);
                    prop_assert!((a.error - b.error).abs() <= 1e-6 * b.error.max(1.0), "{:?} {:?}", a, b);
                    prop_assert!((0.0..=1.0 + 1e-9).contains(&a.r2));
                }
                (a, b) => prop_assert_eq!(a, b),
            }
        }
    }
}
