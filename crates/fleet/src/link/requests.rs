//! Requests that expect a reply.

use async_nats::{Client, Subject};
use serde::{Serialize, de::DeserializeOwned};
use tokio::runtime::Handle;

use super::{Inbox, Link};

/// A received request.
pub(crate) struct Asked<T> {
    pub(crate) message: T,
    reply_to: Option<Subject>,
    client: Client,
    runtime: Handle,
}

impl<T> Asked<T> {
    /// Replies; may be called several times.
    pub(crate) fn reply(&self, message: &impl Serialize) {
        let Some(subject) = self.reply_to.clone() else { return };
        let bytes = serde_json::to_vec(message).expect("a message is data");
        // If the server is unreachable, the requester gets no reply.
        let _ = self.runtime.block_on(self.client.publish(subject, bytes.into()));
    }
}

impl Link {
    /// Receives requests on a subject.
    pub(crate) fn serve<T: DeserializeOwned + Send + 'static>(
        &self,
        subject: String,
    ) -> Result<Inbox<Asked<T>>, String> {
        let (client, runtime) = (self.client.clone(), self.runtime.handle().clone());
        self.receive(subject, move |message| {
            let (client, runtime) = (client.clone(), runtime.clone());
            let asked = serde_json::from_slice(&message.payload).ok()?;
            Some(Asked { message: asked, reply_to: message.reply.clone(), client, runtime })
        })
    }

    /// Sends a request to all that serve this subject; their replies arrive one by one.
    pub(crate) fn ask<R: DeserializeOwned + Send + 'static>(
        &self,
        subject: String,
        message: &impl Serialize,
    ) -> Result<Inbox<R>, String> {
        let inbox = self.client.new_inbox();
        let replies = self.subscribe(inbox.clone())?;
        let bytes = serde_json::to_vec(message).expect("a message is data");
        let sent = self.wait(self.client.publish_with_reply(subject, inbox, bytes.into()));
        sent.map_err(|e| e.to_string())?;
        self.flush();
        Ok(replies)
    }
}
