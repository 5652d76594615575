//! Unrolled loops of fused programs preserve the output: for arrays of every length around an unrolled version and its
//! parts, of equal and of different bytes and of runs, read once and repeatedly, with outputs that wrap.

use quaject_differential::c::run;
use quaject_differential::compare::{Conformance, compare};
use quaject_differential::environment::Script;
use quaject_differential::generate::{Outcome, Sample};
use quaject_differential::interpret::{compile, interpret};
use quaject_differential::machine::Compiler;
use quaject_esp::{Emit, File, Loader, Mode, Optimiser, Options, Source, UnrolledLoop, Unrolling};
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::{Op, Program};
use quaject_esp_syntax::span::FileId;
use quaject_test_support::{quick_run, tool};

/// Reads an array, several times.
const READ: &str = "channel inputC(bytes[<=600], int) external out;\nchannel a(int);\nchannel b(int);\n\
    channel c(int);\nchannel outputC(array[64] of u8, u32, u32) external in;\n\
    process read { in(inputC, $data, $times); for round in 0..times { for i in 0..data.len { out(a, int(data[i])); } } \
    out(a, -1); }\n";

/// Writes an array repeatedly.
const WRITE: &str = "process write { var written: #array of u8 = #[0; 64], count: u32 = 0, sum: u32 = 0; \
    while { in(c, $byte); if (byte < 0) break; written[count & 63] = u8(byte); count += 1; } in(c, $rest); \
    sum = u32(rest); out(outputC, freeze(written), count, sum); }\n";

/// Run lengths, which take as many iterations as there are different bytes.
const RUNS: &str = "process code { var count = 0, last = 0; while { in(a, $byte); \
    if (count > 0 && (byte != last || count == 5)) { out(b, count); out(b, last); count = 0; } \
    if (byte < 0) break; last = byte; count += 1; } out(b, -1); }\n";

const KEY: &str = "process key { const KEY = \"\\x1f\\x2e\\x3d\\x4c\\x5b\\x6a\\x79\\x88\"; var at = 0; \
    while { in(b, $byte); if (byte < 0) break; out(c, byte ^ KEY[at]); at = (at + 1) % 8; } out(c, -1); out(c, 7); }\n";

/// Pairs in the opposite direction.
const SWAP: &str = "process swap { while { in(a, $first); if (first < 0) break; in(a, $second); \
    if (second < 0) { out(b, first); break; } out(b, second); out(b, first); } out(b, -1); }\n";

/// A checksum with a table of 2^BITS numbers of a type, computed by this function.
fn sum(ty: &str, bits: u32, entry: &str) -> String {
    let length = 1 << bits;
    let mask = length - 1;
    format!(
        "fn entry(n: {ty}) -> {ty} {{ {entry} }}\n\
         process sum {{ var table: #array of {ty} = #[0; {length}], s: {ty} = 1; \
         for i in 0..{length} {{ table[i] = entry({ty}(i)); }} \
         while {{ in(b, $byte); if (byte < 0) break; s = table[(s ^ {ty}(byte)) & {mask}] ^ (s >> {bits}); \
         out(c, byte); }} out(c, -1); out(c, int(s & 0x7fff)); }}\n"
    )
}

/// Reduces a number by a polynomial, bit by bit.
fn reduced(bits: u32, polynomial: &str) -> String {
    format!(
        "var rest = n; for bit in 0..{bits} {{ rest = rest & 1 != 0 ? (rest >> 1) ^ {polynomial} : rest >> 1; }} \
         return rest;"
    )
}

fn sample(source: &str, data: Vec<u8>, times: i128) -> Sample {
    let message = vec![Datum::Bytes(data), Datum::Int(times)];
    let script = Script { inputs: vec![("inputC".into(), vec![message])], held: Vec::new() };
    Sample { seed: 0, source: source.into(), files: Vec::new(), script, outcome: Outcome::Open }
}

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, _path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err("the programs import nothing".into())
    }
}

/// The program fused, with unrolled loops.
fn unrolled(source: &str) -> (Program, Vec<UnrolledLoop>) {
    let root = File { name: "sample.esp".into(), bytes: source.as_bytes().to_vec() };
    let options =
        Options { mode: Mode::Automata, unrolling: Unrolling::On, optimiser: Optimiser::On, ..Options::new(Emit::Ir) };
    let compiled = quaject_esp::compile(Source { root, fast_paths: Vec::new() }, &mut NoImports, &options);
    let outputs = compiled.outputs.unwrap_or_else(|_| panic!("{:?}", compiled.diagnostics));
    let [attempt] = &outputs.unroll_attempts[..] else { panic!("one process is left: {:?}", outputs.fusion_attempts) };
    let loops = attempt.result.clone().unwrap_or_else(|_| panic!("{}", attempt.text(&outputs.ir)));
    (outputs.ir, loops)
}

/// Arrays of this length: equal bytes, different ones, runs, and combinations.
fn arrays(length: usize) -> Vec<Vec<u8>> {
    let array = |byte: &dyn Fn(usize) -> usize| (0..length).map(|at| byte(at) as u8).collect();
    vec![
        array(&|_| 255),
        array(&|at| at * 7 + 1),
        array(&|at| at / 3),
        array(&|at| if at % 23 == 22 { 0 } else { at * 5 }),
        array(&|at| if at % 2 == 0 { 0 } else { 128 }),
        array(&|at| (at - at / 19) * 6),
        array(&|at| (at - at / 25) * 6),
        array(&|at| at * 11 % 17),
        array(&|at| if at % 38 == 36 { 17 } else { at * 5 % 16 + 1 }),
    ]
}

/// Checks that these filters have the same output unrolled; returns the combined steps of a recurrence.
fn has_same_output(filters: &str) -> usize {
    has_same_output_in(64, filters)
}

/// Likewise, with an array of this size to write.
fn has_same_output_in(size: usize, filters: &str) -> usize {
    let (of, mask) = (format!("array[{size}]"), format!("count & {}]", size - 1));
    let source = format!("{READ}{filters}{WRITE}").replace("array[64]", &of).replace("count & 63]", &mask);
    let source = source.replace("#[0; 64]", &format!("#[0; {size}]"));
    let plain = compile(&sample(&source, Vec::new(), 0)).expect("a program");
    let (program, loops) = unrolled(&source);
    let elements = loops.iter().map(|unrolled| unrolled.elements).max().expect("there is one");
    let mut without = program.clone();
    for block in without.processes.iter_mut().flat_map(|process| &mut process.body.blocks) {
        block.instructions.retain(|instruction| !matches!(instruction.op, Op::StoreNumber { .. }));
    }
    let mut differ = 0;
    let around = [2 * elements - 1, 2 * elements, 2 * elements + 1, 3 * elements + 2, 255, 256, 600];
    let mut in_c = Vec::new();
    for length in (0..elements + 20).chain(around) {
        for (number, array) in arrays(length).into_iter().enumerate() {
            for times in [1, 3] {
                let sample = sample(&source, array.clone(), times);
                let wanted = interpret(&sample, &plain).expect("it runs");
                let found = interpret(&sample, &program).expect("it runs");
                assert_eq!(found.messages, wanted.messages, "{length} bytes, array {number}, {times} times");
                differ += usize::from(interpret(&sample, &without).expect("it runs").messages != wanted.messages);
                if length % 7 == 3 || length >= elements {
                    in_c.push(sample);
                }
            }
        }
    }
    assert!(differ > 20, "unrolled code runs in {differ} of the samples only");
    if let Some(compiler) = tool(&["cc", "gcc", "clang"]) {
        let compiler = Compiler::native(compiler, &["-O1", "-w"]);
        let step = in_c.len() / 12 + 1;
        let programs: Vec<_> = in_c.iter().step_by(step).map(|sample| (sample, &program)).collect();
        let temporary = tempfile::tempdir().expect("a temporary folder can be made");
        let results = run(&compiler, temporary.path(), &programs).expect("the C compiler accepts the programs");
        for ((sample, program), result) in programs.into_iter().zip(results) {
            assert_eq!(
                result.and_then(|c_run| compare(sample, program, &c_run)),
                Ok(Conformance::Same),
                "{:?}",
                sample.script
            );
        }
    }
    loops.iter().map(|unrolled| unrolled.recurrence_steps).max().unwrap_or(0)
}

#[test]
fn runs_with_a_key() {
    if quick_run("runs with a key") {
        return;
    }
    assert_eq!(has_same_output(&format!("{RUNS}{KEY}")), 0);
}

#[test]
fn runs_expanded() {
    if quick_run("runs that are expanded") {
        return;
    }
    let expand = "process expand { while { in(d, $count); if (count < 0) break; in(d, $value); if (value < 0) break; \
        for copy in 0..count { out(c, value); } } out(c, -1); out(c, 9); }\n";
    let sum = sum("u32", 8, &reduced(8, "0xedb88320"));
    let sum = sum.replace("in(b,", "in(a,").replace("out(c, byte)", "out(d, byte)").replace("out(c, -1); ", "");
    let sum = sum.replace("out(c,", "for i in 0..4 { out(d, 3); } out(d, -1); }\n// ");
    let filters = format!("channel d(int);\n{sum}{expand}");
    assert_eq!(has_same_output_in(512, &filters), 8);
}

#[test]
fn pairs_with_a_key() {
    assert_eq!(has_same_output(&format!("{SWAP}{KEY}")), 0);
}

#[test]
fn checksums_of_32_bits() {
    if quick_run("checksums of 32 bits") {
        return;
    }
    let entry = reduced(8, "0xedb88320");
    assert_eq!(has_same_output(&format!("{SWAP}{}", sum("u32", 8, &entry))), 8);
}

#[test]
fn checksums_of_16_bits() {
    let entry = reduced(8, "0xa001");
    assert_eq!(has_same_output(&format!("{SWAP}{}", sum("u16", 8, &entry))), 8);
}

#[test]
fn checksums_by_half_bytes() {
    if quick_run("checksums by half bytes") {
        return;
    }
    let entry = reduced(4, "0xedb88320");
    assert_eq!(has_same_output(&format!("{SWAP}{}", sum("u32", 4, &entry))), 8);
}

/// The unrolled version exists and is not entered, as the table is tested for linearity.
#[test]
fn tables_that_are_not_linear() {
    for entry in ["return n * n + 3;", "return n == 200 ? 5 : n << 3;", "return 1;"] {
        let filters = format!("{SWAP}{}", sum("u32", 8, entry));
        let source = format!("{READ}{filters}{WRITE}");
        let plain = compile(&sample(&source, Vec::new(), 0)).expect("a program");
        let (program, loops) = unrolled(&source);
        assert_eq!(loops.len(), 1);
        for array in arrays(100) {
            let sample = sample(&source, array, 2);
            let wanted = interpret(&sample, &plain).expect("it runs");
            assert_eq!(interpret(&sample, &program).expect("it runs").messages, wanted.messages, "{entry}");
        }
    }
}
