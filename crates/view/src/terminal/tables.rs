//! The tables below the curve: times, costs, populations, faults.

use ratatui::{
    layout::Rect,
    style::{Color, Style},
    text::{Line, Span},
};
use units::{Count, percent as exactly};

use super::{
    figures::{FaultFigures, Percentiles, PopulationFigures, Second},
    text::{bytes, fit, of, per_s, plain, quiet, time},
    view::Scene,
};

/// Columns of the first word of each line.
const NAME: usize = 9;
/// Columns of a time.
const TIME: usize = 9;
/// Columns of the share that has no time.
const WITHOUT: usize = 13;
/// Columns of the table of times.
pub(crate) const LATENCY_WIDTH: u16 = (NAME + 5 * TIME + WITHOUT) as u16;
/// What has no time, and so is in no percentile.
const NO_RESPONSE: &str = "no response";
/// What ought not to be.
const BAD: Style = Style::new().fg(Color::Red);
/// The minimum columns of a fault: its count, side, stage and kind.
const FAULT: usize = 39;
/// Columns of a population's figures, and of its name at the least and at the most.
const POPULATION: u16 = 56;
const POPULATION_NAME: (usize, usize) = (16, 40);
/// Its name's line, and fewer than two below it, would show nothing.
const MIN_POPULATIONS: u16 = 3;

/// Times of the last second, four lines, and one where TLS handshakes were made. Besides them, requests that they do not cover, if any.
pub(crate) fn latency(second: &Second) -> Vec<Line<'static>> {
    let head: String = ["p50", "p90", "p95", "p99", "max"].map(|name| format!("{name:>TIME$}")).concat();
    let is_any = second.no_response.or(second.no_connection).is_some();
    let without = if is_any { format!("{NO_RESPONSE:>WITHOUT$}") } else { String::new() };
    let line = |name: &str, times: Option<Percentiles>, without: Option<f64>| {
        let times = times.map(|t| [t.p50, t.p90, t.p95, t.p99, t.max].map(Some)).unwrap_or_default();
        let times = times.map(|t| format!("{:>TIME$}", time(t))).concat();
        let without = without.map_or(String::new(), |share| format!("{:>WITHOUT$}", exactly(share)));
        Line::from(vec![quiet(format!("{name:<NAME$}")), plain(times), Span::styled(without, BAD)])
    };
    let mut lines = vec![
        Line::from(quiet(format!("{:NAME$}{head}{without}", ""))),
        line("latency", second.latency, second.no_response),
        line("connect", second.connect, second.no_connection),
    ];
    lines.extend(second.has_tls.then(|| line("TLS", second.tls, None)));
    lines.push(line("lag", second.lag, None));
    lines
}

/// What throng and the target use, three lines. On a fleet throng is the coordinator.
pub(crate) fn costs(scene: &Scene) -> Vec<Line<'static>> {
    let second = scene.second;
    let throng = if scene.header.agents.is_empty() { "throng" } else { "coordinator" };
    let columns = |cpu: &str, memory: &str, files: &str, queue: &str| {
        format!("{cpu:>8}{memory:>11}{files:>25}{queue:>18}")
    };
    let line = |name: &str, figures: String| {
        // A longer name takes blanks of the first figure.
        let blanks = figures.len() - figures.trim_start().len();
        let taken = name.len().saturating_sub(NAME).min(blanks);
        Line::from(vec![quiet(format!("{name:<NAME$}")), plain(figures[taken..].to_owned())])
    };
    let target = match &second.target {
        Some(target) => columns(
            &format!("{:.2}", target.process.cores_used),
            &bytes(target.process.rss_bytes),
            &of(target.open_files, target.open_files_limit),
            &of(target.accept_queue, target.accept_backlog),
        ),
        None if is_loopback(&scene.header.target) => {
            "  not seen: its process belongs to another user or container".to_owned()
        }
        None => "  not seen: if it is on another host, run `throng observe` there".to_owned(),
    };
    vec![
        Line::from(quiet(format!(
            "{:NAME$}{}",
            "",
            columns("cores", "memory", "open files", "accept queue")
        ))),
        line(throng, columns(&format!("{:.2}", second.own_cpu), &bytes(second.own_memory), "", "")),
        line("target", target),
    ]
}

/// Whether a target, as typed, is on this machine's loopback.
fn is_loopback(target: &str) -> bool {
    let host = target.split_once("://").map_or(target, |(_, rest)| rest);
    ["127.", "localhost", "[::1]"].iter().any(|local| host.starts_with(local))
}

/// The layout of populations and faults: one above the other, or side by side.
pub(crate) struct Lists {
    populations: Rect,
    faults: Rect,
}

impl Lists {
    /// In at most this many rows.
    pub(crate) fn arrange(second: &Second, width: u16, room: u16, side_by_side: bool) -> Lists {
        let populations = second.populations.len() as u16;
        let populations = if populations > 1 { populations + 1 } else { 0 };
        let left = (width - 4 - FAULT as u16).min(POPULATION + POPULATION_NAME.1 as u16);
        let x = if side_by_side && populations > 0 { left + 4 } else { 0 };
        let in_a_row = (usize::from(width - x) / FAULT).max(1);
        let faults = 1 + second.faults.len().div_ceil(in_a_row) as u16;
        let area = |x, y, height: u16| Rect { x, y, width: width - x, height };
        if side_by_side {
            let populations = Rect { width: left, ..area(0, 0, populations.min(room)) };
            return Lists { populations, faults: area(x, 0, faults.min(room)) };
        }
        // Each has half of the room, and what the other does not need.
        let populations = populations.min(room - faults.min(room / 2));
        let populations = if populations < MIN_POPULATIONS { 0 } else { populations };
        let faults = faults.min(room - populations);
        Lists { populations: area(0, 0, populations), faults: area(0, populations, faults) }
    }

    /// Rows of both.
    pub(crate) fn height(&self) -> u16 {
        self.populations.bottom().max(self.faults.bottom())
    }

    /// The layout.
    pub(crate) fn lines(&self, scene: &Scene) -> [(Rect, Vec<Line<'static>>); 2] {
        let names = &scene.header.populations;
        [
            (self.populations, populations(names, &scene.second.populations, self.populations)),
            (self.faults, faults(&scene.second.faults, self.faults)),
        ]
    }
}

/// How many of these are shown, if the last row has the number of the others.
fn shown(all: usize, rows: usize, in_a_row: usize) -> usize {
    if all <= rows * in_a_row { all } else { rows.saturating_sub(1) * in_a_row }
}

fn populations(names: &[String], populations: &[PopulationFigures], area: Rect) -> Vec<Line<'static>> {
    let rows = usize::from(area.height);
    let is_any = populations.iter().any(|own| own.no_response.is_some());
    let has_room = usize::from(area.width) >= usize::from(POPULATION) + POPULATION_NAME.0 + WITHOUT;
    let of_share = if is_any && has_room { WITHOUT } else { 0 };
    let of_name = (usize::from(area.width - POPULATION).saturating_sub(of_share))
        .clamp(POPULATION_NAME.0, POPULATION_NAME.1);
    let columns = |name: &str, open: &str, requests: &str, p99: &str, share: &str, faults: &str| {
        let share = if of_share > 0 { share } else { "" };
        let name = fit(name, of_name - 1);
        format!("{name:<of_name$}{open:>23}{requests:>13}{p99:>9}{share:>of_share$}{faults:>11}")
    };
    let shown = shown(populations.len(), rows.saturating_sub(1), 1);
    let head = Line::from(quiet(columns("population", "open", "requests", "p99", NO_RESPONSE, "faults")));
    let line = |(name, own): (&String, &PopulationFigures)| {
        let open = of(Some(own.open), Some(own.wanted).filter(|wanted| *wanted > 0));
        let requests = per_s(own.requests_per_s);
        let faults = Count(own.faults).to_string();
        let share = own.no_response.map_or(String::new(), exactly);
        // Without room for the share: what had no response took longer than what had one.
        let at_least = if own.no_response.is_some() && of_share == 0 { "≥ " } else { "" };
        let p99 = own.latency_p99.map_or_else(|| time(None), |p99| at_least.to_owned() + &time(Some(p99)));
        Line::from(plain(columns(name, &open, &requests, &p99, &share, &faults)))
    };
    let lines = names.iter().zip(populations).take(shown).map(line);
    let more = populations.len() - shown;
    let more = (more > 0).then(|| Line::from(quiet(format!("and {more} more"))));
    [head].into_iter().chain(lines).chain(more).take(rows).collect()
}

fn faults(faults: &[FaultFigures], area: Rect) -> Vec<Line<'static>> {
    let (rows, width) = (usize::from(area.height), usize::from(area.width));
    let sum = |figure: fn(&FaultFigures) -> u64| faults.iter().map(figure).sum::<u64>();
    let (total, recent) = (sum(|fault| fault.count), sum(|fault| fault.recent));
    let head = match total {
        0 => Line::from(vec![quiet(format!("{:<NAME$}", "faults")), plain("none")]),
        _ => Line::from(vec![
            quiet(format!("{:<NAME$}", "faults")),
            Span::styled(Count(total).to_string(), BAD),
            plain(format!(", {} in the last second", Count(recent))),
        ]),
    };
    let in_a_row = (width / FAULT).max(1);
    let columns = width / in_a_row;
    let shown = shown(faults.len(), rows.saturating_sub(1), in_a_row);
    let cell = |fault: &FaultFigures| {
        let words = fault.fault.name();
        let count = Count(fault.count).to_string();
        let style = if fault.recent > 0 { BAD } else { Style::new() };
        let of_words = columns.saturating_sub(count.len().max(8) + 1);
        let words = fit(&words, of_words.saturating_sub(1));
        [Span::styled(format!("{count:>8}"), style), plain(format!(" {words:<of_words$}"))]
    };
    let lines =
        faults[..shown].chunks(in_a_row).map(|row| Line::from(row.iter().flat_map(cell).collect::<Vec<_>>()));
    let rest = &faults[shown..];
    let beyond = (!rest.is_empty()).then(|| {
        let count: u64 = rest.iter().map(|fault| fault.count).sum();
        Line::from(quiet(format!("{:>8} of {} other kinds", Count(count).to_string(), rest.len())))
    });
    [head].into_iter().chain(lines).chain(beyond).take(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_rows_are_counted() {
        assert_eq!((shown(3, 3, 1), shown(4, 3, 1), shown(0, 0, 1)), (3, 2, 0));
        assert_eq!((shown(4, 2, 2), shown(5, 2, 2), shown(5, 0, 2)), (4, 2, 0));
        assert_eq!(time(None), "–");
    }
}
