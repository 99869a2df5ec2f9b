//! TLS: `throng run` against other programs' servers, and `throng serve --tls` as other programs see it.

mod certificates;
mod faults;
mod nginx;
mod servers;
mod serving;
