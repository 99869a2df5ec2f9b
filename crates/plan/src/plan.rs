//! The resolved plan: every default filled in, every value checked.

use std::{
    collections::{BTreeSet, HashSet},
    net::SocketAddr,
};

use units::{Nanos, ParseError};

use crate::{Call, Csv, Hold, Observe, Population, Probe, Ramp, Share, Sources, Stage, Threshold};

/// What happens in one run, with all defaults filled in. Prints as a scenario file that reads the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What the user named: a target, or a scenario file.
    pub text: String,
    /// At least one; no two of one name.
    pub populations: Vec<Population>,
    /// The stages of the load: at least one.
    pub stages: Vec<Stage>,
    /// The probe, where there is one.
    pub probe: Option<Probe>,
    /// Tables of values.
    pub tables: Vec<Csv>,
    /// Local addresses to dial from.
    pub sources: Sources,
    /// Shards of each population on this machine, 1..=1024; on epoll a minimum.
    pub threads: u32,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Which kernel interface to drive.
    pub io: IoChoice,
    /// What the run is judged by; none: the load reached and held, and no fault.
    pub thresholds: Vec<Threshold>,
    /// How late throng may be, at the 99th percentile, for the figures to describe the target; a larger lag is allowed beside a
    /// larger latency.
    pub max_lag: Nanos,
    /// Whether the target may be asked after a load that did not go well, by dials and requests beside it.
    pub experiments: bool,
    /// The largest segments of TCP that either end sends, bytes; none: what the path allows.
    pub max_segment: Option<u16>,
    /// Whether full collections in the target's Java virtual machine are permitted.
    pub target_gc: bool,
    /// The observer on the target's host.
    pub observe: Option<Observe>,
}

impl Plan {
    /// The most connections at one time, those of the probe included.
    pub fn places(&self) -> u32 {
        let probes = self.probe.as_ref().map_or(0, Probe::places);
        self.populations.iter().map(Population::most_open).fold(probes, u32::saturating_add)
    }

    /// The same where the target takes `response` to accept, and for each response: without what is kept for slow ones.
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

    /// What its requests send that stands in files, one request after the other: for a machine that has no files.
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

    /// The same plan, made without its files, with what another machine [sends](Plan::sent) by them.
    ///
    /// # Errors
    /// That is of another plan.
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

    /// All steps, each as its population and its name.
    pub fn steps(&self) -> impl Iterator<Item = (u16, &str)> {
        let named = |(nth, own)| Population::step_names(own).into_iter().map(move |name| (nth, name));
        (0..).zip(&self.populations).flat_map(named)
    }

    /// Where everyone dials to, each destination once.
    pub fn destinations(&self) -> Vec<SocketAddr> {
        let probes = self.probe.iter().flat_map(|probe| &probe.populations);
        let all = self.populations.iter().chain(probes).flat_map(|p| &p.target.destinations);
        let mut seen = HashSet::new();
        all.copied().filter(|destination| seen.insert(*destination)).collect()
    }

    /// The ports that everyone dials to, ascending.
    pub fn ports(&self) -> Vec<u16> {
        let ports: BTreeSet<u16> = self.destinations().iter().map(SocketAddr::port).collect();
        ports.into_iter().collect()
    }

    /// The shares of a population's load, of each stage that moves it.
    fn shares(&self, population: u16) -> impl Iterator<Item = Share> {
        self.stages.iter().filter(move |stage| stage.of.contains(&population)).map(|stage| stage.to)
    }

    /// The largest share of a population's load in any stage.
    pub fn peak(&self, population: u16) -> Share {
        self.shares(population).max().unwrap_or(Share::NONE)
    }

    /// Connections of a population at its largest load, or that arrive in all; none where they arrive without end.
    pub fn connections(&self, population: u16) -> u64 {
        let own = &self.populations[usize::from(population)];
        let wanted = own.load.wanted().unwrap_or(0).into();
        if own.comes_and_goes() { wanted } else { self.peak(population).of(wanted) }
    }

    /// The time that the ramp of a stage has, if it is adaptive and opens connections to be held.
    pub fn ramp_deadline(&self, stage: &Stage) -> Option<Nanos> {
        let own = |nth: &u16| (*nth, &self.populations[usize::from(*nth)]);
        let held =
            stage.of.iter().map(own).filter(|(_, of)| stage.ramp == Ramp::Adaptive && !of.comes_and_goes());
        held.map(|(nth, of)| Ramp::deadline(self.connections(nth), of.timeout)).max()
    }

    /// The most threads that a population can use: each has a connection at any time, if its share of the rate is to be sent.
    pub fn most_threads(&self, population: u16) -> u32 {
        let own = &self.populations[usize::from(population)];
        let most = own.most_open();
        if own.load.rate().is_none() || own.comes_and_goes() {
            return most;
        }
        let held = self.shares(population).map(|share| share.of(most.into()) as u32).filter(|held| *held > 0);
        held.min().unwrap_or(most)
    }

    /// How long all stages together hold their loads; none, where the last one has no end.
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

/// Which kernel interface to drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoChoice {
    /// io_uring where it is allowed, else epoll.
    Auto,
    /// io_uring.
    Uring,
    /// epoll.
    Epoll,
    /// TCP of our own over a TUN device.
    Tun,
}

impl IoChoice {
    /// `auto`, `uring`, `epoll` or `tun`.
    ///
    /// # Errors
    /// It is none of them.
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
