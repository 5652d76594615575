//! Runs ESP programs: drivers, event loop, extern functions, generated code.
