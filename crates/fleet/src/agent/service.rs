//! `throng agent`: connects an agent to NATS, threads and files.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use host::Root;
use units::{Clock, Nanos, failpoint};

use super::{
    Agent, Allow, Caps, Planner,
    machine::Local,
    suspension::{Suspension, suspended},
};
use crate::{
    control::Control,
    error::Error,
    link::{Inbox, Link},
    message::{Author, Down, EVERY, HERE, Record, WHO, to_agent, to_run},
    outbox::Outbox,
};

/// Maximum wait for messages per turn.
const LOOKS: Nanos = Nanos::from_millis(50);
/// Maximum time to store the remaining entries when the agent is to stop.
const STOPS_WITHIN: Nanos = Nanos::from_secs(10);

/// An agent that has joined.
pub struct Service<'a> {
    link: Link,
    agent: Agent<Local<'a>>,
    outbox: Outbox,
    clock: Clock,
    announced: Nanos,
    control: Control<'a>,
    /// How late its load is: the 99th percentile of the last second.
    lag: Option<Nanos>,
    suspension: Suspension,
}

impl<'a> Service<'a> {
    /// Joins the fleet at this server, and replies to operators. `spool`: folder for undelivered entries.
    pub fn new(
        link: Link,
        control: Control<'a>,
        spool: PathBuf,
        (allow, caps): (Allow, Caps),
        planner: Planner<'a>,
    ) -> Service<'a> {
        let here = control.identity().here();
        let outbox = Outbox::with_spool(Author::Agent(here.who.clone()), spool);
        let agent = Agent::new(here, Local::new(allow, caps, planner, Root::real()));
        Service {
            link,
            agent,
            outbox,
            clock: Clock::start(),
            announced: Nanos::ZERO,
            control,
            lag: None,
            suspension: Suspension::default(),
        }
    }

    /// Takes part in runs until `stop` is set, or no run has needed the agent for `idle`. Notices for the user go to `say`, one line
    /// each.
    ///
    /// # Errors
    /// NATS refuses a subscription.
    pub fn serve(
        &mut self,
        stop: &AtomicBool,
        idle: Option<Nanos>,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let here = self.agent.here(self.clock.now());
        let inbox: Inbox<Down> = self.link.subscribe(to_agent(&here.who.id))?;
        let asked: Inbox<()> = self.link.subscribe(WHO.to_owned())?;
        self.announce();
        let mut stops_by = Nanos::NEVER;
        let mut needed = self.clock.now();
        loop {
            failpoint("agent");
            let now = self.clock.now();
            if stop.load(Relaxed) && stops_by == Nanos::NEVER {
                stops_by = now + STOPS_WITHIN;
                self.agent.drain(true);
                self.agent.stop(now);
            }
            let has_nothing_to_do = self.agent.is_done() && self.outbox.unstored() == 0;
            if !has_nothing_to_do {
                needed = now;
            }
            let is_idle = idle.is_some_and(|idle| now.since(needed) >= idle);
            if is_idle || stops_by != Nanos::NEVER && (has_nothing_to_do || now >= stops_by) {
                self.link.flush();
                return Ok(());
            }
            let wait = LOOKS.min(self.agent.acts_at().since(now));
            if let Some(down) = inbox.next(wait) {
                self.agent.handle(self.clock.now(), down);
            }
            let run = self.agent.here(now).run;
            let lag_ns = self.lag.filter(|_| run.is_some()).map(|lag| lag.0);
            self.control.turn(now, run.as_ref().map(|busy| busy.run.as_str()), lag_ns);
            self.agent.drain(stops_by != Nanos::NEVER || self.control.is_draining());
            self.agent.calibrate(self.control.identity().calibrated());
            self.notice_suspension(say);
            self.turn(say);
            let is_asked = asked.next(Nanos::ZERO).is_some();
            if is_asked || self.clock.now().since(self.announced) >= EVERY {
                self.announce();
            }
        }
    }

    /// Must precede the agent's next step: a message that waited meanwhile must not renew a lease that had run out for everyone else.
    fn notice_suspension(&mut self, say: &mut dyn FnMut(&str)) {
        if let Some(lasted) = host::boot_time_ahead_ns().and_then(|ahead| self.suspension.poll(ahead)) {
            say(&suspended("this", lasted));
            self.agent.wake(lasted);
        }
    }

    fn announce(&mut self) {
        self.announced = self.clock.now();
        self.link.send(HERE.to_owned(), &self.agent.here(self.announced));
    }

    /// Delivers pending reports, entries and notices.
    fn turn(&mut self, say: &mut dyn FnMut(&str)) {
        let now = self.clock.now();
        self.agent.poll(now);
        while let Some(line) = self.agent.poll_line() {
            say(&line);
        }
        while let Some((run, up)) = self.agent.poll_report() {
            self.link.send(to_run(&run), &up);
        }
        while let Some((run, record)) = self.agent.poll_record() {
            match &record {
                Record::Ticks(ticks) => {
                    let late = ticks.iter().filter(|tick| !tick.lag.is_empty());
                    self.lag = late.map(|tick| tick.lag.quantile(0.99)).max();
                }
                _ => self.lag = None,
            }
            self.outbox.push(&run, record);
        }
        self.link.deliver(now, &mut self.outbox);
        self.agent.set_state(self.outbox.unstored(), host::own_cpu_time());
        self.outbox.poll_trouble().iter().for_each(|trouble| say(trouble));
    }
}
