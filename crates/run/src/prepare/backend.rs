//! Chooses the I/O backend (io_uring, epoll or a TUN device), and the number of shards that it needs.

use std::io;

use host::{Finding, Root};
use net::{
    Backend,
    io::{epoll, tun, uring::Uring},
};
use plan::{IoChoice, Plan, Population, Probe};
use units::{Clock, Count};

use super::Refusal;

/// Maximum number of shards, as for `--threads`: each has its own buffers, timer wheel and histograms.
const MAX_SHARDS: u32 = 1024;

/// The kernel interface that `choice` selects on this machine, and a message about it, if any.
///
/// # Errors
/// [`Refusal::Findings`]: io_uring or a TUN device was requested by name and is not available.
pub fn choose_io(choice: IoChoice, root: &Root) -> Result<(Backend, Option<String>), Refusal> {
    choose(choice, root, Uring::probe, || tun::TunDevice::open(Clock::start()).map(drop))
}

fn choose(
    choice: IoChoice,
    root: &Root,
    probe: impl Fn() -> io::Result<()>,
    probe_tun: impl Fn() -> io::Result<()>,
) -> Result<(Backend, Option<String>), Refusal> {
    let named = |backend, is_available: Result<(), Finding>| match is_available {
        Ok(()) => Ok((backend, None)),
        Err(finding) => Err(Refusal::Findings(vec![finding])),
    };
    match choice {
        IoChoice::Epoll => Ok((Backend::Epoll, None)),
        IoChoice::Auto => Ok(match probe() {
            Ok(()) => (Backend::Uring, None),
            Err(e) => (Backend::Epoll, Some(format!("io_uring is not available ({e}), using epoll"))),
        }),
        IoChoice::Uring => named(Backend::Uring, probe().map_err(|e| host::uring_refused(root, e))),
        IoChoice::Tun => named(Backend::Tun, probe_tun().map_err(|e| host::tun_refused(&e))),
    }
}

/// The number of shards of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shards {
    /// Shards of each population.
    pub(crate) counts: Vec<u32>,
    /// Each thread has its own table of open files, with its own limit.
    pub(crate) own_files: bool,
}

/// As many shards as the plan has threads. epoll alone needs a file per connection, and so at least one shard per `limit` of open files.
pub(crate) fn shards(
    plan: &Plan,
    backend: Backend,
    limit: u32,
    own_files: impl Fn() -> io::Result<()>,
) -> Result<Shards, Finding> {
    let most_open = || plan.populations.iter().map(Population::most_open);
    // No shard without connections.
    let asked: Vec<u32> =
        (0..plan.populations.len() as u16).map(|nth| plan.threads.min(plan.most_threads(nth))).collect();
    if backend != Backend::Epoll {
        return Ok(Shards { counts: asked, own_files: false });
    }
    let short = |needed: u32, open_files: u32, more: &str| {
        host::open_files_refused(limit.into(), needed.into(), format!("ulimit -n {open_files}{more}"))
    };
    // Entries of a file table besides connections, including its epoll instance.
    let others = limit - epoll::room(limit).min(limit);
    let probes = plan.probe.as_ref().map_or(0, Probe::places);
    if let Err(e) = own_files() {
        let threads =
            asked.iter().sum::<u32>() + plan.probe.as_ref().map_or(0, |probe| probe.populations.len() as u32);
        let needed = plan.places().saturating_add(others).saturating_add(threads);
        let more = format!(", or allow close_range or unshare to give each thread a table ({e})");
        return if needed <= limit {
            Ok(Shards { counts: asked, own_files: false })
        } else {
            Err(short(needed, needed, &more))
        };
    }
    let room = epoll::room(limit).max(1);
    let counts: Vec<u32> =
        most_open().zip(asked).map(|(most, asked)| most.div_ceil(room).max(asked)).collect();
    let count = counts.iter().fold(0, |all: u32, count| all.saturating_add(*count));
    if count > MAX_SHARDS || probes > room {
        let enough = (plan.places().div_ceil(MAX_SHARDS) + others).max(probes + others);
        let more = format!(", for {} threads with a table each", Count(MAX_SHARDS.into()));
        return Err(short(plan.places(), enough, &more));
    }
    Ok(Shards { counts, own_files: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Environment, Flags, flag};

    fn refused() -> io::Result<()> {
        Err(io::Error::from_raw_os_error(1))
    }

    #[test]
    fn epoll_is_taken_where_it_must_be() {
        let root = Root::real();
        let check = |choice, probe: fn() -> io::Result<()>, expected: Result<(Backend, &str), &str>| {
            let chosen = choose(choice, &root, probe, probe);
            let chosen = chosen.map(|(backend, said)| (backend, said.unwrap_or_default()));
            let chosen = chosen.map_err(|refusal| refusal.to_string());
            match (&chosen, expected) {
                (Ok((backend, said)), Ok((expected, text))) => {
                    assert_eq!((*backend, said.as_str()), (expected, text), "{choice:?}");
                }
                (Err(refusal), Err(text)) => assert!(refusal.starts_with(text), "{choice:?}: {refusal}"),
                _ => panic!("{choice:?}: {chosen:?}"),
            }
        };
        let why = "io_uring is not available (Operation not permitted (os error 1)), using epoll";
        check(IoChoice::Auto, || Ok(()), Ok((Backend::Uring, "")));
        check(IoChoice::Auto, refused, Ok((Backend::Epoll, why)));
        check(IoChoice::Epoll, || Ok(()), Ok((Backend::Epoll, "")));
        check(IoChoice::Epoll, refused, Ok((Backend::Epoll, "")));
        check(IoChoice::Uring, || Ok(()), Ok((Backend::Uring, "")));
        check(IoChoice::Tun, || Ok(()), Ok((Backend::Tun, "")));
        check(IoChoice::Tun, refused, Err("TUN device: not available (Operation not permitted"));
        check(IoChoice::Uring, refused, Err("io_uring: not available (Operation not permitted"));
        let refusal = choose(IoChoice::Uring, &root, refused, refused).map_err(|refusal| refusal.to_string());
        assert!(refusal.as_ref().is_err_and(|text| text.ends_with(", or --io epoll")), "{refusal:?}");
    }

    fn plan(connections: u32, threads: u32) -> Plan {
        let flags = Flags::new("tcp://127.0.0.1:9");
        let flags = flags.with(&flag::CONNECTIONS, connections).with(&flag::THREADS, threads);
        let resolve = |_: &str| unreachable!("the target is an address");
        plan::from_flags(&flags, &Environment { cores: 2, seed: 1, resolve: &resolve }).unwrap()
    }

    #[test]
    fn shards_are_as_many_as_the_tables_take() {
        // A table of 1,016 has room for 1,000 connections.
        let check = |connections, threads, own_files: fn() -> io::Result<()>, expected: Result<u32, &str>| {
            let found = shards(&plan(connections, threads), Backend::Epoll, 1_016, own_files);
            let found = found.map_err(|finding| finding.to_string());
            let count = found.as_ref().map(|shards| shards.counts[0]).map_err(String::as_str);
            assert_eq!(count, expected, "{connections} over {threads}");
            if let Ok(shards) = found {
                assert_eq!(shards.own_files, own_files().is_ok());
            }
        };
        let fine = || Ok(());
        check(1, 8, fine, Ok(1));
        check(999, 2, fine, Ok(2));
        check(1_000, 1, fine, Ok(1));
        check(1_001, 1, fine, Ok(2));
        check(10_001, 2, fine, Ok(11));
        check(10_001, 16, fine, Ok(16));
        check(1_024_000, 1, fine, Ok(1_024));
        let many = "open files: 1,016 allowed, 1,024,001 needed over epoll: ulimit -n 1017, for 1,024 threads \
            with a table each";
        check(1_024_001, 1, fine, Err(many));
        // One table for all: 16 other files, and an epoll instance for each additional shard.
        check(998, 2, refused, Ok(2));
        let one = "open files: 1,016 allowed, 1,017 needed over epoll: ulimit -n 1017, or allow close_range or \
            unshare to give each thread a table (Operation not permitted (os error 1))";
        check(999, 2, refused, Err(one));
        let uring = shards(&plan(10_001, 2), Backend::Uring, 1_016, || unreachable!("rings need no tables"));
        assert_eq!(uring, Ok(Shards { counts: vec![2], own_files: false }));
    }
}
