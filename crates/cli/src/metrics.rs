//! Creates the exporters of a run from its flags.

use std::{env, sync::Arc};

use exporters::{Exporters, Form, PushServer};
use host::remote::Token;
use plan::{Influx, Live, Outputs, PostUrl};
use units::Date;

use crate::{
    Failure,
    files::{Files, Refused},
    listening, message,
};

/// The exporters to files; `bundled` is the file in a bundle. A file that cannot be opened prevents the run.
pub(crate) fn exporters(
    outputs: &Outputs,
    bundled: Option<&str>,
    began: Date,
    files: &mut Files,
) -> Result<Exporters, Failure> {
    let mut exporters = Exporters::new(began);
    add_files(&mut exporters, outputs, bundled, files)?;
    Ok(exporters)
}

/// Adds the exporters to services. A port in use prevents the run.
pub(crate) fn add_services(exporters: &mut Exporters, outputs: &Outputs) -> Result<(), Failure> {
    for server in push_servers(outputs)? {
        exporters.push(server, Arc::new(message));
    }
    if let Some(at) = outputs.prometheus {
        let bound = exporters.prometheus(at);
        let at = bound.map_err(|e| listening::refused("--prometheus", at, &e))?;
        if outputs.live != Live::Off {
            message(&format!("metrics at http://{at}/metrics"));
        }
    }
    Ok(())
}

/// Adds the exporters to files; `bundled` is the file in a bundle.
pub(crate) fn add_files(
    exporters: &mut Exporters,
    outputs: &Outputs,
    bundled: Option<&str>,
    files: &mut Files,
) -> Result<(), Failure> {
    let mut refused = Refused::default();
    for (flag, file) in [("--csv", outputs.csv.as_deref()), ("--out", bundled)] {
        let Some(file) = file else { continue };
        if let Some(opened) = refused.note(files.stream(flag, file)) {
            exporters.csv(format!("{flag} {file}"), opened);
        }
    }
    if let Some(file) = &outputs.jsonl
        && let Some(opened) = refused.note(files.stream("--jsonl", file))
    {
        exporters.jsonl(format!("--jsonl {file}"), opened);
    }
    if let Some(file) = &outputs.parquet {
        refused.note(parquet(exporters, file, files));
    }
    refused.end(Some(()))
}

#[cfg(feature = "parquet")]
fn parquet(exporters: &mut Exporters, file: &str, files: &mut Files) -> Result<(), Failure> {
    exporters.parquet(format!("--parquet {file}"), files.stream("--parquet", file)?.of_one_piece());
    Ok(())
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &mut Exporters, file: &str, _: &mut Files) -> Result<(), Failure> {
    let fix = "not in this build; use --csv, or build with --features parquet";
    Err(Failure::usage([format!("--parquet: {fix}: {file:?}")]))
}

/// The servers to which metrics are pushed.
pub(crate) fn push_servers(outputs: &Outputs) -> Result<Vec<PushServer>, Failure> {
    let server = |form, url: &PostUrl, token| {
        let PostUrl { at, host, path } = url.clone();
        PushServer { form, at, host, path, token }
    };
    let influx = outputs.influx.as_ref();
    let influx = influx.map(|influx| Ok(server(Form::Influx, &influx.url, influx_token(influx)?)));
    let otlp = outputs.otlp.as_ref().map(|url| Ok(server(Form::Otlp, url, None)));
    influx.into_iter().chain(otlp).collect()
}

/// The token for InfluxDB, if any.
fn influx_token(influx: &Influx) -> Result<Option<String>, Failure> {
    let token = match &influx.token_file {
        None => env::var("INFLUX_TOKEN").ok().filter(|token| token.bytes().all(|b| b.is_ascii_graphic())),
        Some(file) => {
            let read = Token::read(file);
            let token = read.map_err(|why| Failure::usage([format!("--influx-token-file: {why}")]))?;
            Some(token.secret().to_owned())
        }
    };
    Ok(token.filter(|token| !token.is_empty()))
}
