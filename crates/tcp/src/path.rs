//! What is known of the way to a destination, shared by all connections to it (RFC 9040): a connection is too short, and has too few
//! bytes, to learn it for itself.

use std::collections::BTreeMap;

use units::Nanos;

use crate::packet::{Tuple, is_v4};

/// RFC 6298, section 2.1.
const FIRST_RTO: Nanos = Nanos::from_secs(1);
/// RFC 6298, section 5.7, without a measurement after a SYN was sent again.
const RTO_AFTER_LOST_SYN: Nanos = Nanos::from_secs(3);
/// Beyond the round-trip time, as Linux has it (`tcp_rto_min` bounds the variation): room for a delayed acknowledgement. RFC 6298,
/// section 2.4, would have a whole second.
const LEAST_VARIATION: Nanos = Nanos::from_millis(200);
/// A back-off of one connection doubles the timeout of all at most so often.
const MOST_KEPT_BACKOFF: u8 = 3;
/// RFC 6298, section 2.5 allows a limit of 60 s and above; this is that of Linux.
pub(crate) const MOST_RTO: Nanos = Nanos::from_secs(120);
/// The largest segment of who does not say (RFC 9293, section 3.7.1), by IP version.
const SILENT_MSS: [u16; 2] = [536, 1220];
/// Never less payload a segment, whatever is said: that of Linux.
const LEAST_MSS: u16 = 48;
/// Never less for a message of ICMP: that of Linux for IPv4, of RFC 8200 for IPv6.
const LEAST_PATH_MSS: [u16; 2] = [512, 1220];
const HEADS: [u16; 2] = [40, 60];

/// A destination, and the network that we reach it from.
pub(crate) struct Path {
    pub(crate) remote: u128,
    pub(crate) remote_port: u16,
    /// The upper 96 bits of the local address.
    pub(crate) network: u128,
    /// Most bytes of payload in a segment that is sent: what the peers and the routers allow.
    pub(crate) mss: u16,
    rto: Nanos,
    /// Smoothed round-trip time and its variation; none before the first measurement.
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

    /// A peer has said in its SYN how large a segment may be, or nothing. The least is kept: it is right for all.
    pub(crate) fn peer_mss(&mut self, said: Option<u16>) {
        self.mss = self.mss.min(said.unwrap_or(SILENT_MSS[self.version()])).max(LEAST_MSS);
    }

    /// A router lets packets of at most `mtu` bytes through, or does not say how large. Whether that is less than before.
    pub(crate) fn too_big(&mut self, mtu: u32) -> bool {
        let least = LEAST_PATH_MSS[self.version()];
        let mss = mtu.saturating_sub(u32::from(HEADS[self.version()])).min(u32::from(u16::MAX)) as u16;
        let before = self.mss;
        self.mss = self.mss.min(mss.max(least));
        self.mss < before
    }

    /// A segment that was sent once was acknowledged after `rtt` (RFC 6298, section 2).
    pub(crate) fn measured(&mut self, rtt: Nanos) {
        let rtt = rtt.0;
        let (smooth, variation) = match self.smooth {
            None => (rtt, rtt / 2),
            Some((smooth, variation)) => ((smooth * 7 + rtt) / 8, (variation * 3 + smooth.abs_diff(rtt)) / 4),
        };
        self.smooth = Some((smooth, variation));
        self.rto = self.calculated();
    }

    /// RFC 6298, sections 2.1 and 2.3.
    fn calculated(&self) -> Nanos {
        let Some((smooth, variation)) = self.smooth else { return FIRST_RTO };
        Nanos(smooth + (4 * variation).max(LEAST_VARIATION.0)).min(MOST_RTO)
    }

    /// What was sent again was acknowledged, so that the round trip is not known: the timeout stays as far backed off until one is
    /// measured (RFC 6298, section 5.7, and Karn's algorithm). Otherwise a round trip above the timeout could never be.
    pub(crate) fn keep_backoff(&mut self, backoff: u8) {
        self.rto = self.rto.max(backed_off(self.calculated(), backoff.min(MOST_KEPT_BACKOFF)));
    }

    /// A SYN was answered that had been sent more than once.
    pub(crate) fn syn_was_lost(&mut self) {
        if self.smooth.is_none() {
            self.rto = RTO_AFTER_LOST_SYN;
        }
    }

    /// When to send again what is sent for the `tries`-th time beyond the first.
    pub(crate) fn rto(&self, tries: u8) -> Nanos {
        backed_off(self.rto, tries)
    }

    /// The same for a SYN, to which the peer's program may respond later than its kernel does to data.
    pub(crate) fn syn_rto(&self, tries: u8) -> Nanos {
        backed_off(self.rto.max(FIRST_RTO), tries)
    }
}

fn backed_off(rto: Nanos, tries: u8) -> Nanos {
    Nanos(rto.0.saturating_mul(1 << tries.min(20))).min(MOST_RTO)
}

/// What tells paths apart: destination, its port, our network.
type Ends = (u128, u16, u128);

/// The paths of a shard, by number. They stay: the destinations of a run are few.
pub(crate) struct Paths {
    all: Vec<Path>,
    numbers: BTreeMap<Ends, u16>,
    /// The one asked for last is mostly the one asked for next.
    last: Option<(Ends, u16)>,
    mtu: u16,
}

impl Paths {
    pub(crate) fn new(mtu: u16) -> Paths {
        Paths { all: Vec::new(), numbers: BTreeMap::new(), last: None, mtu }
    }

    /// The path of these ends, new or not. `None`: there are too many.
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

    /// Most bytes of payload in a segment over the link.
    pub(crate) fn mss_here(&self, remote: u128) -> u16 {
        self.mtu.saturating_sub(HEADS[usize::from(!is_v4(remote))]).max(LEAST_MSS)
    }

    /// Whether these ends have been dialled.
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
        // RFC 6298, 2.2: R + 4 * R/2; then 2.3, by hand.
        path.measured(ms(100));
        assert_eq!((path.rto(0), path.syn_rto(0)), (ms(300), ms(1000)));
        path.measured(ms(180));
        assert_eq!(path.rto(0), ms(110) + Nanos(4 * 57_500_000));
        path.syn_was_lost();
        assert_eq!(path.rto(0), ms(340), "there are measurements");
        (0..300).for_each(|_| path.measured(Nanos(50_000)));
        // The average, of whole nanoseconds, comes as near as 7.
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
