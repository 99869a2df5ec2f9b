//! The threads of this machine as an agent's [`Machine`].

use host::Root;
use plan::{Flags, Plan, Share};
use run::{Order, Prepared, Threads, Update, Workers, prepare};
use samples::Tick;
use units::Nanos;

use super::{Allow, Caps, Held, Machine};
use crate::{
    message::{Assign, Offer, Ready},
    share,
};

/// The plan that flags, the text of a scenario file, and the files that this reads by name, make on this machine; or why there
/// is none. It reads no file and dials nothing.
pub type Planner<'a> = &'a dyn Fn(&Flags, Option<&str>, &[(String, String)]) -> Result<Plan, String>;

/// This machine.
pub(super) struct Local<'a> {
    allow: Allow,
    caps: Caps,
    planner: Planner<'a>,
    root: Root,
    part: Option<Accepted>,
    threads: Option<Threads>,
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

impl<'a> Local<'a> {
    pub(super) fn new(allow: Allow, caps: Caps, planner: Planner<'a>, root: Root) -> Local<'a> {
        Local { allow, caps, planner, root, part: None, threads: None, read: Tick::default() }
    }
}

impl Machine for Local<'_> {
    fn accept(&mut self, offer: &Offer) -> Result<Vec<u32>, String> {
        let flags = Flags::from_pairs(&offer.flags)?;
        let mut plan = (self.planner)(&flags, offer.scenario.as_deref(), &offer.files)?;
        self.allow.check(&plan)?;
        // It dials to see which family is served: only what is allowed.
        run::settle(&mut plan, &self.root, true, &mut |_| {});
        let (own, all) = offer.share;
        let share = plan.scaled(Share::ALL.part(own, all));
        let _held = self.caps.take(&share)?;
        let prepared = prepare(&share, &self.root).map_err(|why| why.to_string())?;
        let shards = prepared.shards().to_vec();
        self.part = Some(Accepted { plan, prepared, places: share.places().into(), _held });
        Ok(shards)
    }

    fn set_up(&mut self, assign: &Assign) -> Result<(Ready, Vec<u32>), String> {
        let Accepted { plan, prepared, places, .. } = self.part.as_mut().ok_or("it accepted no share")?;
        share::check(assign, prepared.shards())?;
        prepared.begin_sources_at(assign.salt);
        let parts = share::parts(plan, assign);
        share::check_size(&parts, *places)?;
        let (ready, workers) = share::workers(&parts);
        let threads = Threads::ready(plan, prepared, parts).map_err(|why| why.to_string())?;
        let ready = Ready { io: threads.io().to_owned(), ..ready };
        self.threads = Some(threads);
        Ok((ready, workers))
    }

    fn begin(&mut self) {
        self.threads.iter_mut().for_each(Threads::begin);
    }

    fn order(&mut self, order: Order) {
        if let Some(threads) = &mut self.threads {
            threads.order(order.shifted(threads.began()));
        }
    }

    fn next(&mut self) -> Update<'_> {
        let Some(threads) = &mut self.threads else { return Update::Ended };
        let began = threads.began();
        match threads.next(Nanos::ZERO) {
            Update::Tick(shard, tick) => {
                self.read = tick.clone().shifted_back(began);
                Update::Tick(shard, &self.read)
            }
            Update::Lost(shard) => Update::Lost(shard),
            Update::Back(shard) => Update::Back(shard),
            Update::Nothing => Update::Nothing,
            Update::Ended => Update::Ended,
        }
    }

    fn end(&mut self) {
        self.part = None;
        if let Some(mut threads) = self.threads.take() {
            threads.order(Order::STOP);
            threads.join();
        }
    }
}
