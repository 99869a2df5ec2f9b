//! A shard of clients: dials, upgrades, pings, and detects losses.

mod connection;
mod secured;
mod texts;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
    sync::{Arc, mpsc::Receiver},
};

use engine::{Sessions, fault_of};
use net::{Close, Cx, Gone, Inner, Io, Key, Program};
use samples::{Fault, Kind, Stage, Tick};
use units::{Nanos, Random};

use crate::{
    client::{Client, Lost, PING, State},
    order::{Dial, Filter, Order, View},
};

/// How often an idle shard checks for orders: the longest that curl waits.
const ORDERS_INTERVAL: Nanos = Nanos::from_millis(20);
/// Maximum number of dials, and of closes, in one turn, so that echoes are not delayed.
const A_TURN: usize = 128;
/// Local addresses tried for one dial: the number of ports in a range that others may have taken entirely.
const MAX_TRIES: u16 = 32_768;
/// Number of lost clients that a shard remembers, the latest ones.
const MAX_LOST: usize = 10_000;

/// The program of one shard.
pub(crate) struct ClientShard {
    orders: Receiver<Order>,
    clients: HashMap<u32, Box<Client>>,
    /// The client number of each connection, by the index of its key.
    numbers: Vec<u32>,
    /// Clients waiting for their dial, by due time.
    waiting: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Numbers of lost clients, oldest first; some may have been deleted since.
    lost: VecDeque<u32>,
    sessions: Sessions,
    layers: secured::Layers,
    /// Counts since the start; `open` and `waiting` are current.
    tick: Tick,
    random: Random,
    ping: Arc<str>,
    is_stopping: bool,
}

impl ClientShard {
    pub(crate) fn new(orders: Receiver<Order>, seed: u64) -> ClientShard {
        ClientShard {
            orders,
            clients: HashMap::new(),
            numbers: Vec::new(),
            waiting: BinaryHeap::new(),
            lost: VecDeque::new(),
            sessions: Sessions::new(seed),
            layers: secured::Layers::default(),
            tick: Tick::default(),
            random: Random::new(seed),
            ping: PING.into(),
            is_stopping: false,
        }
    }

    /// Whether the shard was stopped and every client is closed.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_stopping && self.clients.is_empty()
    }

    fn number(&self, k: Key) -> u32 {
        self.numbers[k.index as usize]
    }

    fn client(&mut self, number: u32) -> &mut Client {
        self.clients.get_mut(&number).expect("a connection belongs to a client")
    }

    /// Notes that the connection at this key belongs to client `number`.
    fn begin_at(&mut self, k: Key, number: u32) {
        let index = k.index as usize;
        self.numbers.resize(self.numbers.len().max(index + 1), 0);
        self.numbers[index] = number;
        self.client(number).key = Some(k);
    }

    fn apply<I: Io>(&mut self, cx: &mut Cx<I>, order: Order) {
        // A request that was abandoned gets no reply.
        match order {
            Order::Add(dials) => dials.into_iter().for_each(|dial| self.add(dial)),
            Order::Get(number, reply) => drop(reply.send(self.view(number))),
            Order::Send(number, text, reply) => drop(reply.send(self.send_text(cx, number, text))),
            Order::Delete(number, reply) => drop(reply.send(self.delete(cx, number))),
            Order::List(filter, reply) => drop(reply.send(self.list(filter))),
            Order::Report(reply) => drop(reply.send(Box::new(self.report(cx.now())))),
            Order::Stop => self.is_stopping = true,
        }
    }

    fn add(&mut self, Dial { number, target, due, ping, place }: Dial) {
        self.clients.insert(number, Box::new(Client::new(target, due, ping, place)));
        self.waiting.push(Reverse((due, number)));
        self.tick.wanted += 1;
    }

    fn view(&self, number: u32) -> Option<View> {
        self.clients.get(&number).map(|client| client.view(number))
    }

    fn list(&self, filter: Filter) -> Vec<u32> {
        let is_listed = |client: &Client| match filter {
            Filter::Live => !client.is_lost(),
            Filter::Connected => client.is_open(),
            Filter::Lost => client.is_lost(),
            Filter::All => true,
        };
        self.clients.iter().filter(|(_, client)| is_listed(client)).map(|(number, _)| *number).collect()
    }

    fn report(&mut self, now: Nanos) -> Tick {
        self.tick.until = now;
        self.tick.clone()
    }

    /// Closes and removes a client.
    fn delete<I: Io>(&mut self, cx: &mut Cx<I>, number: u32) -> Option<View> {
        if let Some(k) = self.clients.get(&number)?.key {
            self.say_goodbye(cx, k, number);
            let target = self.client(number).target.clone();
            self.close_layer(cx, k);
            self.layers.end(&target, k);
            cx.close(k, Close::Graceful);
        }
        let mut client = self.clients.remove(&number).expect("it was there just now");
        self.tick.wanted -= 1;
        if !client.is_lost() {
            self.forget_pings(&mut client);
            self.tick.open -= u64::from(client.is_open());
            self.tick.counts.finished += u64::from(client.is_open());
        }
        Some(View { connected: false, ..client.view(number) })
    }

    /// Marks a client as lost. It is kept with the reason until it is deleted, or many others were lost after it.
    fn lose<I: Io>(&mut self, cx: &mut Cx<I>, number: u32, why: Lost) {
        let mut client = self.clients.remove(&number).expect("who is lost is there");
        let counts = &mut self.tick.counts;
        match (client.state, why) {
            (State::Open, Lost::Closed(_)) => counts.closed += 1,
            (State::Open, Lost::Fault(_)) => counts.dropped += 1,
            _ => counts.failed += 1,
        }
        match client.state {
            State::Waiting | State::Dialling(_) => self.tick.connect.censor(),
            State::Securing => self.tick.tls.censor(),
            State::Upgrading => self.tick.handshake.censor(),
            State::Open => self.tick.open -= 1,
            State::Lost(_) => unreachable!("who is lost has no connection"),
        }
        if let Lost::Fault(fault) = why {
            self.tick.faults.count(fault);
        }
        self.forget_pings(&mut client);
        client.state = State::Lost(why);
        (client.session, client.partial, client.unsent) = (None, None, Vec::new());
        if let Some(k) = client.key.take() {
            self.layers.end(&client.target, k);
            let how = if matches!(why, Lost::Closed(_)) { Close::Graceful } else { Close::Reset };
            cx.close(k, how);
        }
        client.place = None;
        self.clients.insert(number, client);
        self.lost.push_back(number);
        if self.lost.len() > MAX_LOST {
            let oldest = self.lost.pop_front().expect("there are many");
            // A lost client that was deleted is not counted any more.
            self.tick.wanted -= u64::from(self.clients.remove(&oldest).is_some());
        }
    }

    /// Counts the pings without an echo as unanswered.
    fn forget_pings(&mut self, client: &mut Client) {
        while client.pinged.take().is_some() {
            self.tick.latency.censor();
            self.tick.waiting -= 1;
        }
    }

    fn dial_due<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        for _ in 0..A_TURN {
            let Some(Reverse((due, number))) = self.waiting.peek().copied() else { return Nanos::NEVER };
            if due > cx.now() {
                return due;
            }
            self.waiting.pop();
            if self.clients.contains_key(&number) {
                self.dial(cx, number);
            }
        }
        cx.now()
    }

    fn dial<I: Io>(&mut self, cx: &mut Cx<I>, number: u32) {
        let Some(k) = cx.take() else {
            return self.lose(cx, number, Lost::Fault(Fault::host(Stage::Dial, Kind::OpenFiles)));
        };
        let client = self.client(number);
        let (from, to, destination) = client.target.next();
        client.destination = destination;
        client.state = State::Dialling(0);
        let deadline = client.silent_at();
        self.begin_at(k, number);
        cx.dial(k, from, to);
        cx.wake_at(k, deadline);
    }

    /// Dials the same client from the next local address; it gets a new key, and the old one becomes stale.
    fn dial_again<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32, tries: u16) {
        cx.close(k, Close::Reset);
        let k = cx.take().expect("a place was given back just now");
        let client = self.client(number);
        let (from, to) = client.target.next_further_to(client.destination);
        client.state = State::Dialling(tries + 1);
        let deadline = client.silent_at();
        self.begin_at(k, number);
        self.tick.counts.addresses_skipped += 1;
        cx.dial(k, from, to);
        cx.wake_at(k, deadline);
    }

    /// Closes some of the remaining clients; returns when to continue.
    fn stop<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let some: Vec<u32> = self.clients.keys().copied().take(A_TURN).collect();
        for number in some {
            self.delete(cx, number);
        }
        if self.clients.is_empty() { Nanos::NEVER } else { cx.now() }
    }
}

impl Program for ClientShard {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let (number, now) = (self.number(k), cx.now());
        let ClientShard { clients, tick, .. } = self;
        let client = clients.get_mut(&number).expect("a connection belongs to a client");
        tick.connect.record(now.since(client.since));
        client.since = now;
        if client.target.secured.is_some() { self.secure(cx, k, number) } else { self.upgrade(cx, k, number) }
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let (number, now) = (self.number(k), cx.now());
        let client = self.client(number);
        if now >= client.silent_at() {
            let fault = Fault::target(client.state.stage(), Kind::Timeout);
            return self.lose(cx, number, Lost::Fault(fault));
        }
        if client.is_open() && now >= client.ping_due {
            self.ping(cx, k, number);
        }
        self.set_timer(cx, k, number);
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        let number = self.number(k);
        self.client(number).heard = cx.now();
        let used = self.read_layer(cx, k, input);
        self.tick.counts.bytes_in += used as u64;
        used
    }

    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        let number = self.number(k);
        match self.client(number).state {
            State::Dialling(tries) if matches!(why, Gone::AddressInUse(_)) && tries < MAX_TRIES => {
                self.dial_again(cx, k, number, tries);
            }
            state => self.lose(cx, number, Lost::Fault(fault_of(state.stage(), why))),
        }
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while let Ok(order) = self.orders.try_recv() {
            self.apply(cx, order);
        }
        let next = if self.is_stopping { self.stop(cx) } else { self.dial_due(cx) };
        next.min(cx.now() + ORDERS_INTERVAL)
    }
}

#[cfg(test)]
mod tests;
