//! Session tickets of a client, shared by all connections of a shard.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustls::{
    NamedGroup,
    client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue},
    pki_types::ServerName,
};

/// Maximum number of tickets kept per server. A connection takes one when it is dialled and brings one or two, so this many may be dialled
/// at once and all be resumed. A ticket takes half a kilobyte.
const MAX_TICKETS: usize = 256;

/// Maximum number of tickets kept for all servers.
const MAX_ALL: usize = 65_536;

/// Maximum number of server names; sessions with further servers are not resumed.
const MAX_NAMES: usize = 1024;

/// A bounded store of tickets by server name: a ticket is valid only for its server. Each is used once (RFC 8446, appendix C.4).
#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    stores: HashMap<ServerName<'static>, Store>,
    /// Number of tickets in all stores.
    tickets: usize,
}

#[derive(Debug, Default)]
struct Store {
    tickets: VecDeque<Tls13ClientSessionValue>,
    /// The last TLS 1.2 session; unlike a ticket, it may be used any number of times.
    session: Option<Tls12ClientSessionValue>,
    group: Option<NamedGroup>,
}

impl Tickets {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Edits the store of a name; does nothing if there are too many names.
    fn edit(&self, name: ServerName<'static>, edit: impl FnOnce(&mut Store)) {
        let stores = &mut self.kept().stores;
        if stores.len() < MAX_NAMES || stores.contains_key(&name) {
            edit(stores.entry(name).or_default());
        }
    }

    /// Whether another ticket of this server is useful.
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
