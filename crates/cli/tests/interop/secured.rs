//! TLS: `throng run` against other programs' servers, and `throng serve --tls` as other programs see it.

mod caddy;
pub(crate) mod certificates;
mod connect_to;
mod conversations;
mod faults;
mod figures;
mod http2;
mod mixed;
mod nginx;
mod servers;
mod serving;
