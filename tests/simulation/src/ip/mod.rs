//! Hosts with another's TCP, smoltcp's, on simulated wires: at the TCP/IP host (`tcpip`), and at both sides of the router
//! (`nat`).
//!
//! ```text
//! plans ─> scenario ─> network ─> host ─> talk ─> stream
//!                         │        └───> service
//!                         └─> wire, packets, the program (`node`)
//! ```

mod disk;
mod host;
mod nat;
mod network;
mod packets;
mod plans;
mod scenario;
mod service;
mod stream;
mod talk;
mod tcpip;
mod wire;
