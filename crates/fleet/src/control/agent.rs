//! The agent's side of operator requests.

use std::{
    sync::mpsc::{self, Receiver, TryRecvError},
    thread,
};

use host::{CpuTime, Root};
use samples::Calibration;
use units::Nanos;

use super::{AgentStatus, LOOK_AT_ALL, Reply, Request, TO_ALL, look_at, named, to_one};
use crate::{
    error::Error,
    identity::{Identity, LocalPlanner},
    link::{Asked, Inbox, Link},
};

/// Sampling interval of CPU usage.
const SAMPLES: Nanos = Nanos::from_secs(1);

/// Runs a calibration, which blocks. The argument is the duration, as typed.
pub type Calibrator = fn(&str) -> Result<Calibration, Error>;

/// Replies to operators on behalf of an agent.
pub struct Control<'a> {
    identity: Identity,
    planner: LocalPlanner<'a>,
    calibrator: Calibrator,
    /// The subscriptions, each with whether it accepts requests that change something.
    requests: Vec<(Inbox<Asked<Request>>, bool)>,
    is_drained: bool,
    calibrating: Option<Calibrating>,
    /// The last sample of CPU time; `cpu` is the usage before it.
    sampled: (Nanos, Option<CpuTime>),
    cpu: Option<f64>,
}

struct Calibrating {
    asked: Asked<Request>,
    result: Receiver<Result<Calibration, Error>>,
}

impl<'a> Control<'a> {
    /// Subscribes to requests. Fails if another process has this name.
    ///
    /// # Errors
    /// NATS refuses a subscription, or the name is taken.
    pub fn new(
        link: &Link,
        identity: Identity,
        planner: LocalPlanner<'a>,
        calibrator: Calibrator,
    ) -> Result<Control<'a>, Error> {
        let id = identity.id.as_str();
        let asked = link.serve(named(id))?;
        if let Some(host) = namesake(link, &identity, &asked)? {
            let why = format!("an agent named {id} has already joined, on {host}; use another --name");
            return Err(Error::Refused(why));
        }
        let mut requests = vec![(asked, false)];
        for (subject, steers) in [
            (TO_ALL.to_owned(), true),
            (to_one(id), true),
            (LOOK_AT_ALL.to_owned(), false),
            (look_at(id), false),
        ] {
            requests.push((link.serve(subject)?, steers));
        }
        Ok(Control {
            identity,
            planner,
            calibrator,
            requests,
            is_drained: false,
            calibrating: None,
            sampled: (Nanos::ZERO, None),
            cpu: None,
        })
    }

    /// The identity of the agent.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether the agent accepts no new run now.
    pub fn is_draining(&self) -> bool {
        self.is_drained || self.calibrating.is_some()
    }

    /// Handles pending requests, without waiting. `run`: the run that the agent takes part in; `lag_ns`: the lag of its load, if known.
    pub fn turn(&mut self, now: Nanos, run: Option<&str>, lag_ns: Option<u64>) {
        self.sample(now);
        for nth in 0..self.requests.len() {
            while let Some(asked) = self.requests[nth].0.next(Nanos::ZERO) {
                if self.requests[nth].1 || asked.message.only_looks() {
                    self.handle(asked, run, lag_ns);
                }
            }
        }
        self.finish();
    }

    fn sample(&mut self, now: Nanos) {
        let (then, before) = self.sampled;
        if before.is_some() && now.since(then) < SAMPLES {
            return;
        }
        let time = host::cpu_time(&Root::real());
        self.cpu = time.zip(before).and_then(|(time, before)| time.share_since(before)).or(self.cpu);
        self.sampled = (now, time);
    }

    fn handle(&mut self, asked: Asked<Request>, run: Option<&str>, lag_ns: Option<u64>) {
        match &asked.message {
            Request::Status => {}
            // Its own inquiry, received back.
            Request::Joining { incarnation } if *incarnation == self.identity.incarnation => return,
            Request::Joining { .. } => {}
            Request::Doctor => self.identity.examine(&Root::real(), self.planner),
            Request::Drain => self.is_drained = true,
            Request::Undrain => self.is_drained = false,
            Request::Calibrate { duration } => return self.calibrate(&duration.clone(), asked, run),
        }
        asked.reply(&Reply::Status(Box::new(self.status(run, lag_ns))));
    }

    fn status(&self, run: Option<&str>, lag_ns: Option<u64>) -> AgentStatus {
        let state = match (run, &self.calibrating, self.is_drained) {
            (_, _, true) => "draining",
            (Some(_), ..) => "in run",
            (None, Some(_), _) => "calibrating",
            (None, None, _) => AgentStatus::FREE,
        };
        AgentStatus {
            identity: self.identity.clone(),
            state: state.to_owned(),
            run: run.map(str::to_owned),
            lag_ns,
            cpu: self.cpu,
        }
    }

    /// Calibrates in a thread, so that requests are still handled.
    fn calibrate(&mut self, duration: &str, asked: Asked<Request>, run: Option<&str>) {
        let id = self.identity.id.clone();
        let why = match (run, &self.calibrating) {
            (Some(run), _) => Some(format!("it takes part in run {run}")),
            (None, Some(_)) => Some("it calibrates already".to_owned()),
            (None, None) => None,
        };
        if let Some(why) = why {
            return asked.reply(&Reply::Refused { id, why });
        }
        let (sender, result) = mpsc::channel();
        let (calibrator, duration) = (self.calibrator, duration.to_owned());
        let started = thread::Builder::new().name("calibrate".to_owned()).spawn(move || {
            // The agent may have ended.
            let _ = sender.send(calibrator(&duration));
        });
        match started {
            Ok(_) => {
                asked.reply(&Reply::Calibrating { id });
                self.calibrating = Some(Calibrating { asked, result });
            }
            Err(e) => asked.reply(&Reply::Refused { id, why: e.to_string() }),
        }
    }

    fn finish(&mut self) {
        let Some(Calibrating { asked, result }) = &self.calibrating else { return };
        let result = match result.try_recv() {
            Ok(result) => result,
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => {
                Err(Error::unavailable("the measurement ended without a result"))
            }
        };
        let id = self.identity.id.clone();
        match result {
            Ok(calibration) => {
                self.identity.calibration = Some(calibration.clone());
                asked.reply(&Reply::Calibrated { id, calibration: Box::new(calibration) });
            }
            Err(why) => asked.reply(&Reply::Refused { id, why: why.to_string() }),
        }
        self.calibrating = None;
    }
}

/// The host of another process that has, or is about to take, this agent's name; `None` if the name is free. If two processes start at
/// the same time, at least one receives the other's inquiry, and the lower incarnation wins.
fn namesake(
    link: &Link,
    identity: &Identity,
    asked: &Inbox<Asked<Request>>,
) -> Result<Option<String>, Error> {
    /// Number of polls during which other processes must reply or inquire.
    const ALONE: u32 = 30;
    const LOOKS: Nanos = Nanos::from_millis(10);
    let (id, own) = (identity.id.as_str(), identity.incarnation);
    let replies: Inbox<Reply> = link.ask(named(id), &Request::Joining { incarnation: own })?;
    for _ in 0..ALONE {
        if let Some(Reply::Status(other)) = replies.next(LOOKS) {
            return Ok(Some(other.identity.host));
        }
        while let Some(question) = asked.next(Nanos::ZERO) {
            match question.message {
                Request::Joining { incarnation } if incarnation < own => {
                    return Ok(Some(identity.host.clone()));
                }
                Request::Joining { incarnation } if incarnation > own => {
                    let identity = identity.clone();
                    question
                        .reply(&Reply::Status(Box::new(AgentStatus { identity, ..AgentStatus::default() })));
                }
                _ => {}
            }
        }
    }
    Ok(None)
}
