//! Accepted programs: every example of the language reference, with its warnings.

use super::{accept, analyze, everything};
use expect_test::expect;
use std::fmt::Write;

#[test]
fn types_values_expressions() {
    accept(
        r##"
type sendT = record { dest: int, vAddr: u32 };
type userT = union { send: sendT, eos };
type tabT  = array[64] of u32;
channel userC: userT;   channel tickC();
process P {
  var r: sendT = { dest: 1, vAddr: 0x1000 };
  var t: #tabT = #[0; 64];
  t[3] = r.vAddr;   r = { 2, 0 };
  out(userC, send |> r);   out(userC, eos |> {});
  assert(t[3] == 0);
  out(tickC);
}
process Q { in(userC, _); in(userC, _); in(tickC); }
"##,
        expect![[r##""##]],
    );
}

#[test]
fn constants() {
    accept(
        r##"
const MTU = 1500;   const MASK: u32 = 0xffff_f000;   constant HELLO = "hi\n"; const M: u32 = ~0;
type frameT = record { length: u16, kind: u8 };
const EMPTY: frameT = { length: 0, kind: 'e' };
const SIZES: array[3] of int = [1, MTU, HELLO.len];
channel outC(bytes[<=3], u32, int, bytes[<=5], frameT) external in;
process P {
  const LIMIT = 10;
  var q: #array[LIMIT] of int = #[0; LIMIT], x: u32 = MASK & ~3, b: bytes[<=LIMIT] = HELLO;
  if (x & 1 == 0) q[LIMIT - 1] = SIZES[2];
  out(outC, HELLO, x + M, q[9] + SIZES[1], HELLO + "ab", EMPTY);
  assert(b == HELLO && EMPTY.kind == 'e' && HELLO[0] == 'h');
}
"##,
        expect![[r##""##]],
    );
}

#[test]
fn constants_that_functions_compute() {
    accept(
        r##"
layout header { version: 4, kind: 12, size: 16 le }
type pointT = record { x: i8, y: int };
type shapeT = union { point: pointT, size: u16, none };
const N = count(4) - 2;
const TABLE: array[N] of int = squares();
const SUM = sum(TABLE) + int(half(7));
const TEXT = text(3);
const WORD = TEXT.len + int(TEXT[0]);
const SHAPES = shapes();
fn count(n: int) -> int { var k = 0; while (k < 100) { k += 1; if (k == n * 2) break; } return k; }
fn squares() -> array[N] of int {
  var t: #array[N] of int = #[0; N];
  for i in 0..N { if (i == 2) continue; t[i] = i * i; }
  return freeze(t);
}
fn sum(t: array[N] of int) -> int { var s = 0; for i in 0..t.len { s += t[i]; } return s; }
fn half(n: u8) -> u8 { assert(n > 0); return n / 2; }
fn text(n: int) -> bytes[<=13] {
  var b: #bytes[<=12] = #"";
  for i in 0..n { b += "ab"; }
  b.len = 8;
  b.be16[6] = 0x4142;
  b[0..2] = "xy";
  b.header[2].kind = 0xabc;
  return freeze(b) + "z"[0..1];
}
fn shapes() -> array[3] of shapeT {
  var p: #pointT = #{ x: -1, y: 2 };
  p.x = 7;
  return [point |> freeze(p), size |> 9, none |> {}];
}
fn extent(s: shapeT) -> int {
  match s { point |> { $x, $y } if x > 0 => return x + y; point |> _ => return 0; size |> $n => return n; none |> {} => return -1; }
}
const EXTENTS = [extent(SHAPES[0]), extent(SHAPES[1]), extent(SHAPES[2])];
channel outC(int, int, bytes[<=13], int) external in;
process P {
  var exact: array[6] of int = TABLE;
  const K = count(1);
  assert(N == 6 && SUM == 54 && WORD == 129 && TEXT[6] == 'A' && TEXT[2] & 15 == 0xa);
  assert(EXTENTS[0] == 9 && EXTENTS[1] == 9 && EXTENTS[2] == -1);
  out(outC, exact[K], TABLE[count(1)], TEXT, SUM);
}
"##,
        expect![[r##""##]],
    );
}

/// A constant with an array in it is stored once, however often it is used.
#[test]
fn stored_constants() {
    let source = "const T: array[3] of u8 = [1, 2, 3]; const U = T; channel c(int, array[3] of u8) external in;
        process p { const L = [T, U]; for i in 0..3 { out(c, T[i] + L[1][i], U); } }";
    let (analysis, _) = super::analyze(source, &[], &[]);
    let program = analysis.program.expect("it has no errors");
    let names: Vec<&str> = program.constants.iter().map(|constant| constant.name.as_str()).collect();
    assert_eq!(names, ["T", "L"]);
}

#[test]
fn integer_conversion() {
    accept(
        r##"
process P {
  var a: u8 = 200, b: u8 = 100;
  var sum: int = a + b;
  var low: u8 = a + b;
  if (a + b == 44) low = u8(sum);
  var c: i64 = sum, d: u32 = a;
  assert(c == 300 && d == low);
}
"##,
        expect![[r##""##]],
    );
}

#[test]
fn bytes_slices_packets() {
    accept(
        r##"
layout ipv4 { version: 4, ihl: 4, tos: 8, total: 16, id: 16, flags: 3, frag: 13, ttl: 8, proto: 8, sum: 16, src: 32, dst: 32 }
channel txC: bytes[<=1514] external in = "tap:tap0";
process P {
  var p: #bytes[<=1514] = #"";
  p.len = 14 + sizeof(ipv4);   p.be16[12] = 0x0800;
  p.ipv4[14].ttl = 64;
  if (p.ipv4[14].version == 4 && p[14 + 9] == 17) p += "data";
  p[0..6] = p[6..12];
  p[12] = p[13] + 1;
  p.ipv4[14].ttl -= 1;
  p.le32[p.len - 4] = p.be32[0] ^ 1;
  var q = p[14..] + p[..6] + "x";
  out(txC, q);
  out(txC, freeze(p));
}
"##,
        expect![[r##""##]],
    );
}

#[test]
fn declarations() {
    accept(
        r##"
fn max(a: int, b: int) -> int { return a > b ? a : b; }
extern pure fn crc32(bytes[<=1514]) -> u32;
extern fn readRegister(addr: u32) -> u32;
extern fn fill(#bytes[<=64], n: int);
channel c(int, u32);
process worker[4] {
  var a, b;
  var x, y: u8, n = 0;
  const LIMIT = 10;
  x = 1; y = x;
  if (n == 0) { a = 1; } else if (n < 3) a = 2; else a = 3;
  while (a < LIMIT) { a += 1; if (a == 7) continue; if (a == 9) break; }
  for i in 0..4 { b = a + i; out(c, max(b, y), readRegister(1) + crc32("x")); }
  var buf: #bytes[<=64] = #""; fill(buf, 3);
  n = buf.len; a = n;
  while { yield; }
}
process sink { while { in(c, _, _); } }
"##,
        expect![[r##""##]],
    );
}

#[test]
fn match_example() {
    accept(
        r##"
type sendT = record { dest: int, vAddr: u32 };
type userT = union { send: sendT, eos };
channel c(userT, int);
process P {
  var a;
  while { in(c, $msg, a);
    match msg { send |> { $dest, _ } if dest > 0 => a = dest;
            send |> _ => { }
            eos |> {} => break; }
    assert(a);
  }
}
process Q { out(c, send |> { 1, 2 }, 3); out(c, eos |> {}, 3); }
"##,
        expect![[r##""##]],
    );
}

#[test]
fn channels_and_pids() {
    accept(
        r##"
channel jobC(int, u8) shared;
channel rxC: bytes[<=1514] external out = "tap:tap0";
channel txC: bytes[<=1514] external in  = "tap:tap0";
channel c(int) policy sender;
channel askC(pid(A, B), int);   channel replyC(pid(A, B), int);
process A { out(askC, @, 1); in(replyC, @, $r); out(jobC, r, 2); }
process B { out(askC, @, 2); in(replyC, @, $r); out(jobC, r, 2); }
process S { while { in(askC, $client, $n); out(replyC, client, n * n); } }
process J[2] { in(jobC, $n, $kind);   out(c, n + kind);   in(jobC, n, _) { out(c, n); } }
process K { while { in(c, $x); in(rxC, $p); if (x > 0) out(txC, p); } }
"##,
        expect![[r##""##]],
    );
}

#[test]
fn alt() {
    accept(
        r##"
channel jobC(int, u8) shared; channel c(int); channel stopC() external out; channel doneC(int);
process P {
  var n = 0;
  while {
    alt {
      when (n < 8) in(jobC, $j, _)  { n += j; }
      when (n > 0) out(c, n)        { n -= 1; }
      after (250 ms)                { n = 0; }
    }
    pri alt { in(stopC) { exit(0); } in(jobC, $j, _) { n = j; } else { n = 0; } }
  }
}
process Q { while { out(jobC, 1, 2); in(c, _); out(doneC, 1); } }
process reaper { while { idle in(doneC, _); } }
"##,
        expect![[r##""##]],
    );
}

#[test]
fn c_side() {
    accept(
        r##"
type sendT = record { dest: int, vAddr: u32 };
type userT = union { send: sendT, eos };
channel userC: userT external out; channel wireC(int) external in;
external interface userReq(out userC) { Send(send |> { $dest, $vAddr }), Eos(eos |> {}) }
external interface wire(in wireC) { Put($n) }
process P { while { in(userC, _); out(wireC, 1); } }
"##,
        expect![[r##""##]],
    );
}

#[test]
fn memory() {
    accept(
        r##"
type packetT = bytes[<=1514];
pool packetT 16;
channel txReqC(int) external out; channel txC: packetT external in;
process P {
  var buf: #bytes[<=1514] = #"";
  while {
    alt { when (free(packetT) > 0) in(txReqC, $n) { buf.len = n; out(txC, freeze(buf)); } }
  }
}
"##,
        expect![[r##""##]],
    );
}

#[test]
fn boxes_and_their_contents() {
    accept(
        r##"
type packetT = bytes[<=16]; pool packetT 16;
type tableT = array[4] of int; pool tableT 2;
type frameT = record { seq: u8, data: packetT };
channel c(frameT); channel d(tableT, bytes[<=16]);
fn first(p: packetT) -> u8 { return p[0]; }
process P {
  while {
    alt { when (free(packetT) > 1 && free(tableT) > 1) after (0 s) {
      var p: packetT = "abc", q: bytes[<=8] = p, m: #packetT = #"", t: tableT = [1, 2, 3, 4];
      m = thaw(p); m[0] = 'x'; m += q; m.len = 3;
      assert(p == q && p == "abc" && first(m) == p[0] && t[1] == 2 && p.len == 3);
      match p { "abc" => { } _ => { } }
      out(c, { 1, p });
      out(d, t, p);
    } }
  }
}
process Q { while { in(c, { $seq, $data }); in(d, [$a, _, _, _], $b); assert(seq + data[0] + a + b[0]); } }
"##,
        expect![[r#"
            warning[W0908]: `u8` arithmetic wraps before it is widened to `int`
              at 19:78 `seq + data[0]`
              help: convert an operand first, as in `int(x)`
        "#]],
    );
}

#[test]
fn c_order() {
    accept(
        r##"
process P { var a = 1, b = 2; assert((a == 1) == (b == 2) && a & 1 == 1 && (a < b ? a : b) == a && !(a >> 1) && -a < ~b + 5 && int(a == b) == 0); }
"##,
        expect![[r##""##]],
    );
}

#[test]
fn expected_type_is_handed_down() {
    accept(
        r##"
extern pure fn get() -> u8;
process P {
  var a: u8 = 1, b: u16 = 2, w: u32, x: i64, f: bool;
  w = a << 8 | b;
  w = (a + b) * 3 - (a > b ? a : b) + u8(300);
  x = -(a + b) + w % 7;
  x = ~a & 0xff;
  x = f1(a, b + get());
  f = a == 3 || b;
  assert(w + x == 3 && f);
  a += 1; b += a; x -= w; w <<= a; a ^= 0xff;
  a += b;
}
fn f1(a: int, b: i64) -> i64 { return a + b; }
"##,
        expect![[r##""##]],
    );
}

#[test]
fn three_programs() {
    accept(include_str!("../data/page_table.esp"), expect![[r##""##]]);
    accept(include_str!("../data/bounded_buffer.esp"), expect![[r##""##]]);
    accept(include_str!("../data/stop_and_wait.esp"), expect![[r##""##]]);
}

#[test]
fn figures_of_the_paper() {
    let figure = concat!(include_str!("../data/figure2.esp"), include_str!("../data/functions.esp"));
    let (analysis, sources) = analyze(figure, &[], &[include_str!("../data/figure5.fp")]);
    expect![[r#"
        warning[W0907]: `source` is never read
          at 9:46 `source`
          help: drop it, or call it `_source` if it is meant
    "#]]
    .assert_eq(&everything(&analysis, &sources));
}

#[test]
fn a_member_of_the_fast_path_of_the_paper() {
    let (analysis, _) = analyze(
        concat!(include_str!("../data/figure2.esp"), include_str!("../data/functions.esp")),
        &[],
        &[include_str!("../data/figure5.fp")],
    );
    let program = analysis.program.expect("the figures are accepted");
    expect![[r#"
        FastPathProcess {
            process: ProcessId(
                1,
            ),
            replica: 0,
            statements: [
                Site(
                    SiteId(
                        0,
                    ),
                ),
                Label(
                    LabelId(
                        0,
                    ),
                ),
            ],
            start: Element {
                point: Site(
                    SiteId(
                        0,
                    ),
                ),
                predicate: None,
                peer: Some(
                    (
                        0,
                        SiteId(
                            1,
                        ),
                    ),
                ),
                yield_to: None,
                span: Span {
                    file: FileId(
                        1,
                    ),
                    start: 386,
                    end: 395,
                },
            },
            follows: None,
            exit: [
                Element {
                    point: Site(
                        SiteId(
                            0,
                        ),
                    ),
                    predicate: None,
                    peer: None,
                    yield_to: None,
                    span: Span {
                        file: FileId(
                            1,
                        ),
                        start: 412,
                        end: 414,
                    },
                },
            ],
        }"#]]
    .assert_eq(&format!("{:#?}", program.fast_paths[0].processes[1]));
}

/// The model of section 11 of the reference, with the figure of the paper.
#[test]
fn model_of_the_reference() {
    let figure = concat!(include_str!("../data/figure2.esp"), include_str!("../data/functions.esp"));
    let model = r#"
model send { slice hostRequest, translateAddress; bound hostSendRequestC 3;
             abstract range translationUnavailable 0..2; abstract range hostSendRequestC.1 0..8193;
             env host { out(hostSendRequestC, 0, 8192); }  ltl "[] <> (hostRequest@L1)"; }
"#;
    let program = accept(
        &format!("{figure}{model}"),
        expect![[r#"
            warning[W0907]: `source` is never read
              at 9:46 `source`
              help: drop it, or call it `_source` if it is meant
        "#]],
    );
    assert_eq!(program.models[0].abstractions.len(), 2);
}

#[test]
fn idle_points() {
    let program = accept(
        r##"
channel fromWorld(int) external out; channel a(int); channel b(int); channel c(int); channel d(int); channel e(int);
process Head { while { in(fromWorld, $x); out(a, x); } }
process Middle { while { in(a, $x); out(b, x); } }
process Last { var n = 0; while { if (n) in(b, n); else in(b, $y) { n = y; } } }
process Finite { out(c, 1); }
process AfterFinite { while { alt { in(c, _) { } after (1 s) { } } } }
process Loop1 { while { in(d, $x); out(e, x); } }
process Loop2 { while { in(e, $x); out(d, x); } }
process Asked { while { var z = 1; idle in(d2, z); assert(z); } }
process Ring { while { out(d2, 1); } }
channel d2(int);
"##,
        expect![[r##""##]],
    );
    let mut idle = String::new();
    for process in &program.processes {
        let marks = format!("{:?}", process.body).matches("idle: true").count();
        writeln!(idle, "{} {marks}", process.name).expect("a string takes any text");
    }
    expect![[r#"
        Head 1
        Middle 1
        Last 0
        Finite 0
        AfterFinite 1
        Loop1 0
        Loop2 0
        Asked 1
        Ring 0
    "#]]
    .assert_eq(&idle);
}
