//! The cryptography for handshakes: that of ring, except X25519, which graviola computes in half the time on processors with the required
//! instructions.

use rustls::crypto::{CryptoProvider, ring};

/// The provider for clients and servers.
pub(crate) fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if graviola::util::is_cpu_supported() {
        let groups = provider.kx_groups.iter_mut();
        groups.filter(|it| it.name() == x25519::NAME).for_each(|it| *it = &x25519::X25519);
    }
    provider
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod x25519 {
    use graviola::{
        Error,
        key_agreement::x25519::{PublicKey, StaticPrivateKey},
    };
    use rustls::{
        NamedGroup, PeerMisbehaved,
        crypto::{ActiveKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup},
    };
    use std::sync::Arc;

    pub(crate) const NAME: NamedGroup = NamedGroup::X25519;

    /// Ephemeral Diffie-Hellman over Curve25519 (RFC 7748, section 6.1; RFC 8446, section 7.4.2).
    #[derive(Debug)]
    pub(crate) struct X25519;

    impl SupportedKxGroup for X25519 {
        fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
            Ok(Box::new(Exchange::new()?))
        }

        fn name(&self) -> NamedGroup {
            NAME
        }
    }

    /// The key pair of one end.
    #[derive(Clone)]
    pub(crate) struct Exchange {
        private: Arc<StaticPrivateKey>,
        public: [u8; 32],
    }

    impl Exchange {
        /// Generates a key pair.
        ///
        /// # Errors
        /// The kernel provides no random bytes.
        pub(crate) fn new() -> Result<Exchange, rustls::Error> {
            let private = StaticPrivateKey::new_random().map_err(|_| GetRandomFailed)?;
            let public = private.public_key().as_bytes();
            Ok(Exchange { private: Arc::new(private), public })
        }
    }

    impl ActiveKeyExchange for Exchange {
        /// # Errors
        /// The peer's key is not 32 bytes long, or is one of the few with which the shared secret is zero.
        fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, rustls::Error> {
            let refused = |_: Error| rustls::Error::from(PeerMisbehaved::InvalidKeyShare);
            let peer = PublicKey::try_from_slice(peer).map_err(refused)?;
            let secret = self.private.diffie_hellman(&peer).map_err(refused)?;
            Ok(SharedSecret::from(&secret.as_bytes()[..]))
        }

        fn pub_key(&self) -> &[u8] {
            &self.public
        }

        fn group(&self) -> NamedGroup {
            NAME
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{
        Error, NamedGroup, PeerMisbehaved,
        crypto::{ActiveKeyExchange, SupportedKxGroup},
    };

    fn start(provider: &CryptoProvider) -> Box<dyn ActiveKeyExchange> {
        let x25519 = |it: &&&dyn SupportedKxGroup| it.name() == NamedGroup::X25519;
        provider.kx_groups.iter().find(x25519).expect("it is offered").start().expect("there is randomness")
    }

    #[test]
    fn each_end_comes_to_the_secret_of_rings() {
        for _ in 0..100 {
            let [ours, rings] = [start(&provider()), start(&ring::default_provider())];
            let (our_key, rings_key) = (ours.pub_key().to_vec(), rings.pub_key().to_vec());
            let secrets = [ours.complete(&rings_key), rings.complete(&our_key)];
            let [our_secret, rings_secret] = secrets.map(|it| it.expect("the keys are good"));
            assert_eq!(our_secret.secret_bytes(), rings_secret.secret_bytes());
        }
    }

    #[test]
    fn keys_that_give_no_secret_are_refused() {
        let low_order = [[0; 32].to_vec(), [&[1][..], &[0; 31]].concat()];
        for key in [low_order.to_vec(), vec![vec![9; 31], vec![9; 33], vec![]]].concat() {
            let error = start(&provider()).complete(&key).err();
            assert_eq!(error, Some(Error::from(PeerMisbehaved::InvalidKeyShare)), "{key:?}");
        }
    }
}
