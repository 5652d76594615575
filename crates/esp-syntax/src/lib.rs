//! Lexer, lossless tree, parser, types, ports and diagnostics of ESP. Does no I/O and knows nothing of the IR.
