"""The manifests and the chart of deploy/kubernetes, before a real API server."""

import pathlib
import subprocess

import yaml

from cluster import ADMIN, until

# What a container has to say for the policy `restricted`.
CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
HERE = pathlib.Path(__file__).resolve().parent.parent


def objects(name):
    return [thing for thing in yaml.safe_load_all((HERE / name).read_text()) if thing]


def create(stage, namespace, things):
    for thing in things:
        made = stage.cluster.create(thing, namespace)
        assert made["kind"] == thing["kind"], made


def disk(stage, name):
    """A volume that a claim can be bound to; the stand-in gives the pod an empty directory."""
    create(stage, "", [{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/run"}}}])


def passes(stage, namespace, job):
    """The run's pod has ended, and held what it was to hold; on a busy machine its verdict may be `invalid`."""
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{job}"
    until(f"{job} to end", lambda: [end["type"] for end in stage.cluster.get(path).get("status", {}).get("conditions", [])], 120)
    [pod] = stage.cluster.pods(namespace, f"job-name={job}")
    log = stage.cluster.get(f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/log", raw=True)
    assert "  connections   300 held of 300 wanted\n" in log, log


def accepted(stage):
    """The API server takes the manifests, and what the golden files say is rendered or made."""
    golden = HERE.parent.parent / "crates/fleet/src/kubernetes/golden"
    stage.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "load"}}, "")
    files = [*HERE.glob("*.yaml"), *golden.glob("*.yaml")]
    for file in files:
        for thing in objects(file):
            namespace = thing["metadata"].get("namespace", "load")
            made = until("a service account", lambda: stage.cluster.create(thing, namespace, dry=True))
            assert made["kind"] == thing["kind"], (file, made)
    broken = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [{"name": "a", "image": "a", "comand": []}]}}
    assert "unknown field" in str(stage.cluster.create(broken, "load", dry=True)), "a mistake is found"


def manifests_run(stage):
    """The plain manifests, with a password and a target put in: three agents that stay, and a run on them."""
    namespace, target = "plain", stage.target.removeprefix("http://")
    stage.namespace(namespace)
    disk(stage, "plain")

    def mine(name):
        text = (HERE / name).read_text().replace("CHANGE-ME-", "secret-").replace("target:8000", target)
        text = text.replace("100k", '"300"').replace("5s..15s", "200ms..400ms").replace("5m", "3s")
        return [thing for thing in yaml.safe_load_all(text) if thing]

    for name in ("nats.yaml", "agents.yaml"):
        create(stage, namespace, mine(name))
    # The agents keep dialling until the server is there; then the run finds them.
    until("three agents", lambda: sum(pod["status"]["phase"] == "Running" for pod in
                                      stage.cluster.pods(namespace, "app.kubernetes.io/component=agent")) == 3)
    create(stage, namespace, mine("run.yaml"))
    passes(stage, namespace, "throng-run")
    for kind, name in (("deployments", "throng-agents"), ("statefulsets", "throng-nats")):
        stage.cluster.call("DELETE", f"/apis/apps/v1/namespaces/{namespace}/{kind}/{name}?propagationPolicy=Background")


def chart_runs(stage):
    """The chart, installed by helm with a run, and removed again."""
    namespace, target = "chart", stage.target.removeprefix("http://")
    stage.namespace(namespace)
    config = stage.cluster.kubeconfig("helm", ADMIN, namespace)

    def helm(*words):
        done = subprocess.run([stage.cluster.programs / "helm", *words, "--kubeconfig", config], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    run = ["http://" + target + "/", "-c", "300", "--think", "200ms..400ms", "-d", "3s"]
    sets = [f"allow={{{target}}}", "nats.storage.size=", "agents.cpu=1", "run.args={" + ",".join(run) + "}"]
    helm("install", "load", str(HERE / "chart"), *(word for one in sets for word in ("--set", one)))
    passes(stage, namespace, "load-run-1")
    secret = f"/api/v1/namespaces/{namespace}/secrets/load-nats"
    before = stage.cluster.get(secret)["data"]
    helm("upgrade", "load", str(HERE / "chart"), "--reuse-values", "--set", "agents.replicas=2")
    assert stage.cluster.get(secret)["data"] == before, "passwords are kept"
    helm("uninstall", "load")
    stage.gone(namespace)
