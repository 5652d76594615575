//! Small programs with the verdict of the checker: each kind of violation with a program that has it and one without.

mod abstractions;
mod counterexample_files;
mod deadlines;
mod faults;
mod fuel;
mod infinite_runs;
mod pure_functions;
mod reduced_properties;
mod refinement;
mod seeded_bugs;
mod support;
mod threads;
mod time;
