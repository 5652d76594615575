//! The paper's figures ("Threads and Input/Output in the Synthesis Kernel", Tables 1 to 5, and Massalin's thesis where
//! the paper's are not known), and ours. Seconds of 1989 and instructions of today do not compare; the ratios to the
//! UNIX of each time do.

use crate::machine::Rows;

/// A program of Table 1: the row here, and seconds under SunOS and under Synthesis.
const PROGRAMS: [(&str, &str, f64, f64); 7] = [
    ("1 compute", "compute", 20.9, 21.42),
    ("2 pipe, 1 byte", "pipe-1", 10.2, 0.18),
    ("3 pipe, 1 KB", "pipe-1024", 15.3, 2.42),
    ("4 pipe, 4 KB", "pipe-4096", 38.2, 9.64),
    ("5 file, 1 KB", "file-10x1024", 23.4, 2.91),
    ("6 open and close /dev/null", "open-close-null", 17.4, 0.69),
    ("7 open and close a terminal", "open-close-tty", 43.1, 0.88),
];

/// Tables 2 to 5: what is measured, our row if there is one, and the paper's microseconds.
const OPERATIONS: [(&str, &str, Option<&str>, &str); 15] = [
    ("2", "open and close /dev/null", Some("open-close-null"), "43 + 18"),
    ("2", "open and close a terminal", Some("open-close-tty"), "62 + 18"),
    ("2", "open and close a file", Some("open-close-file"), "73 + 18"),
    ("2", "read 1 byte of a file", Some("file-read-1"), "9"),
    ("2", "read from /dev/null", Some("read-null"), "6"),
    ("3", "create a thread (ours: with join)", Some("pthread-create-join"), "142 (recalled)"),
    ("4", "full switch (ours: the call and the switch, half of sched_yield of two)", Some("yield-two"), "11"),
    ("4", "block and unblock (ours: a round trip by a pipe)", Some("pipe-ping-pong"), "4 + 4 (recalled)"),
    ("4", "switch with floating point", None, "21"),
    ("5", "set an alarm", Some("set-alarm"), "9 (recalled)"),
    ("5", "alarm interrupt", None, "7 (recalled)"),
    ("5", "raw tty interrupt", None, "16 (recalled)"),
    ("5", "raw A/D interrupt", None, "3 (recalled)"),
    ("5", "chain a procedure", None, "4 to 7 (recalled)"),
    ("5", "chain a signal", None, "9 (recalled)"),
];

/// Prints Table 1 with the geometric mean, and the others.
pub(crate) fn print_tables(ours: &Rows, linux: Option<&Rows>) {
    println!("\n| Table 1 | paper, SunOS / Synthesis | ours | Linux / ours |");
    println!("|---|---|---|---|");
    let mut ratios = Vec::new();
    for (title, row, sun, synthesis) in PROGRAMS {
        let Some(own) = ours.get(row) else { continue };
        let ratio = linux.and_then(|rows| rows.get(row)).map(|other| other / own);
        let shown = ratio.map_or(String::new(), |ratio| format!("{ratio:.1}"));
        println!("| {title} | {:.1} | {own:.1} | {shown} |", sun / synthesis);
        // The paper's first program makes no calls.
        ratios.extend(ratio.filter(|_| row != "compute"));
    }
    if !ratios.is_empty() {
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        println!("\ngeometric mean of programs 2 to 7: {mean:.1} (goal: 10)");
    }
    println!("\n| Table | operation | paper, microseconds | ours, instructions |");
    println!("|---|---|---|---|");
    for (table, title, row, paper) in OPERATIONS {
        let own = row.and_then(|row| ours.get(row)).map_or("not measured".into(), |own| format!("{own:.1}"));
        println!("| {table} | {title} | {paper} | {own} |");
    }
    println!("\nkernel size: the thesis has 140 KB for the boot image (3.6)");
}
