//! The options of `k8s://NAMESPACE?image=…&cpu=2`: where agents run, and their resources.

use units::{Bytes, Nanos, ParseError};

use super::Needs;
use crate::error::Error;

/// Default number of connections per agent: a pod has one address, so about 64,000 ports to each destination.
const CONNECTIONS_PER_AGENT: u64 = 50_000;
/// The user's options for agents in a Kubernetes cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubernetes {
    /// `None`: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// The kubeconfig's context; `None`: the current one, or the service account of the pod that this runs in.
    pub context: Option<String>,
    /// An image that has this version of `throng` on its path.
    pub image: String,
    /// Whole processors of an agent.
    pub cpu: u32,
    /// Memory of an agent; `None`: derived from its connections.
    pub memory: Option<Bytes>,
    /// A label of the nodes that agents run on, as key and value. A taint of that name is tolerated.
    pub nodes: Option<(String, String)>,
    /// The system calls that agents may make.
    pub seccomp: Seccomp,
    /// An existing NATS server; `None`: one started for this run.
    pub nats: Option<String>,
    /// Maximum time to wait for agents, and for agents to wait for a run.
    pub wait: Nanos,
}

/// A pod's seccomp profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seccomp {
    /// The container runtime's default, which forbids io_uring: throng uses epoll.
    Default,
    /// No profile: io_uring works if the kernel supports it.
    Unconfined,
    /// A file below the kubelet's profile folder.
    Localhost(String),
}

impl Kubernetes {
    /// Whether `--fleet` refers to a cluster, correctly written or not.
    pub fn is_meant(text: &str) -> bool {
        let name = text.split([':', '?', '/']).next().unwrap_or_default();
        ["k8s", "kubernetes"].contains(&name.to_ascii_lowercase().as_str())
    }

    /// Parses `k8s`, `k8s://NAMESPACE` and `k8s://NAMESPACE?KEY=VALUE&…`.
    ///
    /// # Errors
    /// All mistakes, each with the fix.
    pub fn parse(text: &str) -> Result<Kubernetes, Vec<Error>> {
        let mut mistakes = Vec::new();
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let namespace = match place.strip_prefix("k8s") {
            Some("") | Some("://") => None,
            Some(rest) if rest.strip_prefix("://").is_some_and(is_label) => Some(rest[3..].to_owned()),
            Some(rest) if rest.starts_with("://") => {
                mistakes.push(ParseError::new(&rest[3..], "a namespace", "k8s://load-test").into());
                None
            }
            _ => {
                mistakes.push(ParseError::new(text, "a cluster", "k8s or k8s://NAMESPACE?cpu=2").into());
                None
            }
        };
        let mut read = Kubernetes { namespace, ..Kubernetes::default() };
        let mut seen = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if seen.contains(&key) {
                mistakes.push(Error::Invalid(format!("{key} is given twice; give it once")));
            }
            seen.push(key);
            if let Err(why) = decoded(value).and_then(|value| read.set(key, value)) {
                mistakes.push(why);
            }
        }
        if mistakes.is_empty() { Ok(read) } else { Err(mistakes) }
    }

    fn set(&mut self, key: &str, value: String) -> Result<(), Error> {
        let wrong =
            |wanted, fix| Err(Error::Invalid(format!("{key}: {}", ParseError::new(&value, wanted, fix))));
        match key {
            "cpu" => match value.parse() {
                // A fraction of a processor would be throttled during most of each 100 ms period, and throng would be late.
                Ok(n @ 1..=1_024) => self.cpu = n,
                _ => return wrong("a whole number of processors", "cpu=2"),
            },
            "memory" => match Bytes::parse(&value).or_else(|_| Bytes::parse(&format!("{value}B"))) {
                Ok(bytes) if bytes.0 >= 64 << 20 => self.memory = Some(bytes),
                _ => return wrong("a number of bytes, 64MiB or more", "memory=2GiB"),
            },
            "wait" => match Nanos::parse(&value) {
                Ok(time) if time >= Nanos::from_secs(10) => self.wait = time,
                _ => return wrong("a time of 10s or more", "wait=10m"),
            },
            "image" if is_word(&value) => self.image = value,
            "image" => return wrong("an image", "image=registry.example/throng:1.0"),
            "context" if !value.is_empty() => self.context = Some(value),
            "context" => return wrong("a context", "one of kubectl config get-contexts"),
            "nats" if value.starts_with("nats://") || value.starts_with("tls://") => self.nats = Some(value),
            "nats" => return wrong("a NATS server", "nats=nats://USER:PASSWORD@HOST:4222"),
            "nodes" => match value.split_once(':') {
                Some((key, value)) if is_word(key) && is_word(value) => {
                    self.nodes = Some((key.to_owned(), value.to_owned()));
                }
                _ => return wrong("a label of nodes", "nodes=KEY:VALUE"),
            },
            "seccomp" => match value.split_once('/').unwrap_or((&value, "")) {
                ("default", "") => self.seccomp = Seccomp::Default,
                ("unconfined", "") => self.seccomp = Seccomp::Unconfined,
                ("localhost", file) if !file.is_empty() => self.seccomp = Seccomp::Localhost(file.to_owned()),
                _ => return wrong("a profile", "seccomp=default, unconfined or localhost/FILE"),
            },
            _ => return Err(ParseError::new(key, "a setting", SETTINGS).into()),
        }
        Ok(())
    }
}

impl Needs {
    /// Number of agents that share the connections.
    pub fn agents(&self) -> u32 {
        let by_connections = self.connections.div_ceil(CONNECTIONS_PER_AGENT).max(1);
        self.agents.unwrap_or(by_connections.min(u64::from(u32::MAX)) as u32)
    }
}

const SETTINGS: &str = "image, cpu, memory, nodes, seccomp, nats, wait or context";

impl Default for Kubernetes {
    fn default() -> Kubernetes {
        // Packages of throng set `THRONG_IMAGE` to the image of the same version.
        let image =
            option_env!("THRONG_IMAGE").unwrap_or(concat!("throng:", env!("CARGO_PKG_VERSION"))).to_owned();
        Kubernetes {
            namespace: None,
            context: None,
            image,
            cpu: 2,
            memory: None,
            nodes: None,
            seccomp: Seccomp::Default,
            nats: None,
            wait: Nanos::from_secs(300),
        }
    }
}

/// A label by RFC 1123, as required for namespaces.
fn is_label(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:@".contains(&b))
}

/// Decodes `%XX` (RFC 3986, section 2.1).
fn decoded(text: &str) -> Result<String, Error> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        let wrong = || Error::Invalid(format!("{text:?} has a % without two digits; use %25"));
        bytes.push(code.ok_or_else(wrong)?);
        bytes.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).map_err(|_| ParseError::new(text, "UTF-8", "text").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_read_and_has_a_default() {
        let plain = Kubernetes::default();
        for text in ["k8s", "k8s://", "k8s?", "k8s://?"] {
            assert_eq!(Kubernetes::parse(text), Ok(plain.clone()), "{text}");
        }
        let text = "k8s://load?image=r.example:5000/throng@sha256:ab&cpu=4&memory=2Gi&nodes=pool:load&\
            seccomp=localhost/throng.json&nats=nats://u:p%26q@h:4222&wait=10m&context=kind-a";
        let read = Kubernetes::parse(text).unwrap();
        let expected = Kubernetes {
            namespace: Some("load".to_owned()),
            context: Some("kind-a".to_owned()),
            image: "r.example:5000/throng@sha256:ab".to_owned(),
            cpu: 4,
            memory: Some(Bytes(2 << 30)),
            nodes: Some(("pool".to_owned(), "load".to_owned())),
            seccomp: Seccomp::Localhost("throng.json".to_owned()),
            nats: Some("nats://u:p&q@h:4222".to_owned()),
            wait: Nanos::from_secs(600),
        };
        assert_eq!(read, expected);
        assert_eq!(Kubernetes::parse("k8s?seccomp=unconfined").unwrap().seccomp, Seccomp::Unconfined);
    }

    #[test]
    fn all_mistakes_are_reported_with_the_fix() {
        let text = "k8s://Load_Test?cpu=0.5&memory=64K&wait=5&image=&nats=http://h&nodes=pool&\
            seccomp=off&replicas=3&cpu=1&context=&nats=%2";
        let expected = [
            "\"Load_Test\" is not a namespace; use k8s://load-test",
            "cpu: \"0.5\" is not a whole number of processors; use cpu=2",
            "memory: \"64K\" is not a number of bytes, 64MiB or more; use memory=2GiB",
            "wait: \"5\" is not a time of 10s or more; use wait=10m",
            "image: \"\" is not an image; use image=registry.example/throng:1.0",
            "nats: \"http://h\" is not a NATS server; use nats=nats://USER:PASSWORD@HOST:4222",
            "nodes: \"pool\" is not a label of nodes; use nodes=KEY:VALUE",
            "seccomp: \"off\" is not a profile; use seccomp=default, unconfined or localhost/FILE",
            "\"replicas\" is not a setting; use image, cpu, memory, nodes, seccomp, nats, wait or context",
            "cpu is given twice; give it once",
            "context: \"\" is not a context; use one of kubectl config get-contexts",
            "nats is given twice; give it once",
            "\"%2\" has a % without two digits; use %25",
        ];
        let mistakes = |text| {
            let all = Kubernetes::parse(text).unwrap_err();
            all.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(mistakes(text), expected);
        assert_eq!(
            mistakes("k8s:cpu=3"),
            ["\"k8s:cpu=3\" is not a cluster; use k8s or k8s://NAMESPACE?cpu=2".to_owned()]
        );
    }

    #[test]
    fn a_cluster_is_meant_by_its_name() {
        for text in ["k8s", "K8S://x", "k8s?cpu=1", "kubernetes", "k8s/x"] {
            assert!(Kubernetes::is_meant(text), "{text}");
        }
        for text in ["nats://k8s:4222", "", "k8s-broker:4222", "nats://127.0.0.1"] {
            assert!(!Kubernetes::is_meant(text), "{text}");
        }
    }
}
