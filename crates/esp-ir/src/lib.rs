//! The flow IR: one control-flow graph per process, channel operations as terminators. Knows no back end.
