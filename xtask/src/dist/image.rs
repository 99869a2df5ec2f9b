//! Builds a container image of one file, in the format that `docker load` and `podman load` read. Needs no container engine.

use super::{Dist, sha256, tar};
use crate::command::finish;
use anyhow::Result;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// The user `nobody`: throng needs no privileges.
const USER: &str = "65534:65534";

/// An image from scratch: the binary, and a directory for stored runs.
pub(super) fn write(dist: &Dist) -> Result<()> {
    let folder = dist.work("image")?;
    let layer = folder.join("layer");
    dist.install(&layer.join("throng"))?;
    fs::create_dir_all(layer.join("tmp"))?;
    fs::set_permissions(layer.join("tmp"), fs::Permissions::from_mode(0o1777))?;
    let mut layered = tar(&folder.join("layer.tar"), &[])?;
    layered.arg("-C").arg(&layer).args(["throng", "tmp"]);
    finish(layered)?;
    let id = sha256(&folder.join("layer.tar"))?;
    let config = json!({
        "architecture": dist.platform.oci,
        "os": "linux",
        "config": { "Entrypoint": ["/throng"], "Cmd": ["--help"], "User": USER, "Env": ["PATH=/", "HOME=/tmp"] },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{id}")] },
    });
    fs::write(folder.join("config.json"), config.to_string())?;
    let tag = format!("throng:{}", dist.version);
    let manifest = json!([{ "Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"] }]);
    fs::write(folder.join("manifest.json"), manifest.to_string())?;
    let name = format!("throng-{}-{}-image.tar", dist.version, dist.platform.arch);
    let mut image = tar(&dist.folder.join(name), &[])?;
    image.arg("-C").arg(&folder).args(["config.json", "layer.tar", "manifest.json"]);
    finish(image)
}
