//! Hosts with smoltcp's TCP on simulated links: around the TCP/IP host (`tcpip`), and on both sides of the router
//! (`nat`).
//!
//! ```text
//! plans ─> scenario ─> network ─> host ─> exchange ─> stream, packets ─> goal
//!                         │        └───> service
//!                         └─> wire, the program (`node`)
//! ```

mod disk;
mod exchange;
mod goal;
mod host;
mod nat;
mod network;
mod packets;
mod path;
mod plans;
mod scenario;
mod service;
mod stream;
mod tcpip;
mod wire;
