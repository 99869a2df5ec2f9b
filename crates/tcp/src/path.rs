//! What is known of the path to a destination: maximum segment size and round-trip time. All connections to the destination share it
//! (RFC 9040), because a single one is too short, and sends too few bytes, to measure it.

use std::collections::BTreeMap;

use units::Nanos;

use crate::packet::{Tuple, is_v4};

/// Initial retransmission timeout (RFC 6298, section 2.1).
const FIRST_RTO: Nanos = Nanos::from_secs(1);
/// Retransmission timeout after a retransmitted SYN, without a measurement (RFC 6298, section 5.7).
const RTO_AFTER_LOST_SYN: Nanos = Nanos::from_secs(3);
/// Minimum of the variation term of the timeout: room for a delayed acknowledgement. As in Linux, where `tcp_rto_min` limits the variation;
/// RFC 6298, section 2.4, requires a timeout of at least a second.
const LEAST_VARIATION: Nanos = Nanos::from_millis(200);
/// Limits how far the back-off of one connection affects the others: at most this many doublings of the timeout.
const MOST_KEPT_BACKOFF: u8 = 3;
/// Maximum timeout: that of Linux. RFC 6298, section 2.5, allows any maximum of 60 s or more.
pub(crate) const MOST_RTO: Nanos = Nanos::from_secs(120);
/// The MSS of a peer that sends no MSS option (RFC 9293, section 3.7.1), by IP version.
const SILENT_MSS: [u16; 2] = [536, 1220];
/// Minimum MSS, whatever the peer announces: that of Linux.
const LEAST_MSS: u16 = 48;
/// Minimum MSS after an ICMP message: that of Linux for IPv4, that of RFC 8200 for IPv6.
const LEAST_PATH_MSS: [u16; 2] = [512, 1220];
const HEADS: [u16; 2] = [40, 60];

/// A destination, as reached from one local network.
pub(crate) struct Path {
    pub(crate) remote: u128,
    pub(crate) remote_port: u16,
    /// The upper 96 bits of the local address.
    pub(crate) network: u128,
    /// Maximum payload of a segment that is sent, in bytes: what the peers and the routers allow.
    pub(crate) mss: u16,
    rto: Nanos,
    /// Smoothed round-trip time and its variation, in nanoseconds; `None` before the first measurement.
    smooth: Option<(u64, u64)>,
}

impl Path {
    pub(crate) fn tuple(&self, local: u32, local_port: u16) -> Tuple {
        let local = self.network << 32 | u128::from(local);
        Tuple { local, remote: self.remote, local_port, remote_port: self.remote_port }
    }

    fn version(&self) -> usize {
        usize::from(!is_v4(self.remote))
    }

    /// Applies the MSS option of a peer's SYN; `None` if it has none. The smallest value is kept, since it is valid for all connections.
    pub(crate) fn peer_mss(&mut self, said: Option<u16>) {
        self.mss = self.mss.min(said.unwrap_or(SILENT_MSS[self.version()])).max(LEAST_MSS);
    }

    /// Applies an ICMP message: a router passes packets of at most `mtu` bytes; 0 if unknown. Returns whether the MSS has become smaller.
    pub(crate) fn too_big(&mut self, mtu: u32) -> bool {
        let least = LEAST_PATH_MSS[self.version()];
        let mss = mtu.saturating_sub(u32::from(HEADS[self.version()])).min(u32::from(u16::MAX)) as u16;
        let before = self.mss;
        self.mss = self.mss.min(mss.max(least));
        self.mss < before
    }

    /// Applies a measured round-trip time of a segment that was sent only once (RFC 6298, section 2).
    pub(crate) fn measured(&mut self, rtt: Nanos) {
        let rtt = rtt.0;
        let (smooth, variation) = match self.smooth {
            None => (rtt, rtt / 2),
            Some((smooth, variation)) => ((smooth * 7 + rtt) / 8, (variation * 3 + smooth.abs_diff(rtt)) / 4),
        };
        self.smooth = Some((smooth, variation));
        self.rto = self.calculated();
    }

    /// The timeout from the measurements (RFC 6298, sections 2.1 and 2.3).
    fn calculated(&self) -> Nanos {
        let Some((smooth, variation)) = self.smooth else { return FIRST_RTO };
        Nanos(smooth + (4 * variation).max(LEAST_VARIATION.0)).min(MOST_RTO)
    }

    /// Keeps the backed-off timeout after a retransmitted segment was acknowledged, until a round trip is measured (RFC 6298, section 5.7,
    /// and Karn's algorithm). Otherwise a round-trip time above the timeout could never be measured.
    pub(crate) fn keep_backoff(&mut self, backoff: u8) {
        self.rto = self.rto.max(backed_off(self.calculated(), backoff.min(MOST_KEPT_BACKOFF)));
    }

    /// A SYN that was sent more than once was acknowledged.
    pub(crate) fn syn_was_lost(&mut self) {
        if self.smooth.is_none() {
            self.rto = RTO_AFTER_LOST_SYN;
        }
    }

    /// The timeout after `tries` retransmissions.
    pub(crate) fn rto(&self, tries: u8) -> Nanos {
        backed_off(self.rto, tries)
    }

    /// The timeout of a SYN; at least the initial timeout, because a SYN may take longer than data.
    pub(crate) fn syn_rto(&self, tries: u8) -> Nanos {
        backed_off(self.rto.max(FIRST_RTO), tries)
    }
}

fn backed_off(rto: Nanos, tries: u8) -> Nanos {
    Nanos(rto.0.saturating_mul(1 << tries.min(20))).min(MOST_RTO)
}

/// The key of a path: remote address, remote port and local network.
type Ends = (u128, u16, u128);

/// The paths of a shard, by number. They are never removed: a run has few destinations.
pub(crate) struct Paths {
    all: Vec<Path>,
    numbers: BTreeMap<Ends, u16>,
    /// The path that was looked up last, which is usually also the next.
    last: Option<(Ends, u16)>,
    mtu: u16,
}

impl Paths {
    pub(crate) fn new(mtu: u16) -> Paths {
        Paths { all: Vec::new(), numbers: BTreeMap::new(), last: None, mtu }
    }

    /// The number of the path for this tuple; added if it is new. `None`: there are too many paths.
    pub(crate) fn number(&mut self, tuple: &Tuple) -> Option<u16> {
        let ends = ends(tuple);
        if let Some((last, number)) = self.last
            && last == ends
        {
            return Some(number);
        }
        let number = match self.numbers.get(&ends) {
            Some(number) => *number,
            None => self.add(ends)?,
        };
        self.last = Some((ends, number));
        Some(number)
    }

    fn add(&mut self, ends: Ends) -> Option<u16> {
        let number = u16::try_from(self.all.len()).ok()?;
        let (remote, remote_port, network) = ends;
        let mss = self.mss_here(remote);
        self.all.push(Path { remote, remote_port, network, mss, rto: FIRST_RTO, smooth: None });
        self.numbers.insert(ends, number);
        Some(number)
    }

    /// The MSS that the local MTU allows.
    pub(crate) fn mss_here(&self, remote: u128) -> u16 {
        self.mtu.saturating_sub(HEADS[usize::from(!is_v4(remote))]).max(LEAST_MSS)
    }

    /// Whether this path has been dialled.
    pub(crate) fn knows(&self, tuple: &Tuple) -> bool {
        self.numbers.contains_key(&ends(tuple))
    }

    pub(crate) fn get(&self, number: u16) -> &Path {
        &self.all[usize::from(number)]
    }

    pub(crate) fn get_mut(&mut self, number: u16) -> &mut Path {
        &mut self.all[usize::from(number)]
    }
}

fn ends(tuple: &Tuple) -> Ends {
    (tuple.remote, tuple.remote_port, tuple.local >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(mtu: u16, remote: &str) -> Path {
        let remote = crate::packet::bits(remote.parse().unwrap());
        let mut paths = Paths::new(mtu);
        let local = if is_v4(remote) { 0xffff_0000_0000 } else { 0 };
        let tuple = Tuple { local, remote, local_port: 1, remote_port: 80 };
        let number = paths.number(&tuple).unwrap();
        assert_eq!((paths.number(&tuple), paths.knows(&tuple)), (Some(number), true));
        assert!(!paths.knows(&Tuple { remote_port: 81, ..tuple }));
        paths.all.remove(usize::from(number))
    }

    #[test]
    fn the_time_out_follows_the_round_trips() {
        let mut path = path(1500, "10.0.0.1");
        let ms = Nanos::from_millis;
        assert_eq!(
            [0, 1, 2, 7, 60].map(|tries| path.rto(tries).millis()),
            [1000, 2000, 4000, 120_000, 120_000]
        );
        path.syn_was_lost();
        assert_eq!(path.rto(0), ms(3000));
        // RFC 6298, 2.2: R + 4 * R/2; then 2.3, calculated manually.
        path.measured(ms(100));
        assert_eq!((path.rto(0), path.syn_rto(0)), (ms(300), ms(1000)));
        path.measured(ms(180));
        assert_eq!(path.rto(0), ms(110) + Nanos(4 * 57_500_000));
        path.syn_was_lost();
        assert_eq!(path.rto(0), ms(340), "there are measurements");
        (0..300).for_each(|_| path.measured(Nanos(50_000)));
        // The average, in whole nanoseconds, approaches the value to within 7.
        let least = path.rto(0);
        assert!(least.0.abs_diff(200_050_000) < 10, "never less beyond the round trip: {least:?}");
        path.keep_backoff(1);
        path.keep_backoff(1);
        assert_eq!(path.rto(0), Nanos(2 * least.0), "once, however many connections");
        path.keep_backoff(15);
        assert_eq!(path.rto(0), Nanos(8 * least.0), "within bounds");
        path.measured(ms(250));
        assert!(path.rto(0) < ms(600), "a measurement ends it: {:?}", path.rto(0));
        (0..100).for_each(|_| path.measured(ms(70_000)));
        assert!(path.rto(0) > ms(69_000) && path.syn_rto(0) == path.rto(0) && path.rto(3) == MOST_RTO);
    }

    #[test]
    fn a_segment_is_as_large_as_all_allow() {
        let said = |mtu, remote, said: &[Option<u16>]| {
            let mut path = path(mtu, remote);
            said.iter().for_each(|said| path.peer_mss(*said));
            path.mss
        };
        for (mtu, v4, v6) in [(1500, 1460, 1440), (9000, 8960, 8940), (65_535, 65_495, 65_475)] {
            assert_eq!((said(mtu, "10.0.0.1", &[]), said(mtu, "fd00::1", &[])), (v4, v6));
        }
        assert_eq!((said(1500, "10.0.0.1", &[None]), said(1500, "fd00::1", &[None])), (536, 1220));
        assert_eq!(said(1500, "10.0.0.1", &[Some(9000), Some(1400), Some(1450)]), 1400);
        assert_eq!(said(1500, "10.0.0.1", &[Some(0)]), 48);
    }
}
