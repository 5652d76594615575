//! `qj` terminates on any bytes: with diagnostics and status 1, or successfully. No panic, no hang, no more memory than
//! 100 times the input and 50 MB, no partial output file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use quaject_test_support::hostile::{CLOSEST, PATTERNS};
use quaject_test_support::{Effort, Random, quick_run};
use wait4::Wait4;

/// Seconds after which a run counts as hanging.
const HANG_TIMEOUT_S: &str = "1200";

/// How a run ended.
struct End {
    status: Option<i32>,
    peak_bytes: u64,
    complaint: String,
}

/// Tests run one at a time: until a child process executes its program, the memory of its parent, with the inputs of
/// other tests, counts as its own.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `qj` with standard input closed and its output discarded.
fn qj(arguments: &[&str], file: &Path) -> End {
    qj_within(HANG_TIMEOUT_S, arguments, file)
}

/// Likewise, with a limit in seconds.
fn qj_within(seconds: &str, arguments: &[&str], file: &Path) -> End {
    let complaints = tempfile::tempfile().expect("the machine has room for a file");
    let writer = complaints.try_clone().expect("a file can be shared");
    let mut command = Command::new("timeout");
    command.arg(seconds).arg(env!("CARGO_BIN_EXE_qj")).args(arguments).arg(file);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).spawn().expect("timeout starts");
    let used = child.wait4().expect("the child can be waited for");
    End { status: used.status.code(), peak_bytes: used.rusage.maxrss, complaint: text_of(complaints) }
}

fn text_of(mut file: fs::File) -> String {
    use std::io::{Read, Seek};
    let mut bytes = Vec::new();
    file.rewind().expect("files can be rewound");
    // The first screen is enough to see what went wrong.
    file.take(4000).read_to_end(&mut bytes).expect("files can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn assert_bears(name: &str, command: &str, end: &End, input_bytes: usize) {
    assert_ends(name, command, end);
    let excess = excess(name, command, end, input_bytes);
    assert!(excess.is_none(), "{}", excess.unwrap_or_default());
}

fn assert_ends(name: &str, command: &str, End { status, complaint, .. }: &End) {
    assert!(matches!(status, Some(0..=2)), "{name}: `qj {command}` ended with {status:?}\n{complaint}");
    assert!(!complaint.contains("panicked"), "{name}: `qj {command}` panics\n{complaint}");
}

/// The largest resident memory of this process so far.
fn own_peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux describes the process");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it has its peak");
    1024 * peak.trim().trim_end_matches(" kB").parse::<u64>().expect("the peak is a number")
}

/// Describes the excess if a command takes too much memory.
fn excess(name: &str, command: &str, End { peak_bytes, .. }: &End, input_bytes: usize) -> Option<String> {
    // `qj` itself takes 17 MB, and the data of a run 32 MiB. Linux also counts the memory of the test, which the child
    // has before it executes `timeout`.
    let allowed = (100 * input_bytes as u64 + 55_000_000).max(own_peak_bytes());
    (*peak_bytes > allowed).then(|| format!("{name}: `qj {command}` takes {peak_bytes} bytes; {allowed} are allowed"))
}

/// Tries `check`, `fmt` and, if the program is wrong, `run`. A correct program need not terminate.
fn try_all(folder: &Path, name: &str, input: &[u8]) {
    let file = folder.join(format!("{}.esp", name.replace(' ', "-")));
    fs::write(&file, input).expect("the scratch folder is ours");
    let check = qj(&["check"], &file);
    assert_bears(name, "check", &check, input.len());
    if check.status == Some(1) {
        let run = qj(&["run"], &file);
        assert_bears(name, "run", &run, input.len());
        assert_eq!(run.status, Some(1), "{name}: `qj run` runs what `qj check` refuses");
    }
    assert_bears(name, "fmt", &qj(&["fmt"], &file), input.len());
    let formatted = fs::read(&file).expect("`qj fmt` keeps the file");
    // The byte order mark counts as white space.
    let input = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
    let words = |bytes: &[u8]| bytes.iter().filter(|byte| !byte.is_ascii_whitespace()).count();
    assert_eq!(words(&formatted), words(input), "{name}: `qj fmt` loses or invents text");
    fs::remove_file(&file).expect("the scratch folder is ours");
}

fn repeated(before: &str, part: &str, times: usize, after: &str) -> Vec<u8> {
    [before, &part.repeat(times), after].concat().into_bytes()
}

fn in_process(part: &str) -> Vec<u8> {
    repeated("process p { ", part, DEEP, "")
}

fn body(statements: &str) -> Vec<u8> {
    format!("process p {{ {statements} }}").into_bytes()
}

/// The generator of an input.
type Make = fn() -> Vec<u8>;

const DEEP: usize = 100_000;

/// Inputs made to break something, each with its name.
fn hostile() -> Vec<(&'static str, Make)> {
    vec![
        ("empty", Vec::new),
        ("zeros", || vec![0; 1000]),
        ("every byte", || (0..=255).cycle().take(10_000).collect()),
        ("invalid utf8", || b"process p { var \xff\xfe = \"\xc3\x28\"; }".to_vec()),
        ("byte order mark", || b"\xef\xbb\xbfchannel c(int);".to_vec()),
        ("carriage returns", || b"channel c(int);\r\nprocess p { in(c, $n); }\r".to_vec()),
        ("open string", || repeated("const A = \"", "x", 1_000_000, "")),
        ("open comment", || repeated("/*", "* /", 300_000, "")),
        ("open character", || b"const A = '".to_vec()),
        ("long name", || repeated("const ", "a", 1_000_000, " = 1;")),
        ("long number", || repeated("const A = ", "9", 1_000_000, ";")),
        ("long hex number", || repeated("const A = 0x", "f", 1_000_000, ";")),
        ("deep parentheses", || repeated("const A = ", "(", DEEP, "")),
        ("closed parentheses", || [repeated("const A = ", "(", DEEP, "1"), repeated("", ")", DEEP, ";")].concat()),
        ("deep negation", || repeated("const A = ", "-", DEEP, "1;")),
        ("deep conditional", || repeated("const A = ", "1 ? 1 : ", DEEP, "1;")),
        ("long sum", || repeated("const A = 1", " + 1", DEEP, ";")),
        // An expression of the maximum length: each part is visited once, not once per enclosing operator.
        ("sum of variables", || body(&format!("var a = 1; a = a{}; assert(a > 0);", " + a".repeat(200)))),
        ("signs", || body(&format!("var a = 1; a = {}a; assert(a > 0);", "- ".repeat(200)))),
        ("shifts and conjunctions", || {
            body(&format!("var a = 1, b = true; a <<= a{}; assert(b{});", " << a".repeat(200), " && b".repeat(200)))
        }),
        ("calls in calls", || {
            let call = format!("a = {}a{};", "f(".repeat(200), ")".repeat(200));
            [&b"extern fn f(int) -> int;\n"[..], &body(&format!("var a = 1; {call}"))].concat()
        }),
        ("deep tags", || repeated("const A = ", "t |> ", DEEP, "1;")),
        ("deep blocks", || in_process("{")),
        ("deep ifs", || in_process("if (1) ")),
        ("deep elses", || in_process("if (1) yield; else ")),
        ("deep whiles", || in_process("while { ")),
        ("deep alts", || in_process("alt { in(c) { ")),
        ("deep matches", || in_process("match 1 { _ => ")),
        ("deep patterns", || in_process("in(c, { ")),
        ("deep array type", || repeated("type t = ", "array[2] of ", DEEP, "int;")),
        ("deep record type", || repeated("type t = ", "record { a: ", DEEP, "")),
        ("deep fast path", || repeated("fastpath f { process p { statement c; start c; follows ", "(", DEEP, "")),
        ("many channels", || (0..20_000).flat_map(|n| format!("channel c{n}(int);\n").into_bytes()).collect()),
        ("many errors", || repeated("", "process { in(; } }\n", 20_000, "")),
        ("a name many times", || repeated("", "channel c(int);\n", 20_000, "")),
        ("type of itself", || b"type a = record { b: b }; type b = array[2] of a; channel c: a;".to_vec()),
        ("huge array", || b"process p { var a: #array of u64 = #[0; 4000000000]; a[1] = 1; }".to_vec()),
        ("huge bytes", || b"channel c: bytes[<=4000000000] external out; process p { in(c, $b); }".to_vec()),
        ("huge array of arrays", || {
            b"type a = array[65536] of array[65536] of u64; channel c: a external out;".to_vec()
        }),
        ("many replicas", || b"channel c(int) external out; process p[4000000000] { }".to_vec()),
        ("huge pool", || b"type a = array[1000] of int; pool a 4000000000; process p { }".to_vec()),
        ("huge constant", || {
            b"const A = 1 << 4000000000; const B = 9223372036854775807 * 9223372036854775807;".to_vec()
        }),
        ("divided constant", || b"const A = 1 / 0; const B = -9223372036854775808 / -1;".to_vec()),
        ("many witnesses", many_witnesses),
        ("doubling types", doubling_types),
    ]
}

/// Sizes double with each line: 2^200 bytes in 200 lines.
fn doubling_types() -> Vec<u8> {
    doubling(200)
}

fn doubling(lines: usize) -> Vec<u8> {
    let mut text = String::from("type t0 = u8;\n");
    for n in 1..lines {
        text += &format!("type t{n} = record {{ a: t{}, b: t{} }};\n", n - 1, n - 1);
    }
    text += &format!("channel c: t{} external out;\nprocess p {{ in(c, _); }}\n", lines - 1);
    text.into_bytes()
}

/// A match over a record of 40 booleans, in which a naive search for the missing case visits 2^40.
fn many_witnesses() -> Vec<u8> {
    let fields: Vec<String> = (0..40).map(|n| format!("f{n}: bool")).collect();
    let mut text = format!("type t = record {{ {} }};\nchannel c: t external out;\n", fields.join(", "));
    text += "process p { in(c, $v); match v {\n";
    for row in 0..40 {
        let cells: Vec<&str> = (0..40).map(|n| if n == row { "true" } else { "_" }).collect();
        text += &format!("{{ {} }} => {{ }}\n", cells.join(", "));
    }
    text += "} }\n";
    text.into_bytes()
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("the scratch folder is ours");
    folder
}

#[test]
fn hostile_programs_end() {
    if quick_run("hostile programs") {
        return;
    }
    let _turn = turn();
    let folder = scratch("hostile");
    for (name, make) in hostile() {
        try_all(&folder, name, &make());
    }
}

/// The time limit of a correct program, which need not terminate.
const RUN_SECONDS: &str = "2";

/// Half a gigabyte a message: a legal program, which must not be expanded part by part.
#[test]
fn types_that_share_parts_are_not_unfolded() {
    let _turn = turn();
    let folder = scratch("unfolded");
    let file = folder.join("doubling.esp");
    fs::write(&file, doubling(30)).expect("the scratch folder is ours");
    let output = folder.join("out");
    let output = output.to_str().expect("the scratch folder has a plain name");
    let commands: [(&[&str], i32); 8] = [
        (&["check"], 0),
        (&["graph"], 0),
        (&["build", "--emit", "c", "-o", output], 0),
        (&["build", "--emit", "c", "--mode", "automata", "-o", output], 0),
        (&["build", "--emit", "promela", "-o", output], 1),
        (&["run"], 1),
        (&["run", "--engine", "c"], 1),
        (&["verify"], 2),
    ];
    for (command, status) in commands {
        let end = qj(command, &file);
        assert_bears("doubling", &command.join(" "), &end, 0);
        assert_eq!(end.status, Some(status), "`qj {}`: {}", command.join(" "), end.complaint);
    }
}

/// A file of one construct, repeated: the memory of everything `qj` does with it. `QJ_TEST=soak cargo test --release -p
/// quaject-cli --test hostile patterns -- --nocapture` prints what each takes at a megabyte. A build with assertions
/// takes more there: its `fmt` reads again what it wrote.
#[test]
fn patterns_take_little_memory() {
    if quick_run("the memory of patterns") {
        return;
    }
    let _turn = turn();
    let folder = scratch("patterns");
    let quick = Effort::wanted() == Effort::Quick;
    let bytes = Effort::wanted().pick(1 << 16, 1 << 16, 1 << 20);
    let mut excesses = Vec::new();
    for pattern in PATTERNS.iter().filter(|pattern| !quick || CLOSEST.contains(&pattern.name)) {
        let input = pattern.text(bytes);
        let file = folder.join("pattern.esp");
        fs::write(&file, &input).expect("the scratch folder is ours");
        let check = qj(&["check"], &file);
        let run = qj_within(RUN_SECONDS, &["run"], &file);
        let fmt = qj(&["fmt"], &file);
        let [of_check, of_run, of_fmt] = [&check, &run, &fmt].map(|end| end.peak_bytes / 1_000_000);
        println!("{:34} {of_check:4} MB {of_run:4} MB {of_fmt:4} MB", pattern.name);
        assert_ends(pattern.name, "check", &check);
        assert_ends(pattern.name, "fmt", &fmt);
        assert!(run.status != Some(101) && !run.complaint.contains("panicked"), "{}", run.complaint);
        let peaks = [("check", check), ("run", run), ("fmt", fmt)];
        excesses.extend(peaks.iter().filter_map(|(command, end)| excess(pattern.name, command, end, input.len())));
    }
    assert!(excesses.is_empty(), "{}", excesses.join("\n"));
}

/// A process of thousands of branches, one after the other, begins at once. It took a minute when a data-flow analysis
/// propagated a block's facts before its other predecessors.
#[test]
fn a_long_process_begins_at_once() {
    let _turn = turn();
    let file = scratch("long").join("long.esp");
    let branches: String = (0..4000).map(|n| format!("  if (x > {n}) x = x * 3 + {n}; else x = x - {n};\n")).collect();
    let text = format!("channel c(int) external in;\nprocess p {{\n  var x = 1;\n{branches}  out(c, x);\n}}\n");
    fs::write(&file, &text).expect("the scratch folder is ours");
    for engine in ["interp", "jit"] {
        let end = qj(&["run", "--engine", engine], &file);
        assert_eq!(end.status, Some(0), "{engine}: {}", end.complaint);
    }
}

/// Legal programs of a few lines whose data would fill the machine: they do not begin. One within the limit
/// begins, and stays within it.
#[test]
fn the_data_of_a_run_is_limited() {
    let _turn = turn();
    let folder = scratch("data");
    let file = folder.join("data.esp");
    let run = |text: &str, arguments: &[&str]| {
        fs::write(&file, text).expect("the scratch folder is ours");
        qj(&[&["run"], arguments].concat(), &file)
    };
    let array = |length: usize| {
        format!("process p {{ var a: #array of u64 = #[1; {length}]; for i in 0..{length} {{ a[i] = 7; }} }}\n")
    };
    for text in [
        array(50_000_000),
        "channel c: bytes[<=900000000] external out;\nprocess p { in(c, $b); }\n".to_string(),
        "channel c: array[9000000] of u8 external in;\nprocess p { var a: #array of u8 = #[1; 9000000]; \
         out(c, freeze(a)); }\n"
            .to_string(),
        "type t = bytes[<=1000];\npool t 900000;\nprocess p { var a: t = \"\"; assert(a.len == 0); }\n".to_string(),
        "process p[60000] { var a: #array of u64 = #[0; 1000]; a[1] = 1; assert(a[2] == 0); }\n".to_string(),
    ] {
        let end = run(&text, &[]);
        assert_bears("much data", "run", &end, text.len());
        assert_eq!(end.status, Some(1), "{text}{}", end.complaint);
        assert!(end.complaint.contains("--memory "), "{}", end.complaint);
    }
    let fits = array(4_000_000);
    let end = run(&fits, &[]);
    assert_bears("data that fits", "run", &end, fits.len());
    assert_eq!(end.status, Some(0), "{}", end.complaint);
    let more = array(5_000_000);
    assert_eq!(run(&more, &[]).status, Some(1));
    assert_eq!(run(&more, &["--memory", "64M"]).status, Some(0));
}

/// A program that expands to too much for the size of its text is refused with a reason.
#[test]
fn a_text_that_is_too_dense_is_refused() {
    let _turn = turn();
    let folder = scratch("dense");
    let file = folder.join("dense.esp");
    let text = repeated("process p { var a = [", "@, ", 300_000, "@]; assert(a[1] == @); }");
    fs::write(&file, &text).expect("the scratch folder is ours");
    let end = qj(&["run"], &file);
    assert_bears("a dense text", "run", &end, text.len());
    assert_eq!(end.status, Some(1), "{}", end.complaint);
    assert!(end.complaint.contains("is too large: its text expands to more than 2125"), "{}", end.complaint);
}

#[test]
fn programs_that_cannot_be_read_are_an_error() {
    let _turn = turn();
    let folder = scratch("unreadable");
    for command in ["check", "run", "fmt"] {
        for path in [folder.clone(), folder.join("missing.esp")] {
            let end = qj(&[command], &path);
            assert_bears("a path that is no file", command, &end, 0);
            assert_eq!(end.status, Some(1), "`qj {command} {}`\n{}", path.display(), end.complaint);
        }
    }
}

/// `qj ... | head -1`: the reader closes the pipe, and `qj` ends without a backtrace.
#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = scratch("pipe");
    let program = folder.join("numbers.esp");
    let text = "channel c(int) external in;\nprocess p { for n in 0..1000000 { out(c, n); } }\n";
    fs::write(&program, text).expect("the scratch folder is ours");
    let line = format!("timeout {HANG_TIMEOUT_S} {} run {} | head -1", env!("CARGO_BIN_EXE_qj"), program.display());
    let output = Command::new("sh").args(["-c", &line]).output().expect("sh starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(!complaint.contains("panicked"), "{complaint}");
}

/// The exit status of a verdict does not depend on whether its output is read.
#[test]
fn a_closed_pipe_does_not_change_a_verdict() {
    let folder = scratch("verdict");
    let program = folder.join("wrong.esp");
    fs::write(&program, "channel c(u8) external out;\nprocess p { in(c, $n); assert(n < 3); }\n")
        .expect("the scratch folder is ours");
    for commands in [&["verify"][..], &["verify", "--json"]] {
        let mut qj = Command::new("timeout");
        qj.arg(HANG_TIMEOUT_S).arg(env!("CARGO_BIN_EXE_qj")).args(commands).arg(&program);
        let mut child = qj.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("timeout starts");
        drop(child.stdout.take());
        let status = child.wait().expect("the child can be waited for");
        assert_eq!(status.code(), Some(1), "{commands:?}");
    }
}

/// A program with a few pieces cut, copied from elsewhere, or overwritten.
fn mutated(original: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=random.index(4) {
        let from = random.index(bytes.len() + 1);
        let to = (from + random.index(40)).min(bytes.len());
        let source = random.index(original.len() - 1);
        let piece = &original[source..(source + random.index(40)).min(original.len())];
        match random.index(4) {
            0 => drop(bytes.drain(from..to)),
            1 => drop(bytes.splice(from..to, piece.iter().copied())),
            2 => drop(bytes.splice(from..from, piece.iter().copied())),
            _ => {
                if let Some(byte) = bytes.get_mut(from) {
                    *byte = u8::try_from(random.index(256)).expect("below 256");
                }
            }
        }
    }
    bytes
}

#[test]
fn damaged_programs_end() {
    let _turn = turn();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let originals = ["words.esp", "sieve.esp", "filters/program4.esp", "vmmc-send/figure2.esp"]
        .map(|name| fs::read(examples.join(name)).expect("the example is part of the repository"));
    let folder = scratch("damaged");
    let mut random = Random(1);
    for number in 0..Effort::wanted().pick(50, 600, 100_000) {
        let input = mutated(&originals[number % originals.len()], &mut random);
        try_all(&folder, &format!("damaged {number}"), &input);
    }
}
