//! The product of a group of instances under one schedule: one process that does what all of them do ("Fast Paths in
//! Concurrent Programs", section 4.1; filter fusion, Proebsting, Watterson 1996). It is constructed by abstract
//! interpretation of the members' code with dynamic partitioning (Bourdoncle 1992); what the abstract states decide is
//! computed here, and the residual program computes the rest.
//!
//! ```text
//!   group             members, their liveness, the channels between them, the thresholds of intervals
//!     eligibility     which groups can be fused, and which processes observe the absence of a partner
//!     pipeline        the order of senders before receivers
//!     liveness        live values and slots of a member; operations ahead of a location
//!     thresholds      the constants to which the ends of intervals are moved
//!   body_queries      queries about bodies, operations and types
//!   counted_loops     loops of a member with a bounded number of iterations
//!   state             control locations, facts, abstract states: lattice and coarsening
//!   residue           the body that is being emitted
//!   explorer          the data of the search: nodes, partitions, rounds
//!   explore           the fixed point over nodes
//!     widening        widened facts of partitions, loss of precision
//!     inert_members   members that are terminated or blocked forever
//!     fairness        starvation in components of the product; where it yields
//!     costliest       the process that contributes most nodes
//!   symbolic_exec     execution of one member from one operation to the next
//!   simplify          operations that facts make cheaper
//!   rendezvous        communication between members
//!   message           matching and binding of its messages
//!   environment       what remains of waits: operations with the environment, quiescence, deadlock
//!   residual_operation  operations of members in the residue
//!   pending_report    data of deadlock reports that are not emitted yet
//!   deadlock_report   their emission
//!   schedule          a path specification prepared for a group: starts, automata, run queue
//!   path_automaton    the position automaton of a path expression
//!   trace_path        the product along a fast path: accepted statements, exits
//!   fault_checks      the tests before instructions that may fault on a fast path
//! ```
//!
//! **Consumers first.** Members run, the last of the pipeline first, until all of them wait; then the rendezvous
//! furthest downstream happens (quasi-static scheduling, Cortadella et al. 2000). A member upstream therefore proceeds
//! only when all that it has sent has been consumed. This keeps the number of location vectors small: a chain of n
//! stages has O(n) of them.
//!
//! **Facts.** Nodes differ by location vector *and* by what is known of values (constants, intervals, excluded values,
//! union tags). Without facts the product of data filters grows exponentially, and nearly all of its nodes are
//! unreachable: each stage tests again for the end of stream that the stage before it has just sent.

mod body_queries;
mod counted_loops;
mod deadlock_report;
mod environment;
mod explore;
mod explorer;
mod fault_checks;
mod group;
mod message;
mod path_automaton;
mod pending_report;
mod rendezvous;
mod residual_operation;
mod residue;
mod schedule;
mod simplify;
mod state;
mod symbolic_exec;
mod trace_path;

pub(crate) use explore::explore;
pub(crate) use group::{Group, observes_absence};
pub(crate) use schedule::{ExitBlock, LimitExit, PathProduct, PathSchedule};
pub(crate) use trace_path::trace_path;
