//! Messages that servers sent by themselves, as people read of them.

use samples::{PushFigures, Summary};
use units::{Bytes, Count, Unit};

use super::{is_there, quantiles, row};

/// The rows of the summary; none without such messages.
pub(super) fn rows(s: &Summary, out: &mut String) {
    let p = &s.pushes;
    if p.count == 0 {
        return;
    }
    let rate = Unit::PerSecond.brief(p.per_s);
    let mean = Bytes((p.bytes as f64 / p.count as f64).round() as u64).brief();
    let size = format!("{mean} on average, {} at most", Bytes(p.bytes_max).brief());
    row(out, "pushed", format!("{} by the server itself, {rate}, {size}", Count(p.count)));
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
            n => format!(", {} sequences began anew", Count(n)),
        };
        let of = Count(p.numbered);
        row(out, "numbers", format!("{of} read, {lost} lost, {twice} twice, {late} out of order{restarts}"));
    }
    if p.broadcasts > 0 {
        let of = format!("{} received by all of {}", Count(p.complete), Count(p.broadcasts));
        let times = quantiles(&s.spread_us, "broadcast");
        row(out, "broadcasts", format!("{of}, {times} (first to last receipt)"));
    }
}

/// What a delay is worth.
fn clock(p: &PushFigures) -> &'static str {
    match p.clock_offset_us {
        Some(_) => "from the time in the message; the target has this host's clock",
        None => "from the time in the message; clock offset unknown, only differences count",
    }
}
