//! HTTP/2 by its RFCs, using the traces of the fuzz crate's driver.

mod client;
mod limits;
mod oracle;
mod script;
mod server;
mod splits;
mod written;
