//! Checks of the sources of connections: addresses and ports.

use super::{Checked, Need, Skip};
use crate::addresses::{foreign, is_taken_in};
use crate::finding::Fix;
use crate::network::sock_stat;
use crate::ports::local_range;
use crate::{Repair, Root, Severity};
use plan::Network;
use std::net::IpAddr;
use units::Count;

/// Maximum number of addresses to add individually. A larger network becomes local by a route: a device with thousands of addresses is
/// slow to list, and adding each takes time.
const MAX_LISTED: u64 = 256;

pub(super) fn sources(root: &Root, need: &Need) -> Checked {
    if need.is_tun {
        return super::tun::sources(root, need);
    }
    let missing: Vec<(Network, Vec<IpAddr>)> =
        need.networks.iter().map(|n| (*n, missing(root, n))).filter(|(_, m)| !m.is_empty()).collect();
    let all = match need.sources {
        1 => "1 address".to_owned(),
        n => format!("{} addresses", Count(n)),
    };
    let Some(first) = missing.iter().find_map(|(_, missing)| missing.first()) else {
        let chosen = if need.networks.is_empty() { "automatic" } else { "all local to this machine" };
        return Ok((all, chosen.to_owned(), None));
    };
    let value = match missing.iter().map(|(network, missing)| lacking(network, missing)).sum::<u64>() - 1 {
        0 => format!("{first} is not a local address"),
        more => format!("{first} and {} more are not local addresses", Count(more)),
    };
    let repairs: Vec<Repair> = missing.iter().flat_map(|(n, m)| repairs(root, need, n, m)).collect();
    let command = match &repairs[..] {
        [only] => format!("{only}  # or choose another"),
        _ => {
            let list: Vec<String> = missing.iter().map(|(network, _)| network.to_string()).collect();
            need.doctor(&format!("--fix --sources {}", list.join(",")))
        }
    };
    Ok((value, String::new(), Some(Fix { severity: Severity::Refuse, command, repairs })))
}

/// The network's addresses that are not local. Of a large network only the first and the last are checked.
fn missing(root: &Root, network: &Network) -> Vec<IpAddr> {
    let last = network.count() - 1;
    if network.count() > MAX_LISTED {
        let ends = [network.nth(0), network.nth(last)];
        return foreign(root, &ends);
    }
    let all: Vec<IpAddr> = (0..=last).map(|i| network.nth(i)).collect();
    foreign(root, &all)
}

/// The number of missing addresses, as far as known.
fn lacking(network: &Network, missing: &[IpAddr]) -> u64 {
    if network.count() > MAX_LISTED { network.count() } else { missing.len() as u64 }
}

fn repairs(root: &Root, need: &Need, network: &Network, missing: &[IpAddr]) -> Vec<Repair> {
    if network.count() <= MAX_LISTED {
        let add = |address: &IpAddr| Repair::Address { address: *address, device: need.device.clone() };
        return missing.iter().map(add).collect();
    }
    let mut repairs = Vec::new();
    // A local route suffices for incoming IPv6 packets, but bind(2) also requires this setting.
    if !network.is_v4() && root.number::<u8>("proc/sys/net/ipv6/ip_nonlocal_bind") == Some(0) {
        repairs.push(Repair::setting("net.ipv6.ip_nonlocal_bind", 1));
    }
    if !is_taken_in(root, network) {
        repairs.push(Repair::Route(*network));
    }
    repairs
}

/// 4-tuples: sources × ports × destinations. Too few are refused; too few at present, because some are in TIME_WAIT, cause a warning.
pub(super) fn ports(root: &Root, need: &Need) -> Checked {
    let waiting = if need.is_tun { 0 } else { sock_stat(root).map_or(0, |stat| stat.tcp_tw) };
    let closing = match waiting {
        0 => String::new(),
        _ => format!(", up to {} in TIME_WAIT", Count(waiting.min(need.tuples))),
    };
    let fix = if need.tuples < need.connections {
        Some(more_tuples(need))
    } else if need.free_tuples(root) < need.connections {
        Some(Fix::manual(Severity::Warn, "sleep 60  # TIME_WAIT lasts this long"))
    } else {
        None
    };
    let value = format!("{} free 4-tuples{closing}", Count(need.tuples));
    Ok((value, format!("{} needed", Count(need.connections)), fix))
}

fn more_tuples(need: &Need) -> Fix {
    if need.is_tun {
        return super::tun::more_tuples(need);
    }
    // Each additional source or destination adds as many as an existing one has.
    let times = |of: u64| need.connections.div_ceil((need.tuples / of.max(1)).max(1));
    let addresses = times(need.sources);
    let advice = format!(
        "# --sources with {} addresses (now {}), or {} destinations (now {})",
        Count(addresses),
        Count(need.sources),
        Count(times(need.destinations)),
        Count(need.destinations),
    );
    let command = match roomy_network(need, addresses) {
        Some(network) if need.device == "lo" && network.is_v4() => {
            need.run(&format!("-c {} --sources {network}  {advice}", need.connections))
        }
        Some(network) => need.doctor(&format!("-c {} --fix --sources {network}  {advice}", need.connections)),
        None => advice,
    };
    Fix::manual(Severity::Refuse, command)
}

/// A network with at least this many addresses: of loopback, or a private one (RFC 1918, RFC 4193) that the user may replace; `None` if
/// that would be too many.
fn roomy_network(need: &Need, addresses: u64) -> Option<Network> {
    // Two more, for the network and broadcast addresses.
    let bits = addresses.saturating_add(2).next_power_of_two().ilog2();
    if !need.is_v4 {
        return Network::parse(&format!("fd77::/{}", 128 - bits)).ok();
    }
    let base = if need.device == "lo" { "127.128.0.0" } else { "10.128.0.0" };
    // 2^23 addresses from this base are one block.
    (bits <= 23).then(|| Network::parse(&format!("{base}/{}", 32 - bits)).ok())?
}

/// The ports from which other programs dial: throng leaves them 2,000, if that many exist.
pub(super) fn local_ports(root: &Root, need: &Need) -> Checked {
    const LEAST: u64 = 2_000;
    const DEFAULT: &str = "32768 60999";
    if need.is_tun {
        return Err(Skip::Irrelevant);
    }
    let (first, last) = local_range(root).ok_or("ip_local_port_range cannot be read")?;
    let ports = u64::from(last.saturating_sub(first)) + 1;
    let fix = (ports < LEAST).then(|| Fix::setting(Severity::Warn, "net.ipv4.ip_local_port_range", DEFAULT));
    let value = format!("{first} to {last}: {} ports", Count(ports));
    Ok((value, format!("{} for other programs", Count(LEAST)), fix))
}
