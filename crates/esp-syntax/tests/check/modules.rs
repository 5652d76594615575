//! Imports: standard modules, names of modules, what they offer.

use super::{analyze, check_imports, everything};
use expect_test::{Expect, expect};
use quaject_esp_syntax::{format, parser, span::FileId, standard};
use std::fmt::Write;

#[test]
fn standard_modules_are_formatted_and_free_of_warnings() {
    for (name, text) in standard::MODULES {
        let parsed = parser::parse(FileId(0), text);
        assert_eq!(format::format(&parsed).as_deref(), Ok(*text), "{name}");
        let (analysis, sources) = analyze(&format!("import \"std:{name}\"; process P {{ }}"), &[], &[]);
        assert_eq!(everything(&analysis, &sources), "", "{name}");
    }
    assert!(standard::MODULES.is_sorted());
}

#[test]
fn an_unknown_standard_module_has_a_way_out() {
    check_imports(
        "import \"std:checksums\"; import \"std:nothing_like_it\"; process P { }",
        expect![[r#"
            error[E0209]: cannot read `std:checksums`: no such standard module
              at 1:8 `"std:checksums"`
              help: did you mean `std:checksum`?
            error[E0209]: cannot read `std:nothing_like_it`: no such standard module
              at 1:32 `"std:nothing_like_it"`
              help: the standard modules are `checksum`, `fixed`, `format`
        "#]],
    );
}

/// The loader counts the files that it gave: a standard module in between does not shift its numbers.
#[test]
fn files_behind_a_standard_module_are_found() {
    check_imports(
        "import \"std:checksum\"; import \"b.esp\"; process P { out(c, i32(crc32(0, 1)) + A); }",
        expect![[r#"
        processes: InB P
    "#]],
    );
}

/// A ring for one type and size, and a module that uses it.
const RING: &str = "pub param type T = u8; pub param const N: int = 4; param const EMPTY: T = 0;
pub type ringT = record { used: int, slots: array[N] of T };
pub const NEW: ringT = { 0, [EMPTY; N] };
pub layout head { kind: 4, rest: 12 }
pub type codeT = enum { low, high };
fn crc(i: int) -> int { return i % N; }
pub fn at(ring: ringT, i: int) -> T { return ring.slots[crc(i)]; }
pub proc put(ring: #ringT, x: T) -> bool {
  if (ring.used == N) return false;
  ring.slots[ring.used] = x;
  ring.used += 1;
  return true;
}
pub process copy(in a: T, out b: T) { while { in(a, $x); out(b, x); } }
pub channel logC(T) external in;
process logger { out(logC, EMPTY); }
model alone { process logger; }";

/// Checks a program that imports the ring, and a file that takes names of its importer.
fn check_ring(source: &str, expected: Expect) {
    let files = [
        ("main.esp", source),
        ("ring.esp", RING),
        ("uses.esp", "import \"ring.esp\" as ring; "),
        ("plain.esp", "const PLAIN = 5; fn crc(i: int) -> int { return i + PLAIN; }"),
        ("shared.esp", "import \"plain.esp\"; pub const SHARED = PLAIN + crc(1);"),
        ("nested.esp", "param const DEPTH = 0; import \"nested.esp\"(DEPTH = DEPTH + 1) as nested;"),
        ("part.esp", "part of \"main.esp\"; process part { out(c, N); }"),
        ("net.esp", "import \"ring.esp\" as r; pub fn first(ring: r.ringT) -> u8 { return r.at(ring, 0); }"),
    ];
    let (analysis, sources) = analyze(source, &files, &[]);
    let mut said = everything(&analysis, &sources);
    if let Some(program) = &analysis.program {
        let list = |names: Vec<&str>| if names.is_empty() { "none".to_string() } else { names.join(" ") };
        let processes = list(program.processes.iter().map(|process| process.name.as_str()).collect());
        let channels = list(program.channels.iter().map(|channel| channel.name.as_str()).collect());
        let functions = list(program.functions.iter().map(|function| function.name.as_str()).collect());
        writeln!(
            said,
            "processes: {processes}\nchannels: {channels}\nfunctions: {functions}\nmodels: {}",
            program.models.len()
        )
        .expect("a string takes any text");
    }
    expected.assert_eq(&said);
}

#[test]
fn a_named_import_offers_public_items_under_its_name() {
    check_ring(
        "import \"ring.esp\" as ring;
        fn crc(i: int) -> int { return i * ring.N; }
        channel c: ring.T; channel d: ring.T external in; channel e(pid(w), ring.codeT) external in;
        process w = ring.copy(c, d);
        process p {
          var r: #ring.ringT = thaw(ring.NEW), q: #bytes[<=9] = #\"abcdefg\";
          var done = ring.put(r, 7);
          ring.put(r, 8);
          out(c, ring.at(r, crc(1)));
          q.ring.head[2].rest = 3;
          if (done && r.used == ring.N) out(ring.logC, q[sizeof(ring.head)]);
          match ring.codeT.high { ring.codeT.low => exit(1); ring.codeT.high => out(e, @w, ring.codeT.low); }
          match r.used { 0..ring.N => exit(int(q.ring.head[0].kind)); _ => exit(2); }
        }",
        expect![[r#"
            warning[W0907]: the result of this call is never read
              at 8:11 `ring.put(r, 8);`
              help: assign it, to a name like `_done` if that is meant
            processes: ring_logger w p
            channels: ring_logC c d e
            functions: ring_crc ring_at crc
            models: 0
        "#]],
    );
}

#[test]
fn arguments_make_modules_of_their_own() {
    check_ring(
        "import \"ring.esp\"(T = pairT, N = SIZE * 2, EMPTY = { 1, ZERO }) as pairs; import \"ring.esp\"(T = u16) as words;
        type pairT = record { a: int, b: int }; const SIZE = 2; const ZERO = 0;
        process p {
          var ps: #pairs.ringT = thaw(pairs.NEW), ws: #words.ringT = thaw(words.NEW);
          pairs.put(ps, { 1, 2 });
          words.put(ws, 300);
          assert(pairs.at(ps, 0).b == 2 && words.at(ws, 0) == 300 && pairs.N == 4);
        }",
        expect![[r#"
            warning[W0907]: the result of this call is never read
              at 5:11 `pairs.put(ps, { 1, 2 });`
              help: assign it, to a name like `_done` if that is meant
            warning[W0907]: the result of this call is never read
              at 6:11 `words.put(ws, 300);`
              help: assign it, to a name like `_done` if that is meant
            processes: pairs_logger words_logger p
            channels: pairs_logC words_logC
            functions: pairs_crc pairs_at words_crc words_at
            models: 0
        "#]],
    );
    check_ring(
        "import \"ring.esp\"(T = u16, N = u8) as a; import \"ring.esp\"(T = 3, n = 1, T = u8) as b;
        import \"plain.esp\"(PLAIN = 1) as c; import \"nested.esp\" as d; import \"ring.esp\"(N = \"no\") as e;
        process p { }",
        expect![[r#"
            error[E0212]: `N` is a constant, and a type is given
              at 1:28 `N`
            error[E0212]: `T` is a type, and a value is given
              at 1:60 `T`
            error[E0212]: `ring.esp` has no parameter `n`
              at 1:67 `n`
              help: did you mean `N`?
            error[E0204]: `T` is given twice
              at 1:74 `T`
              at 1:60 `T`: first given here
            error[E0212]: `plain.esp` has no parameter `PLAIN`
              at 2:28 `PLAIN`
              help: a parameter is declared by `param const N = 64;` or `param type T = u8;`
            error[E0302]: expected `int`, found `bytes[<=2]`
              at 2:93 `"no"`
              help: text is `bytes`: take a byte of it with `p[i]`, or its length with `p.len`
            error[E0509]: this import makes the program too large: each import with arguments repeats its file
              at nested.esp:1:31 `"nested.esp"`
              help: at most 16 of them are inside of each other, and all repeat at most 4 MiB of text
        "#]],
    );
}

/// The name of an import stands behind its arguments, and is found before they are parsed.
#[test]
fn an_argument_with_a_semicolon_keeps_the_name_of_its_import() {
    check_ring(
        "import \"ring.esp\"(T = array[2] of u16, N = 3, EMPTY = [0; 2]) as pairs; import \"ring.esp\" as bytes8;
        process p {
          var ps: #pairs.ringT = thaw(pairs.NEW), bs: #bytes8.ringT = thaw(bytes8.NEW);
          assert(pairs.at(ps, 0)[1] == 0 && pairs.N == 3 && bytes8.at(bs, 0) == 0);
        }",
        expect![[r#"
            processes: pairs_logger bytes8_logger p
            channels: pairs_logC bytes8_logC
            functions: pairs_crc pairs_at bytes8_crc bytes8_at
            models: 0
        "#]],
    );
}

#[test]
fn a_file_of_two_imports_is_one_module() {
    check_ring(
        "import \"ring.esp\" as ring; import \"net.esp\" as net; import \"ring.esp\" as again;
        process p { out(again.logC, net.first(ring.NEW)); }",
        expect![[r#"
            processes: ring_logger p
            channels: ring_logC
            functions: ring_crc ring_at net_first
            models: 0
        "#]],
    );
}

#[test]
fn what_a_module_does_not_offer_is_named() {
    check_ring(
        "import \"ring.esp\" as ring;
        channel c: ring.U;
        process w = ring.copie(c, c);
        process p {
          var ring = 1, x = ring.crc(1), y: rings.T = ring.EMPTY;
          x = ring.nothing(); in(ring.ringT, $z); ring.N = 3; out(ring.logC, N); ring.nope(1);
        }
        fn ring(a: int) -> int { return a; }",
        expect![[r#"
            error[E0208]: `ring` (`ring.esp`) has no `U`
              at 2:20 `ring.U`
              help: it offers `N`, `NEW`, `T`, `at`, `codeT`, `copy`, `head`, `logC`, `put`, `ringT`
            error[E0208]: `ring` (`ring.esp`) has no `copie`
              at 3:21 `ring.copie`
              help: it offers `N`, `NEW`, `T`, `at`, `codeT`, `copy`, `head`, `logC`, `put`, `ringT`
            error[E0205]: `ring` hides the import
              at 5:15 `ring`
              at 1:22 `ring`: imported here
              help: choose another name for one of them
            error[E0210]: `crc` is private to the module `ring`
              at 5:29 `ring.crc`
              at ring.esp:6:4 `crc`: declared here
              help: write `pub` before its declaration to offer it to other modules
            error[E0208]: no import of this file is named `rings`
              at 5:45 `rings.T`
              help: did you mean `ring.T`?
            error[E0210]: `EMPTY` is private to the module `ring`
              at 5:55 `ring.EMPTY`
              at ring.esp:1:64 `EMPTY`: declared here
              help: write `pub` before its declaration to offer it to other modules
            error[E0208]: `ring` (`ring.esp`) has no `nothing`
              at 6:15 `ring.nothing`
              help: it offers `N`, `NEW`, `T`, `at`, `codeT`, `copy`, `head`, `logC`, `put`, `ringT`
            error[E0208]: no channel named `ring.ringT`
              at 6:34 `ring.ringT`
              at ring.esp:2:10 `ringT`: `ringT` is a type
            error[E0306]: `ring.N` is a constant: it cannot be assigned
              at 6:51 `ring.N`
              at ring.esp:1:40 `N`: declared here
            error[E0208]: no variable named `N`
              at 6:78 `N`
            error[E0208]: `ring` (`ring.esp`) has no `nope`
              at 6:82 `ring.nope`
              help: it offers `N`, `NEW`, `T`, `at`, `codeT`, `copy`, `head`, `logC`, `put`, `ringT`
            error[E0204]: `ring` is declared twice
              at 8:12 `ring`
              at 1:22 `ring`: first declared here, as the name of a module
        "#]],
    );
    check_ring(
        "import \"ring.esp\" as a; import \"net.esp\" as a; fn b_put() -> int { return 1; } import \"ring.esp\" as b;
        fn a_at() -> int { return 1; } process p { out(a.logC, 1); }",
        expect![[r#"
            error[E0204]: `a` is declared twice
              at 1:45 `a`
              at 1:22 `a`: first declared here
            error[E0204]: `a_at` is declared twice: two modules have an item of this name in C
              at 2:12 `a_at`
              at ring.esp:7:8 `at`: first declared here
              help: rename one; a C function is declared in one module, which others import
        "#]],
    );
}

#[test]
fn files_without_a_name_are_shared_by_modules() {
    check_ring(
        "import \"shared.esp\" as shared; import \"plain.esp\"; const OWN = 3;
        process p { assert(PLAIN + crc(OWN) + shared.SHARED > 0); }",
        expect![[r#"
            processes: p
            channels: none
            functions: crc
            models: 0
        "#]],
    );
    check_ring(
        "import \"shared.esp\" as shared; process p { assert(PLAIN + shared.SHARED > 0); }",
        expect![[r#"
        error[E0208]: no variable named `PLAIN`
          at 1:51 `PLAIN`
    "#]],
    );
}

#[test]
fn a_part_is_checked_in_its_program() {
    check_ring(
        "import \"part.esp\"; const N = 3; channel c(int) external in; ",
        expect![[r#"
            processes: part
            channels: c
            functions: none
            models: 0
        "#]],
    );
    let main = ("program.esp", "import \"main.esp\"; const N = 3; channel c(int) external in; ");
    let part = "part of \"program.esp\"; process part { out(c, N); }";
    for (files, expected) in [
        (&[main, ("main.esp", part)][..], expect![[""]]),
        (
            &[("program.esp", "process p { }"), ("main.esp", part)][..],
            expect![[r#"
            error[E0211]: `program.esp` does not import this file
              at 1:9 `"program.esp"`
              help: name the program that imports it, or leave out `part of`
        "#]],
        ),
    ] {
        let (analysis, sources) = analyze(part, files, &[]);
        expected.assert_eq(&everything(&analysis, &sources));
    }
}

#[test]
fn modifiers_and_imports_have_a_way_out() {
    check_ring(
        "pub import \"ring.esp\"; param fn f() -> int { return 1; } pub 3; part \"x.esp\"; import \"ring.esp\"(N = 3);
        import \"ring.esp\"(3) as x; import \"ring.esp\" as process; pub process p { }",
        expect![[r#"
            error[E0201]: expected an item with a name, found `import`
              at 1:5 `import`
              help: `pub` precedes `type`, `const`, `channel`, `fn`, `extern`, `layout`, `proc` or `process`
            error[E0201]: expected `type` or `const`, found `fn`
              at 1:30 `fn`
              help: a parameter is written `param const N = 64;`
            error[E0201]: expected an item with a name, found `3`
              at 1:62 `3`
              help: `pub` precedes `type`, `const`, `channel`, `fn`, `extern`, `layout`, `proc` or `process`
            error[E0201]: expected `of`, found `"x.esp"`
              at 1:69 ``
              at 1:70 `"x.esp"`: unexpected
              help: the program of a file is named by `part of "main.esp";`
            error[E0209]: cannot read `x.esp`: no such file
              at 1:70 `"x.esp"`
            error[E0201]: expected `as` and a name, found `;`
              at 1:103 `;`
              help: a module with arguments has a name: `import "ring.esp"(N = 64) as ring;`
            error[E0201]: expected an argument, as in `N = 64`, found `3`
              at 2:27 `3`
            error[E0201]: expected a name for the module, found the reserved word `process`
              at 2:57 `process`
              help: a reserved word cannot be a name; choose another
        "#]],
    );
}

/// A program of the time before has the new words as names.
#[test]
fn new_words_are_ordinary_names() {
    check_ring(
        "const pub = 1; const param = 2; const part = 3; type as = int;
        process p { var x: as = pub + param; part_of(x); assert(x == part); }
        proc part_of(x: int) { }",
        expect![[r#"
            warning[W0907]: `x` is never read
              at 3:22 `x`
              at 2:46 `part_of(x);`: in `part_of`, called here
              help: drop it, or call it `_x` if it is meant
            processes: p
            channels: none
            functions: none
            models: 0
        "#]],
    );
}

#[test]
fn types_of_a_module_have_the_name_of_its_import() {
    check_ring(
        "import \"ring.esp\" as words; channel c(int) external in;
process p { var r = words.NEW; r = 1; var k: int = words.codeT.low; out(c, r); var a: bool = @words.one; }",
        expect![[r#"
            error[E0302]: expected `words.ringT`, found `int`
              at 2:36 `1`
            error[E0302]: expected `int`, found `words.codeT`
              at 2:52 `words.codeT.low`
              help: write `int(words.codeT.low)` for the code, which is a `u8`
            error[E0302]: expected `int`, found `words.ringT`
              at 2:76 `r`
            error[E0208]: `words` (`ring.esp`) has no `one`
              at 2:95 `words.one`
              help: it offers `N`, `NEW`, `T`, `at`, `codeT`, `copy`, `head`, `logC`, `put`, `ringT`
        "#]],
    );
}
