//! The queues among threads: against a sequential model and the forms of 1989, on several threads, as histories that
//! must be linearizable, and their faces; calls.

mod calls;
mod faces;
mod forms_1989;
mod history;
mod kinds;
mod model;
mod stress;
