//! The real binary as agents and coordinators, over a real NATS server, in namespaces where that matters; and the APIs of both.
//! They mostly wait: several run side by side, and beside other tests.
//!
//! On loopback nothing is left running: each server is a process that ends with the test that started it. The programs
//! come with `cargo xtask test`. `THRONG_BIN` names the binary if it is not the one that cargo built.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

#[path = "../interop/namespace.rs"]
#[allow(dead_code, reason = "shared with the other tests on third-party programs")]
mod namespace;
#[path = "../black_box/program.rs"]
#[allow(dead_code, reason = "shared with the black-box tests, which use all of it")]
mod program;
#[path = "../black_box/scripted.rs"]
#[allow(dead_code, reason = "shared with the black-box tests, which use all of it")]
mod scripted;
#[path = "../interop/server.rs"]
#[allow(dead_code, reason = "shared with the other tests on third-party programs")]
mod server;
#[path = "../black_box/summary.rs"]
#[allow(dead_code, reason = "shared with the black-box tests, which use all of it")]
mod summary;

#[path = "../interop/secured/certificates.rs"]
#[allow(dead_code, reason = "shared with the interop tests, which use all of it")]
mod certificates;

mod api;
mod clients;
mod firewall;
mod fleet;
mod fleet_faults;
mod folders;
mod hostile;
mod hosts;
mod leaves;
mod nats;
mod refusals;
mod runs_api;
mod secrets;
mod secured;
mod shares;
mod steering;
mod waiting;
