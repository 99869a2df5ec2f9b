//! Causes on our own machine, and on the way.

use host::{Finding, Severity};
use samples::{Errno, Kind, Limit, Side, Verdict};
use units::Count;

use super::{Case, Trouble};
use crate::judge::Fill;

/// The kernel tracks no further connection, and drops what begins one.
pub(super) fn conntrack(case: &Case) -> Option<Limit> {
    if !case.is_short() && case.trouble != Trouble::Path {
        return None;
    }
    // A little is free again whenever one looks.
    let is_full = |table: &Fill| table.limit > 0 && table.used >= table.limit - table.limit / 100;
    let (e, there) = (case.evidence, case.evidence.there.and_then(|host| host.conntrack));
    let tables =
        [(Side::Host, "this host's", e.here.conntrack), (Side::Target, "the target's host's", there)];
    let (side, whose, table) =
        tables.into_iter().find_map(|(side, whose, table)| Some((side, whose, table.filter(is_full)?)))?;
    let (used, most) = (Count(table.used), Count(table.limit));
    let detail = format!("{whose} firewall tracks {used} connections of at most {most}");
    let cure = format!("sysctl -w net.netfilter.nf_conntrack_max={}", table.limit.saturating_mul(4));
    case.answer(side, "conntrack", case.left(), detail, cure)
}

/// EADDRNOTAVAIL: no address of this machine, or one without a free port.
const NOT_OURS: Errno = Errno::new(99);

/// ` (EINVAL)`
fn told(errno: Errno) -> String {
    if errno.is_none() { String::new() } else { format!(" ({})", errno.name()) }
}

/// What the kernel answered to our own calls.
pub(super) fn errors(case: &Case) -> Option<Limit> {
    let n = case.faults();
    let (cause, detail, cure) = match (case.trouble, case.kind?) {
        (Trouble::Ours, Kind::AddressInUse) if case.errno == NOT_OURS => (
            "ports",
            format!("{n} dials came from an address that this machine may not use (EADDRNOTAVAIL)"),
            "give --sources that are addresses of this machine (ip -brief address)",
        ),
        (Trouble::Ours, Kind::AddressInUse) => (
            "ports",
            format!("{n} dials found no free local port"),
            "give more --sources or destinations, or sysctl -w net.ipv4.ip_local_port_range='1024 65535'",
        ),
        (Trouble::Ours, Kind::NoMemory) => {
            ("memory", format!("{n} sockets found no memory"), "hold fewer connections here, or free memory")
        }
        (Trouble::Ours, Kind::OpenFiles) => {
            ("open-files", format!("{n} sockets found no file"), "ulimit -n 1048576")
        }
        (Trouble::Ours, kind) => (
            "unknown",
            format!("{n} dials failed here: {}{}", kind.name(), told(case.errno)),
            "run strace on throng",
        ),
        _ => return None,
    };
    case.answer(Side::Host, cause, case.summary.connections.peak, detail, cure)
}

/// Throng was too slow itself. What closes, resets or answers wrongly does so all the same.
pub(super) fn generator(case: &Case) -> Option<Limit> {
    let s = case.summary;
    let may_be_ours = matches!(case.trouble, Trouble::None | Trouble::Waiting);
    let why = s.reasons.first().filter(|_| s.verdict == Verdict::Invalid && may_be_ours)?;
    too_slow(case, why.clone())
}

pub(super) fn too_slow(case: &Case, why: String) -> Option<Limit> {
    let cure = "give throng more processors, or a machine of its own, or a lower load";
    case.answer(Side::Host, "cpu", case.left(), why, cure)
}

/// What this machine refuses before the first dial, as the limit of a search that has come to `at`.
pub(crate) fn refused_here(findings: &[Finding], at: u64) -> Option<Limit> {
    let finding = findings.iter().find(|finding| finding.severity == Severity::Refuse)?;
    let cause = match finding.what {
        "ports" | "sources" => "ports",
        "memory" | "tcp memory" => "memory",
        "open files" | "open files ceiling" | "file table" => "open-files",
        "conntrack" => "conntrack",
        _ => "unknown",
    };
    let detail = format!("{}: {}, {}", finding.what, finding.value, finding.needed);
    Some(Limit { side: Side::Host.name(), cause, at_connections: at, detail, cure: finding.cure.clone() })
}

/// The way there, or who guards it.
pub(super) fn path(case: &Case) -> Option<Limit> {
    let n = case.faults();
    let (side, cause, detail, cure) = match (case.trouble, case.kind?) {
        (Trouble::Path, Kind::Denied) => (
            Side::Host,
            "denied",
            format!("{n} operations were not permitted"),
            "look at this host's firewall",
        ),
        (Trouble::Path, _) => {
            (Side::Path, "unreachable", format!("{n} dials found no way"), "check the route (ip route get)")
        }
        _ => return None,
    };
    case.answer(side, cause, case.summary.connections.peak, detail, cure)
}
