use serde_json::Value;
use units::Nanos;

use super::Objects;
use crate::kubernetes::{Kubernetes, Needs, schema};

/// All objects of a request, in the order in which they are created.
fn objects(text: &str, needs: &Needs) -> Vec<Value> {
    let asked = Kubernetes::parse(text).unwrap();
    let objects = Objects {
        asked: &asked,
        needs,
        name: "throng-1a2b3c4d",
        namespace: asked.namespace.as_deref().unwrap_or("default"),
        password: "0123456789abcdef",
    };
    let uid = "6f0c";
    let own = [objects.service(uid), objects.nats(uid)];
    let own = own.into_iter().filter(|_| asked.nats.is_none());
    [objects.job(), objects.secret(uid)].into_iter().chain(own).collect()
}

fn needs() -> Needs {
    let targets = vec!["target.example:8000".to_owned(), "[fd00::7]:443".to_owned()];
    Needs { connections: 120_000, agents: None, targets, lasts: Some(Nanos::from_secs(90)) }
}

const EVERYTHING: &str = "k8s://load?image=r.example/throng:1&cpu=4&memory=2GiB&nodes=pool:load&\
    seccomp=localhost/throng.json&nats=nats://u:p@broker:4222&wait=10m&context=a";

fn check_golden(name: &str, objects: &[Value]) {
    let text: String =
        objects.iter().map(|object| format!("---\n{}", serde_saphyr::to_string(object).unwrap())).collect();
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kubernetes/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&file).unwrap_or_default(), "UPDATE_GOLDEN=1 writes {name}");
}

#[test]
fn the_api_takes_the_objects_of_a_run() {
    let (plain, full) = (objects("k8s", &needs()), objects(EVERYTHING, &needs()));
    for object in plain.iter().chain(&full) {
        assert_eq!(schema::mistakes(object), [""; 0], "{object:#}");
    }
    check_golden("plain.yaml", &plain);
    check_golden("full.yaml", &full);
}

#[test]
fn the_job_is_first_owns_the_rest_and_ends_by_itself() {
    for text in ["k8s", EVERYTHING] {
        let objects = objects(text, &needs());
        let (job, owned) = objects.split_first().unwrap();
        assert_eq!((&job["kind"], job["metadata"].get("ownerReferences")), (&Value::from("Job"), None));
        for object in owned {
            let owner = &object["metadata"]["ownerReferences"][0];
            assert_eq!((&owner["kind"], &owner["uid"]), (&Value::from("Job"), &Value::from("6f0c")));
        }
        assert!(
            job["spec"]["activeDeadlineSeconds"].is_u64() && job["spec"]["ttlSecondsAfterFinished"].is_u64()
        );
        assert!(job["spec"].get("suspend").is_none(), "a suspended job has no deadline");
    }
}

#[test]
fn the_deadline_is_after_the_plan_and_the_wait() {
    let deadline = |text: &str, lasts: Option<u64>| {
        let needs = Needs { lasts: lasts.map(Nanos::from_secs), ..needs() };
        objects(text, &needs)[0]["spec"]["activeDeadlineSeconds"].clone()
    };
    assert_eq!(deadline("k8s", Some(90)), 300 + 2 * 90 + 3_600);
    assert_eq!(deadline("k8s?wait=10m", Some(0)), 600 + 3_600);
    assert_eq!(deadline("k8s", None), 300 + 24 * 3_600);
    assert_eq!(deadline("k8s", Some(100 * 3_600)), 300 + 24 * 3_600);
}

#[test]
fn credentials_are_in_the_secret_only() {
    let objects = objects("k8s", &needs());
    let holders: Vec<&str> = objects
        .iter()
        .filter(|object| object.to_string().contains("0123456789abcdef"))
        .map(|object| object["kind"].as_str().unwrap())
        .collect();
    assert_eq!(holders, ["Secret"]);
}

#[test]
fn agents_and_their_memory_follow_the_connections() {
    let sizes = |text: &str, connections, agents| {
        let needs = Needs { connections, agents, ..needs() };
        let job = &objects(text, &needs)[0]["spec"];
        let memory = &job["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"];
        (job["completions"].as_u64().unwrap(), memory.as_str().unwrap().to_owned())
    };
    assert_eq!(sizes("k8s", 0, None), (1, "256Mi".to_owned()));
    assert_eq!(sizes("k8s", 50_000, None), (1, "1152Mi".to_owned()));
    assert_eq!(sizes("k8s", 50_001, None), (2, "768Mi".to_owned()));
    assert_eq!(sizes("k8s", 1_000_000, None), (20, "1152Mi".to_owned()));
    // Fewer agents than the default get more memory each.
    assert_eq!(sizes("k8s", 1_000_000, Some(2)), (2, "8192Mi".to_owned()));
    assert_eq!(sizes("k8s?memory=2Gi", 1_000_000, Some(2)), (2, "2048Mi".to_owned()));
}
