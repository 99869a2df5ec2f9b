//! The agents of a fleet in one second, as a line of text.

use ratatui::text::Span;
use samples::{AgentShare, AgentTicks, Tick};
use units::Count;

use crate::summary::{cores, time};

/// Columns of the narrowest usual terminal: no line about agents is longer.
pub(crate) const COLUMNS: usize = 80;
/// Columns of a name, at the least: of many agents with long names, its end.
const MIN_NAME: usize = 4;

/// How many agents reported in a second, and which of them had the most CPU in use and the most lag.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Agents {
    all: usize,
    /// They reported, and are not lost.
    up: usize,
    lost: usize,
    /// Of the agent that used the largest share (0..=1) of its processors: its name, that share, and how many processors it used.
    max_cpu: Option<(String, f64, f64)>,
    /// A name, and the 99th percentile of how late it sent, microseconds.
    max_lag: Option<(String, u64)>,
}

impl Agents {
    /// Of a tick; none of a run on one machine.
    pub(crate) fn of(agents: &[AgentShare], tick: &Tick) -> Option<Agents> {
        if agents.is_empty() {
            return None;
        }
        let none = AgentTicks::default();
        let columns = tick.agents.as_deref().unwrap_or(&none);
        let of = |column: &[u64], place: usize| AgentTicks::value(column, place);
        let seconds = tick.until.since(tick.from).secs_f64();
        let mut seen = Agents { all: agents.len(), ..Agents::default() };
        for (place, AgentShare { id, cores: available, .. }) in agents.iter().enumerate() {
            let reports = of(&columns.reports, place);
            if of(&columns.lost.0, place) > 0 {
                seen.lost += 1;
            } else if reports > 0 {
                seen.up += 1;
            }
            // A report that was late is another second's.
            let used = of(&columns.cpu_ms, place) as f64 / 1e3 / seconds.max(reports as f64);
            let share = used / f64::from(*available);
            let is_most = seen.max_cpu.as_ref().is_none_or(|(_, max, _)| share > *max);
            if reports > 0 && *available > 0 && is_most {
                seen.max_cpu = Some((id.clone(), share, used));
            }
            let lag = of(&columns.lag_p99_us.0, place);
            if lag > 0 && seen.max_lag.as_ref().is_none_or(|(_, max)| lag > *max) {
                seen.max_lag = Some((id.clone(), lag));
            }
        }
        Some(seen)
    }

    /// `agents 2 of 3 up, 1 lost  max cpu load-2 1.86 cores, lag load-1 1.2 ms`. Long names lose their beginning, since names of
    /// one fleet differ in their ends.
    pub(crate) fn line(&self, width: usize) -> String {
        let lost = if self.lost > 0 { format!(", {} lost", Count(self.lost as u64)) } else { String::new() };
        let counts = format!("agents {} of {} up{lost}", Count(self.up as u64), Count(self.all as u64));
        let cpu = self.max_cpu.as_ref().map(|(name, _, used)| ("cpu ", name, format!(" {}", cores(*used))));
        let lag =
            self.max_lag.as_ref().map(|(name, us)| ("lag ", name, format!(" {}", time(*us as f64, false))));
        let figures: Vec<_> = [cpu, lag].into_iter().flatten().collect();
        if figures.is_empty() {
            return counts;
        }
        let fixed: usize = figures.iter().map(|(what, _, figure)| columns(what) + columns(figure)).sum();
        let fixed = columns(&counts) + "  max ".len() + fixed + ", ".len() * (figures.len() - 1);
        let mut room = width.saturating_sub(fixed);
        let mut texts = Vec::new();
        for (place, (what, name, figure)) in figures.iter().enumerate() {
            // What a short name does not need, the next has.
            let name = end(name, (room / (figures.len() - place)).max(MIN_NAME));
            room = room.saturating_sub(columns(&name));
            texts.push(format!("{what}{name}{figure}"));
        }
        format!("{counts}  max {}", texts.join(", "))
    }
}

fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

/// The end of a name, in at most this many columns.
fn end(name: &str, width: usize) -> String {
    if columns(name) <= width {
        return name.to_owned();
    }
    let mut rest = name;
    while columns(rest) >= width {
        let mut chars = rest.chars();
        if chars.next().is_none() {
            break;
        }
        rest = chars.as_str();
    }
    format!("…{rest}")
}

#[cfg(test)]
mod tests;
