//! Reads the limits and the state of this machine, and checks whether it can carry out a run.
//!
//! Everything is read from files under a [`Root`]: `/` in reality, a temporary directory in a test. Only [`remote`] opens sockets, to
//! query the target's host. Only a [`Watch`], [`Processes`] and [`remote::Poller`] keep state between samples.

mod addresses;
mod facts;
#[cfg(test)]
mod fake;
mod files;
mod finding;
mod fix;
mod groups;
mod jvm;
mod listener;
mod log;
mod memory;
mod network;
mod ports;
mod preflight;
mod processes;
mod processors;
pub mod remote;
mod repair;
mod rights;
mod root;
mod somaxconn;
mod suspension;
mod threads;
mod watch;

pub use addresses::{is_local, local_addresses, route_device};
pub use facts::{facts, host_name, network_id, settings};
pub use files::{OpenFiles, open_files};
pub use finding::{Finding, Severity};
pub use fix::{FixError, RunIp, Undone, fix, undo};
pub use jvm::live_heap;
pub use memory::{Memory, kernel_memory, memory, slab_reclaimable};
pub use ports::{Listener, listeners, port_facts};
pub use preflight::{
    Capacity, Layers, Need, capacity, capacity_after_time_wait, capacity_beside_memory, examine,
    open_files_refused, preflight, target_room, tun_refused, uring_refused,
};
pub use processes::{Processes, UsageSample};
pub use processors::{CpuTime, cpu_time, own_cpu_time, processors_online};
pub use repair::Repair;
pub use root::Root;
pub use somaxconn::somaxconn;
pub use suspension::boot_time_ahead_ns;
pub use watch::{Watch, host_sample, oom_kills};
