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

/// Tickets of a server that are kept: a connection takes one when it is dialled and brings one or two, so this many handshakes may
/// be under way. A ticket has half a kilobyte.
const MAX_TICKETS: usize = 64;

/// Destinations whose tickets are kept; connections to others begin anew each time.
const MAX_NAMES: usize = 1024;

/// A bounded store of tickets, by name: a ticket says nothing of another server. Each is used once (RFC 8446 appendix C.4).
#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<HashMap<ServerName<'static>, Store>>);

#[derive(Debug, Default)]
struct Store {
    tickets: VecDeque<Tls13ClientSessionValue>,
    /// TLS 1.2 has sessions, which may be used any number of times: the last one.
    session: Option<Tls12ClientSessionValue>,
    group: Option<NamedGroup>,
}

impl Tickets {
    fn stores(&self) -> MutexGuard<'_, HashMap<ServerName<'static>, Store>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is kept of a name.
    fn edit(&self, name: ServerName<'static>, edit: impl FnOnce(&mut Store)) {
        let mut stores = self.stores();
        if stores.len() < MAX_NAMES || stores.contains_key(&name) {
            edit(stores.entry(name).or_default());
        }
    }

    /// Whether more tickets of this server are of use.
    pub(crate) fn wants_more(&self, name: &ServerName<'_>) -> bool {
        self.stores().get(name).is_none_or(|store| store.tickets.len() < MAX_TICKETS)
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.edit(name, |store| store.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.stores().get(name)?.group
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.edit(name, |store| store.session = Some(session));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.stores().get(name)?.session.clone()
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.edit(name.clone(), |store| store.session = None);
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.edit(name, |store| {
            if store.tickets.len() >= MAX_TICKETS {
                store.tickets.pop_front();
            }
            store.tickets.push_back(ticket);
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.stores().get_mut(name)?.tickets.pop_front()
    }
}
