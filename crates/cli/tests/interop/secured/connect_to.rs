//! `--connect-to` with TLS: the connection goes elsewhere, the name stays that of the URL.

use super::{certificates::Authority, nginx::Nginx};
use crate::{right, server::folder, summary::run};

const NAME: &str = "shop.invalid";

#[test]
fn the_name_of_the_url_is_sent_and_verified_wherever_it_is_dialled() {
    let folder = folder("secured-connect-to");
    let authority = Authority::new("Tests");
    let issuer = authority.file(&folder);
    let files = authority.issue(&folder, "shop", |params| {
        params.subject_alt_names = vec![rcgen::SanType::DnsName(NAME.try_into().unwrap())];
    });
    // Only who asks for this name, in both places, has a 200.
    let named = format!(
        "location / {{ if ($ssl_server_name != {NAME}) {{ return 421; }} if ($host != {NAME}) {{ return 404; }} return 200 'Hello World!'; }}"
    );
    let nginx = Nginx::with(&folder, &files, "ssl http2", &named);
    let at = nginx.server.address.to_string();
    let (url, only_it) = (format!("https://{NAME}:8443/"), format!("{NAME}:8443:{at}"));
    let load = ["-n", "20", "-c", "2", "--cacert", &issuer];
    for rule in [&at, &only_it] {
        for http2 in [&[][..], &["--http2"]] {
            let before = nginx.counted();
            let s = right::check(&url, &[&load, &["--connect-to", rule][..], http2].concat());
            assert_eq!(s.count("requests.status.200"), 20, "{rule} {http2:?}");
            assert_eq!(nginx.counted() - before - 1, 20, "{rule} {http2:?}");
        }
    }
    // A certificate for the host that is dialled would not do, and one for another name does not either.
    let other = "https://other.invalid:8443/";
    let (ended, s) = run(other, &[&load, &["--connect-to", &at][..]].concat());
    ended.assert_status(1);
    assert_eq!(s.faults(), [("target·tls·wrong-name".to_owned(), 2)], "{}", ended.stderr);
    // With `--sni` it is verified for that name, which is sent.
    let (ended, s) = run(other, &[&load, &["--connect-to", &at, "--sni", NAME][..]].concat());
    assert_eq!(s.count("requests.status.404"), 20, "SNI is {NAME}, and the Host is not: {}", ended.stderr);
}
