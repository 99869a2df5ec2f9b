//! Forwards a local port to a pod's port, through the API server, as `kubectl port-forward` does.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use tokio::{io, net::TcpListener, task::JoinHandle};

/// Listens on loopback. Each connection has its own tunnel, so that a broken one can be redialled. Ends with the task.
///
/// # Errors
/// No port is available.
pub(super) async fn start(pods: Api<Pod>, pod: String, port: u16) -> io::Result<(u16, JoinHandle<()>)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let local = listener.local_addr()?.port();
    let task = tokio::spawn(async move {
        while let Ok((mut here, _)) = listener.accept().await {
            let (pods, pod) = (pods.clone(), pod.clone());
            tokio::spawn(async move {
                // An error ends this connection; the NATS client redials.
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
