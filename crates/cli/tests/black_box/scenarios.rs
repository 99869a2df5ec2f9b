//! `throng run X.toml`: the file is read, with all that it names, and its mistakes are told.

use std::{fs, path::PathBuf};

use crate::{program::Program, words::check};

/// A file of this test's own, gone with it.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("throng-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn mistakes_of_a_file_have_line_column_and_cure() {
    let text =
        "target = \"http://127.0.0.1:9/\"\nthnik = \"1s\"\n[[population]]\nname = \"users\"\nthink = \"5\"\n";
    let file = File::new("wrong.toml", text);
    let path = file.path();
    let ended = Program::start(&["run", path]).end();
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert_eq!(
        ended.stderr,
        format!(
            "throng: {path}:2:1: \"thnik\" is no key of the file's top: write think\n\
             throng: {path}:5:9: population.users.think: \"5\" is not a time: write 5s\n"
        )
    );
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_file_without_mistakes_cannot_be_run_yet() {
    // It names a file of values beside it.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/mixed.toml");
    check(&["run", path], 3, &["mixed.toml: it has no mistake", "not available in this version"]);
}

#[test]
fn a_file_that_is_not_there_or_no_text() {
    check(
        &["run", "no-such-file.toml"],
        2,
        &["target: ", "\"no-such-file.toml\" cannot be read: No such file"],
    );
    let values = "target = \"http://127.0.0.1:9/\"\n[csv.a]\nfile = \"no-such-file.csv\"\n";
    let file = File::new("values.toml", values);
    check(&["run", file.path()], 2, &[":3:8: csv.a.file: \"no-such-file.csv\" cannot be read: No such file"]);
}
