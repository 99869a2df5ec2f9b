//! The data for one frame, and the lines of it that both the full and the compact view show.

use ratatui::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use samples::{Header, Phase};
use units::Count;

use super::{
    figures::Second,
    history::History,
    text::{DOUBT, QUIET, STRONG, fit, percent, plain, quiet, whole_seconds},
};

/// The data for one frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) header: &'a Header,
    pub(crate) second: &'a Second,
    pub(crate) history: &'a History,
    /// The effect of the last key, if it is still to be shown.
    pub(crate) message: Option<&'a str>,
    /// Messages since the view began, oldest first.
    pub(crate) held_messages: &'a [String],
    pub(crate) is_paused: bool,
    pub(crate) is_ending: bool,
    /// Whether the help is shown over the view.
    pub(crate) is_help: bool,
}

/// Minimum width for the name of the stage; with the longest names, only a short bar is left.
const WITH_STAGE: usize = 100;

/// The line of the phase: stage, progress and remaining time.
pub(crate) fn progress(scene: &Scene, width: usize) -> Line<'static> {
    let Second { phase, progress, elapsed, .. } = scene.second;
    let share = progress.map_or(String::new(), percent);
    let right = format!("{share:>5}   {:<27}{:>7}", what_is_left(scene), whole_seconds(*elapsed));
    let colour = Style::new().fg(colour(*phase));
    let stage = scene.second.stage.as_ref().filter(|_| width >= WITH_STAGE);
    let stage = stage.map_or(String::new(), |stage| format!("{stage}  "));
    let bar = width.saturating_sub(8 + stage.chars().count() + right.chars().count());
    let done = (progress.unwrap_or_default() * bar as f64).round() as usize;
    Line::from(vec![
        Span::styled(format!(" {} ", phase.name()), colour.patch(STRONG).add_modifier(Modifier::REVERSED)),
        plain(" ".repeat(6 - phase.name().len().min(6))),
        plain(stage),
        Span::styled("━".repeat(done), colour),
        Span::styled("─".repeat(bar - done), QUIET),
        plain(right),
    ])
}

pub(crate) fn what_is_left(scene: &Scene) -> String {
    let hold = scene.header.hold_s.map(|hold| whole_seconds(units::Nanos((hold * 1e9) as u64)));
    let left = scene.second.left.map(whole_seconds);
    match (scene.second.phase, left.zip(hold)) {
        (Phase::Drain, _) => "waiting for outstanding responses".to_owned(),
        (Phase::Ramp, Some((left, _))) => format!("then {left} at full load"),
        (Phase::Ramp, None) => "then until stopped".to_owned(),
        (_, Some((left, hold))) => format!("{left} of {hold} left"),
        (_, None) => "until stopped".to_owned(),
    }
}

pub(crate) fn colour(phase: Phase) -> Color {
    match phase {
        Phase::Ramp => Color::Cyan,
        Phase::Pause => Color::Yellow,
        Phase::Hold => Color::Green,
        Phase::Drain => Color::Blue,
    }
}

/// Open and wanted connections; in red with the number of missing ones if fewer than wanted are open at full load.
pub(crate) fn open(scene: &Scene) -> Vec<Span<'static>> {
    let second = scene.second;
    let wanted = Count(second.wanted).to_string();
    let open = format!("{:>1$}", Count(second.open).to_string(), wanted.len());
    let is_short = second.is_short();
    let style = if is_short { STRONG.fg(Color::Red) } else { STRONG };
    let mut spans = vec![quiet("open "), Span::styled(open, style)];
    // A load of connections that arrive without end has no wanted number.
    if second.wanted > 0 {
        spans.push(plain(format!(" of {wanted}")));
    }
    if is_short {
        let missing = Count(second.wanted - second.open);
        spans.push(Span::styled(format!("  {missing} missing"), style));
    }
    spans
}

/// The latest messages, and the effect of the last key in the last line.
pub(crate) fn messages(scene: &Scene, rows: usize, width: usize) -> Vec<Line<'static>> {
    let message = scene.message.map(|message| Line::styled(fit(message, width), STRONG.patch(DOUBT)));
    let held_messages = scene.held_messages.iter().rev().take(rows - usize::from(message.is_some())).rev();
    let held_messages: Vec<Line> =
        held_messages.map(|message| Line::styled(fit(message, width), DOUBT)).collect();
    let blank = rows - held_messages.len() - usize::from(message.is_some());
    vec![Line::default(); blank].into_iter().chain(held_messages).chain(message).collect()
}

/// The keys that have an effect now; their explanations are omitted if they do not fit.
pub(crate) fn keys(scene: &Scene, width: usize) -> Line<'static> {
    let pause = if scene.is_paused { "resume" } else { "pause" };
    let keys: &[(&str, &str)] = match (scene.is_help, scene.is_ending) {
        (true, _) => &[("?", "close the help")],
        (_, true) => &[("q", "stop immediately"), ("?", "help")],
        (_, false) => &[
            ("p", pause),
            ("+", "more load"),
            ("-", "less load"),
            ("d", "drain"),
            ("q", "stop"),
            ("?", "help"),
        ],
    };
    let line = |gap: &str, with_names: bool| {
        let spans = keys.iter().flat_map(|(key, what)| {
            let what = if with_names { format!(" {what}") } else { String::new() };
            [Span::styled((*key).to_owned(), STRONG), quiet(what), plain(gap.to_owned())]
        });
        Line::from(spans.collect::<Vec<_>>())
    };
    let all = [line("    ", true), line("  ", true), line(" ", false)];
    all.iter().find(|line| line.width() <= width + 4).unwrap_or(&all[2]).clone()
}
