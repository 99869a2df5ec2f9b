//! `throng observe` over NATS: samples of a target's host without opening a port there.

use samples::Sample;
use serde::{Deserialize, Serialize};
use units::{Clock, Nanos};

use crate::{
    error::Error,
    link::{Asked, Inbox, Link},
    message::is_agent_name,
};

/// Subject of inquiries to all observers.
const TO_ALL: &str = "throng.observe";
/// Maximum time for an observer's reply; shorter than a run's wait for a sample.
const REPLIES: Nanos = Nanos::from_millis(1_500);
/// Maximum number of ports; more are likely a mistake.
const MAX_PORTS: usize = host::remote::MAX_PORTS;

/// Subject of inquiries to one observer.
fn to_one(name: &str) -> String {
    format!("throng.observe.{name}")
}

/// A request to an observer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    /// Its name.
    Who,
    /// A sample of the processes that listen on these ports.
    Sample(Vec<u16>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Who(String),
    Sample(Box<Sample>),
    Refused(String),
}

/// The side of the target's host.
pub struct Observing {
    name: String,
    only: Option<u16>,
    requests: [Inbox<Asked<Request>>; 2],
    _link: Link,
}

impl Observing {
    /// Announces an observer. `only`: the single port that may be sampled; `None`: any.
    ///
    /// # Errors
    /// NATS refuses a subscription, or an observer of this name exists.
    pub fn new(link: Link, name: String, only: Option<u16>) -> Result<Observing, Error> {
        /// Maximum time for another observer of this name to reply.
        const ALONE: Nanos = Nanos::from_millis(300);
        if link.ask::<Reply>(to_one(&name), &Request::Who)?.next(ALONE).is_some() {
            let why = format!("an observer named {name} has already joined; use another --name");
            return Err(Error::Refused(why));
        }
        let requests = [link.serve(TO_ALL.to_owned())?, link.serve(to_one(&name))?];
        Ok(Observing { name, only, requests, _link: link })
    }

    /// Replies to requests, waiting for at most `wait`.
    pub fn turn(&mut self, wait: Nanos, sample: &mut dyn FnMut(&[u16]) -> Sample) {
        let first = self.requests[1].next(wait);
        let others = std::iter::from_fn(|| self.requests[0].next(Nanos::ZERO));
        for asked in first.into_iter().chain(others) {
            let reply = match &asked.message {
                Request::Who => Reply::Who(self.name.clone()),
                Request::Sample(ports) => match (ports.as_slice(), self.only) {
                    ([], None) => Reply::Refused("no port".to_owned()),
                    (ports, _) if ports.len() > MAX_PORTS => {
                        Reply::Refused(format!("at most {MAX_PORTS} ports"))
                    }
                    ([], Some(only)) => Reply::Sample(Box::new(sample(&[only]))),
                    (ports, Some(only)) if ports.iter().any(|port| *port != only) => {
                        Reply::Refused(format!("only port {only} is observed there"))
                    }
                    (ports, _) => Reply::Sample(Box::new(sample(ports))),
                },
            };
            asked.reply(&reply);
        }
    }
}

/// The side of the run.
pub struct Observers {
    link: Link,
    name: String,
}

impl Observers {
    /// Finds the observer of this name, or the only one.
    ///
    /// # Errors
    /// There is none, or several.
    pub fn find(link: Link, name: Option<&str>) -> Result<Observers, Error> {
        let clock = Clock::start();
        let subject = name.map_or_else(|| TO_ALL.to_owned(), to_one);
        let replies = link.ask::<Reply>(subject, &Request::Who)?;
        let mut found = Vec::new();
        while clock.now() < REPLIES && (name.is_none() || found.is_empty()) {
            if let Some(Reply::Who(name)) = replies.next(REPLIES.since(clock.now()))
                && is_agent_name(&name)
            {
                found.push(name);
            }
        }
        found.sort();
        Err(Error::Missing(match (found.as_slice(), name) {
            ([one], _) => return Ok(Observers { name: one.clone(), link }),
            ([], Some(name)) => {
                format!("no observer named {name} has joined; start it with throng observe --nats URL")
            }
            ([], None) => "no observer has joined; start one with throng observe --nats URL".to_owned(),
            (several, _) => {
                format!("several observers have joined; add /NAME with one of {}", several.join(", "))
            }
        }))
    }

    /// The observer's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A sample of the processes that listen on these ports there, and of their host.
    ///
    /// # Errors
    /// It does not reply, or refuses.
    pub fn sample(&self, ports: &[u16]) -> Result<Sample, Error> {
        let replies = self.link.ask::<Reply>(to_one(&self.name), &Request::Sample(ports.to_vec()))?;
        match replies.next(REPLIES) {
            Some(Reply::Sample(sample)) => Ok(*sample),
            Some(Reply::Refused(why)) => Err(Error::Refused(why)),
            Some(Reply::Who(_)) | None => {
                Err(Error::Missing(format!("observer {} does not reply", self.name)))
            }
        }
    }
}
