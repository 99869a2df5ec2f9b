//! Where packets go.

/// A packet to send: an IP and a TCP header, and the payload.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The IP header, then the TCP header with its options.
    pub head: &'a [u8],
    /// Length of the IP header: 20 for IPv4, 40 for IPv6. The checksum of TCP covers what follows, and lies at offset 16 there.
    pub ip_len: usize,
    /// What follows the headers; it lies elsewhere in memory.
    pub payload: &'a [u8],
    /// Where the payload is larger than one segment: most bytes of payload in each segment that the link cuts it into. Only for a link
    /// whose [`Link::largest`] allows it.
    pub segment_size: Option<u16>,
}

/// Sends packets, one at a time; what it cannot send is lost, as on any network.
pub trait Link {
    /// Whether the link completes checksums: then the checksum field of TCP holds the sum of the pseudo-header, folded and not complemented,
    /// as `VIRTIO_NET_HDR_F_NEEDS_CSUM` requires. Otherwise it holds the checksum.
    fn completes_checksums(&self) -> bool;

    /// Most bytes of TCP payload in one packet. A link that cuts larger packets into segments itself allows up to about 64 KiB, and must
    /// complete checksums; for any other it is 0: one segment each.
    fn largest(&self) -> usize;

    /// Sends a packet.
    fn send(&mut self, packet: Outgoing<'_>);
}
