//! A port of this machine that leads to one of a pod, through the API server, as `kubectl port-forward` does.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use tokio::{io, net::TcpListener, task::JoinHandle};

/// Listens on loopback; each connection has a tunnel of its own, so that one that breaks is dialled again. Ends with the task.
///
/// # Errors
/// There is no port to listen on.
pub(super) async fn start(pods: Api<Pod>, pod: String, port: u16) -> io::Result<(u16, JoinHandle<()>)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let local = listener.local_addr()?.port();
    let task = tokio::spawn(async move {
        while let Ok((mut here, _)) = listener.accept().await {
            let (pods, pod) = (pods.clone(), pod.clone());
            tokio::spawn(async move {
                // An error ends this connection: its owner, the NATS client, dials again.
                let Ok(mut tunnel) = pods.portforward(&pod, &[port]).await else { return };
                let Some(mut there) = tunnel.take_stream(port) else { return };
                let _ = io::copy_bidirectional(&mut here, &mut there).await;
                drop(there);
                let _ = tunnel.join().await;
            });
        }
    });
    Ok((local, task))
}
