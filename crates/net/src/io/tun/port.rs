//! The link between the TCP state machine and the device: each packet is written as the state machine builds it, if the guard allows it.

use super::{device::Device, guard::Guard};

/// Maximum payload of a packet that the kernel segments, in bytes: the packet with its headers has at most 65,535.
pub(super) const LARGEST: usize = 65_535 - 120;

/// The device, and the guard that decides which packets may leave through it.
#[derive(Debug)]
pub(super) struct Port<D> {
    pub(super) device: D,
    pub(super) guard: Guard,
    pub(super) counts: Counts,
}

/// Packet counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets handed to the kernel.
    pub written: u64,
    /// Packets that the kernel refused; treated as lost on the way.
    pub refused: u64,
    /// Packets not written, because their source or destination is not in the plan.
    pub forbidden: u64,
    /// Packets read from the device.
    pub read: u64,
}

impl<D: Device> tcp::Link for Port<D> {
    fn largest(&self) -> usize {
        LARGEST
    }

    fn completes_checksums(&self) -> bool {
        true
    }

    fn send(&mut self, packet: tcp::Outgoing) {
        if !self.guard.allows_packet(packet.head) {
            self.counts.forbidden += 1;
            return;
        }
        match self.device.write(&packet) {
            true => self.counts.written += 1,
            false => self.counts.refused += 1,
        }
    }
}
