//! One suite of scripted peers over every backend of `Io`: the same scenes must show the same events, connection by connection, over one
//! ring, over several, with an old kernel's operations, with queues that overflow, over epoll, over a TUN device, and in the simulator.

mod alone;
mod churn;
mod fair;
mod kernel;
mod nagle;
mod namespace;
mod ours;
mod player;
mod scenes;
mod script;
mod stage;
mod threads;
