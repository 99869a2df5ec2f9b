//! Responses that merely take longer than they may.

use samples::{Cause, Certainty::Seen, Kind, Limit, Side, Stage};
use units::Unit;

use super::{Case, Sentence, Trouble, whose};

/// Responses that took this share of the timeout took nearly as long; where one in twenty did, some take longer.
const NEARLY: f64 = 0.75;
/// Of fewer responses it is not known what one in twenty takes.
const FEW: u64 = 20;

/// It is the timeout that cuts their times short: others come until shortly before it.
pub(super) fn took_longer(case: &Case) -> Option<Limit> {
    let (s, timeout) = (case.summary, case.evidence.timeout);
    let is_other = |stage: Stage| stage != Stage::Exchange;
    let has_others = s.faults.iter().any(|fault| fault.kind == Kind::Timeout && is_other(fault.stage));
    let (p95, timeout_us) = (s.latency_us.p95, timeout.0 as f64 / 1e3);
    let is_short = timeout_us > 0.0 && s.latency_us.count >= FEW && p95 >= NEARLY * timeout_us;
    if case.trouble != Trouble::Waiting || has_others || !is_short {
        return None;
    }
    let detail = format!(
        "{} timed out; of the responses, one in twenty took {} or longer",
        case.faults().of("request"),
        Unit::Micros.brief(p95)
    );
    let sentence = whose::name(case, Sentence::TookLonger { count: case.count, timeout });
    let fix = "raise --timeout, or find out what the target waits for in slow responses";
    case.limit(Seen, (Side::Target, Cause::Timeout), case.peak(), sentence, detail, fix)
}
