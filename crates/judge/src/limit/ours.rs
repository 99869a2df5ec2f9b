//! Causes on our own machine, and on the way.

use samples::{
    Cause,
    Certainty::{Guess, Seen},
    Detail, Kind, Limit, Side, Verdict,
};
use units::Count;

use super::{Case, Sentence, Trouble};
use crate::{evidence::Host, fill::Fill, honesty};

/// The kernel tracks no further connection, and drops what begins one: on the host whose table was read.
pub(super) fn conntrack(case: &Case) -> Option<Limit> {
    if !case.is_short() && case.trouble != Trouble::Path {
        return None;
    }
    let e = case.evidence;
    let hosts = [
        (Side::Host, "this host's", "", Some(e.here)),
        (Side::Target, "the target's host's", "; as read by throng observe", e.there),
    ];
    let (side, owner, by, host) = hosts
        .into_iter()
        .find_map(|(side, owner, by, host)| Some((side, owner, by, host.filter(is_full)?)))?;
    let table = host.conntrack?;
    let (used, most) = (Count(table.used), Count(table.limit));
    let dropped = match host.conntrack_drops {
        Some(n) => format!(", and dropped {} because the table was full", Count(n).of("packet")),
        None => String::new(),
    };
    let detail = format!("{owner} conntrack table has {used} of {most} entries{dropped}{by}");
    let fix = format!("sysctl -w net.netfilter.nf_conntrack_max={}", table.limit.saturating_mul(4));
    let sentence = Sentence::Conntrack { owner, used: table.used, limit: table.limit };
    case.limit(Seen, (side, Cause::Conntrack), case.left(), sentence, detail, fix)
}

/// Whether a host's table of connections was full. Where the kernel counts what it dropped for that, a table from which
/// nothing was dropped was not: that of another host on the way may have been.
fn is_full(host: &Host) -> bool {
    let Some(Fill { used, limit }) = host.conntrack.filter(|table| table.limit > 0) else { return false };
    match host.conntrack_drops {
        Some(drops) => drops > 0 && used >= limit - limit / 10,
        // A little is free again at every sample.
        None => used >= limit - limit / 100,
    }
}

/// EADDRNOTAVAIL: no address of this machine, or one without a free port.
const NOT_OURS: Detail = Detail::new(99);

/// Errors of our own system calls.
pub(super) fn errors(case: &Case) -> Option<Limit> {
    let count = case.count;
    let (dials, sockets) = (Count(count).of("dial"), Count(count).of("socket"));
    let (cause, sentence, detail, fix) = match (case.trouble, case.kind?) {
        // Of an address that is not, no dial succeeds; from one that is, they do until its ports are used up.
        (Trouble::Ours, Kind::AddressInUse)
            if case.detail == NOT_OURS && case.summary.connections.peak == 0 =>
        {
            (
                Cause::Ports,
                Sentence::ForeignSource { dials: count },
                format!("{dials} used a source address that is not local (EADDRNOTAVAIL)"),
                "use --sources that are addresses of this machine (ip -brief address)".to_owned(),
            )
        }
        (Trouble::Ours, Kind::AddressInUse) => (
            Cause::Ports,
            Sentence::NoFreePort { dials: count },
            format!("{dials} found no free local port"),
            "use more --sources or destinations, or sysctl -w net.ipv4.ip_local_port_range='1024 65535'"
                .to_owned(),
        ),
        (Trouble::Ours, Kind::NoMemory) => (
            Cause::Memory,
            Sentence::NoMemoryHere { sockets: count },
            format!("{sockets} could not be created: out of memory"),
            case.or_less("free memory", "hold fewer connections on this machine"),
        ),
        (Trouble::Ours, Kind::OpenFiles) => (
            Cause::OpenFiles,
            Sentence::NoFilesHere { sockets: count },
            format!("{sockets} could not be created: no file descriptors left"),
            "ulimit -n 1048576".to_owned(),
        ),
        (Trouble::Ours, kind) => (
            Cause::Unknown,
            Sentence::DialsFailedHere {
                dials: count,
                error: format!("{}{}", kind.name(), case.detail.suffix()),
            },
            format!("{dials} failed on this machine: {}{}", kind.name(), case.detail.suffix()),
            "run strace on throng".to_owned(),
        ),
        _ => return None,
    };
    let certainty = if cause == Cause::Unknown { Guess } else { Seen };
    case.limit(certainty, (Side::Host, cause), case.peak(), sentence, detail, fix)
}

/// Throng itself was too slow. That does not explain closes, resets or wrong responses; and a little lag does not explain
/// timeouts.
pub(super) fn generator(case: &Case) -> Option<Limit> {
    let s = case.summary;
    let may_be_ours = match case.trouble {
        Trouble::None => true,
        Trouble::Waiting => honesty::is_too_slow(s, case.evidence),
        _ => false,
    };
    let handshakes = honesty::late_handshakes(s).filter(|_| case.trouble == Trouble::Waiting);
    if let Some(why) = handshakes {
        return too_slow(case, why);
    }
    let is_late = s.verdict == Verdict::Invalid && s.incomplete().is_none();
    let why = s.reasons.first().filter(|_| is_late && may_be_ours)?;
    too_slow(case, why.clone())
}

/// Both ends are confined to the same processors, and these are used up.
pub(super) fn shared(case: &Case) -> Option<Limit> {
    let shared = case.evidence.shared.as_ref()?;
    let is_used_up = shared.own + shared.target >= SHARED || shared.wanted >= WANTED;
    if !case.is_waiting() || !is_used_up || shared.own.min(shared.target) < TAKES_PART {
        return None;
    }
    let (list, own, target) = (&shared.list, shared.own * 100.0, shared.target * 100.0);
    let detail = format!(
        "throng and the target share the same processors ({list}) and compete for them: throng used \
        {own:.0} %, the target {target:.0} %; the figures describe both together"
    );
    let fix = "assign separate processors to each (taskset -c), or run throng on another machine";
    let sentence = Sentence::SharedProcessors { list: list.clone() };
    case.limit(Seen, (Side::Host, Cause::Cpu), case.left(), sentence, detail, fix)
}

/// Processors of which both ends together used this share were used up: the kernel's own work counts for neither.
const SHARED: f64 = 0.85;
/// And the processors that both would have used exceed the available ones by this factor.
const WANTED: f64 = 1.2;
/// The one that used less of them did not keep the other from running.
const TAKES_PART: f64 = 0.05;

pub(super) fn too_slow(case: &Case, why: String) -> Option<Limit> {
    let faster = case.or_less("give throng more processors or its own machine", "reduce the load");
    let fix = match why.contains("--max-lag") {
        true => format!("{faster}; where that lag does not matter, raise --max-lag"),
        false => faster,
    };
    let sentence = Sentence::ThrongTooSlow { why: why.clone() };
    case.limit(Seen, (Side::Host, Cause::Cpu), case.left(), sentence, why, fix)
}
