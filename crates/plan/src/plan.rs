//! The resolved plan: all defaults filled in, all values checked.

use std::{
    collections::{BTreeSet, HashSet},
    net::SocketAddr,
};

use units::{Nanos, ParseError};

use crate::{Call, Csv, Hold, Observe, Population, Probe, Ramp, Share, Sources, Stage, Threshold};

/// A plan for one run. It prints as a scenario file that reads back as the same plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The target or scenario file that the user named.
    pub text: String,
    /// At least one, with distinct names.
    pub populations: Vec<Population>,
    /// The stages of the load: at least one.
    pub stages: Vec<Stage>,
    /// The probe; `None` without one.
    pub probe: Option<Probe>,
    /// Tables of values.
    pub tables: Vec<Csv>,
    /// Local addresses to dial from.
    pub sources: Sources,
    /// Shards per population on this machine, 1..=1024; with epoll a minimum.
    pub threads: u32,
    /// Seed of all randomness.
    pub seed: u64,
    /// The I/O backend.
    pub io: IoChoice,
    /// Thresholds for the verdict; if empty, the load must be reached and held without a fault.
    pub thresholds: Vec<Threshold>,
    /// Maximum lag of throng at the 99th percentile with which the figures still describe the target; a larger lag is accepted if the
    /// latency is larger.
    pub max_lag: Nanos,
    /// Whether throng may perform experiments (additional dials and requests) after a load that did not go well.
    pub experiments: bool,
    /// Maximum TCP segment size of both ends in bytes; `None`: what the path allows.
    pub max_segment: Option<u16>,
    /// Whether full garbage collections may be triggered in the target's Java virtual machine.
    pub target_gc: bool,
    /// The observer on the target's host.
    pub observe: Option<Observe>,
}

impl Plan {
    /// Maximum number of connections at one time, including the probe's.
    pub fn places(&self) -> u32 {
        let probes = self.probe.as_ref().map_or(0, Probe::places);
        self.populations.iter().map(Population::most_open).fold(probes, u32::saturating_add)
    }

    /// As `places`, assuming that accepting and each response take `response`: without room for slow responses.
    pub fn usually_open(&self, response: Nanos) -> u32 {
        let probes = self.probe.as_ref().map_or(0, |probe| probe.usually_open(response));
        let own = self.populations.iter().map(|population| population.usually_open(response));
        own.fold(probes, u32::saturating_add)
    }

    /// The populations of the load, then those of the probe.
    pub fn all_populations_mut(&mut self) -> impl Iterator<Item = &mut Population> {
        let probes = self.probe.iter_mut().flat_map(|probe| &mut probe.populations);
        self.populations.iter_mut().chain(probes)
    }

    /// The messages of its requests that come from files, in order, for machines without these files.
    pub fn sent(&mut self) -> Vec<Call> {
        let mut sent = Vec::new();
        for sending in self.all_populations_mut().flat_map(Population::sent) {
            match sending {
                (Some(call), _) => sent.push(call.clone()),
                (None, Some(content)) => {
                    sent.push(Call { is_streaming: false, message: content.bytes.clone() });
                }
                (None, None) => {}
            }
        }
        sent
    }

    /// A plan that was made without its files, completed with the [messages](Plan::sent) of another machine.
    ///
    /// # Errors
    /// The messages belong to another plan.
    pub fn with_sent(mut self, sent: &[Call]) -> Result<Plan, String> {
        let mut sent = sent.iter();
        for sending in self.all_populations_mut().flat_map(Population::sent) {
            let next = sent.next().ok_or("the coordinator did not send all messages")?;
            match sending {
                (Some(call), _) => call.clone_from(next),
                (_, content) => {
                    content.into_iter().for_each(|content| content.bytes.clone_from(&next.message));
                }
            }
        }
        match sent.next() {
            None => Ok(self),
            Some(_) => Err("the coordinator sent messages of another plan".to_owned()),
        }
    }

    /// All steps, as population index and step name.
    pub fn steps(&self) -> impl Iterator<Item = (u16, &str)> {
        let named = |(nth, own)| Population::step_names(own).into_iter().map(move |name| (nth, name));
        (0..).zip(&self.populations).flat_map(named)
    }

    /// All destinations, including the probe's, without duplicates.
    pub fn destinations(&self) -> Vec<SocketAddr> {
        let probes = self.probe.iter().flat_map(|probe| &probe.populations);
        let all = self.populations.iter().chain(probes).flat_map(|p| &p.target.destinations);
        let mut seen = HashSet::new();
        all.copied().filter(|destination| seen.insert(*destination)).collect()
    }

    /// All destination ports, ascending.
    pub fn ports(&self) -> Vec<u16> {
        let ports: BTreeSet<u16> = self.destinations().iter().map(SocketAddr::port).collect();
        ports.into_iter().collect()
    }

    /// The shares of a population's load in the stages that change it.
    fn shares(&self, population: u16) -> impl Iterator<Item = Share> {
        self.stages.iter().filter(move |stage| stage.of.contains(&population)).map(|stage| stage.to)
    }

    /// The largest share of a population's load in any stage.
    pub fn peak(&self, population: u16) -> Share {
        self.shares(population).max().unwrap_or(Share::NONE)
    }

    /// Connections of a population at its maximum load, or the total of arrivals; 0 for arrivals without a total.
    pub fn connections(&self, population: u16) -> u64 {
        let own = &self.populations[usize::from(population)];
        let wanted = own.load.wanted().unwrap_or(0).into();
        if own.comes_and_goes() { wanted } else { self.peak(population).of(wanted) }
    }

    /// The deadline of a stage's ramp, if it is adaptive and opens connections to hold.
    pub fn ramp_deadline(&self, stage: &Stage) -> Option<Nanos> {
        let own = |nth: &u16| (*nth, &self.populations[usize::from(*nth)]);
        let held =
            stage.of.iter().map(own).filter(|(_, of)| stage.ramp == Ramp::Adaptive && !of.comes_and_goes());
        held.map(|(nth, of)| Ramp::deadline(self.connections(nth), of.timeout)).max()
    }

    /// Maximum number of threads that a population can use: each needs at least one connection at any time to send its share of the rate.
    pub fn most_threads(&self, population: u16) -> u32 {
        let own = &self.populations[usize::from(population)];
        let most = own.most_open();
        if own.load.rate().is_none() || own.comes_and_goes() {
            return most;
        }
        let held = self.shares(population).map(|share| share.of(most.into()) as u32).filter(|held| *held > 0);
        held.min().unwrap_or(most)
    }

    /// Total duration of all holds; `None` if the last one has no end.
    pub fn hold(&self) -> Option<Nanos> {
        self.stages.iter().try_fold(Nanos::ZERO, |sum, stage| match stage.hold {
            Hold::For(time) => Some(sum + time),
            Hold::Forever => None,
        })
    }

    /// The longest response timeout of any population, and of the probe.
    pub fn longest_timeout(&self) -> Nanos {
        let probe = self.probe.iter().flat_map(|probe| &probe.populations);
        self.populations.iter().chain(probe).map(|population| population.timeout).max().unwrap_or_default()
    }
}

/// The I/O backend to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoChoice {
    /// io_uring if allowed, otherwise epoll.
    Auto,
    /// io_uring.
    Uring,
    /// epoll.
    Epoll,
    /// throng's TCP over a TUN device.
    Tun,
}

impl IoChoice {
    /// `auto`, `uring`, `epoll` or `tun`.
    ///
    /// # Errors
    /// The text is none of them.
    pub fn parse(text: &str) -> Result<IoChoice, ParseError> {
        match text {
            "auto" => Ok(IoChoice::Auto),
            "uring" => Ok(IoChoice::Uring),
            "epoll" => Ok(IoChoice::Epoll),
            "tun" => Ok(IoChoice::Tun),
            _ => Err(ParseError::new(text, "an I/O backend", "auto, uring, epoll or tun")),
        }
    }
}
