//! The points of the curves of a run. Their number is bounded: when it is reached, neighbouring points are merged.

use units::Nanos;

use super::figures::Second;

/// Maximum number of points. Since pairs are merged when it is reached, there are always at least half as many, which is more than a
/// terminal has columns.
const MOST: usize = 1024;
/// At the start of a run, a second fills one part in this many of the width, so that a single second does not fill all of it.
const FIRST: usize = 4;

/// The figures of one or more seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// Number of seconds.
    seconds: u32,
    /// Open connections: the minimum, so that dips are visible.
    pub(crate) open: u64,
    /// Connections that the plan requires at the end.
    pub(crate) wanted: u64,
    /// Whether fewer connections than required were open at full load.
    pub(crate) is_short: bool,
    /// Sum of the seconds' rates.
    requests: f64,
    /// Highest 99th percentile of its seconds; `None` without responses.
    pub(crate) p99: Option<Nanos>,
    /// Highest error rate of its seconds.
    pub(crate) errors_per_s: f64,
}

impl Point {
    /// The point of one second.
    pub(crate) fn of(second: &Second) -> Point {
        Point {
            seconds: 1,
            open: second.open,
            wanted: second.wanted,
            is_short: second.is_short(),
            requests: second.requests_per_s,
            p99: second.latency.map(|latency| latency.p99),
            errors_per_s: second.errors_per_s,
        }
    }

    /// The mean rate of responses.
    pub(crate) fn requests_per_s(&self) -> f64 {
        self.requests / f64::from(self.seconds.max(1))
    }

    fn and(self, later: Point) -> Point {
        Point {
            seconds: self.seconds + later.seconds,
            open: self.open.min(later.open),
            wanted: later.wanted,
            is_short: self.is_short || later.is_short,
            requests: self.requests + later.requests,
            p99: self.p99.max(later.p99),
            errors_per_s: self.errors_per_s.max(later.errors_per_s),
        }
    }
}

/// The points of a run.
#[derive(Clone, Debug)]
pub(crate) struct History {
    points: Vec<Point>,
    /// Number of seconds per point, and in the last point.
    each: usize,
    last: usize,
}

impl History {
    /// The history of a run that has not begun.
    pub(crate) fn new() -> History {
        History { points: Vec::with_capacity(MOST), each: 1, last: 1 }
    }

    /// Adds a second.
    pub(crate) fn push(&mut self, point: Point) {
        if let Some(last) = self.points.last_mut().filter(|_| self.last < self.each) {
            *last = last.and(point);
            self.last += 1;
            return;
        }
        if self.points.len() == MOST {
            self.points = self.points.chunks(2).filter_map(together).collect();
            self.each *= 2;
        }
        self.points.push(point);
        self.last = 1;
    }

    /// The whole run in `width` columns, or fewer in its first seconds. A point is drawn in several columns, or several points in one
    /// column.
    pub(crate) fn columns(&self, width: usize) -> Vec<Point> {
        let points = self.points.len();
        let filled = width * points / points.max(FIRST);
        let column = |x: usize| {
            let (from, until) = (x * points / filled, (x + 1) * points / filled);
            together(&self.points[from..until.max(from + 1)])
        };
        (0..filled).filter_map(column).collect()
    }

    /// The maximum of a figure over the whole run.
    pub(crate) fn top(&self, figure: impl Fn(&Point) -> f64) -> f64 {
        self.points.iter().map(figure).fold(0.0, f64::max)
    }
}

fn together(points: &[Point]) -> Option<Point> {
    points.iter().copied().reduce(Point::and)
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::Phase;

    fn of(open: impl IntoIterator<Item = u64>) -> History {
        let mut history = History::new();
        let second = |open| Second {
            open,
            wanted: 2 * open,
            requests_per_s: open as f64,
            errors_per_s: open as f64,
            phase: Phase::Hold,
            ..Second::default()
        };
        open.into_iter().for_each(|open| history.push(Point::of(&second(open))));
        history
    }

    /// Compares the open connections of each column; `open` contains those of each second.
    fn check(open: impl IntoIterator<Item = u64>, width: usize, expected: &[u64]) {
        let columns = of(open).columns(width);
        assert_eq!(columns.iter().map(|point| point.open).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_run_fills_the_width() {
        check([], 8, &[]);
        check([5], 8, &[5, 5]);
        check([5, 6, 7], 8, &[5, 5, 6, 6, 7, 7]);
        check([5, 6, 7, 8], 8, &[5, 5, 6, 6, 7, 7, 8, 8]);
        check(1..=5, 8, &[1, 1, 2, 2, 3, 4, 4, 5]);
        check(1..=8, 8, &[1, 2, 3, 4, 5, 6, 7, 8]);
        check(1..=9, 8, &[1, 2, 3, 4, 5, 6, 7, 8]);
        check(1..=17, 8, &[1, 3, 5, 7, 9, 11, 13, 15]);
        check(1..=3, 0, &[]);
        for seconds in 4..500 {
            assert_eq!(of(1..=seconds).columns(120).len(), 120);
        }
    }

    /// Compares the mean rate of requests and the highest rate of errors in each column.
    fn check_rates(open: &[u64], width: usize, expected: &[(f64, f64)]) {
        let columns = of(open.iter().copied()).columns(width);
        let rates: Vec<_> = columns.iter().map(|own| (own.requests_per_s(), own.errors_per_s)).collect();
        assert_eq!(rates, expected);
    }

    #[test]
    fn a_column_has_the_mean_of_requests_and_the_most_of_errors() {
        check_rates(&[1, 2, 6, 3, 5, 10], 2, &[(3.0, 6.0), (6.0, 10.0)]);
        check_rates(&[4, 8, 4, 8], 4, &[(4.0, 4.0), (8.0, 8.0), (4.0, 4.0), (8.0, 8.0)]);
        // Points are weighted by their number of seconds.
        let mut history = of([2; MOST]);
        (0..MOST).for_each(|_| history.push(Point::of(&Second { requests_per_s: 4.0, ..Second::default() })));
        let mean = history.columns(1)[0].requests_per_s();
        assert!((mean - 3.0).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn a_slow_second_is_not_lost_and_a_silent_one_has_no_time() {
        let latency = |ms: u64| {
            let p99 = Nanos::from_millis(ms);
            super::super::figures::Percentiles { p99, ..Default::default() }
        };
        let mut history = History::new();
        for ms in [Some(3), None, Some(9), Some(1)] {
            history.push(Point::of(&Second { latency: ms.map(latency), ..Second::default() }));
        }
        let p99 = |width| history.columns(width).iter().map(|own| own.p99).collect::<Vec<_>>();
        assert_eq!(p99(2), [Some(Nanos::from_millis(3)), Some(Nanos::from_millis(9))]);
        assert_eq!(p99(4)[1], None);
    }

    #[test]
    fn a_dip_is_not_lost() {
        check([9, 2, 9, 9, 9, 9, 9, 9, 9, 9], 5, &[2, 9, 9, 9, 9]);
        let mut history = of([9, 2, 9]);
        history.push(Point { open: 4, wanted: 4, ..Point::default() });
        let column = history.columns(1)[0];
        assert_eq!(
            (column.open, column.wanted, column.is_short),
            (2, 4, true),
            "the plan is that of the end"
        );
    }

    #[test]
    fn it_does_not_grow() {
        let second = |n: u64| if n == 70_000 { 1 } else { n };
        let history = of((1..=100_000).map(second));
        assert!((MOST / 2..=MOST).contains(&history.points.len()), "{}", history.points.len());
        assert!(history.points.iter().any(|point| point.open == 1 && point.wanted > 100_000), "the dip");
        assert_eq!(history.top(|point| point.wanted as f64), 200_000.0);
        assert_eq!(history.columns(60).len(), 60);
    }
}
