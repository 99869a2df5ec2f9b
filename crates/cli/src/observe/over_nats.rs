//! `--observe nats://…` and `--observe NAME`: an observer on the target's host that joined through NATS.
//!
//! A run requests samples from an observer over HTTP. This module starts a local observer that forwards each request over NATS, so
//! that a run needs no second way.

use std::{
    fmt::Display,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
};

use fleet::Observers;
use host::remote::Server;
use plan::{
    Flag, Flags,
    flag::{self, FLAGS},
};

use crate::{Failure, message, mistakes::Mistakes, nats};

/// The local observer, which runs until this is dropped.
pub(crate) struct Asking {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// The flags with `--observe` replaced by the local observer's URL; unchanged if no observer on NATS is requested.
pub(crate) fn resolved(flags: &Flags) -> Result<(Flags, Option<Asking>), Failure> {
    let Some(wanted) = flags.get(&flag::OBSERVE) else { return Ok((flags.clone(), None)) };
    let (url, name) = match at(wanted) {
        None => return Ok((flags.clone(), None)),
        // An observer's name alone: it is at the fleet's server.
        Some((None, name)) => {
            (flags.get(&flag::FLEET).filter(|url| url.contains("://")).map(str::to_owned), name)
        }
        Some((url, name)) => (url, name),
    };
    let mut mistakes = Mistakes::default();
    if flags.get(&flag::OBSERVE_TOKEN_FILE).is_some() {
        mistakes.add("--observe-token-file: not for an observer that joined by NATS; remove it");
    }
    let server = nats::server("--observe", url.as_deref(), flags, &mut mistakes);
    let server = mistakes.end(()).map(|()| server.expect("it is no mistake"))?;
    let failed = |why: &dyn Display| Failure::machine(format!("--observe: {why}"));
    let observers = Observers::find(nats::link("--observe", &server)?, name.as_deref());
    let observers = observers.map_err(|e| failed(&e))?;
    message(&format!("observed by {} at {server}", observers.name()));
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let local = Server::bind(here, None, None).map_err(|e| failed(&e))?;
    let address = local.address().map_err(|e| failed(&e))?;
    let stop = Arc::new(AtomicBool::new(false));
    let order = stop.clone();
    let body = move || {
        // If this fails, the run counts missing samples.
        let _ = local.serve(&order, |ports| observers.sample(ports).map_err(|why| why.to_string()));
    };
    let thread = thread::Builder::new().name("observe".to_owned()).spawn(body).map_err(|e| failed(&e))?;
    let flags = flags.clone().without(&flag::OBSERVE).with(&flag::OBSERVE, format!("http://{address}"));
    // The credentials have been used, and a run on this machine accepts none.
    let is_used = |flag: &&&Flag| flag.name.starts_with("nats-") && flags.get(&flag::FLEET).is_none();
    let used: Vec<&Flag> = FLAGS.iter().filter(is_used).copied().collect();
    let flags = used.into_iter().fold(flags, Flags::without);
    Ok((flags, Some(Asking { stop, thread: Some(thread) })))
}

/// The URL of the NATS server and the name of the observer, as far as given; `None` if this is not an observer on NATS.
fn at(wanted: &str) -> Option<(Option<String>, Option<String>)> {
    let Some((scheme, rest)) = wanted.split_once("://") else {
        return fleet::agent_name(wanted).is_ok().then(|| (None, Some(wanted.to_owned())));
    };
    if !["nats", "tls"].contains(&scheme) {
        return None;
    }
    match rest.rsplit_once('/') {
        Some((servers, name)) if !servers.ends_with('/') => {
            let name = Some(name.to_owned()).filter(|name| !name.is_empty());
            Some((Some(format!("{scheme}://{servers}")), name))
        }
        _ => Some((Some(wanted.to_owned()), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observer_is_a_name_or_at_a_server() {
        let some = |text: &str| Some(text.to_owned());
        for (text, expected) in [
            ("http://10.0.0.7:9100", None),
            ("10.0.0.7:9100", None),
            ("vm7", Some((None, some("vm7")))),
            ("nats://h:4222", Some((some("nats://h:4222"), None))),
            ("nats://h:4222/", Some((some("nats://h:4222"), None))),
            ("tls://u:p@h/vm7", Some((some("tls://u:p@h"), some("vm7")))),
            ("nats://a,nats://b/vm7", Some((some("nats://a,nats://b"), some("vm7")))),
            ("nats://a,nats://b", Some((some("nats://a,nats://b"), None))),
        ] {
            assert_eq!(at(text), expected, "{text}");
        }
    }
}
