//! Connections that wait for SYNs to be sent again: a firewall that limits their rate, a path that loses them, or a queue of the target.

use samples::{Cause, Certainty::Inferred, Limit, NetCounters, Side, Stage, Summary};
use units::Count;

use super::{Case, Sentence, Trouble, accept_queue};
use crate::By;

/// The first SYN that is lost is sent again after a second (RFC 6298, section 2), the next ones after two and four more.
pub(super) const SENT_AGAIN_US: f64 = 0.95e6;
/// Of a hundred dials one or more: fewer do not reach the 99th percentile.
const SHARE: f64 = 0.01;

/// Where to look: on this machine, between two that are seen, or beyond what is seen.
const OWN_FIREWALL: &str = "check this machine's firewall for a limit on the rate of new connections (nft list ruleset: limit rate; \
iptables -S: limit, hashlimit)";
const PATH: &str = "check the firewalls on the path and on both hosts for a limit on the rate of new connections (nft list ruleset: \
limit rate; iptables -S: limit, hashlimit), and the path for loss (mtr -T)";
const PATH_OR_QUEUE: &str = "check the target's queues there (nstat -az TcpExtListenDrops TcpExtTCPReqQFullDrop, or throng observe), then \
the firewalls on the path for a limit on the rate of new connections (limit rate, hashlimit)";

/// What failed are dials, or how long they take.
pub(super) fn slow_dials(case: &Case) -> Option<Limit> {
    let timed_out = case.trouble == Trouble::Waiting && case.stage == Some(Stage::Dial);
    // On times of connecting, and not on numbers of connections.
    let judges_dials = case.summary.thresholds.iter().any(|one| !one.pass && one.expr.contains("connect."));
    let is_searched = matches!(case.evidence.search, Some(By::Arrival | By::Burst));
    let is_slow = case.trouble == Trouble::None && is_searched || case.is_waiting() && judges_dials;
    if !timed_out && !is_slow {
        return None;
    }
    // Of dials that timed out, the queue has a row of its own.
    syn_loss(case).or_else(|| accept_queue::slow_dials(case).filter(|_| is_slow && waited(case)))
}

/// The same as a warning, of a run that passes.
pub(super) fn warning(case: &Case) -> Option<String> {
    syn_loss(case).map(|limit| format!("warning: {}", limit.sentence_with_fix()))
}

fn dials(case: &Case) -> u64 {
    let c = &case.summary.connections;
    c.opened + c.redialled + c.failed
}

/// Dials waited for SYNs that were retransmitted. The kernel counts those of all programs here, and SYN-ACKs: the times of our own dials
/// must show them.
fn waited(case: &Case) -> bool {
    let (s, net) = (case.summary, case.evidence.here.net);
    let are_many = net.syn_retrans > 0 && net.syn_retrans as f64 >= SHARE * dials(case) as f64;
    // Agents dial from their own machines; what this one blocks has a cause of its own.
    are_many && s.connect_us.p99 >= SENT_AGAIN_US && s.agents.is_empty() && net.retrans_fails == 0
}

/// They did, and no queue is seen to have dropped them.
fn syn_loss(case: &Case) -> Option<Limit> {
    let (s, e) = (case.summary, case.evidence);
    if !waited(case) {
        return None;
    }
    let (by, queues, fix) = match e.there {
        // The queue's, which is the accept queue's row.
        Some(there) if dropped(there.net) > 0 => return None,
        Some(_) if e.subject.is_loopback => ("a firewall of this machine", QUEUES_SEEN, OWN_FIREWALL),
        Some(_) => ("the path", QUEUES_SEEN, PATH),
        None => ("the path, or a full queue of the target,", "", PATH_OR_QUEUE),
    };
    let (again, p99_s) = (e.here.net.syn_retrans, s.connect_us.p99 / 1e6);
    let detail = format!(
        "{} for {}: {}{queues}",
        Count(again).of("SYN retransmission"),
        Count(dials(case)).of("dial"),
        connecting_took(case.summary)
    );
    let sentence = Sentence::SynsAgain { count: again, p99_s, by };
    case.limit(Inferred, (Side::Path, Cause::SynLoss), case.left(), sentence, detail, fix)
}

const QUEUES_SEEN: &str = "; the target's queues dropped none";

/// How long dials took whose SYNs were sent again, and why.
pub(super) fn connecting_took(s: &Summary) -> String {
    let (p50_s, p99_s) = (s.connect_us.p50 / 1e6, s.connect_us.p99 / 1e6);
    format!(
        "connecting took {p50_s:.1} s at the median and {p99_s:.1} s at the 99th percentile, because a dropped SYN is retransmitted after \
        1 s, 3 s and 7 s"
    )
}

/// What full queues of listeners have dropped: ListenDrops has what the other two count, and more (tcp_listendrop() in
/// linux/net/ipv4).
pub(super) fn dropped(net: NetCounters) -> u64 {
    net.listen_drops.max(net.listen_overflows + net.syn_queue_drops)
}
