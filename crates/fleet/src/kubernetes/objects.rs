//! The Kubernetes objects of a run. Pure: nothing here talks to a cluster.

use serde_json::{Value, json};
use units::{Bytes, Nanos};

use super::{Kubernetes, Needs, Seccomp};

/// The port of NATS in its pod.
pub(super) const NATS_PORT: u16 = 4222;
/// Time until finished objects are removed, in seconds: long enough for `kubectl logs`.
const TTL_S: u64 = 60;
/// Extra time of a run beyond its plan, for pauses and a long drain.
const SLACK: Nanos = Nanos::from_secs(3_600);
/// Maximum duration of a run without an end.
const LONGEST: Nanos = Nanos::from_secs(24 * 3_600);
/// The user `nobody` in all images; neither program needs its own user.
const NOBODY: u32 = 65_534;
const NATS_IMAGE: &str = "nats:2.11-alpine";

/// Memory of an agent without connections.
const BASE_MEMORY: u64 = 256 << 20;
/// Memory per connection: at most 60 bytes in throng, about 4 KiB in the kernel when idle (docs/claims.md), and buffered data.
const MEMORY_PER_CONNECTION: u64 = 16 << 10;
/// Memory limits are rounded up to a multiple of this.
const MEMORY_STEP: u64 = 128 << 20;

/// All objects of one run.
pub(super) struct Objects<'a> {
    pub(super) asked: &'a Kubernetes,
    pub(super) needs: &'a Needs,
    /// Name of the Job, and prefix of the others: `throng-1a2b3c4d`.
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    /// Password of this run's own NATS server.
    pub(super) password: &'a str,
}

impl Objects<'_> {
    /// The agents. Created first, and the owner of everything else.
    ///
    /// It ends on its own: agents exit when no run has needed them for `wait`, at the latest after `activeDeadlineSeconds`. Then it is
    /// removed with everything that it owns. A failed pod is not replaced: the run has lost that agent, and reports it.
    pub(super) fn job(&self) -> Value {
        let agents = self.needs.agents();
        let pod = self.agent();
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": self.metadata("agent", None),
            "spec": {
                "completionMode": "Indexed",
                "completions": agents,
                "parallelism": agents,
                "backoffLimitPerIndex": 0,
                "activeDeadlineSeconds": self.deadline_s(),
                "ttlSecondsAfterFinished": TTL_S,
                "template": { "metadata": { "labels": self.labels("agent") }, "spec": pod },
            },
        })
    }

    /// Time from the creation of the Job until it is terminated, in seconds.
    pub(super) fn deadline_s(&self) -> u64 {
        let run = self.needs.lasts.map_or(LONGEST, |lasts| lasts + lasts + SLACK);
        (self.asked.wait + run.min(LONGEST)).0.div_ceil(1_000_000_000)
    }

    /// The credentials, and the configuration of the run's own NATS server.
    pub(super) fn secret(&self, owner: &str) -> Value {
        let mut data = json!({ "url": self.agent_url() });
        if self.asked.nats.is_none() {
            data["nats.conf"] = self.configuration().into();
        }
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": self.metadata("agent", Some(owner)),
            "type": "Opaque",
            "stringData": data,
        })
    }

    /// The DNS name by which agents find the run's NATS server.
    pub(super) fn service(&self, owner: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self.metadata("nats", Some(owner)),
            "spec": {
                "clusterIP": "None",
                "selector": self.labels("nats"),
                "ports": [{ "name": "nats", "port": NATS_PORT }],
            },
        })
    }

    /// The run's NATS server.
    pub(super) fn nats(&self, owner: &str) -> Value {
        let resources = json!({ "cpu": "1", "memory": "512Mi" });
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": self.metadata("nats", Some(owner)),
            "spec": {
                "activeDeadlineSeconds": self.deadline_s(),
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "restartPolicy": "Always",
                "securityContext": self.security(&Seccomp::Default),
                "containers": [{
                    "name": "nats",
                    "image": NATS_IMAGE,
                    "command": ["nats-server", "-c", "/run/nats/nats.conf"],
                    "ports": [{ "name": "nats", "containerPort": NATS_PORT }],
                    "readinessProbe": { "tcpSocket": { "port": NATS_PORT }, "periodSeconds": 1 },
                    "resources": { "requests": resources, "limits": resources },
                    "securityContext": confined(),
                    "volumeMounts": [
                        { "name": "configuration", "mountPath": "/run/nats", "readOnly": true },
                        { "name": "data", "mountPath": "/run/data" },
                    ],
                }],
                "volumes": [
                    {
                        "name": "configuration",
                        "secret": {
                            "secretName": self.name,
                            "items": [{ "key": "nats.conf", "path": "nats.conf" }],
                        },
                    },
                    { "name": "data", "emptyDir": { "sizeLimit": "4Gi" } },
                ],
            },
        })
    }

    /// The configuration file of `nats-server`: one user, and streams on the pod's disk.
    fn configuration(&self) -> String {
        let password = self.password;
        format!(
            "port: {NATS_PORT}\nmax_payload: 8MB\njetstream {{\n  store_dir: \"/run/data\"\n}}\n\
            authorization {{\n  user: \"throng\"\n  password: \"{password}\"\n}}\n"
        )
    }

    /// The URL by which agents reach NATS.
    fn agent_url(&self) -> String {
        let own = || format!("nats://throng:{}@{}:{NATS_PORT}", self.password, self.nats_name());
        self.asked.nats.clone().unwrap_or_else(own)
    }

    /// The name of the NATS pod and of its Service.
    pub(super) fn nats_name(&self) -> String {
        format!("{}-nats", self.name)
    }

    fn agent(&self) -> Value {
        let memory = format!("{}Mi", self.memory().0.div_ceil(1 << 20));
        // Equal requests and limits give QoS class `Guaranteed`: evicted last, and eligible for exclusive processors.
        let resources = json!({ "cpu": self.asked.cpu.to_string(), "memory": memory });
        let wait = self.asked.wait.to_string();
        let mut command = vec!["throng", "agent", "--name", "$(POD)", "--idle-exit", &wait];
        command.extend(self.needs.targets.iter().flat_map(|target| ["--allow", target]));
        let mut pod = json!({
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 10,
            "securityContext": self.security(&self.asked.seccomp),
            "containers": [{
                "name": "agent",
                "image": self.asked.image,
                "command": command,
                "env": [
                    {
                        "name": "NATS_URL",
                        "valueFrom": { "secretKeyRef": { "name": self.name, "key": "url" } },
                    },
                    { "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                    { "name": "XDG_DATA_HOME", "value": "/run/throng" },
                    { "name": "TMPDIR", "value": "/run/throng" },
                ],
                "resources": { "requests": resources, "limits": resources },
                "securityContext": confined(),
                "volumeMounts": [{ "name": "data", "mountPath": "/run/throng" }],
            }],
            "volumes": [{ "name": "data", "emptyDir": {} }],
            "topologySpreadConstraints": [{
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": { "matchLabels": self.labels("agent") },
            }],
        });
        // All unprivileged ports. This sysctl is per network namespace, and Kubernetes considers it safe.
        pod["securityContext"]["sysctls"] =
            json!([{ "name": "net.ipv4.ip_local_port_range", "value": "1024 65535" }]);
        if let Some((key, value)) = &self.asked.nodes {
            pod["nodeSelector"] = json!({ key.as_str(): value });
            pod["tolerations"] = json!([{ "key": key, "operator": "Equal", "value": value }]);
        }
        pod
    }

    /// Memory of each agent.
    pub(super) fn memory(&self) -> Bytes {
        let own = self.needs.connections.div_ceil(u64::from(self.needs.agents()));
        let needed = BASE_MEMORY + own * MEMORY_PER_CONNECTION;
        self.asked.memory.unwrap_or(Bytes(needed.next_multiple_of(MEMORY_STEP)))
    }

    fn security(&self, seccomp: &Seccomp) -> Value {
        let profile = match seccomp {
            Seccomp::Default => json!({ "type": "RuntimeDefault" }),
            Seccomp::Unconfined => json!({ "type": "Unconfined" }),
            Seccomp::Localhost(file) => json!({ "type": "Localhost", "localhostProfile": file }),
        };
        json!({
            "runAsNonRoot": true,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "fsGroup": NOBODY,
            "seccompProfile": profile,
        })
    }

    fn metadata(&self, component: &str, owner: Option<&str>) -> Value {
        let name = if component == "nats" { self.nats_name() } else { self.name.to_owned() };
        let mut metadata =
            json!({ "name": name, "namespace": self.namespace, "labels": self.labels(component) });
        if let Some(uid) = owner {
            metadata["ownerReferences"] =
                json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": self.name, "uid": uid }]);
        }
        metadata
    }

    fn labels(&self, component: &str) -> Value {
        json!({
            "app.kubernetes.io/name": "throng",
            "app.kubernetes.io/instance": self.name,
            "app.kubernetes.io/component": component,
        })
    }
}

/// The restrictions of a container: no more than an ordinary user's process may do.
fn confined() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
    })
}

#[cfg(test)]
mod tests;
