//! Checks of the limits of the kernel's TCP: tables, queues, buffers.

use super::{Checked, Need, Skip};
use crate::finding::Fix;
use crate::network::sock_stat;
use crate::{Root, Severity, somaxconn};
use judge::USUAL_SOMAXCONN;
use units::Count;

/// Maximum number of outstanding dials of a shard (docs/decisions/0004), all of which may wait in the accept queue.
const DIALS_AT_ONCE: u64 = 1_024;

impl Need {
    /// Maximum number of dials that may wait to be accepted, and its description.
    pub(super) fn waiting_dials(&self) -> (u64, String) {
        let most = self.dials.min(DIALS_AT_ONCE);
        (most, format!("up to {}", Count(most).of("simultaneous dial")))
    }

    /// Whether the target's queues, with at most this length, are too short for these dials. One queue is assumed if no listener is seen.
    pub(super) fn is_limited_by_somaxconn(&self, most: u64) -> bool {
        let queues = self.listeners.len().max(1) as u64;
        most.saturating_mul(queues) < self.waiting_dials().0
    }

    /// Skips checks of the kernel's TCP for runs without sockets on this machine.
    fn has_sockets(&self) -> Result<(), Skip> {
        if self.sockets_each() > 0 { Ok(()) } else { Err(Skip::Irrelevant) }
    }
}

/// The three numbers of a setting, such as `4096 131072 6291456`.
fn numbers(root: &Root, file: &str) -> Option<[u64; 3]> {
    let text = root.read(file).ok()?;
    let all: Option<Vec<u64>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
    all?.try_into().ok()
}

/// Three numbers as the kernel reads them, none below its present value.
fn raised(now: [u64; 3], wanted: [u64; 3]) -> String {
    let [a, b, c] = std::array::from_fn(|i| now[i].max(wanted[i]));
    format!("{a} {b} {c}")
}

/// Idle connections hold no buffer; only those with data in flight use a page per end. One in sixteen follows from a think time of 5 s
/// and responses within 0.3 s (0.3 / 5.3, by Little's law).
pub(super) fn tcp_memory(root: &Root, need: &Need) -> Checked {
    need.has_sockets()?;
    const IDLE_FOR_EACH_BUSY: u64 = 16;
    let now = numbers(root, "proc/sys/net/ipv4/tcp_mem").ok_or("tcp_mem cannot be read here")?;
    let [_, _, limit] = now;
    let used = sock_stat(root).map_or(0, |stat| stat.tcp_mem_pages);
    let needed = need.sockets().div_ceil(IDLE_FOR_EACH_BUSY);
    let pages = used.saturating_add(needed);
    let fix = (pages > limit).then(|| {
        let value = raised(now, [pages / 4 * 3, pages, pages.saturating_mul(2)]);
        Fix::setting(Severity::Warn, "net.ipv4.tcp_mem", value)
    });
    let value = format!("{} pages free", Count(limit.saturating_sub(used)));
    let needed = format!("{} needed if one socket in {IDLE_FOR_EACH_BUSY} is busy", Count(needed));
    Ok((value, needed, fix))
}

pub(super) fn receive_buffer(root: &Root, need: &Need) -> Checked {
    need.has_sockets()?;
    let now = numbers(root, "proc/sys/net/ipv4/tcp_rmem").ok_or("net.ipv4.tcp_rmem cannot be read")?;
    buffer(now, "net.ipv4.tcp_rmem", [4_096, 131_072, 6_291_456])
}

pub(super) fn send_buffer(root: &Root, need: &Need) -> Checked {
    need.has_sockets()?;
    let now = numbers(root, "proc/sys/net/ipv4/tcp_wmem").ok_or("net.ipv4.tcp_wmem cannot be read")?;
    buffer(now, "net.ipv4.tcp_wmem", [4_096, 16_384, 4_194_304])
}

/// A buffer begins with the second number and may grow to the third. If the former is less than a page, or the latter less than a window
/// without scaling (64 KiB, RFC 9293), connections are slow because of this machine. `default`: the values that Linux starts with.
fn buffer(now: [u64; 3], name: &'static str, default: [u64; 3]) -> Checked {
    const FIRST: u64 = 4_096;
    const MOST: u64 = 65_536;
    let [_, first, most] = now;
    let fix =
        (first < FIRST || most < MOST).then(|| Fix::setting(Severity::Warn, name, raised(now, default)));
    let value = format!("{} bytes initially, {} at most", Count(first), Count(most));
    Ok((value, format!("{} and {} at least", Count(FIRST), Count(MOST)), fix))
}

/// `net.core.somaxconn` limits the backlog of each listener that starts after it was set.
pub(super) fn accept_queue(root: &Root, need: &Need) -> Checked {
    if !need.both_ends_here {
        return Err(Skip::Irrelevant);
    }
    let most = somaxconn(root).ok_or("somaxconn cannot be read")?;
    let short = need.is_limited_by_somaxconn(most);
    let fix = short.then(|| Fix::setting(Severity::Warn, "net.core.somaxconn", USUAL_SOMAXCONN));
    let each = match need.listeners.len() {
        0 | 1 => String::new(),
        n => format!(" at each of {}", Count(n as u64).of("listener")),
    };
    let value = format!("at most {} waiting{each}", Count(most));
    Ok((value, need.waiting_dials().1, fix))
}

/// Beyond three quarters of this limit the kernel drops SYNs of unknown peers, unless it may reply with SYN cookies (tcp_conn_request).
pub(super) fn half_open_queue(root: &Root, need: &Need) -> Checked {
    const UNREAD: &str = "tcp_max_syn_backlog cannot be read";
    if !need.both_ends_here {
        return Err(Skip::Irrelevant);
    }
    let most: u64 = root.number("proc/sys/net/ipv4/tcp_max_syn_backlog").ok_or(UNREAD)?;
    let cookies: u64 = root.number("proc/sys/net/ipv4/tcp_syncookies").ok_or(UNREAD)?;
    let (needed, in_words) = need.waiting_dials();
    let fix = (cookies == 0 && most - most / 4 < needed).then(|| {
        Fix::setting(Severity::Warn, "net.ipv4.tcp_max_syn_backlog", needed.next_power_of_two() * 2)
    });
    let with = if cookies == 0 { "no SYN cookies" } else { "then SYN cookies" };
    let value = format!("{} at most, {with}", Count(most));
    Ok((value, in_words, fix))
}

/// Each connection uses one entry, even with both ends on this machine. Only a warning: whether packets are tracked at all depends on the
/// firewall's rules.
pub(super) fn conntrack(root: &Root, need: &Need) -> Checked {
    let limit: Option<u64> = root.number("proc/sys/net/netfilter/nf_conntrack_max");
    let Some(limit) = limit.filter(|limit| *limit > 0) else {
        return Ok(("not loaded".to_owned(), String::new(), None));
    };
    let used: u64 = root.number("proc/sys/net/netfilter/nf_conntrack_count").unwrap_or(0);
    let needed = used.saturating_add(need.connections);
    let fix =
        (needed > limit).then(|| Fix::setting(Severity::Warn, "net.netfilter.nf_conntrack_max", needed));
    let value = format!("{} entries free", Count(limit.saturating_sub(used)));
    Ok((value, format!("{} needed if conntrack tracks this traffic", Count(need.connections)), fix))
}

/// Beyond this limit closed connections skip TIME_WAIT, and a late packet may reach the next connection on the same ports (RFC 9293,
/// section 3.6.1): undesirable, but not an error.
pub(super) fn time_wait(root: &Root, need: &Need) -> Checked {
    // TIME_WAIT is at the end that closes first, mostly throng.
    if need.is_tun {
        return Err(Skip::Irrelevant);
    }
    let limit: Option<u64> = root.number("proc/sys/net/ipv4/tcp_max_tw_buckets");
    let limit = limit.ok_or("tcp_max_tw_buckets cannot be read")?;
    let fix = (need.connections > limit)
        .then(|| Fix::setting(Severity::Warn, "net.ipv4.tcp_max_tw_buckets", need.connections));
    let value = format!("{} allowed", Count(limit));
    Ok((value, format!("{} if all close at once", Count(need.connections)), fix))
}

/// Each packet searches a chain of the connection hash. Up to 4.6 sockets per bucket, no cost was measured (1.2 million in 262,144
/// buckets); at 7.6, some. A negative number: the buckets are shared with the host's namespace.
pub(super) fn hash(root: &Root, need: &Need) -> Checked {
    need.has_sockets()?;
    const SOCKETS_PER_BUCKET: u64 = 5;
    let entries: Option<i64> = root.number("proc/sys/net/ipv4/tcp_ehash_entries");
    let buckets = entries.ok_or("tcp_ehash_entries cannot be read")?.unsigned_abs();
    let fix = (need.sockets() > buckets.saturating_mul(SOCKETS_PER_BUCKET)).then(|| {
        // A namespace gets its own hash when it is created, with at most 2^24 buckets.
        let enough = need.sockets().div_ceil(SOCKETS_PER_BUCKET).min(1 << 24).next_power_of_two();
        let command = format!(
            "sysctl -w net.ipv4.tcp_child_ehash_entries={enough} && unshare -n  # then run in that new \
             network namespace"
        );
        Fix::manual(Severity::Warn, command)
    });
    let value = format!("{} buckets", Count(buckets));
    let longer = if fix.is_some() { "with chains longer than" } else { "with chains of at most" };
    Ok((value, format!("{} sockets {longer} {SOCKETS_PER_BUCKET}", Count(need.sockets())), fix))
}
