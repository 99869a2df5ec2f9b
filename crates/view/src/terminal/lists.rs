//! The lists below the curves: statuses, thresholds, populations and faults. Each gets as many rows as there is room for.

use ratatui::{
    style::{Color, Style},
    text::{Line, Span},
};
use samples::{Phase, ThresholdResult};
use units::{Count, percent as exactly};

use super::{
    figures::{FaultFigures, PopulationFigures, Second, StatusFigures},
    scene::Scene,
    tables::{NO_RESPONSE, WITHOUT},
    text::{BAD, DOUBT, GOOD, NAME, NOTHING, STRONG, fit, of, per_s, plain, quiet, time},
};

/// Minimum width of a fault in columns: count, side, stage and kind.
const FAULT: usize = 39;
/// Width of a population's figures, and minimum and maximum width of its name, in columns.
const POPULATION: usize = 56;
const POPULATION_NAME: (usize, usize) = (16, 40);
/// Minimum rows of populations: a heading and two lines below it; fewer would show nothing.
const MIN_POPULATIONS: u16 = 3;
/// Maximum and minimum width of a status' bar in columns.
const BAR: usize = 40;
const MIN_BAR: usize = 6;

/// A kind of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Statuses,
    Thresholds,
    Populations,
    Faults,
}

impl List {
    /// The number of rows that the list can use at this width.
    pub(crate) fn rows(self, second: &Second, width: u16) -> u16 {
        let below_a_head = |n: usize| if n > 0 { n as u16 + 1 } else { 0 };
        match self {
            List::Statuses => below_a_head(second.statuses.len()),
            List::Thresholds => below_a_head(second.thresholds.len()),
            List::Populations if second.populations.len() > 1 => below_a_head(second.populations.len()),
            List::Populations => 0,
            List::Faults => 1 + second.faults.len().div_ceil(faults_in_a_row(width)) as u16,
        }
    }

    /// The list as at most `rows` lines.
    pub(crate) fn lines(self, scene: &Scene, width: u16, rows: u16) -> Vec<Line<'static>> {
        let (second, width, rows) = (scene.second, usize::from(width), usize::from(rows));
        match self {
            _ if rows == 0 => Vec::new(),
            List::Statuses => statuses(&second.statuses, width, rows),
            List::Thresholds => thresholds(&second.thresholds, width, rows),
            List::Populations => populations(&scene.header.populations, second, width, rows),
            List::Faults => faults(&second.faults, width, rows),
        }
    }
}

/// Divides `room` rows among lists that are stacked: first one row for each that is not empty, then the rest in [`ORDER`].
pub(crate) fn share(lists: &[List], second: &Second, width: u16, room: u16) -> Vec<u16> {
    let wanted: Vec<u16> = lists.iter().map(|list| list.rows(second, width)).collect();
    let mut left = room;
    let mut rows: Vec<u16> = vec![0; lists.len()];
    let least = |list: &List| if *list == List::Populations { MIN_POPULATIONS } else { 1 };
    // Populations are served last, because they need at least three rows.
    for is_last in [false, true] {
        for (n, list) in lists.iter().enumerate().filter(|(_, own)| (**own == List::Populations) == is_last) {
            if wanted[n] > 0 && least(list) <= left {
                rows[n] = least(list);
                left -= rows[n];
            }
        }
    }
    for group in ORDER {
        let takes = |n: usize, rows: &[u16]| group.contains(&lists[n]) && rows[n] > 0 && rows[n] < wanted[n];
        while left > 0 && (0..lists.len()).any(|n| takes(n, &rows)) {
            for n in 0..lists.len() {
                if left > 0 && takes(n, &rows) {
                    (rows[n], left) = (rows[n] + 1, left - 1);
                }
            }
        }
    }
    rows
}

/// The order in which lists get remaining rows. Statuses are last, because one line shows nearly all of them.
const ORDER: [&[List]; 3] = [&[List::Thresholds], &[List::Populations, List::Faults], &[List::Statuses]];

/// The colour of a status.
fn style(status: u16) -> Style {
    match status / 100 {
        2 => GOOD,
        3 => Style::new().fg(Color::Cyan),
        4 => DOUBT,
        5 => BAD,
        _ => Style::new(),
    }
}

fn statuses(statuses: &[StatusFigures], width: usize, rows: usize) -> Vec<Line<'static>> {
    let all: u64 = statuses.iter().map(|own| own.count).sum();
    if rows < 1 + statuses.len().min(2) {
        let mut line = Line::from(quiet(format!("{:<NAME$}", "status")));
        for (shown, own) in statuses.iter().enumerate() {
            let text = format!(" {}   ", Count(own.count));
            let status = own.status.to_string();
            if line.width() + status.len() + text.len() + 8 > width {
                line.push_span(quiet(format!("and {} more", statuses.len() - shown)));
                break;
            }
            line.push_span(Span::styled(status, style(own.status).patch(STRONG)));
            line.push_span(plain(text));
        }
        return vec![line];
    }
    let head = quiet(format!("{:<8}{:>12}{:>8}{:>12}", "status", "responses", "share", "now"));
    let bar = width.saturating_sub(8 + 12 + 8 + 12 + 2).min(BAR);
    let shown = shown(statuses.len(), rows - 1, 1);
    let line = |own: &StatusFigures| {
        let share = own.count as f64 / all.max(1) as f64;
        let filled = ((share * bar as f64).round() as usize).max(1).min(bar);
        Line::from(vec![
            Span::styled(format!("{:<8}", own.status), style(own.status).patch(STRONG)),
            plain(format!(
                "{:>12}{:>8}{:>12}  ",
                Count(own.count).to_string(),
                exactly(share),
                per_s(own.per_s)
            )),
            Span::styled(if bar >= MIN_BAR { "■".repeat(filled) } else { String::new() }, style(own.status)),
        ])
    };
    let more = statuses.len() - shown;
    let more = (more > 0).then(|| Line::from(quiet(format!("and {more} more"))));
    [Line::from(head)].into_iter().chain(statuses[..shown].iter().map(line)).chain(more).collect()
}

/// The symbol and colour of a threshold. Before anything was measured, it is neither met nor failed.
fn standing(own: &ThresholdResult) -> (&'static str, Style) {
    match own {
        _ if own.pass => ("✓ ", GOOD),
        _ if own.shown.is_empty() => ("· ", Style::new()),
        _ => ("✗ ", BAD),
    }
}

fn shown_value(own: &ThresholdResult) -> &str {
    if own.shown.is_empty() { NOTHING } else { &own.shown }
}

/// The state of each threshold so far. If not all fit, those that fail come first.
fn thresholds(thresholds: &[ThresholdResult], width: usize, rows: usize) -> Vec<Line<'static>> {
    let met = thresholds.iter().filter(|own| own.pass).count();
    let fails = thresholds.iter().any(|own| !own.pass && !own.shown.is_empty());
    let head = vec![
        quiet("thresholds  "),
        Span::styled(
            format!("{met} of {} met", thresholds.len()),
            if fails { STRONG.patch(BAD) } else { STRONG },
        ),
    ];
    let mut by_need: Vec<&ThresholdResult> = thresholds.iter().collect();
    by_need.sort_by_key(|own| (own.pass, own.shown.is_empty()));
    // With so few rows, the thresholds share one line instead of a heading with the number of hidden ones.
    if rows <= 2 && rows <= thresholds.len() {
        let mut line = Line::from(head);
        for own in by_need {
            let (sign, style) = standing(own);
            let text = format!("{} {}", own.expr, shown_value(own));
            if line.width() + 4 + text.chars().count() > width {
                break;
            }
            line.push_span(Span::styled(format!("  {sign}"), style.patch(STRONG)));
            line.push_span(Span::styled(text, style));
        }
        return vec![line];
    }
    let widest = |of: &dyn Fn(&ThresholdResult) -> usize| thresholds.iter().map(of).max().unwrap_or(0);
    // Limited, because the reason for a missing value may be long.
    let of_value = widest(&|own| shown_value(own).chars().count()).min(width / 2);
    let of_text = widest(&|own| own.expr.chars().count()).min(width.saturating_sub(of_value + 4));
    let line = |own: &ThresholdResult| {
        let (sign, style) = standing(own);
        let text = fit(&own.expr, of_text);
        Line::from(vec![
            Span::styled(sign, style.patch(STRONG)),
            plain(format!("{text:<of_text$}  ")),
            Span::styled(format!("{:>of_value$}", fit(shown_value(own), of_value)), style),
        ])
    };
    let shown = shown(thresholds.len(), rows - 1, 1);
    let more = thresholds.len() - shown;
    let listed = if more > 0 { by_need } else { thresholds.iter().collect() };
    let more = (more > 0).then(|| Line::from(quiet(format!("and {more} more"))));
    [Line::from(head)].into_iter().chain(listed[..shown].iter().map(|own| line(own))).chain(more).collect()
}

fn faults_in_a_row(width: u16) -> usize {
    (usize::from(width) / FAULT).max(1)
}

/// The number of items that are shown, if the last row is needed for the number of the others.
fn shown(all: usize, rows: usize, in_a_row: usize) -> usize {
    if all <= rows * in_a_row { all } else { rows.saturating_sub(1) * in_a_row }
}

fn populations(names: &[String], second: &Second, width: usize, rows: usize) -> Vec<Line<'static>> {
    let populations = &second.populations;
    let is_any = populations.iter().any(|own| own.no_response.is_some());
    let has_room = width >= POPULATION + POPULATION_NAME.0 + WITHOUT;
    let of_share = if is_any && has_room { WITHOUT } else { 0 };
    let of_name = width.saturating_sub(POPULATION + of_share).clamp(POPULATION_NAME.0, POPULATION_NAME.1);
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
        // Without room for the share of missing responses, the percentile is marked as a lower bound.
        let at_least = if own.no_response.is_some() && of_share == 0 { "≥ " } else { "" };
        let p99 = own.latency_p99.map_or_else(|| time(None), |p99| at_least.to_owned() + &time(Some(p99)));
        let is_short = second.phase == Phase::Hold && own.open < own.wanted;
        let line = columns(name, &open, &requests, &p99, &share, &faults);
        let (name, figures) =
            line.split_at(line.char_indices().nth(of_name).map_or(line.len(), |(at, _)| at));
        let (open, rest) = figures.split_at(23.min(figures.len()));
        let open_style = if is_short { BAD } else { Style::new() };
        Line::from(vec![plain(name), Span::styled(open.to_owned(), open_style), plain(rest)])
    };
    let lines = names.iter().zip(populations).take(shown).map(line);
    let more = populations.len() - shown;
    let more = (more > 0).then(|| Line::from(quiet(format!("and {more} more"))));
    [head].into_iter().chain(lines).chain(more).take(rows).collect()
}

fn faults(faults: &[FaultFigures], width: usize, rows: usize) -> Vec<Line<'static>> {
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
    if let (1, Some(most)) = (rows, faults.first()) {
        let text = format!(": {} {}", Count(most.count), most.fault.name());
        let text = fit(&text, width.saturating_sub(head.width()));
        return vec![Line::from([head.spans, vec![quiet(text)]].concat())];
    }
    let in_a_row = faults_in_a_row(width as u16);
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
    use samples::{Fault, Kind, Stage};

    fn text(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn hidden_rows_are_counted() {
        assert_eq!((shown(3, 3, 1), shown(4, 3, 1), shown(0, 0, 1)), (3, 2, 0));
        assert_eq!((shown(4, 2, 2), shown(5, 2, 2), shown(5, 0, 2)), (4, 2, 0));
        assert_eq!(time(None), "–");
    }

    fn many(statuses: usize, thresholds: usize, populations: usize, faults: usize) -> Second {
        let fault = Fault::target(Stage::Exchange, Kind::Reset);
        Second {
            statuses: (0..statuses)
                .map(|n| StatusFigures { status: 200 + n as u16, count: 1, per_s: 1.0 })
                .collect(),
            thresholds: vec![ThresholdResult::default(); thresholds],
            populations: vec![PopulationFigures::default(); populations],
            faults: vec![FaultFigures { fault, count: 1, recent: 0 }; faults],
            ..Second::default()
        }
    }

    #[test]
    fn each_list_has_a_row_before_one_has_many() {
        const ALL: [List; 4] = [List::Statuses, List::Thresholds, List::Populations, List::Faults];
        let check = |second: &Second, room: u16, expected: [u16; 4]| {
            assert_eq!(share(&ALL, second, 78, room), expected, "{room}");
        };
        let second = many(2, 3, 4, 6);
        check(&second, 0, [0, 0, 0, 0]);
        check(&second, 2, [1, 1, 0, 0]);
        check(&second, 5, [1, 3, 0, 1]);
        check(&second, 6, [1, 1, 3, 1]);
        check(&second, 9, [1, 4, 3, 1]);
        check(&second, 11, [1, 4, 4, 2]);
        check(&second, 100, [3, 4, 5, 4]);
        // Empty lists use no row, and a single population is not listed.
        check(&many(0, 0, 1, 0), 100, [0, 0, 0, 1]);
    }

    #[test]
    fn statuses_have_their_share_of_all() {
        let own = |status, count, per_s| StatusFigures { status, count, per_s };
        let all = [own(200, 15_000, 1_000.4), own(404, 4_000, 0.0), own(503, 1_000, 7.0)];
        let lines = text(&statuses(&all, 60, 4));
        assert_eq!(lines[1], "200           15,000    75 %     1,000/s  ■■■■■■■■■■■■■■");
        assert_eq!(lines[3], "503            1,000   5.0 %         7/s  ■");
        assert_eq!(
            text(&statuses(&all, 43, 3))[1..],
            ["200           15,000    75 %     1,000/s", "and 2 more"]
        );
        assert_eq!(text(&statuses(&all, 60, 1)), ["status   200 15,000   404 4,000   503 1,000"]);
        assert_eq!(text(&statuses(&all, 34, 1)), ["status   200 15,000   and 2 more"]);
    }

    #[test]
    fn thresholds_that_fail_come_first_where_not_all_fit() {
        let own = |expr: &str, shown: &str, pass| ThresholdResult {
            expr: expr.to_owned(),
            shown: shown.to_owned(),
            pass,
            ..ThresholdResult::default()
        };
        let all = [
            own("held >= 99%", "", false),
            own("p99 < 1s", "5.0 ms", true),
            own("errors < 1%", "2 %", false),
        ];
        assert_eq!(
            text(&thresholds(&all, 60, 4)),
            [
                "thresholds  1 of 3 met",
                "· held >= 99%       –",
                "✓ p99 < 1s     5.0 ms",
                "✗ errors < 1%     2 %"
            ]
        );
        assert_eq!(text(&thresholds(&all, 60, 3))[1..], ["✗ errors < 1%     2 %", "and 2 more"]);
        for rows in [1, 2] {
            let line = "thresholds  1 of 3 met  ✗ errors < 1% 2 %  · held >= 99% –";
            assert_eq!(text(&thresholds(&all, 60, rows)), [line]);
        }
        assert_eq!(thresholds(&all, 60, 4)[3].spans[0].style.fg, Some(Color::Red));
        assert_eq!(thresholds(&all, 60, 4)[0].spans[1].style.fg, Some(Color::Red), "one fails");
        assert_eq!(thresholds(&all[..2], 60, 4)[0].spans[1].style.fg, None, "one is not measured");
        let silent = own("latency.p99 < 50ms", "2.3 % had no response in time", false);
        let lines = thresholds(std::slice::from_ref(&silent), 45, 2 + 1);
        assert_eq!(text(&lines)[1], "✗ latency.p99 < 50ms  2.3 % had no response…");
        assert_eq!(lines[1].spans[0].style.fg, Some(Color::Red), "what had no response decides");
    }
}
