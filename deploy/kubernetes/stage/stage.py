#!/usr/bin/python3
"""`throng run --fleet k8s` against a real control plane: what a run creates, that it is the run of one machine, and that nothing is left of it,
however it ends. Started by `cargo xtask test kubernetes`, in namespaces of its own."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from cluster import STRANGER, USER, Cluster, until

import deployed

THRONG = os.environ["THRONG_BIN"]
# An agent that no run needs exits after 30 s, its job is removed after 60 s more; the rest is for a busy machine.
REMOVED_S = 200


class Stage:
    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, pathlib.Path(folder)
        self.target = None

    def serve(self, *words):
        """The URL of a reference server, where pods reach it."""
        server = subprocess.Popen([THRONG, "serve", "--listen", "10.99.0.1:0", "--threads", "1", *words], stdout=subprocess.PIPE, text=True)
        line = server.stdout.readline()
        return "http://" + line.split("://")[1].split()[0].rstrip("/")

    def namespace(self, name):
        """A namespace in which the user may do what `role.yaml` says, and pods no more than the policy `restricted` allows."""
        policy = {"pod-security.kubernetes.io/enforce": "restricted"}
        self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": policy}}, "")
        [role] = deployed.objects("role.yaml")
        rules = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role["metadata"]["name"]}
        binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "throng"},
                   "roleRef": rules, "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "user"}]}
        for thing in (role, binding):
            made = self.cluster.create(thing, name)
            assert made["kind"] == thing["kind"], made
        until("a service account", lambda: self.cluster.get(f"/api/v1/namespaces/{name}/serviceaccounts/default").get("kind") == "ServiceAccount")

    def run(self, namespace, settings, *words, token=USER, target=None, verb="run"):
        """`throng run` or another verb as the user, its output in files."""
        config = self.cluster.kubeconfig(f"{namespace}-{token}", token, namespace)
        out, err = (self.folder / f"{namespace}.{end}" for end in ("json", "err"))
        environment = {**os.environ, "KUBECONFIG": str(config), "XDG_DATA_HOME": str(self.folder / "data")}
        fleet = f"k8s?{settings}" if settings else "k8s"
        line = [THRONG, verb, target or self.target + "/", "--fleet", fleet, "--live", "line", "--json", "-", *words]
        run = subprocess.Popen(line, env=environment, stdout=open(out, "w"), stderr=open(err, "w"), stdin=subprocess.DEVNULL)
        run.out, run.err = out, err
        return run

    def open_connections(self):
        """Connections to the target from pods."""
        port = self.target.rsplit(":", 1)[1]
        lines = subprocess.run(["ss", "-Htn", "state", "established", f"( sport = :{port} )"], capture_output=True, text=True).stdout
        return len(lines.splitlines())

    def gone(self, namespace, seconds=60):
        until(f"{namespace}: nothing left, not {self.cluster.left(namespace)}", lambda: not self.cluster.left(namespace), seconds)


def wait_for(run, text, seconds=60):
    until(f"{text!r} from throng", lambda: run.poll() is not None or text in run.err.read_text(), seconds)
    assert text in run.err.read_text(), run.err.read_text()


# A run that passes, or that a busy machine has made invalid: its counts are right.
COUNTED = (0, 4)


def ended(run, *statuses):
    assert run.wait(timeout=120) in statuses, (run.returncode, run.err.read_text())
    return run.err.read_text()


def whole_path(stage):
    """Three agents on three nodes count what one machine would."""
    stage.namespace("whole")
    run = stage.run("whole", "cpu=1", "--agents", "3", "-c", "300", "--think", "200ms..400ms", "-d", "4s")
    wait_for(run, "open 300 of 300")
    pods = stage.cluster.pods("whole", "app.kubernetes.io/component=agent")
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 3, "agents are spread over the nodes"
    secret = stage.cluster.get("/api/v1/namespaces/whole/secrets")["items"][0]
    assert secret["metadata"]["ownerReferences"][0]["kind"] == "Job", secret
    text = ended(run, *COUNTED)
    summary = json.loads(run.out.read_text())
    assert summary["connections"]["held"] == 300, summary["connections"]
    held = {agent["id"]: agent["held"] for agent in summary["agents"]}
    assert held == {pod["metadata"]["name"]: 100 for pod in pods}, "agents have the names of their pods"
    assert "3 of 3 agents have joined" in text, text
    stage.gone("whole")


def searched(stage):
    """A search launches its agents once, and finds what the target holds."""
    stage.namespace("searched")
    limited = stage.serve("--max-open", "150")
    search = stage.run("searched", "cpu=1", "--agents", "2", "--max", "400", "-d", "1s", "--threshold", "held >= 99.9%", target=limited + "/", verb="find")
    text = ended(search, 0)
    assert "2 of 2 agents have joined" in text, text
    found = json.loads(search.out.read_text())
    assert found["outcome"] == "found" and found["limit"]["side"] == "target", found
    # The probe of each agent has connections of its own.
    assert 130 <= found["max"] <= 150 and len(found["curve"]) >= 4, found
    stage.gone("searched")


def by_name(stage):
    """A target that has a name in the cluster only."""
    stage.namespace("named")
    labels, meta = {"app": "target"}, {"name": "target"}
    command = {"name": "serve", "image": "throng", "command": ["throng", "serve", "--listen", "0.0.0.0:8000", "--threads", "1"]}
    deployed.create(stage, "named", [
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"clusterIP": "None", "selector": labels, "ports": [{"port": 8000}]}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "labels": labels}, "spec": {
            "automountServiceAccountToken": False, "containers": [{**command, "securityContext": deployed.CONFINED}],
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}}}},
    ])
    until("the target", lambda: stage.cluster.get("/api/v1/namespaces/named/pods/target").get("status", {}).get("phase") == "Running")
    run = stage.run("named", "cpu=1", "--agents", "2", "-c", "100", "--think", "200ms..400ms", "-d", "2s", target="http://target:8000/")
    assert '"target" is resolved by the agents only' in ended(run, *COUNTED)
    assert json.loads(run.out.read_text())["connections"]["held"] == 100
    stage.gone("named")


def interrupted(stage):
    """Ctrl-C in mid-run and while agents are waited for."""
    stage.namespace("stopped")
    run = stage.run("stopped", "cpu=1", "--agents", "2", "-c", "100", "--think", "1s", "-d", "60s")
    wait_for(run, "open 100 of 100")
    run.send_signal(signal.SIGINT)
    ended(run, 130)
    stage.gone("stopped")
    run = stage.run("stopped", "cpu=64", "--agents", "2", "-c", "100", "-d", "60s")
    wait_for(run, "Insufficient cpu")
    run.send_signal(signal.SIGINT)
    assert "interrupted" in ended(run, 130)
    stage.gone("stopped")


def killed(stage):
    """kill -9: in mid-run, and as soon as each of its objects is there."""
    moments = {"job": "Job", "secret": "Secret", "service": "Service", "server": "Pod"}
    runs = {}
    for moment, kind in moments.items():
        name = f"killed-{moment}"
        stage.namespace(name)
        run = stage.run(name, "cpu=1&wait=30s", "--agents", "1", "-c", "10", "-d", "60s")
        until(f"a {kind}", lambda: run.poll() is not None or any(kind in left for left in stage.cluster.left(name)))
        run.kill()
        runs[name] = run
    stage.namespace("killed-run")
    run = stage.run("killed-run", "cpu=1&wait=30s", "--agents", "2", "-c", "100", "--think", "1s", "-d", "60s")
    wait_for(run, "open 100 of 100")
    run.kill()
    until("the end of the load", lambda: stage.open_connections() == 0, 30)
    stage.namespace("killed-pending")
    run = stage.run("killed-pending", "cpu=64", "--agents", "1", "-c", "10", "-d", "60s")
    wait_for(run, "Insufficient cpu")
    run.kill()
    # Pods that never run end with the deadline: brought forward here, it is more than an hour away.
    jobs = "/apis/batch/v1/namespaces/killed-pending/jobs"
    [job] = stage.cluster.get(jobs)["items"]
    stage.cluster.call("PATCH", f"{jobs}/{job['metadata']['name']}", {"spec": {"activeDeadlineSeconds": 1}}, "application/merge-patch+json")
    for name in [*runs, "killed-run", "killed-pending"]:
        stage.gone(name, REMOVED_S)


def refused(stage):
    """What the person is told who may not, or whose agents fail."""
    stage.namespace("refused")
    run = stage.run("refused", "", "-c", "1", "-d", "1s", token=STRANGER)
    text = ended(run, 3)
    assert "no Job can be created in namespace refused" in text and '"stranger" cannot create' in text, text
    run = stage.run("refused", "cpu=1&wait=30s&nats=nats://u:p@10.99.0.1:1", "--agents", "1", "-c", "1", "-d", "1s")
    assert "10.99.0.1:1" in ended(run, 3), run.err.read_text()
    run = stage.run("refused", "cpu=1&wait=10s&seccomp=unconfined", "-c", "1", "-d", "1s")
    text = ended(run, 3)
    assert 'violates PodSecurity "restricted' in text, text
    stage.gone("refused")


def main():
    folder, programs = sys.argv[1], sys.argv[2]
    cluster = Cluster(programs, folder)
    cluster.start()
    print("the control plane is up", flush=True)
    stage = Stage(cluster, folder)
    stage.target = stage.serve()
    print(f"target {stage.target}", flush=True)
    parts = [deployed.accepted, whole_path, searched, by_name, interrupted, refused, deployed.manifests_run, deployed.chart_runs, killed]
    if len(sys.argv) > 3:
        parts = [part for part in parts if part.__name__ in sys.argv[3:]]
    for part in parts:
        began = time.monotonic()
        part(stage)
        print(f"passed in {time.monotonic() - began:.0f} s: {part.__doc__.splitlines()[0]}", flush=True)


main()
