"""A Kubernetes control plane on this machine, without containers: etcd, API server, controller manager, scheduler, and the stand-in for the
kubelet. It has to run as root in network, mount and PID namespaces of its own, with which everything ends (`cargo xtask test kubernetes`)."""

import json
import os
import pathlib
import ssl
import subprocess
import time
import urllib.error
import urllib.request

API = "https://127.0.0.1:6443"
ADMIN, USER, STRANGER = "admin-token", "user-token", "stranger-token"


def until(what, condition, seconds=60):
    """Waits for a condition, and returns what it returned."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise SystemExit(f"kubernetes: not within {seconds} s: {what}")
        time.sleep(0.1)


class Cluster:
    def __init__(self, programs, folder):
        self.programs, self.folder = pathlib.Path(programs), pathlib.Path(folder)
        self.context = None

    def start(self):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        self.certificates()
        self.run("etcd", "--data-dir", self.folder / "etcd", "--listen-peer-urls", "http://127.0.0.1:0",
                 "--unsafe-no-fsync", "--log-level", "error")
        file = self.folder
        self.run("kube-apiserver", "--etcd-servers", "http://127.0.0.1:2379", "--bind-address", "127.0.0.1",
                 "--advertise-address", "127.0.0.1", "--secure-port", "6443", "--authorization-mode", "RBAC",
                 "--tls-cert-file", file / "server.crt", "--tls-private-key-file", file / "server.key",
                 "--token-auth-file", file / "tokens.csv", "--service-cluster-ip-range", "10.96.0.0/16",
                 "--service-account-issuer", "https://throng.test", "--service-account-key-file", file / "server.key",
                 "--service-account-signing-key-file", file / "server.key", "--endpoint-reconciler-type", "none")
        self.context = ssl.create_default_context(cafile=file / "ca.crt")
        until("the API server", lambda: self.get("/readyz", raw=True) == "ok")
        config = self.kubeconfig("admin", ADMIN)
        self.run("kube-controller-manager", "--kubeconfig", config, "--leader-elect=false", "--use-service-account-credentials=false",
                 "--service-account-private-key-file", file / "server.key", "--root-ca-file", file / "ca.crt", "--secure-port", "0",
                 "--concurrent-gc-syncs", "2")
        self.run("kube-scheduler", "--kubeconfig", config, "--leader-elect=false", "--secure-port", "0")
        self.run("kubelet", "--kubeconfig", config, "--folder", file / "pods")
        # A node that is new has a taint until the controller has seen that it is ready.
        until("three nodes", lambda: sum("taints" not in node["spec"] for node in self.get("/api/v1/nodes")["items"]) == 3)
        until("a service account", lambda: self.get("/api/v1/namespaces/default/serviceaccounts/default").get("kind") == "ServiceAccount")

    def certificates(self):
        def openssl(*words):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *map(str, words)], check=True, capture_output=True)

        file = self.folder
        openssl("-subj", "/CN=throng-test-authority", "-keyout", file / "ca.key", "-out", file / "ca.crt")
        openssl("-subj", "/CN=throng-test", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE",
                "-CA", file / "ca.crt", "-CAkey", file / "ca.key", "-keyout", file / "server.key", "-out", file / "server.crt")
        users = f'{ADMIN},admin,1,"system:masters"\n{USER},user,2\n{STRANGER},stranger,3\n'
        (self.folder / "tokens.csv").write_text(users)

    def run(self, program, *words):
        log = open(self.folder / f"{program}.log", "w")
        subprocess.Popen([self.programs / program, *map(str, words)], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def kubeconfig(self, name, token, namespace="default"):
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": API, "certificate-authority": str(self.folder / "ca.crt")}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name, "namespace": namespace}}],
        }))
        return path

    def call(self, method, path, body=None, kind="application/json", raw=False):
        """An answer of the API server; for an error its `Status`."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": kind}
        request = urllib.request.Request(API + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=10) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            text = error.read().decode()
        except OSError:
            text = "{}"
        return text if raw else json.loads(text)

    def get(self, path, raw=False):
        return self.call("GET", path, raw=raw)

    def create(self, thing, namespace, dry=False):
        """Creates an object; a field that the server does not know is an error."""
        group, _, version = thing["apiVersion"].rpartition("/")
        kind = thing["kind"].lower()
        plural = kind[:-1] + "ies" if kind.endswith("y") else kind + "s"
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        place = "" if kind in ("namespace", "persistentvolume") else f"/namespaces/{namespace}"
        query = "?fieldValidation=Strict" + ("&dryRun=All" if dry else "")
        return self.call("POST", f"{root}{place}/{plural}{query}", thing)

    def pods(self, namespace, selector=""):
        return self.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")["items"]

    def left(self, namespace):
        """What a run of throng has left in a namespace."""
        paths = ["/apis/batch/v1/namespaces/{}/jobs", "/api/v1/namespaces/{}/pods", "/api/v1/namespaces/{}/secrets",
                 "/api/v1/namespaces/{}/services"]
        query = "?labelSelector=app.kubernetes.io/name%3Dthrong"
        lists = [self.get(path.format(namespace) + query) for path in paths]
        return [f"{listed['kind'][:-4]} {item['metadata']['name']}" for listed in lists for item in listed.get("items", [])]
