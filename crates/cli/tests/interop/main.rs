//! The real binary against third-party servers and clients, and between network namespaces.
//!
//! On loopback nothing is left running: each server is a process that ends with the test that started it. The programs
//! come with `cargo xtask test`. `THRONG_BIN` names the binary if it is not the one that cargo built.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

#[path = "../black_box/program.rs"]
#[allow(dead_code, reason = "shared with the black-box tests, which use all of it")]
mod program;
#[path = "../black_box/scripted.rs"]
#[allow(dead_code, reason = "shared with the black-box tests, which use all of it")]
mod scripted;
#[path = "../black_box/summary.rs"]
#[allow(dead_code, reason = "shared with the black-box tests, which use all of it")]
mod summary;

mod cable;
mod curl;
mod epoll;
mod firewall;
mod formats;
mod go;
mod grafana;
mod grpc;
mod guides;
mod h2load;
mod h2spec;
mod haproxy;
mod http2;
mod influxdb;
mod jvm;
mod limits;
mod logins;
mod namespace;
mod nginx;
mod node;
mod observed;
mod off_loopback;
mod prometheus;
mod python;
mod recorded;
mod right;
mod secured;
mod server;
mod subprotocols;
mod tracked;
mod translated;
mod tun;
mod typed;
mod websocket_clients;
mod websocket_servers;
mod wrk;
