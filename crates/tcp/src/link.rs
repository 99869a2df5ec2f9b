//! [`Link`]: the interface for sending packets.

/// A packet to send: an IP and a TCP header, and the payload.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The IP header, then the TCP header with its options.
    pub head: &'a [u8],
    /// Length of the IP header: 20 for IPv4, 40 for IPv6. The TCP checksum covers the bytes after it, and is at offset 16 there.
    pub ip_len: usize,
    /// The payload, which follows the headers in the packet but not in memory.
    pub payload: &'a [u8],
    /// Payload bytes per segment, if the payload is larger than one segment and the link must segment the packet. Only for a link whose
    /// [`Link::largest`] allows it.
    pub segment_size: Option<u16>,
}

/// Sends packets, one at a time. A packet that it cannot send is lost, as on any network.
pub trait Link {
    /// Whether the link completes checksums. If so, the TCP checksum field holds the sum of the pseudo-header, folded and not complemented,
    /// as `VIRTIO_NET_HDR_F_NEEDS_CSUM` requires. Otherwise it holds the checksum.
    fn completes_checksums(&self) -> bool;

    /// Maximum TCP payload of one packet, in bytes. A link that segments larger packets itself allows up to about 64 KiB, and must complete
    /// checksums; for any other link it is 0, which means one segment per packet.
    fn largest(&self) -> usize;

    /// Sends a packet.
    fn send(&mut self, packet: Outgoing<'_>);
}
