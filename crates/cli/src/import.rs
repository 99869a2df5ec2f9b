//! `throng import`: a scenario of what another tool has recorded or described.

use std::{fs, io, io::Read, path::Path};

use ::import::Imported;

use crate::{
    Failure,
    args::ImportArgs,
    files::Files,
    message,
    output::{self, STDOUT},
    print_stdout,
};

/// Imports the file; returns the exit status.
pub(crate) fn import(args: &ImportArgs) -> Result<u8, Failure> {
    let text = text(&args.file).map_err(|why| Failure::usage([format!("{}: {why}", args.file)]))?;
    let name = Path::new(&args.file).file_name().map_or("-".into(), |name| name.to_string_lossy());
    let imported = ::import::import(&name, &text);
    write(imported.map_err(|why| Failure::usage([format!("{}: {why}", args.file)]))?, args.output.as_deref())
}

/// The scenario of an OpenAPI document; `None` if the text is not one, or has no operation that can be sent.
pub(crate) fn import_document(name: &str, text: &str, origin: &str) -> Option<Imported> {
    let is_document = text.contains("\"openapi\"") || text.contains("\"swagger\"");
    is_document.then(|| ::import::import_for(name, text, Some(origin)).ok()).flatten()
}

/// Writes the scenario, and says what is not in it. What `throng run` would refuse in it is a failure; it is written all the same.
pub(crate) fn write(imported: Imported, file: Option<&str>) -> Result<u8, Failure> {
    let Imported { format, scenario, left_out, mistakes } = imported;
    match file.filter(|file| *file != STDOUT) {
        None => print_stdout(&scenario)?,
        Some(file) => {
            Files::default().whole("--output", file)?;
            output::write("--output", file, &scenario)?;
            message(&format!(
                "{format} as a scenario in {file}; try it: throng try {}",
                units::shell_word(file)
            ));
        }
    }
    left_out.iter().for_each(|left| message(&format!("not in it: {left}")));
    if mistakes.is_empty() { Ok(0) } else { Err(Failure::usage(mistakes)) }
}

fn text(file: &str) -> Result<String, io::Error> {
    let mut text = String::new();
    match file {
        STDOUT => io::stdin().read_to_string(&mut text).map(|_| text),
        _ => fs::read_to_string(file),
    }
}
