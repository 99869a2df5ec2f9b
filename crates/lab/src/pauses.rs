//! Reads garbage collection pauses of a Java virtual machine from the log that it writes with
//! `-Xlog:gc*:file=FILE:time,uptime,level,tags` (JEP 158: unified JVM logging), and assigns each to a second of the run.

use std::{fs, path::Path};

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{curve::Second, figure::micros};

/// A pause, in which only the garbage collector ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Pause {
    /// The time of day, as in the log: `2026-11-21T23:59:59.184+0000`.
    pub(crate) time: String,
    /// The second of the run that it affected, in seconds since the first dial.
    pub(crate) at_s: f64,
    /// Duration in milliseconds.
    pub(crate) ms: f64,
    /// The longest latency of that second, microseconds.
    pub(crate) longest_us: Option<f64>,
    /// The kind of pause: `Pause Young (Normal) (G1 Evacuation Pause)`.
    pub(crate) what: String,
}

/// All pauses during the run from the logs in a folder (`gc-*.log`), in the order of time. Like the run's seconds, the logs are in
/// UTC.
pub(crate) fn pauses(folder: &Path, seconds: &[Second]) -> Vec<Pause> {
    let is_log = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with("gc-") && name.ends_with(".log")
    };
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let texts = files.filter(|path| is_log(path)).filter_map(|path| fs::read_to_string(path).ok());
    let mut all: Vec<Pause> =
        texts.flat_map(|text| text.lines().filter_map(Pause::parse).collect::<Vec<_>>()).collect();
    all.retain_mut(|pause| pause.place(seconds));
    all.sort_by(|a, b| a.time.cmp(&b.time));
    all
}

/// Length of the part of a time that both formats have in common, up to milliseconds: `2026-11-21T23:59:59.184`.
const MOMENT: usize = 23;

/// The recorded time of a second may be up to this much earlier than its end; milliseconds.
const EARLY_MS: u64 = 500;

/// The `most` longest pauses, longest first.
pub(crate) fn longest(mut pauses: Vec<Pause>, most: usize) -> Vec<Pause> {
    pauses.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    pauses.truncate(most);
    pauses
}

/// Milliseconds of the day.
fn ms(time: &str) -> Option<u64> {
    let part = |from: usize, to: usize| time.get(from..to)?.parse::<u64>().ok();
    Some(((part(11, 13)? * 60 + part(14, 16)?) * 60 + part(17, 19)?) * 1000 + part(20, 23)?)
}

impl Pause {
    /// Finds the second that contains the pause; returns false if that is before or after the run. The recorded time of a second is
    /// early by the time from the start of the run to its first dial, up to [`EARLY_MS`], so a pause shortly after a second may
    /// belong to it.
    fn place(&mut self, seconds: &[Second]) -> bool {
        let moment = |time: &str| time.get(..MOMENT).map(str::to_owned);
        let own = moment(&self.time);
        let next = seconds.partition_point(|second| moment(&second.time) < own);
        if next == 0 || next == seconds.len() {
            return false;
        }
        let (before, own) = (&seconds[next - 1], &seconds[next]);
        let is_near = ms(&self.time).zip(ms(&before.time)).is_some_and(|(pause, end)| pause < end + EARLY_MS);
        let is_longer = before.longest_us() > own.longest_us();
        let affected = if is_near && is_longer { before } else { own };
        self.at_s = affected.at_s();
        self.longest_us = affected.longest_us();
        true
    }

    /// The pause as one line.
    pub(crate) fn line(&self) -> String {
        let at = Nanos::from_secs(self.at_s.round() as u64);
        let longest = self
            .longest_us
            .map_or(String::new(), |us| format!("; the longest latency of that second: {}", micros(us)));
        format!("paused {:.1} ms at {at}: {}{longest}", self.ms, self.what)
    }

    /// Parses a line of the log; most lines are not about pauses.
    fn parse(line: &str) -> Option<Pause> {
        let (time, rest) = line.strip_prefix('[')?.split_once(']')?;
        // After the decorations: `GC(3) Pause Young (Normal) (G1 Evacuation Pause) 123M->45M(410M) 5.123ms`.
        let (_, message) = rest.rsplit_once("GC(")?;
        let (_, message) = message.split_once(") ")?;
        let (what, ms) = message.rsplit_once(' ')?;
        let ms = ms.strip_suffix("ms")?.parse().ok()?;
        let what =
            what.rsplit_once(' ').filter(|(_, sizes)| sizes.contains("->")).map_or(what, |(what, _)| what);
        let pause = Pause { time: time.to_owned(), ms, what: what.to_owned(), ..Pause::default() };
        what.starts_with("Pause").then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_found_among_the_rest() {
        let log = "\
[2026-11-21T23:59:58.100+0000][0.021s][info][gc] Using G1
[2026-11-21T23:59:59.184+0000][1.105s][info][gc,start    ] GC(0) Pause Young (Normal) (G1 Evacuation Pause)
[2026-11-21T23:59:59.190+0000][1.111s][info][gc,phases   ] GC(0)   Evacuate Collection Set: 4.7ms
[2026-11-21T23:59:59.191+0000][1.112s][info][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->3M(410M) 6.512ms
[2026-11-22T00:00:01.000+0000][3.000s][info][gc          ] GC(1) Concurrent Mark Cycle 12.001ms
[2026-11-22T00:00:02.000+0000][4.000s][info][gc          ] GC(1) Pause Remark 40M->39M(410M) 2.250ms
";
        let found: Vec<Pause> = log.lines().filter_map(Pause::parse).collect();
        let pause = |time: &str, ms: f64, what: &str| Pause {
            time: time.to_owned(),
            ms,
            what: what.to_owned(),
            ..Pause::default()
        };
        let expected = [
            pause("2026-11-21T23:59:59.191+0000", 6.512, "Pause Young (Normal) (G1 Evacuation Pause)"),
            pause("2026-11-22T00:00:02.000+0000", 2.25, "Pause Remark"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_pause_lies_in_a_second_of_the_run() {
        let second = |at: u64| {
            let line = format!(
                r#"{{"time":"2026-11-21T10:00:0{at}.500Z","elapsed_s":{at},"throng_latency_seconds_max":0.0{}}}"#,
                if at == 2 { 9 } else { at }
            );
            Second::parse(&line).unwrap()
        };
        let seconds: Vec<Second> = (1..=5).map(second).collect();
        let check = |time: &str, expected: Option<(f64, f64)>| {
            let mut pause =
                Pause { time: time.to_owned(), ms: 7.0, what: "Pause".to_owned(), ..Pause::default() };
            let is_in = pause.place(&seconds);
            assert_eq!(is_in.then(|| (pause.at_s, pause.longest_us.unwrap())), expected);
        };
        check("2026-11-21T10:00:01.400+0000", None);
        check("2026-11-21T10:00:01.600+0000", Some((2.0, 90_000.0)));
        // Shortly after the second, which contains a longer latency.
        check("2026-11-21T10:00:02.999+0000", Some((2.0, 90_000.0)));
        check("2026-11-21T10:00:03.001+0000", Some((3.0, 30_000.0)));
        check("2026-11-21T10:00:03.501+0000", Some((4.0, 40_000.0)));
        check("2026-11-21T10:00:05.501+0000", None);
        let pause = Pause {
            at_s: 2.0,
            ms: 7.25,
            longest_us: Some(20_000.0),
            what: "Pause Full".to_owned(),
            ..Pause::default()
        };
        assert_eq!(
            pause.line(),
            "paused 7.2 ms at 2s: Pause Full; the longest latency of that second: 20 ms"
        );
    }
}
