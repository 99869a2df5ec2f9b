//! Tests of the checker, and of everything in `deploy/kubernetes`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use super::mistakes;
use crate::message;

#[test]
fn a_field_that_the_server_does_not_know_or_take_is_a_mistake() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": 3, "labels": { "a": "b", "c": 1 } },
        "spec": {
            "nodename": "n",
            "containers": [{
                "image": "i", "command": "throng",
                "resources": { "limits": { "cpu": 2, "memory": "2GiB" } },
                "readinessProbe": { "tcpSocket": { "port": "nats" } },
            }],
        },
    });
    let mut found = mistakes(&pod);
    found.sort();
    let expected = [
        "Pod.metadata.labels.c: not of type \"string\": 1",
        "Pod.metadata.name: not of type \"string\": 3",
        "Pod.spec.containers[0].command: not of type \"array\": \"throng\"",
        "Pod.spec.containers[0].name: missing",
        "Pod.spec.containers[0].resources.limits.memory: not a quantity: \"2GiB\"",
        "Pod.spec.nodename: no such field",
    ];
    assert_eq!(found, expected);
    assert_eq!(mistakes(&json!({ "apiVersion": "v2", "kind": "Pod" })), ["v2 Pod: no such kind"]);
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes")
}

/// Parses YAML documents; each must be a valid object.
fn objects(name: &str, text: &str) -> Vec<Value> {
    let read: Vec<Value> = serde_saphyr::from_multiple(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    for object in &read {
        assert_eq!(mistakes(object), [""; 0], "{name}: {}", object["kind"]);
    }
    read
}

fn manifest(name: &str) -> Vec<Value> {
    objects(name, &std::fs::read_to_string(deploy().join(name)).unwrap())
}

fn kinds(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["kind"].as_str().unwrap()).collect()
}

#[test]
fn the_api_takes_the_manifests() {
    assert_eq!(kinds(&manifest("nats.yaml")), ["Secret", "Service", "StatefulSet"]);
    assert_eq!(kinds(&manifest("agents.yaml")), ["Deployment"]);
    assert_eq!(kinds(&manifest("run.yaml")), ["Job"]);
    assert_eq!(kinds(&manifest("role.yaml")), ["Role"]);
    let all = std::fs::read_dir(deploy()).unwrap().map(|entry| entry.unwrap().path());
    let manifests = all.filter(|path| path.extension().is_some_and(|end| end == "yaml")).count();
    assert_eq!(manifests, 4, "each manifest is checked here");
}

/// The subjects that a user of `nats.conf` may use: `publish` or `subscribe`.
fn permitted<'a>(configuration: &'a str, user: &str, what: &str) -> Vec<&'a str> {
    let own = configuration.split("user: ").find(|text| text.starts_with(&format!("{user:?}"))).unwrap();
    let line = own.lines().find_map(|line| line.trim().strip_prefix(&format!("{what}: "))).unwrap();
    line.split('"').skip(1).step_by(2).collect()
}

fn is_permitted(subject: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('>') {
        Some(prefix) => subject.starts_with(prefix) && subject.len() > prefix.len(),
        None => subject == *pattern,
    })
}

#[test]
fn each_user_may_use_its_subjects_and_an_agent_no_others() {
    let secret = &manifest("nats.yaml")[0]["stringData"];
    let configuration = secret["nats.conf"].as_str().unwrap();
    let may =
        |user: &str, what: &str, subject: &str| is_permitted(subject, &permitted(configuration, user, what));
    let (agent, run, log) = (message::to_agent("a"), message::to_run("r"), message::log_of("r"));
    for subject in [message::HERE, &run, &log] {
        assert!(may("agent", "publish", subject) && may("coordinator", "subscribe", subject), "{subject}");
    }
    for subject in [message::WHO, &agent] {
        assert!(may("coordinator", "publish", subject) && may("agent", "subscribe", subject), "{subject}");
        assert!(!may("agent", "publish", subject), "an agent leads no other: {subject}");
    }
    assert!(!may("agent", "subscribe", &run) && !may("agent", "publish", "$JS.API.STREAM.DELETE.throng"));
}

/// Values with which the chart is rendered, besides its defaults.
const VALUES: &[&[&str]] = &[
    &[
        "--set",
        "allow={target:8000}",
        "--set",
        "nats.agentPassword=agent-password,nats.coordinatorPassword=coordinator-password",
    ],
    &[
        "--set",
        "allow={a.example,10.0.0.0/8},image.repository=r.example/throng,image.tag=1,image.pullSecrets[0].name=pull",
        "--set",
        "agents.replicas=10,agents.cpu=4,agents.memory=4Gi,agents.nodeSelector.pool=load,agents.args={--x}",
        "--set",
        "agents.tolerations[0].key=pool,agents.tolerations[0].operator=Exists",
        "--set",
        "agents.seccomp.type=Localhost,agents.seccomp.localhostProfile=throng.json",
        "--set",
        "nats.enabled=false,existingSecret=mine,run.args={http://a.example/,-c,100k}",
    ],
    &[
        "--set",
        "allow={target:8000},nats.storage.size=",
        "--set",
        "nats.agentPassword=agent-password,nats.coordinatorPassword=coordinator-password",
    ],
];

/// Helm: on the path, or as `cargo xtask test kubernetes` has built it.
fn helm() -> PathBuf {
    let path = std::env::var("PATH").unwrap_or_default();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/kubernetes/bin");
    let folders = path.split(':').map(PathBuf::from).chain([own]);
    folders.map(|folder| folder.join("helm")).find(|program| program.is_file()).expect("helm is there")
}

/// The chart as rendered by helm.
fn render() -> String {
    let helm = helm();
    let render = |values: &&[&str]| {
        let mut command = Command::new(&helm);
        command.args(["template", "load", ".", "--kube-version", "1.36.3"]).args(*values);
        let output = command.current_dir(deploy().join("chart")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    VALUES.iter().map(render).collect()
}

/// FNV-1a over all files of the chart, and the values with which it is rendered.
fn digest() -> String {
    let chart = deploy().join("chart");
    let templates = std::fs::read_dir(chart.join("templates")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        templates.chain(["Chart.yaml", "values.yaml"].map(|name| chart.join(name))).collect();
    files.sort();
    let texts =
        files.iter().map(|file| std::fs::read(file).unwrap()).chain([format!("{VALUES:?}").into_bytes()]);
    let hash = texts.flatten().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("# of the chart with digest {hash:016x}\n")
}

#[test]
fn the_api_takes_what_the_chart_renders() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kubernetes/golden/chart.yaml");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, digest() + &render()).unwrap();
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_default();
    let how = "UPDATE_GOLDEN=1 renders the chart with helm, which `cargo xtask test kubernetes` builds";
    assert!(golden.starts_with(&digest()), "golden/chart.yaml is of another chart: {how}");
    let objects = objects("the chart", &golden);
    let expected = [
        "Secret",
        "Service",
        "StatefulSet",
        "Deployment",
        "Deployment",
        "Job",
        "Secret",
        "Service",
        "StatefulSet",
        "Deployment",
    ];
    let mut found = kinds(&objects);
    let mut expected = expected.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}
