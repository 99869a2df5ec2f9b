//! The distribution of latencies at full load, as a bar for each class of times.

use ratatui::{
    style::Color,
    text::{Line, Span},
};
use samples::Latency;
use units::{Count, Nanos, percent as exactly};

use super::text::{NOTHING, plain, quiet};

/// Upper ends of the classes: 1, 2 and 5 times each power of ten. Longer times have a class of their own.
const ENDS: [Nanos; 24] = ends();
/// Number of classes that form one of the coarse scale, which has one per power of ten.
const COARSE: usize = 3;
/// Width of a time, a count and a share in columns.
const COLUMNS: (usize, usize, usize) = (10, 12, 8);
/// Minimum number of rows: a heading and two bars.
const MIN_ROWS: usize = 3;
/// Maximum width of a bar in columns.
const BAR: usize = 40;

const fn ends() -> [Nanos; 24] {
    let mut ends = [Nanos(0); 24];
    let (mut at, mut power) = (0, 1_000);
    while at < 24 {
        ends[at] = Nanos(power);
        ends[at + 1] = Nanos(2 * power);
        ends[at + 2] = Nanos(5 * power);
        (at, power) = (at + 3, power * 10);
    }
    ends
}

/// The number of responses in each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Distribution([u64; 25]);

impl Distribution {
    /// Adds the responses of a second.
    pub(crate) fn add(&mut self, latency: &Latency) {
        let up_to = latency.counts_up_to(&ENDS);
        let mut before = 0;
        for (class, up_to) in self.0.iter_mut().zip(up_to.into_iter().chain([latency.count()])) {
            *class += up_to - before;
            before = up_to;
        }
    }

    /// The classes from the first to the last that contains a response: upper end (`None` for the last class of all) and number of
    /// responses.
    fn classes(&self, coarse: usize) -> Vec<(Option<Nanos>, u64)> {
        // Coarse classes end at a power of ten: up to 1, from 2 to 10, and so on.
        let begins = |at: usize| at == 0 || at % coarse == 1 % coarse;
        let mut classes: Vec<(Option<Nanos>, u64)> = Vec::new();
        for (at, n) in self.0.iter().enumerate() {
            let end = ENDS.get(at).copied();
            match classes.last_mut() {
                Some(last) if !begins(at) => *last = (end, last.1 + n),
                _ => classes.push((end, *n)),
            }
        }
        let is_any = |class: &(Option<Nanos>, u64)| class.1 > 0;
        let Some(first) = classes.iter().position(is_any) else { return Vec::new() };
        let last = classes.iter().rposition(is_any).unwrap_or(first);
        classes[first..=last].to_vec()
    }

    /// The number of rows that the distribution uses, given this many.
    pub(crate) fn rows(&self, rows: u16) -> u16 {
        self.lines(0, usize::from(rows)).len() as u16
    }

    /// A heading and a line per class, on the finest scale that fits into `rows`; empty if none does.
    pub(crate) fn lines(&self, width: usize, rows: usize) -> Vec<Line<'static>> {
        let scales = [1, COARSE].map(|coarse| self.classes(coarse));
        let Some(classes) = scales.into_iter().find(|own| !own.is_empty() && own.len() < rows) else {
            return Vec::new();
        };
        if rows < MIN_ROWS {
            return Vec::new();
        }
        let all: u64 = self.0.iter().sum();
        let most = classes.iter().map(|(_, n)| *n).max().unwrap_or(1).max(1);
        let (of_time, of_count, of_share) = COLUMNS;
        let bar = width.saturating_sub(of_time + of_count + of_share + 2).min(BAR);
        let head = format!("{:<of_time$}{:>of_count$}{:>of_share$}", "latency", "responses", "share");
        let line = |(end, n): &(Option<Nanos>, u64)| {
            let end = match end {
                Some(end) => format!("≤ {}", end.brief()),
                None => format!("> {}", ENDS[ENDS.len() - 1].brief()),
            };
            let share = if *n > 0 { exactly(*n as f64 / all as f64) } else { NOTHING.to_owned() };
            // A class that is not empty always has a bar.
            let filled =
                if *n > 0 { ((n * bar as u64) as f64 / most as f64).round().max(1.0) as usize } else { 0 };
            Line::from(vec![
                plain(format!("{end:<of_time$}{:>of_count$}{share:>of_share$}  ", Count(*n).to_string())),
                Span::styled("■".repeat(filled.min(bar)), Color::Magenta),
            ])
        };
        [Line::from(quiet(head))].into_iter().chain(classes.iter().map(line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(distribution: &Distribution, width: usize, rows: usize) -> Vec<String> {
        let lines = distribution.lines(width, rows);
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    fn of(times: &[(u64, u64)]) -> Distribution {
        let mut latency = Latency::default();
        times.iter().for_each(|(us, n)| latency.record_n(Nanos::from_micros(*us), *n));
        let mut distribution = Distribution::default();
        // Two equal seconds.
        distribution.add(&latency);
        distribution.add(&latency);
        distribution
    }

    #[test]
    fn each_class_has_its_share_of_all() {
        let some = of(&[(150, 30), (300, 60), (3_000, 9), (4_000, 1)]);
        assert_eq!(
            text(&some, 42, 9),
            [
                "latency      responses   share",
                "≤ 200 µs            60    30 %  ■■■■■",
                "≤ 500 µs           120    60 %  ■■■■■■■■■■",
                "≤ 1.0 ms             0       –",
                "≤ 2.0 ms             0       –",
                "≤ 5.0 ms            20    10 %  ■■",
            ]
        );
        // With fewer rows, there is a class per power of ten; with too few, none.
        assert_eq!(
            text(&some, 42, 4)[1..],
            ["≤ 1.0 ms           180    90 %  ■■■■■■■■■■", "≤ 10 ms             20    10 %  ■"]
        );
        assert_eq!((text(&some, 42, 2).len(), text(&some, 42, 0).len()), (0, 0));
        assert_eq!(text(&some, 20, 9)[1], "≤ 200 µs            60    30 %", "no room for bars");
    }

    #[test]
    fn the_first_and_the_last_class_have_what_is_beyond() {
        let ends = of(&[(0, 1), (60_000_000, 2)]);
        let all = text(&ends, 60, 30);
        assert_eq!((all.len(), all[1].starts_with("≤ 1.0 µs             2    33 %")), (26, true), "{all:?}");
        assert!(all[25].starts_with("> 50 s               4    67 %"), "{all:?}");
        assert_eq!(text(&Distribution::default(), 60, 30).len(), 0);
    }
}
