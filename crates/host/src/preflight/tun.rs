//! Checks what a run over a TUN device needs: the device, unused addresses, and a path for its packets.

use std::{io, path::Path};

use super::{Checked, Need, Skip};
use crate::{
    Finding, Root, Severity,
    addresses::in_use,
    finding::Fix,
    repair::{Repair, is_device},
    rights::has_capability,
};
use plan::Network;
use units::Count;

const DEVICE: &str = "dev/net/tun";
const CAP_NET_ADMIN: u32 = 12;

/// Checks the device file, and the permission to create a device.
pub(super) fn device(root: &Root, need: &Need) -> Checked {
    if !need.is_tun {
        return Err(Skip::Irrelevant);
    }
    let fix = if !Path::new(&root.path(DEVICE)).exists() {
        Some(missing())
    } else if !has_capability(root, CAP_NET_ADMIN) {
        Some(forbidden())
    } else {
        None
    };
    let value = if fix.is_some() { "not available" } else { "allowed" };
    Ok((value.to_owned(), String::new(), fix))
}

fn missing() -> Fix {
    Fix::manual(
        Severity::Refuse,
        "modprobe tun  # in a container: docker run --user 0 --device /dev/net/tun --cap-add NET_ADMIN, or --io uring",
    )
}

fn forbidden() -> Fix {
    Fix::manual(
        Severity::Refuse,
        "# run the same command with sudo, or setcap cap_net_admin+ep on the binary, in a container --user 0 --cap-add NET_ADMIN; or --io uring",
    )
}

/// The finding if a device was requested and the kernel refuses it.
pub fn tun_refused(why: &io::Error) -> Finding {
    let fix = if why.kind() == io::ErrorKind::NotFound { missing() } else { forbidden() };
    Finding::new("TUN device", format!("not available ({why})"), String::new(), Some(fix))
}

/// Special-purpose networks (RFC 6890), which cannot be sources, with their purpose.
const SPECIAL: [(&str, &str); 8] = [
    ("0.0.0.0/8", "this network"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255", "broadcast"),
    ("::/127", "loopback"),
    ("fe80::/10", "link-local"),
    ("ff00::/8", "multicast"),
];

/// Checks the source networks. They are routed to the devices, so that other holders of their addresses would no longer be reachable.
/// Besides, packets from this machine's own addresses would be martians (RFC 1812, section 5.3.7).
pub(super) fn sources(root: &Root, need: &Need) -> Checked {
    let taken = need.networks.iter().find_map(|network| Some((network, other_use(root, need, network)?)));
    let fix = taken.as_ref().map(|_| {
        let example = if need.is_v4 { "198.18.0.0/15" } else { "2001:2::/48" };
        let advice = format!("# omit --sources, or use a network of its own, such as {example}");
        Fix::manual(Severity::Refuse, advice)
    });
    let value = match (taken, &need.networks[..]) {
        (Some((network, why)), _) => format!("{network} cannot be used: {why}"),
        (None, []) => "a network of 198.18.0.0/15 or 2001:2::/48 for each shard".to_owned(),
        (None, networks) => networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    };
    let chosen = if fix.is_some() { "" } else { "routed to a device of each shard" };
    Ok((value, chosen.to_owned(), fix))
}

/// Why a network cannot be used for a device; `None` if it can.
fn other_use(root: &Root, need: &Need, network: &Network) -> Option<String> {
    let dialled = || {
        let to = need.addresses.iter().find(|to| network.has(to.to_canonical()))?;
        Some(format!("{to} is dialled"))
    };
    let special = || {
        let (block, what) = SPECIAL
            .iter()
            .find(|(block, _)| Network::parse(block).is_ok_and(|block| block.overlaps(network)))?;
        Some(format!("{block} is {what}"))
    };
    in_use(root, network).or_else(dialled).or_else(special)
}

/// The fix if some shards would get no address: networks are divided into a power of two of parts.
fn address_each(need: &Need) -> Fix {
    let width = if need.networks.iter().all(Network::is_v4) { 32 } else { 128 };
    let bits = |network: &Network| width - network.base_and_prefix().1;
    // The probe is a shard too: even with one thread, the smallest network is too small.
    let smallest = need.networks.iter().map(bits).min().unwrap_or(0);
    let bits = (need.threads.next_power_of_two().ilog2() as u8).max(smallest + 1).min(32);
    let shards = if need.threads > 1 { Count(need.threads).to_string() } else { "all".to_owned() };
    let least = format!("at least {} addresses for {shards} shards", Count(1 << bits));
    let advice = match &need.networks[..] {
        [only] => {
            let wider = only.widened(width - bits);
            need.run(&format!("-c {} --sources {wider}  # {least}", need.connections))
        }
        _ => format!("# {least} in each network of --sources"),
    };
    let fewer = if need.threads > 1 { "; or --threads 1" } else { "" };
    Fix::manual(Severity::Refuse, format!("{advice}{fewer}"))
}

/// The fix for too few 4-tuples: more shards have more networks.
pub(super) fn more_tuples(need: &Need) -> Fix {
    if need.tuples == 0 && !need.networks.is_empty() {
        return address_each(need);
    }
    let times = need.connections.div_ceil(need.tuples.max(1));
    let threads = need.threads.saturating_mul(times);
    let advice = match (&need.networks[..], &need.target) {
        ([], Some(_)) => {
            let args = format!("-c {} --threads {threads}", need.connections);
            need.run(&format!("{args}  # each has a network of its own"))
        }
        // Doctor has no such option.
        ([], None) => format!("# a run with --threads {threads}: each has a network of its own"),
        _ => format!(
            "# --sources with {} times as many addresses, for {} shards",
            Count(times),
            Count(need.threads)
        ),
    };
    Fix::manual(Severity::Refuse, advice)
}

/// For a target on another machine, packets must be forwarded in both directions.
pub(super) fn forwarding(root: &Root, need: &Need) -> Checked {
    if !need.is_tun || need.both_ends_here {
        return Err(Skip::Irrelevant);
    }
    let (value, fix) = if need.is_v4 { forwarding_v4(root, &need.device)? } else { forwarding_v6(root)? };
    Ok((value, "and a route back to the sources in the target's network".to_owned(), fix))
}

/// IPv4 is forwarded between devices with this setting, which throng enables on its own device.
fn forwarding_v4(root: &Root, device: &str) -> Result<(String, Option<Fix>), Skip> {
    let is_on = root.number::<u8>(format!("proc/sys/net/ipv4/conf/{device}/forwarding"));
    let is_on = is_on.ok_or("the setting of the outgoing device cannot be read")? == 1;
    let fix = (!is_on).then(|| match is_device(device) {
        true => {
            Fix::repair(Severity::Warn, Repair::setting(&format!("net.ipv4.conf.{device}.forwarding"), 1))
        }
        false => Fix::manual(Severity::Warn, format!("sysctl -w net/ipv4/conf/{device}/forwarding=1")),
    });
    Ok((format!("{} for {device}", if is_on { "on" } else { "off" }), fix))
}

/// IPv6 is forwarded by all devices or by none. The setting of a single device only makes it a router towards its neighbours (kernel
/// document `networking/ip-sysctl`).
fn forwarding_v6(root: &Root) -> Result<(String, Option<Fix>), Skip> {
    let is_on = root.number::<u8>("proc/sys/net/ipv6/conf/all/forwarding");
    let is_on = is_on.ok_or("the setting of all devices cannot be read")? == 1;
    if is_on {
        return Ok(("on for all devices".to_owned(), None));
    }
    // A router ignores advertised default routes, and drops existing ones, unless this setting is 2.
    let mut devices = advertised(root);
    devices.retain(|device| root.number(format!("proc/sys/net/ipv6/conf/{device}/accept_ra")) == Some(1u8));
    let fix = if devices.iter().all(|device| is_device(device)) {
        let keep =
            devices.iter().map(|device| Repair::setting(&format!("net.ipv6.conf.{device}.accept_ra"), 2));
        let forward = Repair::setting("net.ipv6.conf.all.forwarding", 1);
        Fix::repairs(Severity::Warn, keep.chain([forward]).collect())
    } else {
        let keep: String =
            devices.iter().map(|device| format!("net/ipv6/conf/{device}/accept_ra=2 ")).collect();
        Fix::manual(Severity::Warn, format!("sysctl -w {keep}net/ipv6/conf/all/forwarding=1"))
    };
    Ok(("off for all devices".to_owned(), Some(fix)))
}

/// Devices with a default route that a router has advertised.
fn advertised(root: &Root) -> Vec<String> {
    /// `RTF_DEFAULT`, <linux/ipv6_route.h>.
    const DEFAULT: u32 = 0x0001_0000;
    let text = root.read("proc/net/ipv6_route").unwrap_or_default();
    let device = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let flags = u32::from_str_radix(words.get(8)?, 16).ok()?;
        (flags & DEFAULT != 0).then(|| words.get(9).map(|device| (*device).to_owned()))?
    };
    let mut devices: Vec<String> = text.lines().filter_map(device).collect();
    devices.sort();
    devices.dedup();
    devices
}
