//! Programs with their wrappers: the C is compiled, a program in Rust that includes the module is linked with it, and
//! run.

use quaject_build::Build;
use quaject_test_support::tool;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The triple of this machine, as the compiler of this test names it.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("the test was compiled by it");
    let text = String::from_utf8(output.stdout).expect("it writes text");
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("it says so").to_string()
}

/// Compiles a program in a folder, with the user of its module; the executable is `user`.
fn compile(folder: &Path, esp: &str, user: &str) {
    let program = folder.join("program.esp");
    fs::write(&program, esp).expect("the folder is ours");
    let (host, out) = (host(), folder.join("out"));
    Build::new()
        .out_dir(&out)
        .target(&host)
        .host(&host)
        .opt_level("1")
        .compile(&program)
        .unwrap_or_else(|error| panic!("{error}"));
    let main = format!(
        "mod program {{ include!(concat!(env!(\"OUT_DIR\"), \"/program.rs\")); }}\nuse program::*;\n\
         use std::time::Duration;\n{user}"
    );
    fs::write(folder.join("user.rs"), main).expect("the folder is ours");
    let library = fs::read_dir(&out).expect("it was built").find_map(|entry| {
        let name = entry.expect("it was built").file_name().into_string().expect("it is ASCII");
        Some(name.strip_prefix("lib")?.strip_suffix(".a")?.to_string())
    });
    let mut rustc = Command::new("rustc");
    rustc.current_dir(folder).env("OUT_DIR", &out).args([
        "--edition=2024",
        "-Dwarnings",
        "-o",
        "user",
        "user.rs",
        "-L",
    ]);
    rustc.arg(&out).arg("-l").arg(format!("static={}", library.expect("the library is there")));
    let output = rustc.output().expect("the test was compiled by it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The run of a program with the user of its module.
fn run(esp: &str, user: &str) -> Option<Output> {
    tool(&["cc"])?;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    compile(folder.path(), esp, user);
    Some(Command::new(folder.path().join("user")).output().expect("it was built"))
}

/// A user whose assertions hold.
fn check(esp: &str, user: &str) {
    let Some(output) = run(esp, user) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_type_passes_unchanged() {
    check(
        r#"
        type pointT = record of { x: i8, y: u64, name: bytes[<=5] };
        type shapeT = union of { none, dot: pointT, row: array[3] of u16, text: bytes[<=300], flag: bool };
        type codeT = enum u8 { read = 3, write = 7, else other };
        channel shapeC(shapeT) external out;
        channel scalarsC(small: i16, large: u32, at: time, yes: bool, code: codeT) external out;
        channel emptyC() external out;
        channel shapeOutC(shapeT) external in;
        channel scalarsOutC(small: i16, large: u32, at: time, yes: bool, code: codeT) external in;
        channel emptyOutC() external in;
        process echo {
          while {
            alt {
              in(shapeC, $s) { out(shapeOutC, s); }
              in(scalarsC, $a, $b, $c, $d, $e) { out(scalarsOutC, a, b, c, d, e); }
              in(emptyC) { out(emptyOutC); }
            }
          }
        }
        "#,
        r#"
        #[derive(Default)]
        struct Log { shapes: Vec<ShapeT>, scalars: Vec<(i16, u32, i64, bool, CodeT)>, empty: usize }
        impl Environment for Log {
            fn on_shape_out_c(&mut self, shape: &ShapeT) { self.shapes.push(*shape); }
            fn on_scalars_out_c(&mut self, small: i16, large: u32, at: i64, yes: bool, code: CodeT) {
                self.scalars.push((small, large, at, yes, code));
            }
            fn on_empty_out_c(&mut self) { self.empty += 1; }
        }
        fn main() {
            let mut program = Program::new();
            let name = Bytes::copy_of(b"abcde").unwrap();
            let long = vec![7; 300];
            let shapes = [
                ShapeT::None,
                ShapeT::Dot(PointT { x: -3, y: u64::MAX, name }),
                ShapeT::Row([1, 2, 65535]),
                ShapeT::Text(Bytes::try_from(&long[..]).unwrap()),
                ShapeT::Text(Bytes::new()),
                ShapeT::Flag(true),
            ];
            shapes.iter().for_each(|shape| program.send_shape_c(*shape));
            program.send_scalars_c(-2, 4_000_000_000, i64::MIN, true, CodeT::WRITE);
            program.send_scalars_c(0, 0, 5, false, CodeT(99));
            program.send_empty_c();
            let mut log = Log::default();
            assert_eq!(program.run(Duration::ZERO, &mut log), Ok(Status::Sleep { until: None }));
            assert_eq!(log.shapes, shapes);
            assert_eq!(
                log.scalars,
                [(-2, 4_000_000_000, i64::MIN, true, CodeT(7)), (0, 0, 5, false, CodeT(99))]
            );
            assert_eq!((log.empty, program.waiting_empty_c()), (1, 0));
            assert_eq!(Bytes::<4>::copy_of(b"abcde"), Err(TooLong { length: 5, bound: 4 }));
            let Bytes { .. } = name;
            assert_eq!(&*name, b"abcde");
        }
        "#,
    );
}

#[test]
fn extern_functions_are_methods_and_messages_leave_in_order() {
    check(
        r#"
        type pairT = record of { a: u8, b: u32 };
        extern fn abs(x: int) -> int;
        extern fn swap(p: #pairT, text: bytes[<=8], q: #pairT) -> bool;
        extern fn makePair(n: u8) -> pairT;
        channel startC(u8) external out;
        channel firstC(int) external in;
        channel secondC(pairT, bool) external in;
        process p {
          while {
            in(startC, $n);
            var x: #pairT = #{ a: n, b: 9 };
            out(firstC, abs(-5));
            var swapped = swap(x, "text", x);
            out(secondC, freeze(x), swapped);
            out(secondC, makePair(n), false);
          }
        }
        "#,
        r#"
        #[derive(Default)]
        struct Log(Vec<String>);
        impl Environment for Log {
            fn on_first_c(&mut self, value: i32) { self.0.push(format!("first {value}")); }
            fn on_second_c(&mut self, v0: &PairT, v1: bool) { self.0.push(format!("second {} {} {v1}", v0.a, v0.b)); }
            fn abs(&mut self, v0: i32) -> i32 { self.0.push(format!("abs {v0}")); -v0 }
            fn swap(&mut self, v0: &mut PairT, v1: &Bytes<8>, v2: &mut PairT) -> bool {
                self.0.push(format!("swap {:?}", std::str::from_utf8(v1).unwrap()));
                // One variable of the program, two of this function.
                v0.a = 1;
                v2.a = 2;
                true
            }
            fn make_pair(&mut self, v0: u8) -> PairT { self.0.push("make".into()); PairT { a: v0, b: 77 } }
        }
        fn main() {
            let mut program = Program::new();
            program.send_start_c(4);
            let mut log = Log::default();
            program.run(Duration::ZERO, &mut log).unwrap();
            let wanted =
                ["abs -5", "first 5", "swap \"text\"", "second 2 9 true", "make", "second 4 77 false"];
            assert_eq!(log.0, wanted);
        }
        "#,
    );
}

#[test]
fn a_panic_of_an_extern_function_leaves_the_step_and_stops_the_program() {
    check(
        r#"
        extern fn risky(x: int) -> int;
        channel inC(int) external out;
        channel outC(int) external in;
        process p { while { in(inC, $x); out(outC, risky(x)); } }
        "#,
        r#"
        struct Outer(Vec<i32>);
        impl Environment for Outer {
            fn on_out_c(&mut self, value: i32) { self.0.push(value); }
            fn risky(&mut self, v0: i32) -> i32 {
                if v0 == 2 { panic!("two"); }
                if v0 == 3 {
                    // Another instance of the program, within this one's step, fails without this one.
                    let mut inner = Program::new();
                    inner.send_in_c(2);
                    let step = std::panic::AssertUnwindSafe(|| inner.run(Duration::ZERO, &mut Outer(Vec::new())));
                    assert!(std::panic::catch_unwind(step).is_err());
                }
                v0 * 10
            }
        }
        fn main() {
            std::panic::set_hook(Box::new(|_| {}));
            let mut program = Program::new();
            [1, 3, 2, 4].into_iter().for_each(|value| program.send_in_c(value));
            let mut outer = Outer(Vec::new());
            let run = std::panic::AssertUnwindSafe(|| program.run(Duration::ZERO, &mut outer));
            let panic = std::panic::catch_unwind(run).unwrap_err();
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"two"));
            assert_eq!(outer.0, [10, 30]);
            assert_eq!(program.step(Duration::ZERO, &mut outer).unwrap_err().code, FaultCode::Extern);
            assert_eq!(outer.0, [10, 30]);
        }
        "#,
    );
}

#[test]
fn faults_name_process_place_and_message() {
    check(
        "channel inC(int) external out;\n\
         channel outC(int) external in;\n\
         process divider { while { in(inC, $x); assert(x != 7, \"no sevens\"); out(outC, 12 / x); } }\n",
        r#"
        struct Numbers(Vec<i32>);
        impl Environment for Numbers { fn on_out_c(&mut self, value: i32) { self.0.push(value); } }
        fn fault_of(value: i32) -> Fault {
            let mut program = Program::new();
            program.send_in_c(3);
            program.send_in_c(value);
            let mut numbers = Numbers(Vec::new());
            let fault = program.run(Duration::ZERO, &mut numbers).unwrap_err();
            assert_eq!(numbers.0, [4]);
            assert_eq!(program.run(Duration::ZERO, &mut numbers), Err(fault.clone()));
            fault
        }
        fn main() {
            let fault = fault_of(0);
            assert_eq!((fault.code, fault.process, fault.location.line), (FaultCode::Div, "divider", 3));
            assert!(fault.location.file.ends_with("program.esp"));
            let fault = fault_of(7);
            assert_eq!((fault.code, fault.message), (FaultCode::Assert, Some("no sevens")));
            assert!(fault.to_string().contains("fault[assert] in process `divider`: no sevens"), "{fault}");
        }
        "#,
    );
}

#[test]
fn a_deadlock_names_all_blocked_processes() {
    check(
        "channel aC(int);\nchannel bC(int);\n\
         process one { out(aC, 1); in(bC, _); }\n\
         process two { out(bC, 1); in(aC, _); }\n",
        r#"
        struct Nothing;
        impl Environment for Nothing {}
        fn main() {
            let fault = Program::new().run(Duration::ZERO, &mut Nothing).unwrap_err();
            assert_eq!(fault.code, FaultCode::Deadlock);
            let blocked: Vec<_> = fault.blocked.iter().map(|blocked| (blocked.process, blocked.location.line)).collect();
            assert_eq!(blocked, [("one", 3), ("two", 4)]);
        }
        "#,
    );
}

#[test]
fn deadlines_room_ends_and_clones() {
    check(
        r#"
        channel inC(u8) external out;
        channel outC(u8) external in;
        channel lateC() external in;
        process p {
          var n = 0;
          while (n < 3) {
            alt {
              in(inC, $x) { out(outC, x); n += 1; }
              after(5 ms) { out(lateC); }
            }
          }
          exit(42);
        }
        "#,
        r#"
        struct Log { values: Vec<u8>, late: usize, room: usize }
        impl Environment for Log {
            fn on_out_c(&mut self, value: u8) { self.values.push(value); }
            fn room_for_out_c(&mut self) -> usize { self.room }
            fn on_late_c(&mut self) { self.late += 1; }
        }
        fn main() {
            let mut program = Program::new();
            let mut log = Log { values: Vec::new(), late: 0, room: 1 };
            let ms = Duration::from_millis;
            assert_eq!(program.run(ms(10), &mut log), Ok(Status::Sleep { until: Some(ms(15)) }));
            // Time does not go back.
            assert_eq!(program.run(ms(1), &mut log), Ok(Status::Sleep { until: Some(ms(15)) }));
            assert_eq!(program.run(ms(16), &mut log), Ok(Status::Sleep { until: Some(ms(21)) }));
            assert_eq!(log.late, 1);
            [1, 2, 3].into_iter().for_each(|value| program.send_in_c(value));
            log.room = 0;
            assert_eq!(program.run(ms(17), &mut log), Ok(Status::Sleep { until: None }));
            assert_eq!((log.values.len(), program.waiting_in_c()), (0, 2));
            let mut clone = program.clone();
            log.room = 1;
            for instance in [&mut program, &mut clone] {
                assert_eq!(instance.run(ms(18), &mut log), Ok(Status::Done { exit_status: 42 }));
                assert_eq!(instance.step(ms(18), &mut log), Ok(Status::Done { exit_status: 42 }));
            }
            assert_eq!(log.values, [1, 2, 3, 1, 2, 3]);
            // A program may move to another thread.
            let mut moved = Program::new();
            std::thread::spawn(move || moved.send_in_c(1)).join().unwrap();
        }
        "#,
    );
}

#[test]
fn ids_and_closed_channels() {
    check(
        r#"
        channel askC(u8);
        channel replyC(pid(server), int) external out;
        channel requestC(pid(server), u8) external in;
        channel startC(u8) external out;
        process client { while { in(startC, $x); out(askC, x); } }
        process server { while { in(askC, $x); out(requestC, @, x); in(replyC, @, $n); assert(n == 5); } }
        "#,
        r#"
        #[derive(Default)]
        struct Log(Vec<(PidServer, u8)>);
        impl Environment for Log { fn on_request_c(&mut self, v0: PidServer, v1: u8) { self.0.push((v0, v1)); } }
        fn main() {
            let mut program = Program::new();
            program.send_start_c(8);
            let mut log = Log::default();
            program.run(Duration::ZERO, &mut log).unwrap();
            let (server, value) = log.0[0];
            assert_eq!(value, 8);
            assert_eq!(PidServer::new(server.instance()), Some(server));
            assert_eq!(PidServer::new(99), None);
            program.send_reply_c(server, 5);
            program.close_start_c();
            program.close_reply_c();
            assert_eq!(program.run(Duration::ZERO, &mut log), Ok(Status::Done { exit_status: 0 }));
        }
        "#,
    );
}
