//! Programs written in Go: `cargo xtask test` builds them before its tests start.

use std::path::Path;

use crate::server::source;

/// The path of a program: `secured`, or one of the modules that `go/go.mod` names.
pub(crate) fn program(name: &str) -> String {
    let path = source(&format!("go/packages/{name}"));
    assert!(Path::new(&path).is_file(), "{path} is missing; cargo xtask test packages");
    path
}
