//! Generates the manual pages in `docs/man` from the same table as the help. Only a test does that, which also compares the pages,
//! so the binary contains no code for them. `UPDATE_GOLDEN=1` writes them.

use std::{collections::BTreeMap, env, fs, path::Path};

use clap::Command;
use clap_mangen::Man;

use super::{command_with, shared::Help};

/// Adds the manual page of a command and those of its subcommands, by file name.
fn pages(command: &Command, name: &str, into: &mut BTreeMap<String, String>) {
    // Page names include the parent commands, like those of git. The names are leaked, because clap accepts only `'static` strings
    // here.
    let own = command.clone().name(&*name.to_owned().leak()).disable_help_subcommand(true);
    let own = own.bin_name(&*name.replace('-', " ").leak());
    let mut page = Vec::new();
    // The date and the version would change each page with each release.
    Man::new(own).date("").source("throng").manual("throng").render(&mut page).expect("memory takes it");
    into.insert(format!("{name}.1"), String::from_utf8(page).expect("it is text"));
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        pages(inner, &format!("{name}-{}", inner.get_name()), into);
    }
}

#[test]
fn the_manual_is_generated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man");
    let mut expected = BTreeMap::new();
    pages(&command_with(Help::Full), "throng", &mut expected);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder).unwrap();
        for (file, page) in &expected {
            fs::write(folder.join(file), page).unwrap();
        }
    }
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        found.insert(file, fs::read_to_string(&path).unwrap());
    }
    let files: Vec<&String> = found.keys().collect();
    assert_eq!(files, expected.keys().collect::<Vec<_>>(), "UPDATE_GOLDEN=1 writes docs/man");
    for (file, page) in &expected {
        assert!(
            found[file] == *page,
            "docs/man/{file} is not what the code generates: UPDATE_GOLDEN=1 writes it"
        );
    }
    let run = &found["throng-run.1"];
    assert!(run.contains(r"\fB\-\-connect\-to\fR") && run.contains("Exit status: 0 pass"), "{run}");
}
