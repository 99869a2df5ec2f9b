//! Dials that waited for a retransmitted SYN.

use samples::{Stage, Summary};

use crate::{By, case::Case, trouble::Trouble};
use record::tolerances::{ONE_PERCENT, SYN_AGAIN_US};

/// Whether the run fails by the duration of dials: thresholds on connect times, or a search by arrival or burst.
pub(crate) fn are_judged(case: &Case) -> bool {
    let judges_dials = case.summary.thresholds.iter().any(|one| !one.pass && one.expr.contains("connect."));
    let is_searched = matches!(case.evidence.search, Some(By::Arrival | By::Burst));
    case.trouble == Trouble::None && is_searched || case.is_waiting() && judges_dials
}

/// Whether most of the trouble is dials that timed out.
pub(crate) fn timed_out(case: &Case) -> bool {
    case.trouble == Trouble::Waiting && case.stage == Some(Stage::Dial)
}

/// Number of completed dials.
pub(crate) fn made(s: &Summary) -> u64 {
    let c = &s.connections;
    c.opened + c.redialled + c.failed
}

/// Whether dials waited for retransmitted SYNs. The kernel's counter includes other programs and SYN-ACKs, so the connect times must show
/// it, too.
pub(crate) fn have_waited(case: &Case) -> bool {
    let (s, net) = (case.summary, case.evidence.here.net);
    let are_many = net.syn_retrans > 0 && net.syn_retrans as f64 >= ONE_PERCENT * made(s) as f64;
    // Agents dial from their own machines; packets that this machine blocks are another cause.
    are_many && s.connect_us.p99 >= SYN_AGAIN_US && s.agents.is_empty() && net.retrans_fails == 0
}

/// How long dials with retransmitted SYNs took, and why.
pub(crate) fn connecting_took(s: &Summary) -> String {
    let (p50_s, p99_s) = (s.connect_us.p50 / 1e6, s.connect_us.p99 / 1e6);
    format!(
        "connecting took {p50_s:.1} s at the median and {p99_s:.1} s at the 99th percentile, because a dropped SYN is retransmitted after \
        1 s, 3 s and 7 s"
    )
}
