//! Checks the dependencies between crates (the arrows in ARCHITECTURE.md) against `cargo metadata`.

use anyhow::{Context, Result};
use serde_json::Value;

/// Each crate with the crates it may use. All use `units` (numbers and time) except `wire`, which has no clock.
const CRATES: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("wire", &[]),
    ("tcp", &["units"]),
    ("net", &["tcp", "units"]),
    ("tls", &["net"]),
    ("samples", &["units"]),
    ("plan", &["samples", "units"]),
    ("stats", &["samples", "units"]),
    // A pure search strategy: no clock, no sockets.
    ("search", &[]),
    // Other tools' files as scenarios: text in, text out.
    ("import", &["plan", "samples", "units"]),
    ("engine", &["net", "wire", "tls", "plan", "samples", "units"]),
    ("serve", &["net", "wire", "tls", "units"]),
    // What can be concluded from a stored run; pure functions.
    ("record", &["plan", "samples", "stats", "units"]),
    ("judge", &["plan", "record", "samples", "stats", "units"]),
    ("host", &["judge", "plan", "samples", "units"]),
    // Observes the target and its host; does not depend on what controls the run.
    ("observe", &["host", "net", "plan", "record", "samples", "stats", "units"]),
    ("run", &["engine", "net", "host", "judge", "observe", "plan", "record", "samples", "search", "units"]),
    // Runs a whole load test in virtual time, for tests.
    ("stage", &["engine", "net", "plan", "run", "samples", "serve", "tls", "units", "wire"]),
    ("store", &["samples", "stats", "units"]),
    ("webserver", &["units"]),
    ("exporters", &["samples", "store", "units", "webserver"]),
    ("view", &["exporters", "samples", "stats", "store", "units", "webserver"]),
    ("api", &["exporters", "samples", "units", "view", "webserver"]),
    // Made-up results of runs, for tests.
    ("fixtures", &["samples", "units"]),
    ("fleet", &["run", "host", "plan", "samples", "units"]),
    (
        "clients",
        &[
            "fleet",
            "exporters",
            "engine",
            "net",
            "tls",
            "wire",
            "host",
            "run",
            "plan",
            "samples",
            "units",
            "webserver",
        ],
    ),
    // The separate program `throng-lab`, which implements `throng lab`.
    ("throng-lab", &["host", "samples", "stats", "store", "units"]),
    (
        // The crate in `crates/cli`, by its name in registries.
        "throng-cli",
        &[
            "units",
            "wire",
            "tcp",
            "net",
            "tls",
            "plan",
            "samples",
            "engine",
            "serve",
            "host",
            "run",
            "stats",
            "import",
            "store",
            "exporters",
            "view",
            "fleet",
            "clients",
            "api",
            "webserver",
        ],
    ),
    // The fuzz targets use each public parser, whichever crate it is in.
    ("fuzz", &["units", "wire", "tcp", "net", "tls", "plan", "samples", "store", "fleet", "host"]),
    ("xtask", &[]),
];

/// Normal and build dependencies between our packages that the table does not allow; dev-dependencies are not restricted.
///
/// # Errors
/// `metadata` is not the output of `cargo metadata`.
pub(crate) fn breaches(metadata: &Value) -> Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let ours: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut breaches = Vec::new();
    for package in packages {
        let name = package["name"].as_str().context("a package has no name")?;
        let Some((_, allowed)) = CRATES.iter().find(|(known, _)| *known == name) else {
            breaches
                .push(format!("{name}: no such crate: add its arrows to ARCHITECTURE.md and to xtask tidy"));
            continue;
        };
        let dependencies = package["dependencies"].as_array().context("a package has no dependencies")?;
        let used = dependencies.iter().filter(|d| d["kind"].as_str() != Some("dev"));
        let forbidden = used
            .filter_map(|d| d["name"].as_str())
            .filter(|used| ours.contains(used) && !allowed.contains(used));
        breaches.extend(forbidden.map(|used| format!("{name}: this crate may not use: {used}")));
    }
    Ok(breaches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A package and its dependencies, each with its kind.
    type Package<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)]);

    fn check(packages: &[Package], expected: &[&str]) {
        let packages: Vec<Value> = packages
            .iter()
            .map(|(name, used)| {
                let used: Vec<Value> =
                    used.iter().map(|(n, kind)| json!({ "name": n, "kind": kind })).collect();
                json!({ "name": name, "dependencies": used })
            })
            .collect();
        assert_eq!(breaches(&json!({ "packages": packages })).unwrap(), expected);
    }

    #[test]
    fn arrows_point_one_way() {
        check(&[("units", &[]), ("net", &[("units", None), ("libc", None)])], &[]);
        check(&[("units", &[]), ("wire", &[("units", None)])], &["wire: this crate may not use: units"]);
        check(
            &[("net", &[("engine", None), ("wire", None)]), ("engine", &[("net", None)]), ("wire", &[])],
            &["net: this crate may not use: engine", "net: this crate may not use: wire"],
        );
        // Client and server must not use each other, but a test may use both.
        check(&[("serve", &[]), ("engine", &[("serve", None)])], &["engine: this crate may not use: serve"]);
        check(&[("serve", &[]), ("engine", &[("serve", Some("dev"))])], &[]);
        check(
            &[("serve", &[]), ("engine", &[("serve", Some("build"))])],
            &["engine: this crate may not use: serve"],
        );
    }

    #[test]
    fn a_new_crate_needs_its_arrows() {
        let text = "attic: no such crate: add its arrows to ARCHITECTURE.md and to xtask tidy";
        check(&[("attic", &[("units", None)]), ("units", &[])], &[text]);
    }

    #[test]
    fn the_table_has_no_circle_and_no_unknown_name() {
        for (place, (user, used)) in CRATES.iter().enumerate() {
            for name in *used {
                let at = CRATES.iter().position(|(known, _)| known == name);
                // Crates are listed in dependency order: each uses only crates above it.
                assert!(at.is_some_and(|at| at < place), "{user} uses {name}");
            }
        }
    }

    #[test]
    fn anything_else_is_not_metadata() {
        assert!(breaches(&json!({})).is_err());
        assert!(breaches(&json!({ "packages": [{}] })).is_err());
    }
}
