//! `throng ui`: the stored runs in a browser.

use std::{net::SocketAddr, sync::Arc};

use host::remote::Token;
use store::{RunFilter, Store};
use view::{Opens, Ui};

use crate::{Failure, args::UiArgs, listening, mistakes::Mistakes, print_stdout, signals};

/// Serves until a signal; returns the exit status.
pub(crate) fn ui(args: &UiArgs) -> Result<u8, Failure> {
    let (listen, opens) = read_args(args)?;
    let file = store::folders::runs().map_err(Failure::machine)?;
    let store = Store::existing(&file).map_err(Failure::machine)?;
    let any = store.map_or(Ok(Vec::new()), |store| store.latest(&RunFilter::default(), 1));
    if any.map_err(Failure::machine)?.is_empty() {
        let shown = file.display();
        return Err(Failure::usage([format!("no stored runs in {shown}; make one with `throng run`")]));
    }
    let stop = signals::order_to_stop(args.until_stdin_ends)?;
    let shown = if opens.is_some() { "#token=…" } else { "" };
    let started = Ui::start(listen, file, plan::load_args, opens);
    let (ui, at) = started.map_err(|e| listening::refused("--listen", listen, &e))?;
    print_stdout(&format!("stored runs at http://{at}/{shown}\n"))?;
    signals::wait_for(&stop);
    ui.end();
    Ok(0)
}

/// The address to listen on, and the required token; reports all mistakes at once.
fn read_args(args: &UiArgs) -> Result<(SocketAddr, Option<Opens>), Failure> {
    let mut mistakes = Mistakes::default();
    let listen = mistakes.address("--listen", &args.listen, "127.0.0.1:9920");
    if args.token_file.is_none() && !listen.ip().is_loopback() {
        let port = listen.port();
        mistakes.add(format!(
            "--listen: without --token-file only loopback is allowed; use 127.0.0.1:{port}: {listen}"
        ));
    }
    let token = mistakes.read("--token-file", args.token_file.as_deref(), Token::read);
    mistakes.end(())?;
    let opens = token.map(|token| Arc::new(move |offered: &[u8]| token.is(offered)) as Opens);
    Ok((listen, opens))
}
