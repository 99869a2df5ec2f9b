//! Sessions to resume, of all connections of a shard to one target.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustls::{
    NamedGroup,
    client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue},
    pki_types::ServerName,
};

/// Tickets of a server that are kept: a connection takes one when it is dialled and brings one or two, so this many may be dialled
/// at once and all be resumed. A ticket has half a kilobyte.
const MAX_TICKETS: usize = 256;

/// Tickets of all servers.
const MAX_ALL: usize = 65_536;

/// Destinations whose tickets are kept; connections to others begin anew each time.
const MAX_NAMES: usize = 1024;

/// A bounded store of tickets, by name: a ticket says nothing of another server. Each is used once (RFC 8446 appendix C.4).
#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    stores: HashMap<ServerName<'static>, Store>,
    /// Tickets of all of them.
    tickets: usize,
}

#[derive(Debug, Default)]
struct Store {
    tickets: VecDeque<Tls13ClientSessionValue>,
    /// TLS 1.2 has sessions, which may be used any number of times: the last one.
    session: Option<Tls12ClientSessionValue>,
    group: Option<NamedGroup>,
}

impl Tickets {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is kept of a name.
    fn edit(&self, name: ServerName<'static>, edit: impl FnOnce(&mut Store)) {
        let stores = &mut self.kept().stores;
        if stores.len() < MAX_NAMES || stores.contains_key(&name) {
            edit(stores.entry(name).or_default());
        }
    }

    /// Whether more tickets of this server are of use.
    pub(crate) fn wants_more(&self, name: &ServerName<'_>) -> bool {
        let kept = self.kept();
        kept.tickets < MAX_ALL && kept.stores.get(name).is_none_or(|store| store.tickets.len() < MAX_TICKETS)
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.edit(name, |store| store.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept().stores.get(name)?.group
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.edit(name, |store| store.session = Some(session));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept().stores.get(name)?.session.clone()
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.edit(name.clone(), |store| store.session = None);
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let kept = &mut *self.kept();
        if kept.tickets >= MAX_ALL || kept.stores.len() >= MAX_NAMES && !kept.stores.contains_key(&name) {
            return;
        }
        let tickets = &mut kept.stores.entry(name).or_default().tickets;
        if tickets.len() < MAX_TICKETS {
            kept.tickets += 1;
        } else {
            tickets.pop_front();
        }
        tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let kept = &mut *self.kept();
        let taken = kept.stores.get_mut(name)?.tickets.pop_front()?;
        kept.tickets -= 1;
        Some(taken)
    }
}
