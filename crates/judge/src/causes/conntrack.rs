//! Cause: a firewall's connection table (conntrack) is full.

use super::*;
use crate::evidence::Host;
use record::fill::Fill;

/// Packets were dropped because the conntrack table was full (`/proc/net/stat/nf_conntrack`), or it is 99 % full where the kernel does
/// not count drops: on this host, or on the target's.
pub(crate) struct Conntrack {
    pub(crate) side: Side,
    pub(crate) table: Fill,
    pub(crate) drops: Option<u64>,
}

impl Conntrack {
    fn whose(&self) -> &'static str {
        if self.side == Side::Host { "this host's" } else { "the target's host's" }
    }
}

impl Cause for Conntrack {
    const ID: &'static str = "conntrack";
    const OF: (Side, Name) = (Side::Host, Name::Conntrack);

    fn find(case: &Case) -> Option<Found<Conntrack>> {
        let e = case.evidence;
        let hosts = [(Side::Host, Some(e.here)), (Side::Target, e.there)];
        let (side, host) = hosts.into_iter().find_map(|(side, host)| Some((side, host.filter(is_full)?)))?;
        let found = Conntrack { side, table: host.conntrack?, drops: host.conntrack_drops };
        let fits = case.is_short() || case.trouble == Trouble::Path;
        fits.then(|| Found::seen(found, case.left()).began(Began::Seen(Sign::Conntrack)))
    }

    fn of(&self) -> (Side, Name) {
        (self.side, Name::Conntrack)
    }

    fn sentence(&self) -> String {
        let (used, limit) = (Count(self.table.used), Count(self.table.limit));
        format!("{} conntrack table is full: {used} of {limit} entries", self.whose())
    }

    fn detail(&self, _: &Case) -> String {
        let (used, limit) = (Count(self.table.used), Count(self.table.limit));
        let dropped = self.drops.map_or(String::new(), |n| {
            format!(", and dropped {} because the table was full", some(n, "packet"))
        });
        let by = if self.side == Side::Host { "" } else { "; as read by throng observe" };
        format!("{} conntrack table has {used} of {limit} entries{dropped}{by}", self.whose())
    }

    fn fix(&self, _: &Case) -> String {
        format!("sysctl -w net.netfilter.nf_conntrack_max={}", self.table.limit.saturating_mul(4))
    }
}

/// Whether a host's connection table was full. If the kernel counts drops for that reason, a table without drops was not the cause: it may
/// have been that of another host on the path.
fn is_full(host: &Host) -> bool {
    let Some(Fill { used, limit }) = host.conntrack.filter(|table| table.limit > 0) else { return false };
    match host.conntrack_drops {
        Some(drops) => drops > 0 && used >= limit - limit / 10,
        // Entries expire all the time, so a full table has a few free places in each sample.
        None => used >= limit - limit / 100,
    }
}
