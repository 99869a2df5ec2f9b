//! Creates the objects of a run, waits for its agents, and removes everything.

use std::{collections::HashSet, fs::File, io::Read, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams},
    config::KubeConfigOptions,
};
use serde_json::Value;
use tokio::{io, net::TcpListener, runtime::Runtime, task::JoinHandle};
use units::{Clock, Count, Nanos};

use super::{
    Kubernetes, Needs,
    objects::{NATS_PORT, Objects},
    pods::{self, Pods},
};
use crate::{
    error::{Error, Waiting},
    link::{Inbox, Link},
    message::{HERE, Here},
};

/// Polling interval for the state of pods.
const LOOKS: Nanos = Nanos::from_millis(500);
/// Timeout of a call to the API server.
const CALLS: Duration = Duration::from_secs(20);
/// Timeout of the removal request; the user waits for the command to end.
const REMOVAL: Duration = Duration::from_secs(5);

/// The agents of this run in a cluster. Dropping it removes them with all their objects.
pub struct Launched {
    runtime: Runtime,
    client: Client,
    namespace: String,
    name: String,
    agents: u32,
    wait: Nanos,
    clock: Clock,
    url: String,
    forward: Option<JoinHandle<()>>,
}

impl Launched {
    /// Creates agents, and a NATS server unless one is named. When this returns, the server is running, but not necessarily the agents.
    ///
    /// # Errors
    /// No cluster, a refusal, a NATS server that does not start in time, or Ctrl-C; contains the reason. Everything is removed.
    pub fn new(asked: &Kubernetes, needs: &Needs, waiting: &mut Waiting) -> Result<Launched, Error> {
        let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = built.map_err(Error::unavailable)?;
        let config = runtime.block_on(configuration(asked))?;
        let namespace = asked.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = {
            let _inside = runtime.enter();
            Client::try_from(config).map_err(|e| Error::Unavailable(reason(&e)))?
        };
        let name = format!("throng-{:08x}", units::system_random() as u32);
        let no_password = |e| Error::Unavailable(format!("no randomness for a password: {e}"));
        let password = password().map_err(no_password)?;
        let mut launched = Launched {
            runtime,
            client,
            namespace,
            name,
            agents: needs.agents(),
            wait: asked.wait,
            clock: Clock::start(),
            url: String::new(),
            forward: None,
        };
        launched.create(asked, needs, &password, waiting.say)?;
        launched.url = match &asked.nats {
            Some(url) => url.clone(),
            None => {
                launched.wait_for_nats(waiting)?;
                let port = launched.forward()?;
                format!("nats://throng:{password}@127.0.0.1:{port}")
            }
        };
        Ok(launched)
    }

    /// The URL of the agents' NATS server, as reached from this machine.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Number of agents.
    pub fn agents(&self) -> u32 {
        self.agents
    }

    /// Waits until all agents have joined.
    ///
    /// # Errors
    /// An agent failed, some did not join in time, or Ctrl-C; contains the reason.
    pub fn wait_for_agents(&self, link: &Link, waiting: &mut Waiting) -> Result<(), Error> {
        let inbox: Inbox<Here> = link.subscribe(HERE.to_owned())?;
        let mut joined = HashSet::new();
        let mut said = String::new();
        loop {
            let until = self.clock.now() + LOOKS;
            while let Some(here) = inbox.next(until.since(self.clock.now())) {
                joined.insert(here.who.id);
            }
            let pods = self.pods()?;
            if let Some((pod, why)) = pods.failed {
                let log = self.log(&pod);
                return Err(Error::Unavailable(format!("agent {pod} has ended: {why}{log}")));
            }
            let there = pods.running.min(joined.len() as u32);
            let all = Count(self.agents.into());
            let have = all.one_or("has", "have");
            let state = format!("{there} of {} {have} joined{}", all.of("agent"), obstacles(&pods));
            if state != said {
                (waiting.say)(&state);
                said = state;
            }
            if there >= self.agents {
                return Ok(());
            }
            self.go_on(waiting, || said.clone())?;
        }
    }

    fn create(
        &self,
        asked: &Kubernetes,
        needs: &Needs,
        password: &str,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let (name, namespace) = (self.name.as_str(), self.namespace.as_str());
        let objects = Objects { asked, needs, name, namespace, password };
        let job = self.create_one(&objects.job())?;
        let uid = job.metadata.uid.ok_or_else(|| Error::unavailable("the API server gave the job no uid"))?;
        say(&format!(
            "job {name} in namespace {namespace}: agents {}, each {} processors and {}, image {}; ends within {}",
            self.agents,
            asked.cpu,
            objects.memory().brief(),
            asked.image,
            Nanos::from_secs(objects.deadline_s()).brief(),
        ));
        let created = [objects.secret(&uid)]
            .into_iter()
            .chain([objects.service(&uid), objects.nats(&uid)].into_iter().filter(|_| asked.nats.is_none()));
        // The Job owns those created before an error.
        created.into_iter().try_for_each(|object| self.create_one(&object).map(|_| ()))
    }

    fn create_one(&self, object: &Value) -> Result<DynamicObject, Error> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let api = self.api(kind);
        let object = serde_json::from_value(object.clone()).expect("an object has metadata");
        let parameters = PostParams::default();
        self.call(&format!("no {kind} can be created"), api.create(&parameters, &object))
    }

    fn wait_for_nats(&self, waiting: &mut Waiting) -> Result<(), Error> {
        let name = format!("{}-nats", self.name);
        let pods = self.api("Pod");
        loop {
            let pod = self.call("the NATS server's pod is gone", pods.get(&name))?.data;
            if pods::is_ready(&pod) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_nanos(LOOKS.0));
            self.go_on(waiting, || format!("the NATS server is not ready: {}", pods::obstacle(&pod)))?;
        }
    }

    fn forward(&mut self) -> Result<u16, Error> {
        let pods = Api::namespaced(self.client.clone(), &self.namespace);
        let started = self.runtime.block_on(forward(pods, format!("{}-nats", self.name), NATS_PORT));
        let no_port = |e| Error::Unavailable(format!("no port on loopback: {e}"));
        let (port, task) = started.map_err(no_port)?;
        self.forward = Some(task);
        Ok(port)
    }

    /// # Errors
    /// Ctrl-C, or the time is up; contains what was waited for.
    fn go_on(&self, waiting: &Waiting, state: impl FnOnce() -> String) -> Result<(), Error> {
        let state = state();
        if self.clock.now() >= self.wait {
            let within = self.wait.brief();
            return Err(Error::Missing(format!("{state} within {within}; allow more with wait=")));
        }
        waiting.go_on(|| state)
    }

    fn pods(&self) -> Result<Pods, Error> {
        let labels = format!("app.kubernetes.io/instance={},app.kubernetes.io/component=agent", self.name);
        let parameters = ListParams::default().labels(&labels);
        let listed = self.call("pods cannot be listed", self.api("Pod").list(&parameters))?;
        let pods: Vec<Value> = listed
            .items
            .into_iter()
            .map(|mut pod| {
                pod.data["metadata"] = serde_json::json!({ "name": pod.metadata.name });
                pod.data
            })
            .collect();
        let mut counted = pods::count(&pods);
        let missing = self.agents.saturating_sub(pods.len() as u32);
        if missing > 0 {
            counted.waiting.extend(self.refusal().map(|why| (why, missing)));
        }
        Ok(counted)
    }

    /// Why the Job's controller cannot create pods, such as a quota or a policy of the namespace. `None` if nothing was refused, or
    /// events may not be read.
    fn refusal(&self) -> Option<String> {
        let fields = format!("involvedObject.name={},reason=FailedCreate", self.name);
        let (events, parameters) = (self.api("Event"), ListParams::default().fields(&fields));
        let events = self.call("", events.list(&parameters)).ok()?.items;
        events.last().and_then(|event| event.data["message"].as_str()).map(str::to_owned)
    }

    /// The end of a pod's log; empty if there is none.
    fn log(&self, pod: &str) -> String {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let parameters = kube::api::LogParams { tail_lines: Some(3), ..Default::default() };
        let log = self.call("", pods.logs(pod, &parameters)).unwrap_or_default();
        if log.trim().is_empty() { String::new() } else { format!("\n{}", log.trim_end()) }
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let group = if kind == "Job" { "batch" } else { "" };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    fn call<T>(&self, failed: &str, call: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
        let called = self.runtime.block_on(async { tokio::time::timeout(CALLS, call).await });
        let why = match called {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(e)) => format!("{failed} in namespace {}: {}", self.namespace, reason(&e)),
            Err(_) => format!("{failed}: the API server is silent"),
        };
        Err(Error::Unavailable(why))
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        if let Some(forward) = &self.forward {
            forward.abort();
        }
        let jobs = self.api("Job");
        let parameters = DeleteParams::background();
        // If the removal fails now, agents that no run needs exit, and the Job with its objects is removed.
        let removal = jobs.delete(&self.name, &parameters);
        let _ = self.runtime.block_on(async { tokio::time::timeout(REMOVAL, removal).await });
    }
}

/// Listens on loopback. Each connection has its own tunnel, so that a broken one can be redialled. Ends with the task.
///
/// # Errors
/// No port is available.
async fn forward(pods: Api<Pod>, pod: String, port: u16) -> std::io::Result<(u16, JoinHandle<()>)> {
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

/// What keeps agents from running, in parentheses.
fn obstacles(pods: &Pods) -> String {
    let each = pods.waiting.iter().map(|(why, n)| format!("{n}: {why}")).collect::<Vec<_>>().join("; ");
    if each.is_empty() { each } else { format!(" ({each})") }
}

async fn configuration(asked: &Kubernetes) -> Result<Config, Error> {
    let fix = "set KUBECONFIG, or name a context: k8s?context=NAME";
    let configured = match &asked.context {
        None => Config::infer().await.map_err(|e| format!("no cluster is configured ({e}); {fix}")),
        Some(context) => {
            let options = KubeConfigOptions { context: Some(context.clone()), ..Default::default() };
            let read = Config::from_kubeconfig(&options).await;
            read.map_err(|e| format!("context {context:?}: {e}; use one of kubectl config get-contexts"))
        }
    };
    configured.map_err(Error::Unavailable)
}

/// The message of the API server, or the chain of causes of another error.
fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => {
            let mut text = other.to_string();
            let mut source = std::error::Error::source(other);
            while let Some(deeper) = source {
                let why = deeper.to_string();
                if !text.contains(&why) {
                    text = format!("{text}: {why}");
                }
                source = deeper.source();
            }
            text
        }
    }
}

/// 128 random bits, in hexadecimal.
fn password() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
