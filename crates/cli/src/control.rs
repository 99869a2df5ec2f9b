//! The control API of `throng agent`, for individually controlled clients.

use std::{net::SocketAddr, sync::Arc};

use clients::{Api, Clients, Limits};
use fleet::{Allow, Caps};
use host::remote::Token;
use units::Count;
use webserver::Opens;

use crate::{Failure, args::ControlArgs, listening, mistakes::Mistakes, plans, print_stdout};

/// The address of the control API, and its token.
pub(crate) struct Control {
    listen: SocketAddr,
    token: Option<Token>,
}

/// A running control API.
pub(crate) struct Served {
    api: Api,
    clients: Arc<Clients>,
}

/// Parses the flags of the control API and the caps; `None` without `--listen`.
pub(crate) fn read(args: &ControlArgs, mistakes: &mut Mistakes) -> (Option<Control>, Caps) {
    let most =
        mistakes.read("--max-connections", args.max_connections.as_deref(), |text| {
            match Count::parse(text).map_err(|e| e.to_string())? {
                Count(0) => Err(format!("{text:?} allows nothing; use 20k")),
                Count(most) => Ok(most),
            }
        });
    let rate = mistakes.read("--max-rate", args.max_rate.as_deref(), |text| plan::rate_per_s(text, "1k/s"));
    let token = mistakes.read("--token-file", args.token_file.as_deref(), Token::read);
    let control = args.listen.as_deref().map(|text| {
        let listen = mistakes.address("--listen", text, "127.0.0.1:9001");
        if args.token_file.is_none() && !listen.ip().is_loopback() {
            let port = listen.port();
            mistakes.add(format!(
                "--listen: without --token-file only loopback is allowed; use 127.0.0.1:{port}: {listen}"
            ));
        }
        Control { listen, token }
    });
    (control, Caps::new(most, rate))
}

impl Control {
    /// Starts the API and prints its address.
    pub(crate) fn start(self, allow: Allow, caps: Caps) -> Result<Served, Failure> {
        let Control { listen, token } = self;
        let clients = Arc::new(Clients::new(Limits { allow, caps }, plans::resolve));
        let opens = token.map(|token| Arc::new(move |offered: &[u8]| token.is(offered)) as Opens);
        let started = Api::start(listen, clients.clone(), opens);
        let (api, at) = started.map_err(|e| listening::refused("--listen", listen, &e))?;
        print_stdout(&format!("control API at http://{at}/\n"))?;
        Ok(Served { api, clients })
    }
}

impl Served {
    /// Ends the API and closes its clients.
    pub(crate) fn end(self) {
        self.api.end();
        self.clients.stop();
    }
}

#[cfg(test)]
mod tests {
    use units::Rate;

    use super::*;

    #[test]
    fn a_rate_without_a_unit_is_per_second() {
        for (text, expected) in
            [("100", Rate::per_s(100)), ("2k", Rate::per_s(2_000)), ("60/m", Rate::per_s(1))]
        {
            let args = ControlArgs {
                listen: None,
                token_file: None,
                max_connections: None,
                max_rate: Some(text.to_owned()),
            };
            let mut mistakes = Mistakes::default();
            let (_, caps) = read(&args, &mut mistakes);
            assert!(mistakes.end(()).is_ok(), "{text}");
            assert_eq!(caps.free_rate(), Some(expected), "{text}");
        }
    }
}
