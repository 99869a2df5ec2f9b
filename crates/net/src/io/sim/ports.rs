//! The addresses in use in the simulated network: the 4-tuples of connections and the addresses of listeners.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddr},
};

/// The range of ports that the network chooses from: the default of Linux' `ip_local_port_range`.
const CHOSEN: std::ops::Range<u16> = 32_768..61_000;
/// The lowest port for listeners that do not name one.
const LISTEN_FROM: u16 = 1024;

/// Local and remote address of a connection, as the dialling end has them.
pub(super) type Tuple = (SocketAddr, SocketAddr);

#[derive(Default)]
pub(super) struct Ports {
    tuples: HashSet<Tuple>,
    /// The listening addresses and their hosts, by port.
    listeners: HashMap<u16, Vec<(IpAddr, u16)>>,
    /// Number of ports chosen so far.
    chosen: u32,
}

impl Ports {
    /// Takes `from` for a connection to `to`; chooses a port if `from` has port 0. `None` if the tuple is in use, or every port is.
    pub(super) fn take(&mut self, from: SocketAddr, to: SocketAddr) -> Option<Tuple> {
        if from.port() != 0 {
            return self.take_exactly((from, to));
        }
        (0..CHOSEN.len()).find_map(|_| {
            let port = CHOSEN.start + (self.chosen % CHOSEN.len() as u32) as u16;
            self.chosen += 1;
            self.take_exactly((SocketAddr::new(from.ip(), port), to))
        })
    }

    fn take_exactly(&mut self, tuple: Tuple) -> Option<Tuple> {
        self.tuples.insert(tuple).then_some(tuple)
    }

    /// Frees a tuple that [`Ports::take`] returned.
    pub(super) fn give_back(&mut self, tuple: Tuple) {
        assert!(self.tuples.remove(&tuple), "a 4-tuple given back twice: {tuple:?}");
    }

    /// Makes a host listen; port 0 is replaced. Several hosts may listen on the same port (SO_REUSEPORT).
    pub(super) fn listen(&mut self, host: u16, mut at: SocketAddr) -> SocketAddr {
        if at.port() == 0 {
            let free = (LISTEN_FROM..).find(|port| self.listeners.get(port).is_none_or(Vec::is_empty));
            at.set_port(free.expect("far less than 64,512 listeners"));
        }
        self.listeners.entry(at.port()).or_default().push((at.ip(), host));
        at
    }

    pub(super) fn unlisten(&mut self, host: u16, at: SocketAddr) {
        if let Some(listeners) = self.listeners.get_mut(&at.port()) {
            listeners.retain(|(_, h)| *h != host);
        }
    }

    /// The host that receives a connection; `None` if no host listens there. Among several hosts, the source port decides; the kernel's
    /// SO_REUSEPORT uses a hash.
    pub(super) fn listener(&self, (from, to): Tuple) -> Option<u16> {
        let hosts = || {
            let all = self.listeners.get(&to.port()).into_iter().flatten();
            all.filter(|(ip, _)| ip.is_unspecified() || *ip == to.ip()).map(|(_, host)| *host)
        };
        let count = hosts().count();
        (count > 0).then(|| hosts().nth(usize::from(from.port()) % count).expect("below the count"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// Takes each `(from, to)` in turn, and checks which are granted.
    fn check(takes: &[(&str, &str)], expected: &[bool]) {
        let mut ports = Ports::default();
        let given: Vec<bool> =
            takes.iter().map(|(from, to)| ports.take(at(from), at(to)).is_some()).collect();
        assert_eq!(given, expected, "{takes:?}");
    }

    #[test]
    fn an_address_serves_each_destination_once() {
        let (a, b) = ("10.0.0.1:5000", "10.0.0.2:5000");
        check(&[(a, "10.0.1.1:80"), (a, "10.0.1.1:80")], &[true, false]);
        check(&[(a, "10.0.1.1:80"), (a, "10.0.1.2:80")], &[true, true]);
        check(&[(a, "10.0.1.1:80"), (b, "10.0.1.1:80")], &[true, true]);
    }

    #[test]
    fn chosen_ports_differ_until_there_is_none() {
        let mut ports = Ports::default();
        let (from, to) = (at("10.0.0.1:0"), at("10.0.1.1:80"));
        let taken: Vec<Tuple> = (0..CHOSEN.len()).map(|_| ports.take(from, to).unwrap()).collect();
        assert_eq!(taken.iter().collect::<HashSet<_>>().len(), CHOSEN.len());
        assert_eq!(ports.take(from, to), None);
        assert!(ports.take(from, at("10.0.1.2:80")).is_some(), "another destination has ports of its own");
        ports.give_back(taken[5]);
        assert_eq!(ports.take(from, to), Some(taken[5]));
    }

    #[test]
    fn a_listener_is_found_by_its_address() {
        let mut ports = Ports::default();
        let first = ports.listen(0, at("10.0.0.1:0"));
        let second = ports.listen(1, at("10.0.0.1:0"));
        assert_ne!(first.port(), second.port());
        ports.listen(2, at("0.0.0.0:80"));
        ports.listen(3, at("0.0.0.0:80"));
        let from = |port: u16| SocketAddr::new(at("10.0.0.9:0").ip(), port);
        assert_eq!(ports.listener((from(1), first)), Some(0));
        assert_eq!(ports.listener((from(1), SocketAddr::new(at("10.0.0.2:0").ip(), first.port()))), None);
        assert_eq!(ports.listener((from(1), at("10.9.9.9:80"))), Some(3));
        assert_eq!(ports.listener((from(2), at("10.9.9.9:80"))), Some(2));
        ports.unlisten(3, at("0.0.0.0:80"));
        assert_eq!(ports.listener((from(1), at("10.9.9.9:80"))), Some(2));
    }
}
