//! What a run means: the summary, the verdict, and what stopped it.

use std::collections::BTreeMap;

use plan::Plan;
use samples::{Connections, Fault, FaultCount, Kind, Limit, Requests, Side, Stage, Summary, Verdict};
use units::{Count, Nanos};

use crate::conduct::Record;

/// Lag beyond which the latency is not the target's, as a time and as a share of the latency.
const LAG_ALLOWED: Nanos = Nanos::from_millis(10);
const LAG_SHARE: f64 = 0.05;
/// The summary of a run.
pub(crate) fn judge(plan: &Plan, r: &Record) -> Summary {
    let counts = &r.totals.counts;
    let ramp = r.ramped_at.min(r.hold_until).since(r.started);
    let duration = r.hold_until.since(r.hold_from.min(r.hold_until));
    let per_second = |n: u64, time: Nanos| if time == Nanos::ZERO { 0.0 } else { n as f64 / time.secs_f64() };
    let status: BTreeMap<u16, u64> =
        (0..).zip(r.totals.status.iter().copied()).filter(|(_, n)| *n > 0).collect();
    let mut summary = Summary {
        schema: "throng.summary/1",
        verdict: Verdict::Pass,
        reasons: Vec::new(),
        limit: None,
        target: plan.target.text.clone(),
        seed: plan.seed,
        io: r.io,
        threads: r.threads,
        ramp_s: ramp.secs_f64(),
        duration_s: duration.secs_f64(),
        connections: Connections {
            wanted: plan.connections.into(),
            opened: counts.opened,
            failed: counts.failed,
            peak: r.peak,
            held: r.held,
            dropped: counts.dropped,
            closed: counts.closed,
            redialled: counts.redialled,
            open_per_s: per_second(counts.opened, ramp),
        },
        faults: (r.totals.faults.iter())
            .map(|(Fault { side, stage, kind }, count)| FaultCount { side, stage, kind, count })
            .collect(),
        requests: Requests {
            sent: counts.sent,
            answered: counts.answered,
            per_s: per_second(counts.answered_at_load, duration),
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
            body_bytes_in: counts.body_bytes_in,
            status,
        },
        latency_us: r.totals.latency.quantiles(),
        ramp_latency_us: r.totals.ramp_latency.quantiles(),
        connect_us: r.totals.connect.quantiles(),
        lag_us: r.totals.lag.quantiles(),
        probe: None,
        generator: r.observed.generator.clone(),
        target_cost: r.observed.target.clone(),
        kernel_bytes_per_connection: r.observed.kernel.clone(),
        cost: r.observed.cost.clone(),
        observed: r.observed.seen.clone(),
        thresholds: Vec::new(),
    };
    summary.limit = limit(&summary);
    (summary.verdict, summary.reasons) = verdict(r, &summary);
    summary
}

fn verdict(r: &Record, s: &Summary) -> (Verdict, Vec<String>) {
    let mut reasons = Vec::new();
    let c = &s.connections;
    let faults: u64 = s.faults.iter().map(|f| f.count).sum();
    // Closed by announcement and not open again yet: the server's policy, not a loss.
    let short = c.held + r.resting < c.wanted;
    if short {
        reasons.push(format!("{} of {} connections held", Count(c.held), Count(c.wanted)));
    }
    for f in &s.faults {
        let words = format!("{} · {} · {}", f.side.name(), f.stage.name(), f.kind.name());
        reasons.push(format!("{words}: {}", Count(f.count)));
    }
    let own = own_limit(s);
    if r.interrupted {
        reasons.insert(0, "interrupted by a signal".to_owned());
        return (Verdict::Interrupted, reasons);
    }
    if let Some(why) = own {
        reasons.insert(0, why);
        return (Verdict::Invalid, reasons);
    }
    let failed = faults > 0 || short;
    (if failed { Verdict::Fail } else { Verdict::Pass }, reasons)
}

/// Why the figures do not speak of the target, if they do not.
fn own_limit(s: &Summary) -> Option<String> {
    let ours: u64 =
        (s.faults.iter()).filter(|f| f.side == Side::Host && f.stage == Stage::Dial).map(|f| f.count).sum();
    if ours > 0 {
        return Some(format!("{} connections could not be dialled from here", Count(ours)));
    }
    let allowed = (LAG_ALLOWED.0 as f64 / 1e3).max(LAG_SHARE * s.latency_us.p99);
    (s.lag_us.p99 > allowed).then(|| {
        format!(
            "the generator was late: lag p99 {:.1} ms, {:.1} ms allowed",
            s.lag_us.p99 / 1e3,
            allowed / 1e3
        )
    })
}

/// What stopped it, by the most frequent fault.
fn limit(s: &Summary) -> Option<Limit> {
    let worst = s.faults.iter().max_by_key(|f| f.count)?;
    let n = Count(worst.count);
    let (cause, detail, cure): (_, String, &str) = match (worst.stage, worst.kind) {
        (_, Kind::Refused) => (
            "refused",
            format!("{n} dials were refused: nobody listens there"),
            "start the server, or check address and port",
        ),
        (Stage::Dial, Kind::Timeout) => (
            "timeout",
            format!("{n} dials were not answered in time"),
            "look at the target's accept queue (ss -ltn) and raise its backlog and net.core.somaxconn",
        ),
        (_, Kind::Timeout) => (
            "timeout",
            format!("{n} answers did not come in time"),
            "look at the target's CPU and open files, or raise --timeout",
        ),
        (_, Kind::Unreachable) => {
            ("unreachable", format!("{n} dials found no way"), "check the route (ip route get)")
        }
        (_, Kind::AddressInUse) => {
            ("ports", format!("{n} dials found no free local port"), "give more --sources or destinations")
        }
        (_, Kind::NoMemory) => {
            ("memory", format!("{n} sockets found no memory"), "hold fewer connections here")
        }
        (_, Kind::OpenFiles) => ("open-files", format!("{n} sockets found no file"), "ulimit -n 1048576"),
        (_, Kind::Denied) => ("denied", format!("{n} operations were not permitted"), "look at the firewall"),
        (_, Kind::WrongStatus | Kind::WrongLength | Kind::WrongEcho | Kind::BadAnswer | Kind::Truncated) => (
            "wrong-answer",
            format!("{n} answers were not right: {}", worst.kind.name()),
            "look at one of them with curl -i",
        ),
        (_, Kind::Reset | Kind::Closed) => (
            "closed",
            format!("{n} connections were lost: {} by the peer", worst.kind.name()),
            "look at the target's idle timeout, its connection limit and its log",
        ),
        (_, Kind::Other) => ("unknown", format!("{n} errors of another kind"), "run strace on throng"),
    };
    let cure = cure.to_owned();
    Some(Limit { side: worst.side.name(), cause, at_connections: s.connections.peak, detail, cure })
}
