//! The threads of this machine as an agent's [`Machine`].

use host::Root;
use plan::{Flags, Part, Plan, Rows, Share, TableHead};
use run::{Order, Prepared, Threads, Update, Workers, prepare};
use samples::Tick;
use units::Nanos;

use super::{Allow, Caps, Held, Machine};
use crate::{
    message::{Assign, Offer, Ready},
    share,
};

/// The plan that flags, the text of a scenario file, and the tables that this reads by the names of their files, make on this
/// machine; or why there is none. It reads no file and dials nothing.
pub type Planner<'a> = &'a dyn Fn(&Flags, Option<&str>, &[(String, TableHead)]) -> Result<Plan, String>;

/// This machine.
pub(super) struct Local<'a> {
    allow: Allow,
    caps: Caps,
    planner: Planner<'a>,
    root: Root,
    share: Option<Accepted>,
    parts: Vec<Running>,
    /// The tick that was read last, with times of the run.
    read: Tick,
}

/// A share that this machine can take.
struct Accepted {
    plan: Plan,
    prepared: Prepared,
    /// The most connections at one time.
    places: u64,
    /// They count against the agent's cap meanwhile.
    _held: Held,
}

/// A part that was set up: its own, or one that it has taken over.
struct Running {
    threads: Threads,
    shards: u32,
    /// How long the run had lasted when it began.
    from: Nanos,
    _held: Option<Held>,
}

impl<'a> Local<'a> {
    pub(super) fn new(allow: Allow, caps: Caps, planner: Planner<'a>, root: Root) -> Local<'a> {
        Local { allow, caps, planner, root, share: None, parts: Vec::new(), read: Tick::default() }
    }

    fn add(&mut self, threads: Threads, shards: usize, held: Option<Held>) {
        self.parts.push(Running { threads, shards: shards as u32, from: Nanos::ZERO, _held: held });
    }
}

impl Running {
    /// A time of the run by the clock of the threads; one before they began is when they did.
    fn theirs(&self, at: Nanos) -> Nanos {
        self.threads.began() + at.since(self.from)
    }

    fn order(&mut self, order: Order) {
        let order = order.translated(|at| self.theirs(at));
        self.threads.order(order);
    }
}

/// Threads for these parts of the plan, with the values of their rows; and for each thread which of the roles it has.
fn threads(
    plan: &Plan,
    prepared: &Prepared,
    parts: Vec<Part>,
    values: Vec<String>,
) -> Result<(Threads, Ready, Vec<u32>), String> {
    let (ready, workers) = share::workers(&parts);
    let plan = Rows::of(plan, &parts).fill(plan, values)?;
    let threads = Threads::ready(&plan, prepared, parts).map_err(|why| why.to_string())?;
    let ready = Ready { io: threads.io().to_owned(), ..ready };
    Ok((threads, ready, workers))
}

impl Machine for Local<'_> {
    fn accept(&mut self, offer: &Offer) -> Result<Vec<u32>, String> {
        let flags = Flags::from_pairs(&offer.flags)?;
        let mut plan = (self.planner)(&flags, offer.scenario.as_deref(), &offer.tables)?;
        if let Some((by, load, dwell)) = offer.step {
            plan = by.plan(&plan, load, dwell);
        }
        self.allow.check(&plan)?;
        // It dials to see which family is served: only what is allowed.
        run::settle(&mut plan, &self.root, true, &mut |_| {});
        let (own, all) = offer.share;
        let share = plan.scaled(Share::ALL.part(own, all));
        let _held = self.caps.take(&share)?;
        let prepared = prepare(&share, &self.root).map_err(|why| why.to_string())?;
        let shards = prepared.shards().to_vec();
        self.share = Some(Accepted { plan, prepared, places: share.places().into(), _held });
        Ok(shards)
    }

    fn rows(&self, assign: &Assign) -> Result<u64, String> {
        let Accepted { plan, .. } = self.share.as_ref().ok_or("it accepted no share")?;
        share::values(assign, plan)
    }

    fn set_up(&mut self, assign: &Assign, values: Vec<String>) -> Result<(Ready, Vec<u32>), String> {
        let Accepted { plan, prepared, places, .. } = self.share.as_mut().ok_or("it accepted no share")?;
        share::check(assign, prepared.shards())?;
        prepared.begin_sources_at(assign.salt);
        let parts = share::parts(plan, assign);
        share::check_size(&parts, *places)?;
        let (threads, ready, workers) = threads(plan, prepared, parts, values)?;
        self.add(threads, workers.len(), None);
        Ok((ready, workers))
    }

    fn begin(&mut self) {
        self.parts.iter_mut().for_each(|part| part.threads.begin());
    }

    fn take_over(
        &mut self,
        assign: &Assign,
        values: Vec<String>,
        orders: &[Order],
    ) -> Result<(Ready, Vec<u32>), String> {
        let Accepted { plan, .. } = self.share.as_ref().ok_or("it accepted no share")?;
        let share = plan.scaled(share::of(assign));
        let held = self.caps.take(&share)?;
        let mut prepared = prepare(&share, &self.root).map_err(|why| why.to_string())?;
        prepared.begin_sources_at(assign.salt);
        let (threads, ready, workers) = threads(plan, &prepared, share::parts(plan, assign), values)?;
        let from = self.parts.first().map_or(Nanos::ZERO, |own| own.threads.now().since(own.threads.began()));
        self.add(threads, workers.len(), Some(held));
        if let Some(part) = self.parts.last_mut() {
            part.threads.begin();
            part.from = from;
            orders.iter().for_each(|order| part.order(*order));
        }
        Ok((ready, workers))
    }

    fn order(&mut self, order: Order) {
        self.parts.iter_mut().for_each(|part| part.order(order));
    }

    fn next(&mut self) -> Update<'_> {
        let (mut first, mut has_ended) = (0, true);
        for part in &mut self.parts {
            let (began, from) = (part.threads.began(), part.from);
            match part.threads.next(Nanos::ZERO) {
                Update::Tick(shard, tick) => {
                    self.read = tick.clone().translated(|at| from + at.since(began));
                    return Update::Tick(first + shard, &self.read);
                }
                Update::Lost(shard) => return Update::Lost(first + shard),
                Update::Ended => {}
                _ => has_ended = false,
            }
            first += part.shards;
        }
        if has_ended { Update::Ended } else { Update::Nothing }
    }

    fn end(&mut self) {
        self.share = None;
        for mut part in self.parts.drain(..) {
            part.threads.order(Order::STOP);
            part.threads.join();
        }
    }
}
