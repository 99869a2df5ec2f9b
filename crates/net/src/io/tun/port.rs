//! Where packets leave: each is written to the device as the state machine builds it.

use super::{device::Device, guard::Guard};

/// Most bytes of payload in a packet that the kernel cuts: with its headers it is at most 65,535 long.
pub(super) const LARGEST: usize = 65_535 - 120;

/// The device and what may leave by it.
#[derive(Debug)]
pub(super) struct Port<D> {
    pub(super) device: D,
    pub(super) guard: Guard,
    pub(super) counts: Counts,
}

/// What happened to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Handed to the kernel.
    pub written: u64,
    /// The kernel refused them: as lost on the way.
    pub refused: u64,
    /// From or to an address that is not the plan's: not written.
    pub forbidden: u64,
    /// Read from the device.
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
