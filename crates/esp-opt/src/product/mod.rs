//! The product of a group of instances: one process that does what all of them do (fast-paths paper, section 4.1).
//!
//! ```text
//!   group     which instances, their liveness, the channels between them, the constants they compare with
//!   state     where every member stands, and what is known of its values: the key of a node
//!   counted   loops of a member that end by themselves
//!   path      symbolic execution of members from one node to the next; emits what remains to be computed
//!   meet      rendezvous between members
//!   world     what is left of waits: asking the world, rest, deadlock
//!   tell      what a deadlock tells of who waits where
//!   course    a fast path made ready: where it starts, its schedule, how far it has come
//!   follow    the product along it: which statements it goes on with, where it is left
//!   word      the words a fast path may spell
//!   guard     what a fast path tests so that it does not fault
//!   ranges    what is always so of a member's values, when a path begins
//!   map       maps of few entries, which states consist of
//!   explore   nodes, versions, budgets; starvation
//!   residue   the body that is being emitted
//! ```
//!
//! **Settle first.** Members run, the last in the pipeline first, until all of them wait; then the rendezvous furthest
//! downstream happens. So the members upstream move only when what they sent has been used up, which keeps the states
//! few: a chain of n stages has a number of states linear in n.
//!
//! **Facts.** Nodes differ by where members stand *and* by what is known of their values (constants, ranges, excluded
//! values, union tags), so that an end of stream just sent is not asked for again. Without this the product of data
//! filters grows exponentially, nearly all of it unreachable.

mod counted;
mod course;
mod explore;
mod follow;
mod group;
mod guard;
mod meet;
mod path;
mod residue;
mod simplify;
mod state;
mod tell;
mod word;
mod world;

pub(crate) use course::{Course, Followed, Leaving, NodeEnd};
pub(crate) use explore::{explore, follow};
pub(crate) use group::{Group, looks_who_waits};
