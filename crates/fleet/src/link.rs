//! The connection to NATS, for callers without an event loop of their own.

mod log;
mod server;

use std::{
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use async_nats::jetstream;
use futures_util::StreamExt;
use serde::{Serialize, de::DeserializeOwned};
use tokio::runtime::Runtime;
use units::Nanos;

pub(crate) use log::{Stamped, Stored};
pub use server::{Access, Server};

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
    /// Connects.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn connect(server: &Server) -> Result<Link, String> {
        let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = built.map_err(|e| e.to_string())?;
        let options = server.options()?.connection_timeout(Duration::from_secs(5));
        let client = runtime.block_on(options.connect(server.addresses()));
        Ok(Link { client: client.map_err(|e| format!("{server}: {e}"))?, runtime })
    }

    /// What lasts longer than a connection: streams that the server keeps.
    pub fn jetstream(&self) -> jetstream::Context {
        let _inside = self.runtime.enter();
        jetstream::new(self.client.clone())
    }

    /// Waits for what the server replies.
    pub fn wait<F: Future>(&self, reply: F) -> F::Output {
        self.runtime.block_on(reply)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
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
