//! The view: what is seen of a second, and where.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Style},
    text::{Line, Span},
};
use samples::{Header, Phase};
use units::{Count, percent as exactly};

use super::{
    curve,
    figures::Second,
    history::History,
    tables,
    text::{NOTHING, QUIET, STRONG, fit, mebibytes_per_s, per_s, percent, plain, quiet, time, whole_seconds},
};

/// The least in which everything has its place.
const LEAST: (u16, u16) = (72, 20);
/// From this width on tables are side by side.
const WIDE: u16 = 137;
/// From here on a title may have what is of less interest.
const ROOMY: usize = 100;
/// From here on there is room for blank lines.
const HIGH: u16 = 30;
/// The minimum of rows for the curve, including its times.
const MIN_CURVE: u16 = 6;

/// All that is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) header: &'a Header,
    pub(crate) second: &'a Second,
    pub(crate) history: &'a History,
    /// What the keys led to.
    pub(crate) message: Option<&'a str>,
    /// The messages meanwhile, oldest first.
    pub(crate) held_messages: &'a [String],
    pub(crate) is_paused: bool,
    pub(crate) is_ending: bool,
}

/// Whether everything has its place there.
pub(crate) fn has_room((width, height): (u16, u16)) -> bool {
    width >= LEAST.0 && height >= LEAST.1
}

/// Fills the buffer.
pub(crate) fn draw(scene: &Scene, buffer: &mut Buffer) {
    let area = buffer.area;
    if !has_room((area.width, area.height)) {
        small(scene, area, buffer);
        return;
    }
    let is_high = area.height >= HIGH;
    let mut page = Page { left: Rect { x: area.x + 1, width: area.width - 2, ..area }, buffer };
    let gap = u16::from(is_high);
    page.lines(1, |width| vec![title(scene, width)]);
    page.lines(1, |width| vec![progress(scene, width)]);
    page.skip(gap);
    page.lines(1, |width| vec![rates(scene, width)]);
    if let Some(agents) = &scene.second.agents {
        page.lines(1, |width| vec![plain(agents.line(width)).into()]);
    }

    let said = if is_high { 3 } else { 1 };
    let wide = area.width >= WIDE;
    let times = tables::latency(scene.second);
    let height = times.len() as u16;
    let tables = if wide { height } else { height + 3 };
    let room = page.left.height.saturating_sub(MIN_CURVE + gap + tables + gap + said + 1);
    let lists = tables::Lists::arrange(scene.second, page.left.width, room, wide);
    let below = gap + tables + gap + lists.height() + said + 1;
    let rows = page.left.height.saturating_sub(below);
    let curve = page.take(rows);
    curve::draw(scene.history, scene.second.elapsed, curve, page.buffer);
    page.skip(gap);
    if wide {
        let both = page.take(height);
        page.write(both, times);
        let right = tables::LATENCY_WIDTH + 4;
        let costs = Rect { x: both.x + right, width: both.width - right, ..both };
        page.write(costs, tables::costs(scene));
    } else {
        page.lines(height, |_| times);
        page.lines(3, |_| tables::costs(scene));
    }
    page.skip(gap);
    let area = page.take(lists.height());
    for (place, lines) in lists.lines(scene) {
        let left = Rect { x: area.x + place.x, y: area.y + place.y, ..place };
        page.write(left, lines);
    }
    page.lines(said, |width| messages(scene, usize::from(said), width));
    page.lines(1, |_| vec![keys(scene)]);
}

/// What is left of the screen, from above.
struct Page<'a> {
    left: Rect,
    buffer: &'a mut Buffer,
}

impl Page<'_> {
    fn take(&mut self, rows: u16) -> Rect {
        let rows = rows.min(self.left.height);
        let taken = Rect { height: rows, ..self.left };
        (self.left.y, self.left.height) = (self.left.y + rows, self.left.height - rows);
        taken
    }

    fn skip(&mut self, rows: u16) {
        self.take(rows);
    }

    fn lines(&mut self, rows: u16, lines: impl FnOnce(usize) -> Vec<Line<'static>>) {
        let area = self.take(rows);
        self.write(area, lines(usize::from(area.width)));
    }

    fn write(&mut self, area: Rect, lines: Vec<Line<'static>>) {
        for (y, line) in (area.y..area.y + area.height).zip(lines) {
            self.buffer.set_line(area.x, y, &line, area.width);
        }
    }
}

/// The target on the left, what repeats the run on the right.
fn title(scene: &Scene, width: usize) -> Line<'static> {
    let Header { target, seed, io, threads, .. } = scene.header;
    let right = match width < ROOMY {
        true => format!("seed {seed}"),
        false => format!("{threads} threads  {io}  seed {seed}"),
    };
    let target = fit(target, width.saturating_sub(right.len() + 10));
    spread(vec![Span::styled("throng", STRONG), plain("  "), plain(target)], vec![quiet(right)], width)
}

/// The phase, how far it is, what is left.
fn progress(scene: &Scene, width: usize) -> Line<'static> {
    let Second { phase, progress, elapsed, .. } = scene.second;
    let share = progress.map_or(String::new(), percent);
    let right = format!("{share:>5}   {:<27}{:>7}", what_is_left(scene), whole_seconds(*elapsed));
    let colour = Style::new().fg(colour(*phase));
    let bar = width.saturating_sub(8 + right.chars().count());
    let done = (progress.unwrap_or_default() * bar as f64).round() as usize;
    Line::from(vec![
        Span::styled(format!("{:<8}", phase.name()), colour.patch(STRONG)),
        Span::styled("━".repeat(done), colour),
        Span::styled("─".repeat(bar - done), QUIET),
        plain(right),
    ])
}

fn what_is_left(scene: &Scene) -> String {
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

fn colour(phase: Phase) -> Color {
    match phase {
        Phase::Ramp => Color::Cyan,
        Phase::Pause => Color::Yellow,
        Phase::Hold => Color::Green,
        Phase::Drain => Color::Blue,
    }
}

/// Connections and rates; the less important ones only where they fit.
fn rates(scene: &Scene, width: usize) -> Line<'static> {
    let second = scene.second;
    let wanted = Count(second.wanted).to_string();
    let open = format!("{:>1$}", Count(second.open).to_string(), wanted.len());
    let mut spans = vec![quiet("open "), Span::styled(open, STRONG)];
    // Of connections that come without end none are wanted.
    if second.wanted > 0 {
        spans.push(plain(format!(" of {wanted}")));
    }
    // Each as wide as it usually becomes, so that what follows does not move.
    let more = [
        ("connects", 7, per_s(second.opens_per_s)),
        ("requests", 10, per_s(second.requests_per_s)),
        ("in", 11, mebibytes_per_s(second.bytes_in_per_s)),
        ("waiting", 7, Count(second.waiting).to_string()),
    ];
    for (name, columns, figure) in more {
        let piece = [plain("   "), quiet(name), plain(format!("{figure:>columns$}"))];
        let taken = Line::from([spans.clone(), piece.to_vec()].concat());
        if taken.width() > width {
            break;
        }
        spans = taken.spans;
    }
    Line::from(spans)
}

/// The last messages, and in the last line the effect of keys.
fn messages(scene: &Scene, rows: usize, width: usize) -> Vec<Line<'static>> {
    let message = scene.message.map(|message| Line::styled(message.to_owned(), STRONG.fg(Color::Yellow)));
    let held_messages = scene.held_messages.iter().rev().take(rows - usize::from(message.is_some())).rev();
    let held_messages: Vec<Line> = held_messages
        .map(|message| Line::styled(fit(message, width), Style::new().fg(Color::Yellow)))
        .collect();
    let blank = rows - held_messages.len() - usize::from(message.is_some());
    vec![Line::default(); blank].into_iter().chain(held_messages).chain(message).collect()
}

fn keys(scene: &Scene) -> Line<'static> {
    let pause = if scene.is_paused { "resume" } else { "pause" };
    let keys: &[(&str, &str)] = match (scene.is_ending, scene.is_paused) {
        (true, _) => &[("q", "stop immediately")],
        (false, true) => &[("p", pause), ("d", "drain"), ("q", "stop")],
        (false, false) => {
            &[("p", pause), ("+", "more load"), ("-", "less load"), ("d", "drain"), ("q", "stop")]
        }
    };
    let spans = keys.iter().flat_map(|(key, what)| {
        [Span::styled((*key).to_owned(), STRONG), quiet(format!(" {what}")), plain("    ")]
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// Where there is no room: the most important, a line each.
fn small(scene: &Scene, area: Rect, buffer: &mut Buffer) {
    let second = scene.second;
    let latency = second.latency;
    let without =
        second.no_response.map_or(String::new(), |share| format!(" no response {}", exactly(share)));
    let faults: u64 = second.faults.iter().map(|fault| fault.count).sum();
    let share = second.progress.map_or(NOTHING.to_owned(), percent);
    let texts = [
        format!("{} {share}, {}", second.phase.name(), what_is_left(scene)),
        format!("open {} of {}", Count(second.open), Count(second.wanted)),
        format!("requests {}", per_s(second.requests_per_s)),
        format!("p50 {} p99 {}{without}", time(latency.map(|l| l.p50)), time(latency.map(|l| l.p99))),
        format!("faults {}", Count(faults)),
        scene.message.map_or("p + - d q".to_owned(), str::to_owned),
    ];
    for (y, text) in (area.y..area.y + area.height).zip(texts) {
        buffer.set_string(area.x, y, fit(&text, usize::from(area.width)), Style::new());
    }
}

/// One part on the left, one on the right.
fn spread(left: Vec<Span<'static>>, right: Vec<Span<'static>>, width: usize) -> Line<'static> {
    let taken: usize = left.iter().chain(&right).map(Span::width).sum();
    let blank = plain(" ".repeat(width.saturating_sub(taken)));
    Line::from([left, vec![blank], right].concat())
}
