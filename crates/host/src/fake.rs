//! A fake machine for tests: a temporary directory with the given files.

use crate::Root;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Removed with its content when dropped.
pub(crate) struct Machine(PathBuf);

impl Machine {
    /// Creates a machine with these files: path below the root, and text.
    pub(crate) fn with(files: &[(&str, &str)]) -> Machine {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("throng-host-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let machine = Machine(std::env::temp_dir().join(name));
        fs::create_dir_all(&machine.0).unwrap();
        for (path, text) in files {
            machine.write(path, text);
        }
        machine
    }

    /// Writes a file, or replaces it.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes a symbolic link; `to` need not exist (`socket:[7]`).
    pub(crate) fn link(&self, path: &str, to: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(to, path).unwrap();
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(&self.0)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
