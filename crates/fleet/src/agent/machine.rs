//! The threads of this machine as an agent's [`Machine`]. Enforces the agent's allow list and caps, whatever the coordinator sends.

use host::Root;
use plan::{Flags, Part, Plan, Rows, Slice, TableHead};
use run::{Order, Paced, Prepared, Threads, Update, Workers};
use samples::Tick;
use units::{Nanos, Rate};

use super::{Allow, Caps, Held};
use crate::{
    error::Error,
    message::{Assign, Can, Offer, Ready},
    share,
};

/// What carries the load of an agent's part.
pub(crate) trait Machine {
    /// Checks whether this machine may take part in this plan. Returns its capacity, or the reason for refusing.
    fn accept(&mut self, offer: &Offer) -> Result<Can, Error>;

    /// Checks whether this machine may and can carry out this part. Returns the number of table values it uses, or the reason for
    /// refusing.
    fn rows(&mut self, assign: &Assign) -> Result<u64, Error>;

    /// Sets up the shards of the part that was [checked](Machine::rows) last, with these table values: the agent's original part, or one
    /// in addition. Returns, for each shard, the index of its role in [`Ready::roles`]; or the reason for a failure.
    fn set_up(&mut self, values: Vec<String>) -> Result<(Ready, Vec<u32>), Error>;

    /// Starts the shards of the part that was set up last, with these orders applied.
    fn begin(&mut self, orders: &[Order]);

    /// Gives an order to the shards. Its times are relative to the start of the run.
    fn order(&mut self, order: Order);

    /// The next update from the shards, without waiting. Its times are relative to the start of the run.
    fn next(&mut self) -> Update<'_>;

    /// Ends the remaining shards.
    fn end(&mut self);
}

/// Creates the plan from flags, the text of a scenario file, and its tables by file name; or returns why it is not valid. Reads no file
/// and dials nothing.
pub type Planner<'a> = &'a dyn Fn(&Flags, Option<&str>, &[(String, TableHead)]) -> Result<Plan, Error>;

/// Tolerance for rounded rates: factor by which an order may exceed a cap.
const ROUNDED: f64 = 1.001;
/// How far back an agent with a cap makes up for what was due before an order arrived; more would exceed the cap.
const LATE: Nanos = Nanos::from_secs(1);
/// Units of a slice that represents several with different units.
const UNITS: u32 = 1 << 24;

/// This machine.
pub(super) struct Local<'a> {
    allow: Allow,
    caps: Caps,
    planner: Planner<'a>,
    root: Root,
    plan: Option<Plan>,
    next: Option<Checked>,
    parts: Vec<Running>,
    /// The last tick returned, with times relative to the beginning of the run.
    read: Tick,
}

/// A part that this machine can carry out.
struct Checked {
    prepared: Prepared,
    parts: Vec<Part>,
    rows: Rows,
    /// Its slices of the populations, and whether it includes the probe.
    own: (Vec<Slice>, bool),
    /// Its connections, which count against the agent's cap from now on.
    held: Held,
}

/// A part that was set up: the original one, or one taken over.
struct Running {
    threads: Threads,
    shards: u32,
    /// Elapsed time of the run when the part began.
    from: Nanos,
    /// Its slices and probe, as in [`Checked`].
    own: (Vec<Slice>, bool),
    held: Held,
}

impl<'a> Local<'a> {
    pub(super) fn new(allow: Allow, caps: Caps, planner: Planner<'a>, root: Root) -> Local<'a> {
        Local { allow, caps, planner, root, plan: None, next: None, parts: Vec::new(), read: Tick::default() }
    }

    /// The plan that was accepted.
    fn plan(&self) -> Result<&Plan, Error> {
        self.plan.as_ref().ok_or_else(|| Error::refused("it accepted no plan"))
    }

    /// The sum of another part and the existing ones.
    fn together(&self, slices: &[Slice], has_probe: bool) -> (Vec<Slice>, bool) {
        let others = || self.parts.iter().map(|part| &part.own);
        let sum = |(nth, slice): (usize, &Slice)| {
            others().filter_map(|(slices, _)| slices.get(nth)).fold(*slice, |sum, other| joined(sum, *other))
        };
        (slices.iter().enumerate().map(sum).collect(), has_probe || others().any(|(_, has_probe)| *has_probe))
    }

    /// The part of the cap on rates that its parts use, in millionths per second.
    fn sends(&self) -> u64 {
        self.parts.iter().map(|part| part.held.sends()).sum()
    }

    /// Limits an order to the rates that its parts may use. `None` if no conductor gives such an order.
    fn capped(&self, order: Order) -> Option<Order> {
        if self.caps.rate().is_none() {
            return Some(order);
        }
        let most = Rate::from_per_s_f64(self.sends() as f64 / 1e6);
        let most_of = |population: Option<u16>, paced: Paced| {
            let share = |(slices, has_probe): &(Vec<Slice>, bool)| match population {
                Some(nth) => slices.get(usize::from(nth)).map_or(0.0, |slice| slice.share()),
                None => f64::from(u8::from(*has_probe)),
            };
            let share: f64 = self.parts.iter().map(|part| share(&part.own)).sum();
            let most_of_all = most.per_s_f64() * ROUNDED / share;
            let most = if share > 0.0 { Rate::from_per_s_f64(most_of_all) } else { most };
            // All rates of the plan together are within the cap, so that none may exceed its planned value.
            self.planned(population, paced).map_or(most, |planned| planned.min(most))
        };
        order.no_faster(most_of, self.lasts().since(LATE))
    }

    /// The planned rate of a population or of the probe; `None` for the dials of a ramp, whose rate depends on the stage.
    fn planned(&self, population: Option<u16>, paced: Paced) -> Option<Rate> {
        let plan = self.plan.as_ref()?;
        let rate = match population {
            None => plan.probe.as_ref().map(|probe| probe.rate),
            Some(nth) => {
                let load = plan.populations.get(usize::from(nth))?.load;
                if paced == Paced::Profile { load.rate() } else { load.arrival_rate() }
            }
        };
        rate.map(|rate| Rate::from_per_s_f64(rate.per_s_f64() * ROUNDED))
    }

    /// Elapsed time of the run.
    fn lasts(&self) -> Nanos {
        self.parts.first().map_or(Nanos::ZERO, |own| own.threads.now().since(own.threads.began()))
    }
}

/// A slice with the sum of both shares.
fn joined(one: Slice, other: Slice) -> Slice {
    let share = one.share() + other.share();
    let (width, of) = match one.of == other.of {
        true => (one.width.saturating_add(other.width), one.of),
        false => ((share * f64::from(UNITS)) as u32, UNITS),
    };
    Slice { from: 0, width: width.min(of), of }
}

impl Running {
    /// Converts a time of the run to the clock of the threads. Times before they began become the time of their beginning.
    fn theirs(&self, at: Nanos) -> Nanos {
        self.threads.began() + at.since(self.from)
    }

    fn order(&mut self, order: Order) {
        let order = order.translated(|at| self.theirs(at));
        self.threads.order(order);
    }
}

impl Machine for Local<'_> {
    fn accept(&mut self, offer: &Offer) -> Result<Can, Error> {
        let flags = Flags::from_pairs(&offer.flags).map_err(Error::refused)?;
        let plan = (self.planner)(&flags, offer.scenario.as_deref(), &offer.tables)?;
        let mut plan = plan.with_sent(&offer.sent).map_err(Error::refused)?;
        if let Some((by, load, dwell)) = offer.step {
            plan = by.plan(&plan, load, dwell);
        }
        self.allow.check(&plan)?;
        // May dial to find the address family that is served, and so comes after the allow list.
        run::settle(&mut plan, &self.root, true, &mut |_| {});
        let need = run::need(&plan, &self.root).map_err(Error::refused)?;
        let capacity = host::capacity_after_time_wait(&self.root, &need);
        let (fits, limited_by) = (capacity.connections, capacity.limited_by);
        let (cap, per_s) = (self.caps.free(), self.caps.free_rate().map(Rate::per_s_f64));
        self.plan = Some(plan);
        Ok(Can { fits, limited_by: limited_by.to_owned(), cap, per_s })
    }

    fn rows(&mut self, assign: &Assign) -> Result<u64, Error> {
        share::check(assign, self.plan()?)?;
        self.next = None;
        let plan = self.plan()?;
        let own = plan.sliced(&assign.slices, assign.probe);
        let (slices, has_probe) = self.together(&assign.slices, assign.probe);
        let held = self.caps.take(&own, &plan.sliced(&slices, has_probe), self.sends())?;
        // The number of pairs for all agents, so that this one's share suffices.
        let Slice { width, of, .. } = assign.tuples;
        let pairs = (u128::from(plan.pairs_needed()) * u128::from(of)).div_ceil(width.into());
        let pairs = u64::try_from(pairs).unwrap_or(u64::MAX);
        let mut prepared = run::prepare_part(&own, pairs, &self.root).map_err(Error::refused)?;
        prepared.begin_sources_at(assign.salt);
        let parts = share::parts(plan, assign, |nth| prepared.shards()[usize::from(nth)]);
        let rows = share::rows(plan, assign);
        let count = rows.count();
        let own = (assign.slices.clone(), assign.probe);
        self.next = Some(Checked { prepared, parts, rows, own, held });
        Ok(count)
    }

    fn set_up(&mut self, values: Vec<String>) -> Result<(Ready, Vec<u32>), Error> {
        let from = self.lasts();
        let next = self.next.take().ok_or_else(|| Error::refused("it checked no part"))?;
        let Checked { prepared, parts, rows, own, held } = next;
        let plan = rows.fill(self.plan()?, values).map_err(Error::refused)?;
        run::check_tls(&plan, &parts).map_err(Error::refused)?;
        let (ready, workers) = share::workers(&plan, &parts);
        let shards = parts.len() as u32;
        let threads = Threads::ready(&plan, &prepared, parts).map_err(Error::refused)?;
        let ready = Ready { io: threads.io().to_owned(), ..ready };
        self.parts.push(Running { threads, shards, from, own, held });
        Ok((ready, workers))
    }

    fn begin(&mut self, orders: &[Order]) {
        if let Some(part) = self.parts.last_mut() {
            part.threads.begin();
        }
        // The elapsed time of the run, and so what an order makes up for, is known only once the first part has begun.
        let orders: Vec<Order> = orders.iter().filter_map(|order| self.capped(*order)).collect();
        if let Some(part) = self.parts.last_mut() {
            orders.into_iter().for_each(|order| part.order(order));
        }
    }

    fn order(&mut self, order: Order) {
        let Some(order) = self.capped(order) else { return };
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
        (self.plan, self.next) = (None, None);
        for mut part in self.parts.drain(..) {
            part.threads.order(Order::STOP);
            part.threads.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::{Control, RateProfile};
    use plan::{Environment, flag};

    use super::*;
    use crate::message::PROTOCOL;

    fn planned(flags: &Flags, _: Option<&str>, _: &[(String, TableHead)]) -> Result<Plan, Error> {
        let resolve = |_: &str| Err("no names here".to_owned());
        let plan = plan::from_flags(flags, &Environment { cores: 2, seed: 1, resolve: &resolve });
        plan.map_err(|mistakes| Error::refused(format!("{mistakes:?}")))
    }

    #[test]
    fn a_part_over_the_caps_is_refused_whatever_the_coordinator_was_told() {
        let (caps, allow) = (Caps::new(Some(100), None), Allow::parse(&[], &|_| Ok(Vec::new())).unwrap());
        let mut local = Local::new(allow, caps.clone(), &planned, Root::real());
        let flags = Flags::new("tcp://127.0.0.1:9").with(&flag::CONNECTIONS, 1_000).pairs();
        let can = local.accept(&Offer { protocol: PROTOCOL, flags, ..Offer::default() }).unwrap();
        assert!(can.cap == Some(100) && can.per_s.is_none() && can.fits > 100, "{can:?}");
        let part = |width| {
            let slices = vec![Slice { from: 10, width, of: 1_000 }];
            Assign { slices, tuples: Slice::WHOLE, ..Assign::default() }
        };
        let why = local.rows(&part(101)).unwrap_err().to_string();
        assert!(why.starts_with("101 connections are more than allowed here (100)"), "{why}");
        assert!(local.rows(&part(991)).unwrap_err().to_string().contains("no part of the plan"));
        // Checking the part again does not hold its connections twice.
        assert_eq!((local.rows(&part(100)), local.rows(&part(100))), (Ok(0), Ok(0)));
        assert!(caps.hold(1, Rate::default()).is_err());
        let (ready, workers) = local.set_up(Vec::new()).unwrap();
        assert_eq!((ready.wanted, workers), (100, vec![0, 0]));
        assert!(caps.hold(1, Rate::default()).is_err());
        local.end();
        assert!(caps.hold(100, Rate::default()).is_ok());
    }

    /// Two connections on three agents: one agent gets none, and none of the requests.
    #[test]
    fn a_part_of_nothing_is_taken() {
        let allow = Allow::parse(&[], &|_| Ok(Vec::new())).unwrap();
        let mut local = Local::new(allow, Caps::new(None, None), &planned, Root::real());
        let flags = Flags::new("http://127.0.0.1:9/").with(&flag::CONNECTIONS, 2);
        let flags = flags.with(&flag::REQUESTS, 20).with(&flag::RAMP, "0s").pairs();
        local.accept(&Offer { protocol: PROTOCOL, flags, ..Offer::default() }).unwrap();
        let slices = vec![Slice { from: 2, width: 0, of: 2 }];
        for left in [Vec::new(), vec![None], vec![Some(0)], vec![Some(20)]] {
            let part = Assign {
                slices: slices.clone(),
                tuples: Slice { from: 2, width: 1, of: 3 },
                left,
                ..Assign::default()
            };
            assert_eq!(local.rows(&part), Ok(0));
            let (ready, workers) = local.set_up(Vec::new()).unwrap();
            assert_eq!((ready.wanted, workers), (0, Vec::new()));
            local.begin(&[]);
        }
        assert!(matches!(Machine::next(&mut local), Update::Ended));
        local.end();
    }

    #[test]
    fn no_order_and_no_further_part_goes_beyond_the_cap_on_rates() {
        let most = Rate::per_s(100);
        let allow = Allow::parse(&[], &|_| Ok(Vec::new())).unwrap();
        let mut local = Local::new(allow, Caps::new(None, Some(most)), &planned, Root::real());
        let flags = Flags::new("http://127.0.0.1:9/").with(&flag::CONNECTIONS, 400);
        let flags = flags.with(&flag::RAMP, "200/s").with(&flag::RATE, "200/s").pairs();
        local.accept(&Offer { protocol: PROTOCOL, flags, ..Offer::default() }).unwrap();
        let part = |from, width| {
            let slices = vec![Slice { from, width, of: 400 }];
            Assign { slices, tuples: Slice::WHOLE, ..Assign::default() }
        };
        let over = |refused: Result<u64, Error>| {
            refused.unwrap_err().to_string().contains("more than the 100/s allowed")
        };
        assert!(over(local.rows(&part(0, 204))));
        local.rows(&part(0, 160)).unwrap();
        local.set_up(Vec::new()).unwrap();
        // Two fifths of the whole, which use 80/s: 200/s for all together, as planned.
        let load = |nth, connections| Order::Load(nth, connections, None, Nanos::ZERO);
        let [Some(Order::Load(0, 400, Some(free), _)), Some(Order::Load(1, 400, Some(other), _))] =
            [local.capped(load(0, 400)), local.capped(load(1, 400))]
        else {
            panic!("they have a rate")
        };
        assert_eq!(free.last_rate().per_s_f64().round(), 200.0);
        assert_eq!(other.last_rate().per_s_f64(), 80.0, "nothing of that is its own");
        // With its existing part, another fifth exceeds the cap; a tenth does not.
        assert!(over(local.rows(&part(200, 80))));
        assert_eq!(local.rows(&part(200, 40)), Ok(0));
        // Slices with different units too.
        let (together, _) = local.together(&[Slice { from: 1, width: 1, of: 4 }], true);
        assert!((together[0].share() - 0.65).abs() < 1e-6, "{together:?}");
        local.end();
    }

    /// The sum of what each of them may use alone would exceed the cap.
    #[test]
    fn no_rate_is_ordered_that_is_more_than_planned() {
        let allow = Allow::parse(&[], &|_| Ok(Vec::new())).unwrap();
        let mut local = Local::new(allow, Caps::new(None, Some(Rate::per_s(100))), &planned, Root::real());
        let flags = Flags::new("http://127.0.0.1:9/").with(&flag::CONNECTIONS, 40);
        let flags = flags.with(&flag::RAMP, "100/s").with(&flag::RATE, "20/s").pairs();
        local.accept(&Offer { protocol: PROTOCOL, flags, ..Offer::default() }).unwrap();
        let slices = vec![Slice { from: 0, width: 40, of: 40 }];
        let part = Assign { slices, tuples: Slice::WHOLE, ..Assign::default() };
        local.rows(&part).unwrap();
        local.set_up(Vec::new()).unwrap();
        let profile = |rate| Control::RateProfile(RateProfile::Steady(Rate::per_s(rate)), Nanos::ZERO);
        let last = |order: Order| match local.capped(order) {
            Some(Order::Population(0, Control::RateProfile(profile, _)))
            | Some(Order::Load(0, _, Some(profile), _)) => profile.last_rate().per_s_f64().round(),
            other => panic!("{other:?}"),
        };
        assert_eq!(last(Order::Population(0, profile(90))), 20.0);
        assert_eq!(last(Order::Population(0, profile(10))), 10.0);
        assert_eq!(last(Order::Load(0, 40, None, Nanos::ZERO)), 100.0);
        local.end();
    }
}
