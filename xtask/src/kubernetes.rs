//! `cargo xtask test kubernetes [schema]`: tests `throng run --fleet k8s` against a real control plane, as root in its own
//! namespaces. The first run builds etcd, API server, controller manager, scheduler, a stand-in for the kubelet, and helm with the
//! Go toolchain into `target/kubernetes`, which takes ten minutes of CPU time; so it is not part of `test`. `schema` writes the
//! part of the API's schema that the ordinary tests use.

use crate::command::{command, finish, output, root, target};
use crate::packages::is_root;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Folder with the Go module of the programs, and with the script that runs them.
const STAGE: &str = "deploy/kubernetes/stage";
/// Programs to build from this module, with their packages.
const PROGRAMS: &[(&str, &str)] = &[
    ("etcd", "go.etcd.io/etcd/server/v3"),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    ("kubelet", "."),
];
/// Built as a module of its own, because it uses another version of Kubernetes' client.
const HELM: &str = "helm.sh/helm/v3/cmd/helm@v3.22.0";
/// Linker flags with the version that the API server reports: charts require one.
const LINKER: &str = "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3";
/// The OpenAPI description in the module `k8s.io/kubernetes`.
const DESCRIPTION: &str = "api/openapi-spec/swagger.json";
const SCHEMA: &str = "crates/fleet/src/kubernetes/schema/v1.36.json";
/// Group, version and kind of the objects in our manifests.
const KINDS: &[(&str, &str, &str)] = &[
    ("", "v1", "ConfigMap"),
    ("", "v1", "Namespace"),
    ("", "v1", "Pod"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("batch", "v1", "Job"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
];

pub(crate) fn run(words: &[String]) -> Result<()> {
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => stage(),
        ["schema"] => write_schema(),
        _ => bail!("takes schema or nothing: {}", words.join(" ")),
    }
}

fn stage() -> Result<()> {
    if !is_root() {
        bail!("needs root: pods are processes in network namespaces");
    }
    let target = target()?;
    let programs = target.join("kubernetes/bin");
    std::fs::create_dir_all(&programs)?;
    // The stand-in for the kubelet is rebuilt each time: it is small, and part of this repository.
    for (name, package) in
        PROGRAMS.iter().filter(|(name, _)| *name == "kubelet" || !programs.join(name).exists())
    {
        println!("building {name}");
        let mut go = go(&["build", LINKER, "-o"])?;
        go.arg(programs.join(name)).arg(package);
        finish(go)?;
    }
    if !programs.join("helm").exists() {
        println!("building helm");
        let mut go = go(&["install", "-ldflags=-s -w", HELM])?;
        go.env("GOBIN", &programs);
        finish(go)?;
    }
    crate::command::cargo(&["build", "--package", "throng-cli", "--features", "k8s"])?;
    let folder = target.join("kubernetes/run");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let throng = target.join("debug/throng");
    let path = format!("{}:{}", target.join("debug").display(), std::env::var("PATH").unwrap_or_default());
    // `--kill-child` and the PID namespace end all started processes together with the first one.
    let namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let mut stage = command("unshare", &namespaces)?;
    stage.args(["/usr/bin/python3", "-B"]).arg(Path::new(STAGE).join("stage.py")).arg(folder).arg(programs);
    stage.env("THRONG_BIN", throng).env("PATH", path);
    finish(stage)
}

/// A `go` command in the module's folder; `GOMAXPROCS` limits the number of processors.
fn go(words: &[&str]) -> Result<Command> {
    let mut go = command("go", words)?;
    go.current_dir(root()?.join(STAGE)).env("CGO_ENABLED", "0");
    Ok(go)
}

fn write_schema() -> Result<()> {
    let folder = output(go(&["list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"])?)?;
    let file = Path::new(folder.trim()).join(DESCRIPTION);
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let whole: Value = serde_json::from_str(&text)?;
    std::fs::write(root()?.join(SCHEMA), schema(&whole)?)?;
    Ok(())
}

/// The definitions that our kinds need, one per line, reduced to what validation needs.
fn schema(whole: &Value) -> Result<String> {
    let definitions = whole["definitions"].as_object().context("the description has no definitions")?;
    let is_ours = |definition: &Value| {
        let kinds = definition["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
        kinds.clone().any(|own| {
            KINDS.iter().any(|(group, version, kind)| {
                own["group"] == *group && own["version"] == *version && own["kind"] == *kind
            })
        })
    };
    let mut next: Vec<&str> = definitions
        .iter()
        .filter(|(_, definition)| is_ours(definition))
        .map(|(name, _)| name.as_str())
        .collect();
    let mut needed = BTreeMap::new();
    while let Some(name) = next.pop() {
        if needed.contains_key(name) {
            continue;
        }
        let definition = definitions.get(name).with_context(|| format!("no definition of {name}"))?;
        let slim = slim(definition);
        references(definition, &mut |name| next.push(name));
        needed.insert(name, slim);
    }
    let lines: Vec<String> = needed.iter().map(|(name, slim)| format!("{name:?}:{slim}")).collect();
    Ok(format!("{{\n{}\n}}\n", lines.join(",\n")))
}

/// The definition without descriptions, and without `status`, which manifests do not have.
fn slim(definition: &Value) -> Value {
    const KEPT: &[&str] = &["type", "$ref", "required", "format", "x-kubernetes-group-version-kind"];
    let mut slimmed = Map::new();
    for (key, value) in definition.as_object().into_iter().flatten() {
        match key.as_str() {
            kept if KEPT.contains(&kept) => {
                slimmed.insert(key.clone(), value.clone());
            }
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let fields = fields.filter(|(name, _)| *name != "status");
                let fields: Map<String, Value> =
                    fields.map(|(name, field)| (name.clone(), slim(field))).collect();
                slimmed.insert(key.clone(), fields.into());
            }
            "items" | "additionalProperties" => {
                slimmed.insert(key.clone(), slim(value));
            }
            _ => {}
        }
    }
    slimmed.into()
}

/// Calls `found` with each definition that is referenced, except through `status`.
fn references<'a>(value: &'a Value, found: &mut dyn FnMut(&'a str)) {
    match value {
        Value::Object(fields) => {
            fields.iter().filter(|(name, _)| *name != "status").for_each(|(name, value)| {
                match value.as_str().and_then(|text| text.strip_prefix("#/definitions/")) {
                    Some(definition) if name == "$ref" => found(definition),
                    _ => references(value, found),
                }
            })
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_has_our_kinds_and_what_they_need_and_no_more() {
        let kind = |kind: &str| json!([{ "group": "", "version": "v1", "kind": kind }]);
        let whole = json!({ "definitions": {
            "core.Pod": {
                "description": "a pod", "type": "object", "required": ["spec"],
                "properties": {
                    "spec": { "$ref": "#/definitions/core.PodSpec", "description": "its spec" },
                    "status": { "$ref": "#/definitions/core.PodStatus" },
                },
                "x-kubernetes-group-version-kind": kind("Pod"),
            },
            "core.PodSpec": { "type": "object", "properties": { "names": { "type": "array", "items": { "type": "string", "x": 1 } } } },
            "core.PodStatus": { "type": "object" },
            "core.Node": { "type": "object", "x-kubernetes-group-version-kind": kind("Node") },
        } });
        let expected = concat!(
            "{\n\"core.Pod\":{\"properties\":{\"spec\":{\"$ref\":\"#/definitions/core.PodSpec\"}},\"required\":[\"spec\"],\"type\":\"object\",",
            "\"x-kubernetes-group-version-kind\":[{\"group\":\"\",\"kind\":\"Pod\",\"version\":\"v1\"}]},\n",
            "\"core.PodSpec\":{\"properties\":{\"names\":{\"items\":{\"type\":\"string\"},\"type\":\"array\"}},\"type\":\"object\"}\n}\n",
        );
        assert_eq!(schema(&whole).unwrap(), expected);
    }
}
