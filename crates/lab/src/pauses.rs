//! Pauses of a Java virtual machine, from the log that it writes with `-Xlog:gc*:file=FILE:time,uptime,level,tags`
//! (JEP 158: unified logging).

use std::{fs, path::Path};

use serde::{Deserialize, Serialize};

/// A time in which nothing ran but the collector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pause {
    /// When, by the clock, as the log has it: `2026-11-21T23:59:59.184+0000`.
    pub time: String,
    /// For how long, milliseconds.
    pub ms: f64,
    /// What it was: `Pause Young (Normal) (G1 Evacuation Pause)`.
    pub what: String,
}

/// All that the logs in a folder (`gc-*.log`) have, in the order of time.
pub fn pauses(folder: &Path) -> Vec<Pause> {
    let is_log = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with("gc-") && name.ends_with(".log")
    };
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let texts = files.filter(|path| is_log(path)).filter_map(|path| fs::read_to_string(path).ok());
    let mut all: Vec<Pause> =
        texts.flat_map(|text| text.lines().filter_map(Pause::parse).collect::<Vec<_>>()).collect();
    all.sort_by(|a, b| a.time.cmp(&b.time));
    all
}

impl Pause {
    /// A line of the log; most are of something else.
    fn parse(line: &str) -> Option<Pause> {
        let (time, rest) = line.strip_prefix('[')?.split_once(']')?;
        // Behind the decorations: `GC(3) Pause Young (Normal) (G1 Evacuation Pause) 123M->45M(410M) 5.123ms`.
        let (_, message) = rest.rsplit_once("GC(")?;
        let (_, message) = message.split_once(") ")?;
        let (what, ms) = message.rsplit_once(' ')?;
        let ms = ms.strip_suffix("ms")?.parse().ok()?;
        let what =
            what.rsplit_once(' ').filter(|(_, sizes)| sizes.contains("->")).map_or(what, |(what, _)| what);
        what.starts_with("Pause").then(|| Pause { time: time.to_owned(), ms, what: what.to_owned() })
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
        let pause =
            |time: &str, ms: f64, what: &str| Pause { time: time.to_owned(), ms, what: what.to_owned() };
        let expected = [
            pause("2026-11-21T23:59:59.191+0000", 6.512, "Pause Young (Normal) (G1 Evacuation Pause)"),
            pause("2026-11-22T00:00:02.000+0000", 2.25, "Pause Remark"),
        ];
        assert_eq!(found, expected);
    }
}
