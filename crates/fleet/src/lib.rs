//! One plan on many machines: agents that joined over NATS, and the coordinator that leads them.
//!
//! ```text
//! coordinator                         agent
//!   wait for agents   ◄── Here ──────   each second: who it is, whether it is free
//!   offer the plan    ─── Offer ────►   plan, names, limits, allow list ─► Offered or Refused
//!   parts that sum up ─── Assign ───►   threads set up                  ─► Ready or Refused
//!   begin             ─── Begin ────►   all threads begin
//!   run's conductor   ─── Order ────►   to its threads
//!   merges            ◄── Tick ──────   each second and thread
//! ```
//!
//! The fleet is one more kind of [`run::Workers`]: conductor, sinks and judge are those of one machine.

mod agent;
mod coordinator;
mod link;
mod message;
mod share;

pub use agent::{Agent, Allow, Planner};
pub use coordinator::{Fleet, Job};
pub use link::{Access, Link, Server};
