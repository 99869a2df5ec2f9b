//! The curve of a run, however long it lasts, in memory that does not grow.

/// Maximum of points. A full history merges pairs: its resolution is at least half of the maximum, and higher than the
/// width of a terminal.
const MOST: usize = 1024;
/// Maximum of columns per point, so that a run that has just started does not fill the picture.
const WIDEST: usize = 4;

/// Connections at one time, or over some of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Point {
    /// Open: the minimum, to show dips.
    pub(crate) open: u64,
    /// Wanted by the plan, at its end.
    pub(crate) wanted: u64,
}

impl Point {
    fn and(self, later: Point) -> Point {
        Point { open: self.open.min(later.open), wanted: later.wanted }
    }
}

/// All points of a run.
#[derive(Clone, Debug)]
pub(crate) struct History {
    points: Vec<Point>,
    /// Seconds per point, and in the last one.
    each: usize,
    last: usize,
}

impl History {
    /// Of a run that has not begun.
    pub(crate) fn new() -> History {
        History { points: Vec::with_capacity(MOST), each: 1, last: 1 }
    }

    /// A second more.
    pub(crate) fn push(&mut self, point: Point) {
        if let Some(last) = self.points.last_mut().filter(|_| self.last < self.each) {
            *last = last.and(point);
            self.last += 1;
            return;
        }
        if self.points.len() == MOST {
            self.points = together(&self.points, 2);
            self.each *= 2;
        }
        self.points.push(point);
        self.last = 1;
    }

    /// The whole run in at most this many columns, and more than half of them once it lasted long enough: each point takes
    /// some columns, or each column takes some points, always a power of two, so that the picture rarely changes.
    pub(crate) fn columns(&self, width: usize) -> Vec<Point> {
        if width == 0 {
            return Vec::new();
        }
        let mut wide = WIDEST;
        while wide > 1 && self.points.len() * wide > width {
            wide /= 2;
        }
        let mut many = 1;
        while self.points.len().div_ceil(many) > width {
            many *= 2;
        }
        together(&self.points, many).into_iter().flat_map(|point| std::iter::repeat_n(point, wide)).collect()
    }

    /// The most connections, open or wanted, of all of it.
    pub(crate) fn top(&self) -> u64 {
        self.points.iter().map(|point| point.open.max(point.wanted)).max().unwrap_or_default()
    }
}

/// Merges groups of this size.
fn together(points: &[Point], many: usize) -> Vec<Point> {
    points.chunks(many).filter_map(|some| some.iter().copied().reduce(Point::and)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(open: impl IntoIterator<Item = u64>) -> History {
        let mut history = History::new();
        open.into_iter().for_each(|open| history.push(Point { open, wanted: 2 * open }));
        history
    }

    /// (what was open in each second, width, what is open in each column)
    fn check(open: impl IntoIterator<Item = u64>, width: usize, expected: &[u64]) {
        let columns = of(open).columns(width);
        assert_eq!(columns.iter().map(|point| point.open).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_run_fills_the_width_as_it_grows() {
        check([], 8, &[]);
        check([5], 8, &[5, 5, 5, 5]);
        check([5, 6], 8, &[5, 5, 5, 5, 6, 6, 6, 6]);
        check([5, 6, 7], 8, &[5, 5, 6, 6, 7, 7]);
        check(1..=5, 8, &[1, 2, 3, 4, 5]);
        check(1..=8, 8, &[1, 2, 3, 4, 5, 6, 7, 8]);
        check(1..=9, 8, &[1, 3, 5, 7, 9]);
        check(1..=17, 8, &[1, 5, 9, 13, 17]);
        check(1..=3, 0, &[]);
    }

    #[test]
    fn a_dip_is_not_lost() {
        check([9, 2, 9, 9, 9, 9, 9, 9, 9, 9], 5, &[2, 9, 9, 9, 9]);
        let columns = of([9, 2]).columns(1);
        assert_eq!(columns, [Point { open: 2, wanted: 4 }], "the plan is that of the end");
    }

    #[test]
    fn it_does_not_grow() {
        let second = |n: u64| if n == 70_000 { 1 } else { n };
        let history = of((1..=100_000).map(second));
        assert!((MOST / 2..=MOST).contains(&history.points.len()), "{}", history.points.len());
        assert!(history.points.iter().any(|point| point.open == 1 && point.wanted > 100_000), "the dip");
        assert_eq!(history.top(), 200_000);
        let columns = history.columns(60);
        assert!((31..=60).contains(&columns.len()), "{}", columns.len());
    }
}
