//! The software bill of materials: SPDX 2.3 as JSON, of the packages that cargo resolved for this platform.

use super::{Dist, NAME};
use crate::command::{command, output, root};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Writes the SBOM into the folder of the packages.
pub(super) fn write(dist: &Dist) -> Result<()> {
    let words = ["metadata", "--format-version", "1", "--locked", "--filter-platform", dist.platform.rust];
    let metadata = serde_json::from_str(&output(command("cargo", &words)?)?)?;
    let lock = fs::read_to_string(root()?.join("Cargo.lock"))?;
    let commit = output(command(
        "git",
        &["show", "--no-patch", "--format=%H %cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ"],
    )?)
    .unwrap_or_else(|_| "unknown 1970-01-01T00:00:00Z".to_owned());
    let (commit, date) = commit.trim().split_once(' ').context("git printed no commit")?;
    let document = document(&metadata, &checksums(&lock), &format!("{}-{commit}", dist.version), date)?;
    let name = format!("throng-{}-{}.spdx.json", dist.version, dist.platform.arch);
    Ok(fs::write(dist.folder.join(name), format!("{document:#}\n"))?)
}

/// Name and version of each package from a registry, with its SHA-256 from `Cargo.lock`.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |package: &str, name: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
        line.map(|value| value.trim_end_matches('"').to_owned())
    };
    let packages = lock.split("[[package]]").skip(1);
    let known = |package: &str| {
        Some(((field(package, "name")?, field(package, "version")?), field(package, "checksum")?))
    };
    packages.filter_map(known).collect()
}

/// The SPDX document: the packages that the program is linked with, and the dependencies between them.
fn document(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
    name: &str,
    date: &str,
) -> Result<Value> {
    let packages = metadata["packages"].as_array().context("no packages")?;
    let by_id: BTreeMap<&str, &Value> =
        packages.iter().filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let nodes = metadata["resolve"]["nodes"].as_array().context("not resolved")?;
    let uses: BTreeMap<&str, Vec<&str>> =
        nodes.iter().filter_map(|node| Some((node["id"].as_str()?, linked(node)))).collect();
    let first = packages.iter().find(|package| package["name"] == NAME).and_then(|cli| cli["id"].as_str());
    let first = first.context("no package of that name")?;
    let (mut found, mut next) = (BTreeSet::from([first]), vec![first]);
    while let Some(id) = next.pop() {
        next.extend(uses.get(id).into_iter().flatten().filter(|id| found.insert(id)));
    }
    let listed: Vec<Value> = found.iter().map(|id| package(by_id[id], checksums)).collect();
    let depends =
        |id: &&str, used: &&str| relation(&reference(by_id[id]), "DEPENDS_ON", &reference(by_id[used]));
    let of = |id: &&str| uses.get(id).into_iter().flatten().map(|used| depends(id, used)).collect::<Vec<_>>();
    let relations = found.iter().flat_map(of);
    let describes = relation("SPDXRef-DOCUMENT", "DESCRIBES", &reference(by_id[first]));
    let relations: Vec<Value> = std::iter::once(describes).chain(relations).collect();
    Ok(json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("throng-{name}"),
        "documentNamespace": format!("urn:throng:{name}"),
        "creationInfo": { "created": date, "creators": ["Tool: cargo-xtask-dist"] },
        "packages": listed,
        "relationships": relations,
    }))
}

/// The dependencies a package is linked with: no dev-dependencies and no build-dependencies.
fn linked(node: &Value) -> Vec<&str> {
    let is_linked = |used: &&Value| {
        used["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
    };
    node["deps"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(is_linked)
        .filter_map(|used| used["pkg"].as_str())
        .collect()
}

fn relation(from: &str, kind: &str, to: &str) -> Value {
    json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to })
}

/// The SPDX identifier of a package; identifiers consist of letters, digits, `.` and `-`.
fn reference(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let id = format!("SPDXRef-{}-{}", text("name"), text("version"));
    id.chars().map(|c| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '-' }).collect()
}

fn package(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("version"));
    // `/` between licences is the deprecated way to write OR.
    let licence = text("license").replace(" / ", " OR ").replace('/', " OR ");
    let licence = if licence.is_empty() { "NOASSERTION".to_owned() } else { licence };
    let mut about = json!({
        "SPDXID": reference(package),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": false,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
    });
    if let Some(sum) = checksums.get(&(name.clone(), version.clone())) {
        about["checksums"] = json!([{ "algorithm": "SHA256", "checksumValue": sum }]);
        let url = format!("pkg:cargo/{name}@{version}");
        about["externalRefs"] = json!([{ "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url }]);
    }
    about
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lists_what_is_linked_and_no_tools() {
        let package = |name: &str| json!({ "id": name, "name": name, "version": "1.0.0+a_b", "license": "MIT/Apache-2.0" });
        let uses = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let packages = [NAME, "rustls", "cc", "proptest", "ring", "other"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": { "nodes": [
                { "id": NAME, "deps": [uses("rustls", Value::Null), uses("proptest", "dev".into())] },
                { "id": "rustls", "deps": [uses("ring", Value::Null), uses("cc", "build".into())] },
                { "id": "ring", "deps": [uses("rustls", Value::Null)] },
                { "id": "other", "deps": [] },
            ] },
        });
        let lock = "version = 4\n[[package]]\nname = \"ring\"\nversion = \"1.0.0+a_b\"\nchecksum = \"abc\"\n[[package]]\nname = \"throng-cli\"\nversion = \"1\"\n";
        let document = document(&metadata, &checksums(lock), "1", "2026-01-01T00:00:00Z").unwrap();
        let names: Vec<&str> = document["packages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|own| own["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["ring", "rustls", NAME]);
        let ring = &document["packages"][0];
        assert_eq!(ring["checksums"][0]["checksumValue"], "abc");
        assert_eq!(
            (&ring["SPDXID"], &ring["licenseDeclared"]),
            (&"SPDXRef-ring-1.0.0-a-b".into(), &"MIT OR Apache-2.0".into())
        );
        assert!(document["packages"][2]["checksums"].is_null(), "what is no registry's has none");
        assert_eq!(document["relationships"].as_array().unwrap().len(), 4);
    }

    #[test]
    fn the_lock_file_has_a_checksum_for_what_others_wrote() {
        let sums = checksums(&fs::read_to_string(root().unwrap().join("Cargo.lock")).unwrap());
        let has = |name: &str| sums.keys().any(|(own, _)| own == name);
        assert!(has("rustls") && has("rusqlite") && !has(NAME), "{}", sums.len());
        assert!(sums.values().all(|sum| sum.len() == 64));
    }
}
