//! `throng observe`: serves samples of the target and its host to runs on other machines.

use std::{collections::BTreeMap, net::SocketAddr, sync::atomic::Ordering::Relaxed};

use fleet::Observing;
use host::{
    Root, Watch, host_sample,
    remote::{Server, Token},
};
use plan::Flags;
use samples::Sample;
use units::{Clock, Nanos};

pub(crate) mod over_nats;

use crate::{Failure, args::ObserveArgs, listening, mistakes::Mistakes, nats, print_stdout, signals};

/// Maximum number of observed sets of ports; when it is exceeded, the least recently requested is dropped.
const MAX_WATCHES: usize = 16;
/// Minimum age of a sample before a new one is taken: CPU shares need a period to be meaningful, and requests must not overload this
/// host.
const FRESH: Nanos = Nanos::from_millis(500);
/// Maximum wait for a request before the stop flag is checked.
const LOOKS: Nanos = Nanos::from_millis(100);
/// Interval between searches for the target if no process listens.
const SEARCH: Nanos = Nanos::from_secs(5);

/// Serves until a signal; returns the exit status.
pub(crate) fn observe(args: &ObserveArgs, flags: &Flags) -> Result<u8, Failure> {
    if args.nats.is_some() {
        return joined(args, flags);
    }
    let (listen, token, only) = read_args(args, flags)?;
    let failed = |e: std::io::Error| listening::refused("--listen", listen, &e);
    let server = Server::bind(listen, token, only).map_err(failed)?;
    let stop = signals::order_to_stop(args.until_stdin_ends)?;
    // Printed last, because a reader of this line may send a signal at once.
    print_stdout(&format!("observing at http://{}/\n", server.address().map_err(failed)?))?;
    let mut watches = Watches::new(Root::real(), Clock::start());
    server.serve(&stop, |ports| Ok(watches.sample(ports))).map_err(failed)?;
    Ok(0)
}

/// Serves over NATS until a signal; returns the exit status.
fn joined(args: &ObserveArgs, flags: &Flags) -> Result<u8, Failure> {
    let mut mistakes = Mistakes::default();
    let server = nats::server("--nats", args.nats.as_deref(), flags, &mut mistakes);
    let name = mistakes.read("--name", args.name.as_deref(), fleet::agent_name);
    let only = only_port(args, &mut mistakes);
    for (flag, given) in [("--listen", args.listen.is_some()), ("--token-file", args.token_file.is_some())] {
        if given {
            mistakes.add(format_args!("{flag}: not with --nats, which needs no port; remove one of them"));
        }
    }
    let server = mistakes.end(()).map(|()| server.expect("it is no mistake"))?;
    let name = name.unwrap_or_else(|| fleet::host_agent_name(&Root::real()));
    let stop = signals::order_to_stop(args.until_stdin_ends)?;
    let Some(link) = nats::join("--nats", &server, &stop)? else { return Ok(0) };
    let observing = Observing::new(link, name.clone(), only);
    let mut observing = observing.map_err(|why| Failure::machine(format!("--nats: {why}")))?;
    print_stdout(&format!("observing as {name} at {server}\n"))?;
    let mut watches = Watches::new(Root::real(), Clock::start());
    while !stop.load(Relaxed) {
        observing.turn(LOOKS, &mut |ports| watches.sample(ports));
    }
    Ok(0)
}

/// The address to listen on, the required token, and the only port that may be sampled; reports all mistakes at once.
fn read_args(args: &ObserveArgs, flags: &Flags) -> Result<(SocketAddr, Option<Token>, Option<u16>), Failure> {
    let mut mistakes = Mistakes::default();
    nats::refuse_access(flags, &mut mistakes);
    let listen = args.listen.as_deref().unwrap_or("127.0.0.1:9100");
    let listen = mistakes.address("--listen", listen, "127.0.0.1:9100");
    if args.name.is_some() {
        mistakes.add("--name: only with --nats; remove it");
    }
    if args.token_file.is_none() && !listen.ip().is_loopback() {
        let port = listen.port();
        mistakes.add(format!(
            "--listen: without --token-file only loopback is allowed; use 127.0.0.1:{port}: {listen}"
        ));
    }
    let token = mistakes.read("--token-file", args.token_file.as_deref(), Token::read);
    let only = only_port(args, &mut mistakes);
    mistakes.end((listen, token, only))
}

fn only_port(args: &ObserveArgs, mistakes: &mut Mistakes) -> Option<u16> {
    mistakes.read("--port", args.port.as_deref(), |text| match text.parse() {
        Ok(port @ 1u16..) => Ok(port),
        _ => Err(format!("{text:?} is not a port; use 8000")),
    })
}

/// The observed targets, by their ports.
struct Watches {
    root: Root,
    clock: Clock,
    known: BTreeMap<Vec<u16>, Known>,
}

struct Known {
    watch: Watch,
    searched: Nanos,
    sampled: Nanos,
    sample: Sample,
}

impl Watches {
    fn new(root: Root, clock: Clock) -> Watches {
        Watches { root, clock, known: BTreeMap::new() }
    }

    fn sample(&mut self, ports: &[u16]) -> Sample {
        let now = self.clock.now();
        if !self.known.contains_key(ports) {
            if self.known.len() >= MAX_WATCHES {
                // Drops the least recently requested one.
                let oldest =
                    self.known.iter().min_by_key(|(_, known)| known.sampled).map(|(ports, _)| ports.clone());
                oldest.and_then(|ports| self.known.remove(&ports));
            }
            let watch = Watch::new(&self.root, ports, &::run::listeners(&self.root));
            let first = Known { watch, searched: now, sampled: Nanos::ZERO, sample: Sample::default() };
            self.known.insert(ports.to_vec(), first);
        }
        let known = self.known.get_mut(ports).expect("it was just put there");
        if known.sampled != Nanos::ZERO && now.since(known.sampled) < FRESH {
            return known.sample.clone();
        }
        if !known.watch.is_alive() && now.since(known.searched) >= SEARCH {
            known.searched = now;
            let found = Watch::new(&self.root, ports, &::run::listeners(&self.root));
            // A target that has ended is reported until another process replaces it.
            if found.is_alive() {
                known.watch = found;
            }
        }
        known.sampled = now;
        known.sample =
            Sample { target: known.watch.sample(now, &::run::queues()), host: host_sample(&self.root) };
        known.sample.clone()
    }
}
