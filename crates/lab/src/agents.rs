//! Runs `throng agent` as child processes that generate the load through the HTTP API for individual clients, as in the Play text;
//! reads their counts back.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use rustix::process::{Pid, Signal, kill_process};
use samples::{FaultCount, Summary, Tick, Verdict};
use serde_json::{Value, json};
use units::{Clock, Count, Date, Nanos};

use crate::{
    curve::Second,
    error::Error,
    experiment::Experiment,
    load::Load,
    outcome::Subject,
    process::{POLL, request},
    workspace::Workspace,
};

/// Maximum time for an agent to listen.
const STARTS_WITHIN: Nanos = Nanos::from_secs(20);
/// Maximum time for the ramp: a client that is not connected by then counts as lost.
const RAMP_WITHIN: Nanos = Nanos::from_secs(180);
/// Maximum time for the echo of a message.
const ECHO_WITHIN: Nanos = Nanos::from_secs(10);
const SECOND: Nanos = Nanos::from_secs(1);

/// The agents of a trial, with their clients.
pub(crate) struct Agents {
    each: Vec<Agent>,
    form: String,
    hold: Nanos,
    clock: Clock,
    /// When the ramp ended, that is when each client was connected or lost.
    ramped_at: Option<Nanos>,
    seconds: Vec<Second>,
    peak: u64,
    /// Problems found, one per line.
    troubles: Vec<String>,
    is_interrupted: bool,
}

struct Agent {
    child: Child,
    address: SocketAddr,
    /// Paths of its clients, as returned by the agent.
    clients: Vec<String>,
}

impl Agents {
    /// Starts the agents and makes each connect its part of the clients.
    pub(crate) fn start(
        workspace: &Workspace,
        experiment: &Experiment,
        subject: &Subject,
    ) -> Result<Agents, Error> {
        workspace.make_log()?;
        let mut values = workspace.values.clone();
        values.scale /= f64::from(experiment.agents);
        let form = values.fill(&experiment.words.join("&")).map_err(Error::usage)?;
        let hold = values.fill(&experiment.hold).map_err(Error::usage)?;
        let hold = Nanos::parse(&hold).map_err(|e| Error::usage(format!("hold: {e}")))?;
        let each = (1..=experiment.agents).map(|nth| Agent::start(workspace, nth, subject));
        let mut agents = Agents {
            each: each.collect::<Result<_, _>>()?,
            form,
            hold,
            clock: Clock::start(),
            ramped_at: None,
            seconds: Vec::new(),
            peak: 0,
            troubles: Vec::new(),
            is_interrupted: false,
        };
        for agent in &mut agents.each {
            agent.clients = serde_json::from_value(agent.json("POST", "/clients", &agents.form)?)
                .map_err(|e| Error::Machine(format!("POST /clients: {e}")))?;
        }
        Ok(agents)
    }

    fn wanted(&self) -> u64 {
        self.each.iter().map(|agent| agent.clients.len() as u64).sum()
    }

    /// The sum of all agents' counts.
    fn counted(&self) -> Result<Tick, Error> {
        let mut all = Tick::default();
        for agent in &self.each {
            let tick = serde_json::from_value(agent.json("GET", "/tick", "")?);
            all.merge(&tick.map_err(|e| Error::Machine(format!("GET /tick: {e}")))?);
        }
        Ok(all)
    }

    /// Records a second; returns whether it was the last.
    fn look(&mut self) -> Result<bool, Error> {
        let (now, all) = (self.clock.now(), self.counted()?);
        let counts = &all.counts;
        self.peak = self.peak.max(all.open);
        let is_ramped = counts.opened + counts.failed >= self.wanted() || now >= RAMP_WITHIN;
        let since = is_ramped.then(|| *self.ramped_at.get_or_insert(now));
        let line = json!({
            "time": Date::from(units::date()).to_string(),
            "elapsed_s": now.secs_f64(),
            "throng_phase{phase=\"hold\"}": u8::from(is_ramped),
            "throng_connections_open": all.open,
            "throng_connections_dropped_total": counts.dropped + counts.closed,
            "throng_answers_total": counts.answered,
            "throng_latency_seconds_max": all.latency.max().secs_f64(),
        });
        self.seconds.push(Second::parse(&line.to_string()).map_err(|e| Error::Machine(e.to_string()))?);
        Ok(since.is_some_and(|since| now >= since + self.hold))
    }

    /// Sends a message from one connected client of each agent, and checks its echo.
    fn echo(&mut self) -> Result<(), Error> {
        for (nth, agent) in (1..).zip(&self.each) {
            let listed = agent.json("GET", "/clients?state=connected", "")?;
            let (Some(first), text) = (listed[0].as_str(), format!("hello from agent {nth}")) else {
                continue;
            };
            agent.json("POST", first, &text)?;
            let (clock, mut client) = (Clock::start(), Value::Null);
            let is_back = |client: &Value| {
                client["received"].as_array().is_some_and(|all| all.contains(&text.as_str().into()))
            };
            while !is_back(&client) && clock.now() < ECHO_WITHIN {
                client = agent.json("GET", first, "")?;
                thread::sleep(POLL);
            }
            if !is_back(&client) {
                self.troubles.push(format!("{first} of agent {nth} did not get its text back: {client}"));
            }
        }
        Ok(())
    }

    /// Checks that the numbers of listed and counted clients agree.
    fn read_back(&mut self, all: &Tick) -> Result<(), Error> {
        let mut connected = 0;
        for agent in &self.each {
            let listed = agent.json("GET", "/clients?state=connected", "")?;
            connected += listed.as_array().map_or(0, Vec::len) as u64;
        }
        if connected != all.open {
            self.troubles.push(format!("{connected} clients are listed, {} are counted", all.open));
        }
        Ok(())
    }

    fn summary(&mut self) -> Result<Summary, Error> {
        let all = self.counted()?;
        self.read_back(&all)?;
        self.echo()?;
        let wanted = self.wanted();
        let mut s = Summary { schema: "throng.summary/1".into(), ..Summary::default() };
        let ramp_s = self.ramped_at.unwrap_or(self.clock.now()).secs_f64();
        let (figures, counts) = (&mut s.figures, &all.counts);
        (figures.target, figures.ramp_s) = (self.form.clone(), ramp_s);
        figures.elapsed_s = self.clock.now().secs_f64();
        figures.duration_s = figures.elapsed_s - ramp_s;
        let c = &mut figures.connections;
        (c.wanted, c.opened, c.failed, c.peak) = (wanted, counts.opened, counts.failed, self.peak);
        (c.held, c.dropped, c.closed) = (all.open, counts.dropped, counts.closed);
        c.open_per_s = counts.opened as f64 / ramp_s.max(f64::EPSILON);
        (figures.requests.sent, figures.requests.answered) = (counts.sent, counts.answered);
        (figures.requests.bytes_in, figures.requests.bytes_out) = (counts.bytes_in, counts.bytes_out);
        figures.faults = all.faults.iter().map(|(fault, n)| FaultCount::new(fault, n)).collect();
        figures.set_times(&all);
        s.lag_us = all.lag.quantiles();
        s.reasons = std::mem::take(&mut self.troubles);
        s.verdict = match (self.is_interrupted, all.open == wanted && s.figures.faults.is_empty()) {
            (true, _) => Verdict::Interrupted,
            (false, true) if s.reasons.is_empty() => Verdict::Pass,
            _ => Verdict::Fail,
        };
        let (held, ping) = (Count(all.open), Nanos((s.figures.latency_us.p50 * 1e3) as u64));
        s.headline = format!(
            "{}: {} agents held {held} of {} WebSockets, ping p50 {}",
            s.verdict.name(),
            self.each.len(),
            Count(wanted),
            ping.brief()
        );
        Ok(s)
    }
}

impl Load for Agents {
    fn args(&self) -> Vec<String> {
        ["agent", "--listen", "127.0.0.1:0", "POST", "/clients", &self.form].map(str::to_owned).to_vec()
    }

    fn wait(&mut self, stop: &AtomicBool, meanwhile: &mut dyn FnMut(&mut dyn Load)) {
        let mut next = self.clock.now() + SECOND;
        loop {
            if stop.load(Relaxed) {
                self.is_interrupted = true;
                return;
            }
            if self.clock.now() >= next {
                next = next + SECOND;
                match self.look() {
                    Ok(false) => {}
                    Ok(true) => return,
                    Err(why) => return self.troubles.push(format!("{why:?}")),
                }
            }
            meanwhile(self);
            thread::sleep(POLL);
        }
    }

    fn seconds(&mut self, from: usize) -> Vec<Second> {
        self.seconds.iter().skip(from).cloned().collect()
    }

    fn results(&mut self, _store: Option<&Path>) -> Result<(Value, Vec<Second>), Error> {
        let summary = self.summary()?;
        Ok((json!(summary), self.seconds(0)))
    }
}

impl Agent {
    /// Starts the agent with this number, and waits until it listens.
    fn start(workspace: &Workspace, nth: u8, subject: &Subject) -> Result<Agent, Error> {
        let said = workspace.log.join(format!("agent-{nth}.log"));
        let out = File::create(&said).map_err(Error::at(&said))?;
        let err = out.try_clone().map_err(Error::at(&said))?;
        let mut command = workspace.throng();
        command.args(["agent", "--listen", "127.0.0.1:0"]);
        // Agents may load loopback addresses, where the lab's servers are; another host must be allowed.
        command.args(subject.elsewhere.iter().flat_map(|host| ["--allow", host.as_str()]));
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let mut agent = Agent {
            child: child.map_err(Error::at("setpriv"))?,
            address: ([127, 0, 0, 1], 0).into(),
            clients: Vec::new(),
        };
        agent.address = agent.listens(&said)?;
        Ok(agent)
    }

    fn listens(&mut self, said: &PathBuf) -> Result<SocketAddr, Error> {
        let clock = Clock::start();
        loop {
            let text = fs::read_to_string(said).map_err(Error::at(said))?;
            let url = text.lines().find_map(|line| line.strip_prefix("control API at http://"));
            if let Some(address) = url.and_then(|url| url.trim_end_matches('/').parse().ok()) {
                return Ok(address);
            }
            let has_ended = self.child.try_wait().is_ok_and(|status| status.is_some());
            if has_ended || clock.now() > STARTS_WITHIN {
                return Err(Error::Machine(format!("throng agent: does not listen\n{}", text.trim_end())));
            }
            thread::sleep(POLL);
        }
    }

    /// Sends a request and returns the response as JSON.
    fn json(&self, method: &str, path: &str, body: &str) -> Result<Value, Error> {
        let asked = format!("{method} http://{}{path}", self.address);
        let (status, text) = request(self.address, method, path, body).map_err(Error::at(&asked))?;
        let wrong = || Error::Machine(format!("{asked}: status {status}: {}", text.trim_end()));
        if status != 200 {
            return Err(wrong());
        }
        serde_json::from_str(&text).map_err(|_| wrong())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The agent closes its clients' connections on SIGTERM, so that the server sees no resets.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let clock = Clock::start();
        while clock.now() < SECOND + SECOND && self.child.try_wait().is_ok_and(|status| status.is_none()) {
            thread::sleep(POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
