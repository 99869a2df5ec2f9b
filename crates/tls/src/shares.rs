//! Reuses key shares of clients for several handshakes of a thread, because generating one is a third of a client's cost of X25519. The
//! server's work does not change.

use crate::provider::x25519::{Exchange, NAME};
use rustls::{
    Error, NamedGroup,
    crypto::{ActiveKeyExchange, CryptoProvider, SupportedKxGroup},
};
use std::cell::RefCell;

/// Number of handshakes per key. If a key leaks from memory, only these can be decrypted.
const USES: u32 = 256;

thread_local! {
    /// The current key, and for how many handshakes it may still be used.
    static SHARE: RefCell<Option<(Exchange, u32)>> = const { RefCell::new(None) };
}

/// Makes clients with this provider reuse their key shares, if graviola computes X25519 on this processor.
pub(crate) fn reuse(provider: &mut CryptoProvider) {
    if graviola::util::is_cpu_supported() {
        let groups = provider.kx_groups.iter_mut();
        groups.filter(|it| it.name() == NAME).for_each(|it| *it = &Reused);
    }
}

/// X25519 with reused key shares (RFC 8446, section 4.2.8.2).
#[derive(Debug)]
struct Reused;

impl SupportedKxGroup for Reused {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        SHARE.with_borrow_mut(|share| {
            let (exchange, left) = match share.take() {
                Some((exchange, left)) if left > 0 => (exchange, left),
                _ => (Exchange::new()?, USES),
            };
            *share = Some((exchange.clone(), left - 1));
            Ok(Box::new(exchange) as Box<dyn ActiveKeyExchange>)
        })
    }

    fn name(&self) -> NamedGroup {
        NAME
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::provider;
    use std::io::Write;

    fn start(provider: &CryptoProvider) -> Box<dyn ActiveKeyExchange> {
        let x25519 = |it: &&&dyn SupportedKxGroup| it.name() == NAME;
        provider.kx_groups.iter().find(x25519).expect("it is offered").start().expect("there is randomness")
    }

    #[test]
    fn a_share_is_for_some_handshakes_and_each_leads_to_the_secret_of_the_other_end() {
        if !graviola::util::is_cpu_supported() {
            // Written directly to stderr, because the test harness hides the output of tests that pass.
            let _ = writeln!(std::io::stderr(), "skipped: this processor has no instructions for graviola");
            return;
        }
        let (mut clients, servers) = (provider(), provider());
        reuse(&mut clients);
        let mut keys = Vec::new();
        for _ in 0..2 * USES + 1 {
            let [client, server] = [start(&clients), start(&servers)];
            let [client_key, server_key] = [&client, &server].map(|it| it.pub_key().to_vec());
            let secrets = [client.complete(&server_key), server.complete(&client_key)];
            let [of_client, of_server] = secrets.map(|it| it.expect("the keys are good"));
            assert_eq!(of_client.secret_bytes(), of_server.secret_bytes());
            keys.push((client_key, server_key));
        }
        let (mut client_keys, mut server_keys): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        client_keys.dedup();
        server_keys.sort_unstable();
        server_keys.dedup();
        assert_eq!((client_keys.len(), server_keys.len()), (3, 2 * USES as usize + 1));
    }
}
