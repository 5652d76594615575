//! What a user reads of fusion and fast paths: one line for each attempt, refusal and side exit. Decides nothing.

mod fusion;
mod paths;
mod refusal;
