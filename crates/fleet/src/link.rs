//! The connection to NATS, for callers without an event loop of their own.

use std::{
    net::IpAddr,
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use futures_util::StreamExt;
use serde::{Serialize, de::DeserializeOwned};
use tokio::runtime::Runtime;
use units::Nanos;

/// A connection to a NATS server; it is dialled again whenever it is lost.
pub struct Link {
    runtime: Runtime,
    client: async_nats::Client,
}

/// What arrives on a subject.
pub(crate) struct Inbox<T> {
    messages: Receiver<T>,
}

impl Link {
    /// Connects to `nats://HOST:PORT`.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn connect(url: &str) -> Result<Link, String> {
        let server: async_nats::ServerAddr =
            url.parse().map_err(|_| format!("{url:?} is not a URL; use nats://HOST:4222"))?;
        let is_loopback =
            server.host().parse().map_or(server.host() == "localhost", |ip: IpAddr| ip.is_loopback());
        if !is_loopback && !server.has_user_pass() {
            return Err(
                "a server that is not on loopback requires credentials; use nats://USER:PASSWORD@HOST:4222"
                    .to_owned(),
            );
        }
        let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = built.map_err(|e| e.to_string())?;
        let options = async_nats::ConnectOptions::new().connection_timeout(Duration::from_secs(5));
        let client = runtime.block_on(options.connect(url)).map_err(|e| format!("{url}: {e}"))?;
        Ok(Link { runtime, client })
    }

    pub(crate) fn send(&self, subject: String, message: &impl Serialize) {
        let bytes = serde_json::to_vec(message).expect("a message is data");
        // An error is that of a connection that is closed for good: the lease runs out then.
        let _ = self.runtime.block_on(self.client.publish(subject, bytes.into()));
    }

    /// All that is sent before this returns is with the server.
    pub(crate) fn flush(&self) {
        let _ = self.runtime.block_on(self.client.flush());
    }

    pub(crate) fn subscribe<T: DeserializeOwned + Send + 'static>(
        &self,
        subject: String,
    ) -> Result<Inbox<T>, String> {
        let subscribed = self.runtime.block_on(self.client.subscribe(subject));
        let mut arriving = subscribed.map_err(|e| e.to_string())?;
        let (sender, messages) = mpsc::channel();
        self.runtime.spawn(async move {
            while let Some(message) = arriving.next().await {
                // What is not of this protocol is not ours.
                let Ok(message) = serde_json::from_slice(&message.payload) else { continue };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        self.flush();
        Ok(Inbox { messages })
    }
}

impl<T> Inbox<T> {
    /// The next message, if one comes in time.
    pub(crate) fn next(&self, wait: Nanos) -> Option<T> {
        self.messages.recv_timeout(Duration::from_nanos(wait.0)).ok()
    }
}
