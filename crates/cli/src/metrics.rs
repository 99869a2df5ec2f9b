//! Where the metrics of a run go, according to its flags.

use std::{env, sync::Arc};

use exporters::{Exporters, Form, PushServer};
use host::remote::Token;
use plan::{Influx, Live, Otlp, Outputs};
use units::Date;

use crate::{Failure, files::Files, message};

/// To where the metrics of a run go; `bundled`: the file of its bundle. A file that cannot be opened, or a port in use, stops the run before it starts.
pub(crate) fn exporters(
    outputs: &Outputs,
    bundled: Option<&str>,
    began: Date,
    files: &mut Files,
) -> Result<Exporters, Failure> {
    let mut exporters = Exporters::new(began);
    add_files(&mut exporters, outputs, files)?;
    if let Some(file) = bundled {
        csv(&mut exporters, file, files)?;
    }
    let influx = outputs.influx.as_ref().map(influx_server).transpose()?;
    for server in influx.into_iter().chain(outputs.otlp.as_ref().map(otlp_server)) {
        exporters.push(server, Arc::new(message));
    }
    if let Some(at) = outputs.prometheus {
        let bound = exporters.prometheus(at);
        let at = bound.map_err(|e| Failure::machine(format!("--prometheus {at}: {e}")))?;
        if outputs.live != Live::Off {
            message(&format!("metrics at http://{at}/metrics"));
        }
    }
    Ok(exporters)
}

/// Files of metrics.
pub(crate) fn add_files(
    exporters: &mut Exporters,
    outputs: &Outputs,
    files: &mut Files,
) -> Result<(), Failure> {
    outputs.csv.as_deref().map_or(Ok(()), |file| csv(exporters, file, files))?;
    if let Some(file) = &outputs.jsonl {
        exporters.jsonl(format!("--jsonl {file}"), files.stream("--jsonl", file)?);
    }
    outputs.parquet.as_deref().map_or(Ok(()), |file| parquet(exporters, file, files))
}

fn csv(exporters: &mut Exporters, file: &str, files: &mut Files) -> Result<(), Failure> {
    exporters.csv(format!("--csv {file}"), files.stream("--csv", file)?);
    Ok(())
}

#[cfg(feature = "parquet")]
fn parquet(exporters: &mut Exporters, file: &str, files: &mut Files) -> Result<(), Failure> {
    exporters.parquet(format!("--parquet {file}"), files.stream("--parquet", file)?);
    Ok(())
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &mut Exporters, file: &str, _: &mut Files) -> Result<(), Failure> {
    let fix = "not in this build; use --csv, or build with --features parquet";
    Err(Failure::usage([format!("--parquet: {fix}: {file:?}")]))
}

/// Where InfluxDB is, with the token that it wants.
pub(crate) fn influx_server(influx: &Influx) -> Result<PushServer, Failure> {
    let token = match &influx.token_file {
        None => env::var("INFLUX_TOKEN").ok().filter(|token| token.bytes().all(|b| b.is_ascii_graphic())),
        Some(file) => {
            let read = Token::read(file);
            let token = read.map_err(|why| Failure::usage([format!("--influx-token-file: {why}")]))?;
            Some(token.secret().to_owned())
        }
    };
    let Influx { at, host, path, .. } = influx.clone();
    Ok(PushServer { form: Form::Influx, at, host, path, token: token.filter(|token| !token.is_empty()) })
}

/// Where the collector is.
pub(crate) fn otlp_server(otlp: &Otlp) -> PushServer {
    let Otlp { at, host, path } = otlp.clone();
    PushServer { form: Form::Otlp, at, host, path, token: None }
}
