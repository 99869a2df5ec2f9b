//! The row of the ramp: the connection rate, and where the target began to limit it.

use samples::Summary;
use units::Count;

/// The text of the row: `5.1 s, 1,972 connects/s; limited by the target from 127 connections on, which accepts 1,998/s`.
pub(super) fn text(s: &Summary) -> String {
    let c = &s.connections;
    let [opened, accepted] = [c.open_per_s, c.accept_per_s].map(|per_s| Count(per_s.round() as u64));
    let bent = c.bent_at.map(|n| format!("; limited by the target from {} on", Count(n).of("connection")));
    let accepts = (c.accept_per_s > 0.0).then(|| format!(", which accepts {accepted}/s"));
    format!(
        "{:.1} s, {opened} connects/s{}{}",
        s.ramp_s,
        bent.unwrap_or_default(),
        accepts.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use samples::{Connections, Figures};

    use super::*;

    #[test]
    fn the_row_says_what_was_learnt() {
        let check = |bent_at, accept_per_s, expected: &str| {
            let connections =
                Connections { open_per_s: 1_972.4, bent_at, accept_per_s, ..Connections::default() };
            let figures = Figures { ramp_s: 5.07, connections, ..Figures::default() };
            let s = Summary { figures, ..Summary::default() };
            assert_eq!(text(&s), format!("5.1 s, 1,972 connects/s{expected}"));
        };
        check(None, 0.0, "");
        check(Some(310), 0.0, "; limited by the target from 310 connections on");
        let whole = "; limited by the target from 127 connections on, which accepts 1,998/s";
        check(Some(127), 1_998.4, whole);
    }
}
