//! The rows about messages that the server sent without a request.

use samples::{PushFigures, Summary};
use units::{Bytes, Count, Unit};

use super::{is_there, quantiles, quantiles_but, row};

/// Writes the rows, if there were such messages.
pub(super) fn rows(s: &Summary, out: &mut String) {
    let p = &s.pushes;
    if p.count == 0 {
        return;
    }
    let rate = Unit::PerSecond.brief(p.per_s);
    let mean = Bytes((p.bytes as f64 / p.count as f64).round() as u64).brief();
    let size = format!("{mean} on average, {} at most", Bytes(p.bytes_max).brief());
    row(out, "pushed", format!("{} messages, {rate}, {size}", Count(p.count)));
    if is_there(&s.delay_us) {
        row(out, "delay", format!("{} ({})", quantiles(&s.delay_us, "message"), clock(p)));
    }
    let unread = [("without the time or number that is looked for", p.unread), ("from the future", p.ahead)];
    for (what, n) in unread.into_iter().filter(|(_, n)| *n > 0) {
        row(out, "", format!("{} {what}", Count(n)));
    }
    if p.numbered > 0 {
        let (lost, twice, late) = (Count(p.lost), Count(p.duplicates), Count(p.out_of_order));
        let restarts = match p.restarts {
            0 => String::new(),
            n => format!(", {}", Count(n).of("sequence restart")),
        };
        let of = Count(p.numbered);
        row(out, "numbers", format!("{of} read, {lost} lost, {twice} twice, {late} out of order{restarts}"));
    }
    if p.broadcasts > 0 {
        let of = format!("{} received by all of {}", Count(p.complete), Count(p.broadcasts));
        let times = quantiles_but(&s.spread_us, "not received by all");
        row(out, "broadcasts", format!("{of}, {times} (first to last receipt)"));
    }
}

/// The reference of the delays, which determines what they are worth.
fn clock(p: &PushFigures) -> &'static str {
    match p.clock_offset_us {
        Some(_) => "from the message's timestamp; the target has this host's clock",
        None => "from the message's timestamp; clock offset unknown, compare only",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::Latency;
    use units::Nanos;

    #[test]
    fn broadcasts_that_not_all_received_are_beside_the_times_of_the_others() {
        let mut s = Summary::default();
        (s.pushes.count, s.pushes.broadcasts, s.pushes.complete) = (7_900, 79, 72);
        let mut spread = Latency::default();
        spread.record_n(Nanos::from_millis(2), 72);
        (0..7).for_each(|_| spread.censor());
        s.spread_us = spread.quantiles();
        let mut out = String::new();
        rows(&s, &mut out);
        let line = out.lines().last().unwrap_or_default();
        assert!(line.contains("  72 received by all of 79, p50 2.0 ms  "), "{line}");
        assert!(line.contains("  7 (8.9 %) not received by all (first to last receipt)"), "{line}");
    }
}
