//! Every diagnostic about syntax, as it is rendered: the smallest program and the full output.

use crate::support::NoFiles;
use expect_test::{Expect, expect};
use quaject_diagnostic::{Color, human, human_within, json};
use quaject_esp_syntax::check::analyze;
use quaject_esp_syntax::diagnostics::Diagnostic;
use quaject_esp_syntax::parser::{parse, parse_fast_paths};
use quaject_esp_syntax::span::{SourceFile, SourceMap};

fn check(text: &str, screen: Expect) {
    let mut sources = SourceMap::default();
    let file = sources.add(SourceFile::new("p.esp", text));
    screen.assert_eq(&human(&sources, parse(file, text).diagnostics(), Color::Never));
}

#[test]
fn unterminated_string() {
    check(
        r#"import "a.esp;
channel c();"#,
        expect![[r#"
            error[E0101]: this string is not closed on its line
             --> p.esp:1:8
              |
            1 | import "a.esp;
              |        ^^^^^^
              |
              = help: write a second `"` where the string ends, and `\n` for a line break inside it

        "#]],
    );
}

#[test]
fn unterminated_character() {
    check(
        "const a = 'a;\nconst b = 2;",
        expect![[r#"
        error[E0101]: this character constant is not closed
         --> p.esp:1:11
          |
        1 | const a = 'a;
          |           ^^
          |
          = help: write a second `'` behind the character

    "#]],
    );
}

#[test]
fn empty_character() {
    check(
        "const a = '';",
        expect![[r#"
        error[E0101]: this character is empty
         --> p.esp:1:11
          |
        1 | const a = '';
          |           ^^
          |
          = help: write the character between the quotes, as in `'a'`

    "#]],
    );
}

#[test]
fn wide_character() {
    check(
        "const a = 'é';",
        expect![[r#"
        error[E0101]: the character `é` takes 2 bytes, a character constant is one byte
         --> p.esp:1:11
          |
        1 | const a = 'é';
          |           ^^^
          |
          = help: write it as a string

    "#]],
    );
}

#[test]
fn two_characters() {
    check(
        "const a = 'ab';",
        expect![[r#"
        error[E0101]: a character constant holds one character
         --> p.esp:1:11
          |
        1 | const a = 'ab';
          |           ^^^^
          |
          = help: write a string with `"`

    "#]],
    );
}

#[test]
fn unterminated_comment() {
    check(
        "const a = 1;\n/* no end",
        expect![[r#"
        error[E0101]: this comment is never closed
         --> p.esp:2:1
          |
        2 | /* no end
          | ^^
          |
          = help: write `*/` where it ends; comments do not nest

    "#]],
    );
}

#[test]
fn unknown_escape() {
    check(
        r#"const a = "x\q\x1";"#,
        expect![[r#"
        error[E0101]: there is no escape `\q`
         --> p.esp:1:13
          |
        1 | const a = "x\q\x1";
          |             ^^
          |
          = help: the escapes are `\n \r \t \0 \\ \' \" \xHH`

        error[E0101]: `\x` needs two hexadecimal digits
         --> p.esp:1:15
          |
        1 | const a = "x\q\x1";
          |               ^^^
          |
          = help: write them both, as in `\x0a`

    "#]],
    );
}

#[test]
fn character_outside_the_alphabet() {
    check(
        "const a = 1 ` 2;",
        expect![[r#"
            error[E0101]: a backtick has no meaning in ESP
             --> p.esp:1:13
              |
            1 | const a = 1 ` 2;
              |             ^
              |
              = help: write `"` around strings and `'` around characters

        "#]],
    );
}

#[test]
fn foreign_letter_in_a_name() {
    check(
        "const größe = 1;",
        expect![[r#"
        error[E0101]: `ö` cannot be part of a name
         --> p.esp:1:7
          |
        1 | const größe = 1;
          |       ^^^^^
          |
          = help: names consist of the letters `a` to `z`, `A` to `Z`, digits and `_`

    "#]],
    );
}

#[test]
fn typographic_quotes() {
    check(
        "const a = “x”;",
        expect![[r#"
            error[E0101]: `“` has no meaning in ESP
             --> p.esp:1:11
              |
            1 | const a = “x”;
              |           ^
              |
              = help: write `"`

            error[E0101]: `”` has no meaning in ESP
             --> p.esp:1:13
              |
            1 | const a = “x”;
              |             ^
              |
              = help: write `"`

        "#]],
    );
}

#[test]
fn leading_zero() {
    check(
        "const a = 010;\nconst b = 09;\nconst c = 00;",
        expect![[r#"
        error[E0102]: number `010` starts with 0
         --> p.esp:1:11
          |
        1 | const a = 010;
          |           ^^^
          |
          = help: write `10`, or `0o10` for an octal number

        error[E0102]: number `09` starts with 0
         --> p.esp:2:11
          |
        2 | const b = 09;
          |           ^^
          |
          = help: write `9`

        error[E0102]: number `00` starts with 0
         --> p.esp:3:11
          |
        3 | const c = 00;
          |           ^^
          |
          = help: write `0`

    "#]],
    );
}

#[test]
fn letters_behind_a_number() {
    check(
        "process p { alt { after (5ms) { } } }",
        expect![[r#"
            error[E0102]: number `5` is followed by `ms`
             --> p.esp:1:26
              |
            1 | process p { alt { after (5ms) { } } }
              |                          ^^^
              |
              = help: a duration is written `(5 ms)`

        "#]],
    );
}

#[test]
fn number_too_large() {
    check(
        "const a = 18446744073709551616;",
        expect![[r#"
        error[E0102]: number `18446744073709551616` is above 2^64 - 1
         --> p.esp:1:11
          |
        1 | const a = 18446744073709551616;
          |           ^^^^^^^^^^^^^^^^^^^^
          |
          = help: the largest number is 18446744073709551615, `0xffff_ffff_ffff_ffff`

    "#]],
    );
}

#[test]
fn digit_of_another_base() {
    check(
        "const a = 0b12;\nconst b = 0x;\nconst c = 0XFF;",
        expect![[r#"
        error[E0102]: `2` is not a binary digit, in `0b12`
         --> p.esp:1:11
          |
        1 | const a = 0b12;
          |           ^^^^
          |
          = help: leave out `2`, or write the number in another base

        error[E0102]: number `0x` has no digits
         --> p.esp:2:11
          |
        2 | const b = 0x;
          |           ^^
          |
          = help: write hexadecimal digits behind `0x`

        error[E0102]: number `0XFF` begins with a capital letter
         --> p.esp:3:11
          |
        3 | const c = 0XFF;
          |           ^^^^
          |
          = help: write `0xFF`

    "#]],
    );
}

#[test]
fn missing_semicolon() {
    check(
        "process p {\n  var a = 1\n  a = 2;\n}",
        expect![[r#"
        error[E0201]: expected `;`, found `a`
         --> p.esp:2:12
          |
        2 |   var a = 1
          |            ^
        3 |   a = 2;
          |   - unexpected
          |
          = help: write `;` here

    "#]],
    );
}

#[test]
fn missing_semicolon_before_a_brace() {
    check(
        "process p { var a = 1 }",
        expect![[r#"
        error[E0201]: expected `;`, found `}`
         --> p.esp:1:22
          |
        1 | process p { var a = 1 }
          |                      ^- unexpected
          |
          = help: write `;` here

    "#]],
    );
}

#[test]
fn missing_brace() {
    check(
        "process p {\n  while {\n    yield;\n}\n\nprocess q { }",
        expect![[r#"
        error[E0201]: expected `}`, found `process`
         --> p.esp:6:1
          |
        1 | process p {
          |           - this block is not closed
        ...
        6 | process q { }
          | ^^^^^^^
          |
          = help: write a `}` for it

    "#]],
    );
}

#[test]
fn brace_too_many() {
    check(
        "process p { } }\nconst a = 1;",
        expect![[r#"
        error[E0201]: expected an item, found `}`
         --> p.esp:1:15
          |
        1 | process p { } }
          |               ^
          |
          = help: no block is open here; leave it out

    "#]],
    );
}

#[test]
fn misspelt_item() {
    check(
        "proces p { yield; }\nconst a = 1;",
        expect![[r#"
        error[E0201]: expected an item, found `proces`
         --> p.esp:1:1
          |
        1 | proces p { yield; }
          | ^^^^^^
          |
          = help: did you mean `process`?

    "#]],
    );
}

#[test]
fn variable_outside() {
    check(
        "var a = 1;\nconst b = 2;",
        expect![[r#"
        error[E0201]: expected an item, found `var`
         --> p.esp:1:1
          |
        1 | var a = 1;
          | ^^^
          |
          = help: variables are declared inside a process

    "#]],
    );
}

#[test]
fn comparisons_chain() {
    check(
        "fn f(a: int, b: int) -> int { return 0 <= a + 1 < b; }",
        expect![[r#"
        error[E0202]: comparisons do not chain
         --> p.esp:1:49
          |
        1 | fn f(a: int, b: int) -> int { return 0 <= a + 1 < b; }
          |                                        --       ^
          |                                        |
          |                                        the first comparison
          |
          = help: write `0 <= a + 1 && a + 1 < b`

    "#]],
    );
}

#[test]
fn equalities_chain() {
    check(
        "fn f(a: int, b: int) -> int { return a == b == 1; }",
        expect![[r#"
        error[E0202]: comparisons do not chain
         --> p.esp:1:45
          |
        1 | fn f(a: int, b: int) -> int { return a == b == 1; }
          |                                        --   ^^
          |                                        |
          |                                        the first comparison
          |
          = help: write `(a == b) == ..`, or join two comparisons with `&&`

    "#]],
    );
}

#[test]
fn comparisons_chain_without_an_operand() {
    check(
        "const a = b < < c < d;",
        expect![[r#"
            error[E0201]: expected an expression, found `<`
             --> p.esp:1:15
              |
            1 | const a = b < < c < d;
              |               ^

        "#]],
    );
}

#[test]
fn label_without_block() {
    check(
        "process p { var n = 1; if (n) #1 }",
        expect![[r#"
        error[E0203]: a label needs a block here
         --> p.esp:1:31
          |
        1 | process p { var n = 1; if (n) #1 }
          |                               ^^
          |
          = help: write `{ #1 }`

    "#]],
    );
}

#[test]
fn declaration_without_block() {
    check(
        "process p { if (1) var n = 1; }",
        expect![[r#"
        error[E0201]: a declaration needs a block here
         --> p.esp:1:20
          |
        1 | process p { if (1) var n = 1; }
          |                    ^^^
          |
          = help: put it and the statements that use it between `{` and `}`

    "#]],
    );
}

#[test]
fn hash_in_a_type() {
    check(
        "type t = record { a: #int };\nchannel c(#int);",
        expect![[r#"
        error[E0307]: `#` is allowed only on a variable
         --> p.esp:1:22
          |
        1 | type t = record { a: #int };
          |                      ^
          |
          = help: messages and parts are immutable; use `freeze`

        error[E0307]: `#` is allowed only on a variable
         --> p.esp:2:11
          |
        2 | channel c(#int);
          |           ^
          |
          = help: messages and parts are immutable; use `freeze`

    "#]],
    );
}

#[test]
fn more_words_than_a_declaration_takes() {
    check(
        "channel c(int);\nprocess p { in(c, $_); }\nmodel m { env process q { out(c, 1); } }",
        expect![[r#"
            error[E0201]: expected a name to declare, found `_`
             --> p.esp:2:20
              |
            2 | process p { in(c, $_); }
              |                    ^
              |
              = help: `_` alone takes any value and names nothing

            error[E0201]: expected a name for the process, found `process`
             --> p.esp:3:15
              |
            3 | model m { env process q { out(c, 1); } }
              |               ^^^^^^^
              |
              = help: `env` is followed by a name, as in `env host { .. }`

        "#]],
    );
}

#[test]
fn reserved_word_as_a_name() {
    check(
        "channel in(int);\nprocess p { var out: int; }",
        expect![[r#"
        error[E0201]: expected a name for the channel, found the reserved word `in`
         --> p.esp:1:9
          |
        1 | channel in(int);
          |         ^^
          |
          = help: a reserved word cannot be a name; choose another

        error[E0201]: expected a name for the variable, found the reserved word `out`
         --> p.esp:2:17
          |
        2 | process p { var out: int; }
          |                 ^^^
          |
          = help: a reserved word cannot be a name; choose another

    "#]],
    );
}

#[test]
fn type_before_the_variable() {
    check(
        "process p { int n; u8 m = 3; }",
        expect![[r#"
        error[E0201]: expected a statement, found `int`
         --> p.esp:1:13
          |
        1 | process p { int n; u8 m = 3; }
          |             ^^^
          |
          = help: a variable is declared with `var n: int;`

        error[E0201]: expected a statement, found `u8`
         --> p.esp:1:20
          |
        1 | process p { int n; u8 m = 3; }
          |                    ^^
          |
          = help: a variable is declared with `var m: u8;`

    "#]],
    );
}

#[test]
fn unknown_type_before_the_variable() {
    check(
        "process p { packetT n; }",
        expect![[r#"
        error[E0201]: expected an assignment or a call, found `n`
         --> p.esp:1:21
          |
        1 | process p { packetT n; }
          |                     ^
          |
          = help: a variable is declared with `var n: packetT;`

    "#]],
    );
}

#[test]
fn for_of_c() {
    check(
        "process p { for (i = 0; i < 3; i++) { yield; } }",
        expect![[r#"
        error[E0201]: expected a name, found `(`
         --> p.esp:1:17
          |
        1 | process p { for (i = 0; i < 3; i++) { yield; } }
          |                 ^
          |
          = help: a `for` is written `for i in 0..4 { .. }`, its end is excluded

    "#]],
    );
}

#[test]
fn increment() {
    check(
        "process p { var n = 0; n++; yield; }",
        expect![[r#"
        error[E0201]: there is no `++`
         --> p.esp:1:25
          |
        1 | process p { var n = 0; n++; yield; }
          |                         ^
          |
          = help: write `n += 1`

    "#]],
    );
}

#[test]
fn comparison_as_a_statement() {
    check(
        "process p { var n = 0; n == 1; }",
        expect![[r#"
        error[E0201]: `==` compares and is not a statement
         --> p.esp:1:26
          |
        1 | process p { var n = 0; n == 1; }
          |                          ^^
          |
          = help: write `n = ..`

    "#]],
    );
}

#[test]
fn assignment_in_a_condition() {
    check(
        "process p { var n = 0; if (n = 1) { } }",
        expect![[r#"
        error[E0201]: expected `)`, found `=`
         --> p.esp:1:29
          |
        1 | process p { var n = 0; if (n = 1) { } }
          |                             ^- unexpected
          |
          = help: write `==` to compare

    "#]],
    );
}

#[test]
fn condition_without_parentheses() {
    check(
        "process p { var n = 0; if n > 0 { n = 1; } }",
        expect![[r#"
        error[E0201]: expected `(`, found `n`
         --> p.esp:1:26
          |
        1 | process p { var n = 0; if n > 0 { n = 1; } }
          |                          ^- unexpected
          |
          = help: `if` takes its condition in parentheses, `if (c) ..`

    "#]],
    );
}

#[test]
fn empty_statement() {
    check(
        "process p { ; yield;; }",
        expect![[r#"
        error[E0201]: expected a statement, found `;`
         --> p.esp:1:13
          |
        1 | process p { ; yield;; }
          |             ^
          |
          = help: leave out the `;`, or write `{ }` for a statement that does nothing

        error[E0201]: expected a statement, found `;`
         --> p.esp:1:21
          |
        1 | process p { ; yield;; }
          |                     ^
          |
          = help: leave out the `;`, or write `{ }` for a statement that does nothing

    "#]],
    );
}

#[test]
fn else_without_if() {
    check(
        "process p { else { } }",
        expect![[r#"
        error[E0201]: this `else` belongs to no `if`
         --> p.esp:1:13
          |
        1 | process p { else { } }
          |             ^^^^
          |
          = help: an `else` follows the statement or block of its `if` at once

    "#]],
    );
}

#[test]
fn missing_operand() {
    check(
        "process p { var n = 1 + ; n = * 2; }",
        expect![[r#"
        error[E0201]: expected an expression, found `;`
         --> p.esp:1:25
          |
        1 | process p { var n = 1 + ; n = * 2; }
          |                         ^

        error[E0201]: expected an expression, found `*`
         --> p.esp:1:31
          |
        1 | process p { var n = 1 + ; n = * 2; }
          |                               ^
          |
          = help: ESP has no pointers

    "#]],
    );
}

#[test]
fn tag_as_an_operand() {
    check(
        "process p { out(c, 1 + t |> 2); }",
        expect![[r#"
        error[E0201]: a tag and its payload need parentheses as an operand
         --> p.esp:1:24
          |
        1 | process p { out(c, 1 + t |> 2); }
          |                        ^
          |
          = help: write `(t |> ..)`

    "#]],
    );
}

#[test]
fn name_declared_in_an_expression() {
    check(
        "process p { out(c, $x); }",
        expect![[r#"
            error[E0201]: expected an expression, found `$`
             --> p.esp:1:20
              |
            1 | process p { out(c, $x); }
              |                    ^
              |
              = help: `$` declares a name in a pattern; here write the name alone

        "#]],
    );
}

#[test]
fn floating_point() {
    check(
        "const a = 1.5;",
        expect![[r#"
        error[E0201]: expected the name of a field, found `5`
         --> p.esp:1:13
          |
        1 | const a = 1.5;
          |             ^
          |
          = help: ESP has no floating-point numbers, and fields are named, not numbered

    "#]],
    );
}

#[test]
fn empty_array() {
    check(
        "process p { var a: array[1] of int = []; }",
        expect![[r#"
        error[E0201]: expected an expression, found `]`
         --> p.esp:1:39
          |
        1 | process p { var a: array[1] of int = []; }
          |                                       ^
          |
          = help: an array has at least one element

    "#]],
    );
}

#[test]
fn empty_record_type() {
    check(
        "type t = record { };",
        expect![[r#"
        error[E0201]: expected a field, as in `size: int`, found `}`
         --> p.esp:1:19
          |
        1 | type t = record { };
          |                   ^
          |
          = help: at least one is needed

    "#]],
    );
}

#[test]
fn field_without_a_type() {
    check(
        "type t = record { a, b: int };",
        expect![[r#"
            error[E0201]: expected `:` and the field's type, found `,`
             --> p.esp:1:20
              |
            1 | type t = record { a, b: int };
              |                    ^
              |
              = help: a field is written `size: int`

        "#]],
    );
}

#[test]
fn bytes_without_a_bound() {
    check(
        "type t = bytes;\ntype u = bytes[4];",
        expect![[r#"
        error[E0201]: expected `[`, found `;`
         --> p.esp:1:15
          |
        1 | type t = bytes;
          |               ^
          |
          = help: `bytes` needs its largest length, as in `bytes[<=1514]`

        error[E0201]: expected `<=`, found `4`
         --> p.esp:2:16
          |
        2 | type u = bytes[4];
          |                ^
          |
          = help: `bytes` needs its largest length, as in `bytes[<=1514]`

    "#]],
    );
}

#[test]
fn missing_comma() {
    check(
        "process p { out(c, 1 2, 3); }",
        expect![[r#"
        error[E0201]: expected `,` or `)`, found `2`
         --> p.esp:1:21
          |
        1 | process p { out(c, 1 2, 3); }
          |                     ^- unexpected
          |
          = help: write `,` or `)` here

    "#]],
    );
}

#[test]
fn comma_without_a_value() {
    check(
        "process p { in(c, ); out(c, 1, , 2); }",
        expect![[r#"
        error[E0201]: expected a pattern, found `)`
         --> p.esp:1:19
          |
        1 | process p { in(c, ); out(c, 1, , 2); }
          |                   ^
          |
          = help: leave out the `,` if the channel carries no value

        error[E0201]: expected an expression, found `,`
         --> p.esp:1:32
          |
        1 | process p { in(c, ); out(c, 1, , 2); }
          |                                ^

    "#]],
    );
}

#[test]
fn branch_without_a_block() {
    check(
        "process p { alt { in(c); in(d) { } } }",
        expect![[r#"
        error[E0201]: expected `{`, found `;`
         --> p.esp:1:24
          |
        1 | process p { alt { in(c); in(d) { } } }
          |                        ^
          |
          = help: every branch of an `alt` has a block: write `{ }`

    "#]],
    );
}

#[test]
fn statement_in_an_alt() {
    check(
        "process p { alt { n = 1; in(c) { } } }",
        expect![[r#"
            error[E0201]: expected a branch or `}`, found `n`
             --> p.esp:1:19
              |
            1 | process p { alt { n = 1; in(c) { } } }
              |                   ^
              |
              = help: a branch begins with `in`, `out`, `after` or `until`, before them may be a guard: `when (c) in(..) { .. }`

        "#]],
    );
}

#[test]
fn branch_behind_else() {
    check(
        "process p { pri alt { else { } in(c) { } } }",
        expect![[r#"
        error[E0201]: expected `}`, found `in`
         --> p.esp:1:32
          |
        1 | process p { pri alt { else { } in(c) { } } }
          |                                ^^
          |
          = help: `else` is the last branch, and the only one of its kind

    "#]],
    );
}

#[test]
fn comma_between_arms() {
    check(
        "process p { match n { 1 => yield;, _ => { } } }",
        expect![[r#"
        error[E0201]: expected a pattern or `}`, found `,`
         --> p.esp:1:34
          |
        1 | process p { match n { 1 => yield;, _ => { } } }
          |                                  ^
          |
          = help: leave out the `,`: arms follow each other

    "#]],
    );
}

#[test]
fn id_of_another_process_as_a_pattern() {
    check(
        "process p { in(c, @q); }",
        expect![[r#"
        error[E0201]: the pattern `@` is the own id and has no name
         --> p.esp:1:20
          |
        1 | process p { in(c, @q); }
          |                    ^
          |
          = help: write `==@q` to match the id of another process

    "#]],
    );
}

#[test]
fn unknown_unit_of_time() {
    check(
        "process p { alt { after (5 min) { } after (5) { } } }",
        expect![[r#"
        error[E0201]: `min` is not a unit of time
         --> p.esp:1:28
          |
        1 | process p { alt { after (5 min) { } after (5) { } } }
          |                            ^^^
          |
          = help: write `after (250 ms)`; the units are `ns`, `us`, `ms` and `s`

        error[E0201]: expected a unit of time, found `)`
         --> p.esp:1:45
          |
        1 | process p { alt { after (5 min) { } after (5) { } } }
          |                                             ^
          |
          = help: write `after (250 ms)`; the units are `ns`, `us`, `ms` and `s`

    "#]],
    );
}

#[test]
fn channel_attribute() {
    check(
        "channel c(int) extern out;\nchannel d(int) buffered;",
        expect![[r#"
            error[E0201]: `extern` is not an attribute of a channel
             --> p.esp:1:16
              |
            1 | channel c(int) extern out;
              |                ^^^^^^
              |
              = help: write `external`

            error[E0201]: `buffered` is not an attribute of a channel
             --> p.esp:2:16
              |
            2 | channel d(int) buffered;
              |                ^^^^^^^^
              |
              = help: the attributes are `external in`, `external out`, `shared` and `policy`

        "#]],
    );
}

#[test]
fn channel_without_types() {
    check(
        "channel c;",
        expect![[r#"
        error[E0201]: expected `(` or `:`, found `;`
         --> p.esp:1:10
          |
        1 | channel c;
          |          ^
          |
          = help: a channel is written `channel c(int, u8);` or `channel c: T;`

    "#]],
    );
}

#[test]
fn external_function_with_a_body() {
    check(
        "extern fn f(a: int) -> int { return a; }",
        expect![[r#"
        error[E0201]: an `extern fn` has no body
         --> p.esp:1:28
          |
        1 | extern fn f(a: int) -> int { return a; }
          |                            ^
          |
          = help: its body is written in C; a function in ESP is a plain `fn`

    "#]],
    );
}

#[test]
fn function_without_a_result() {
    check(
        "fn f(a: int) { return a; }",
        expect![[r#"
        error[E0201]: expected `->`, found `{`
         --> p.esp:1:13
          |
        1 | fn f(a: int) { return a; }
          |             ^- unexpected
          |
          = help: every `fn` has a result, as in `fn f(a: int) -> int { .. }`

    "#]],
    );
}

#[test]
fn template_without_types() {
    check(
        "process p(n) { yield; }",
        expect![[r#"
            error[E0201]: expected `:`, found `)`
             --> p.esp:1:12
              |
            1 | process p(n) { yield; }
              |            ^
              |
              = help: a parameter is written `n: int`

        "#]],
    );
}

#[test]
fn two_repetitions() {
    check(
        "fastpath f { process p { statement a; start a; follows (a)*+; } }",
        expect![[r#"
        error[E0201]: expected a statement or `;`, found `+`
         --> p.esp:1:60
          |
        1 | fastpath f { process p { statement a; start a; follows (a)*+; } }
          |                                                            ^
          |
          = help: one repetition is enough; put parentheses around for more

    "#]],
    );
}

#[test]
fn fast_path_fields_out_of_order() {
    check(
        "fastpath f { process p { start a; statement a; } }",
        expect![[r#"
        error[E0201]: `statement` follows `start`
         --> p.esp:1:35
          |
        1 | fastpath f { process p { start a; statement a; } }
          |                                   ^^^^^^^^^
          |
          = help: the order is `statement`, `start`, `follows`, `exit`

    "#]],
    );
}

#[test]
fn fast_path_without_start() {
    check(
        "fastpath f { process p { statement a; } }",
        expect![[r#"
        error[E0201]: expected `start`, found `}`
         --> p.esp:1:39
          |
        1 | fastpath f { process p { statement a; } }
          |                                       ^
          |
          = help: `statement` and `start` are needed, `follows` and `exit` can be omitted

    "#]],
    );
}

#[test]
fn setting_behind_a_process() {
    check(
        "fastpath f { process p { statement a; start a; } bound 3; }",
        expect![[r#"
        error[E0201]: `bound` follows a process
         --> p.esp:1:50
          |
        1 | fastpath f { process p { statement a; start a; } bound 3; }
          |                                                  ^^^^^
          |
          = help: `bound`, `bypass` and `retries` precede the processes

    "#]],
    );
}

#[test]
fn model_clause() {
    check(
        "model m { proc p; slice p; }",
        expect![[r#"
        error[E0201]: expected a clause or `}`, found `proc`
         --> p.esp:1:11
          |
        1 | model m { proc p; slice p; }
          |           ^^^^
          |
          = help: the clauses are `process`, `slice`, `env`, `ltl`, `bound` and `abstract`

    "#]],
    );
}

#[test]
fn switch() {
    check(
        "process p { switch (n) { } do { yield; } }",
        expect![[r#"
            error[E0201]: there is no statement `switch`
             --> p.esp:1:24
              |
            1 | process p { switch (n) { } do { yield; } }
              |                        ^
              |
              = help: use `match` for values, `alt` for channels

            error[E0201]: expected an assignment or a call, found `{`
             --> p.esp:1:31
              |
            1 | process p { switch (n) { } do { yield; } }
              |                               ^
              |
              = help: a loop that tests at its end is `while { ..; if (!(c)) break; }`

        "#]],
    );
}

#[test]
fn nothing_but_noise() {
    check(
        ") ] ; 3 + 4",
        expect![[r#"
        error[E0201]: expected an item, found `)`
         --> p.esp:1:1
          |
        1 | ) ] ; 3 + 4
          | ^
          |
          = help: an item begins with `process`, `channel`, `type`, `const`, `fn`, `extern`, `import`, ..

        error[E0201]: expected an item, found `3`
         --> p.esp:1:7
          |
        1 | ) ] ; 3 + 4
          |       ^
          |
          = help: an item begins with `process`, `channel`, `type`, `const`, `fn`, `extern`, `import`, ..

    "#]],
    );
}

#[test]
fn item_that_does_not_belong_into_a_fast_path_file() {
    let text = "import \"a.esp\";\nprocess p { }\nfastpath f { process p { statement a; start a; } }";
    let mut sources = SourceMap::default();
    let file = sources.add(SourceFile::new("p.fp", text));
    expect![[r#"
        error[E0201]: a `.fp` file holds only `fastpath` items and imports
         --> p.fp:2:1
          |
        2 | process p { }
          | ^^^^^^^
          |
          = help: move this item to an `.esp` file

    "#]]
    .assert_eq(&human(&sources, parse_fast_paths(file, text).diagnostics(), Color::Never));
}

#[test]
fn json_has_one_object_per_line() {
    let text = "const ä = 010;\nprocess p { var n = 0; if (n) #1 }";
    let mut sources = SourceMap::default();
    let file = sources.add(SourceFile::new("p.esp", text));
    expect![[r#"
        {"code":"E0101","column":7,"end":{"column":8,"line":1},"file":"p.esp","help":"names consist of the letters `a` to `z`, `A` to `Z`, digits and `_`","labels":[],"line":1,"message":"`ä` cannot be part of a name","severity":"error"}
        {"code":"E0102","column":11,"end":{"column":14,"line":1},"file":"p.esp","help":"write `10`, or `0o10` for an octal number","labels":[],"line":1,"message":"number `010` starts with 0","severity":"error"}
        {"code":"E0203","column":31,"end":{"column":33,"line":2},"file":"p.esp","help":"write `{ #1 }`","labels":[],"line":2,"message":"a label needs a block here","severity":"error"}
    "#]].assert_eq(&json(&sources, parse(file, text).diagnostics()));
}

#[test]
fn a_very_long_line_is_shown_in_part() {
    let text = format!("const a = {}010{};", "1 + ".repeat(100), " + 1".repeat(1_000));
    let mut sources = SourceMap::default();
    let file = sources.add(SourceFile::new("p.esp", &text));
    let diagnostics: Vec<Diagnostic> = parse(file, &text).into_diagnostics().into_iter().take(1).collect();
    expect![[r#"
        error[E0102]: number `010` starts with 0
         --> p.esp:1:411
          |
         ::: 
        1 | 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 010 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 +...
          |                                                             ^^^
          |
          = help: write `10`, or `0o10` for an octal number

    "#]].assert_eq(&human(&sources, &diagnostics, Color::Never));
}

/// Syntax of other languages, and the help for each.
#[test]
fn words_of_other_languages() {
    for (text, help) in [
        ("type t = struct { a: int };", "a structure is a `record`"),
        ("type t = enum { a: int, b };", "a choice with values is a `union`"),
        ("channel c(string);", "text is `bytes[<=N]`"),
        ("process p { var x: float = 1; }", "there are no floating-point numbers"),
        ("process p { var a: int[4]; }", "an array's type is `array[N] of T`"),
        ("const N = 3, M = 4;", "end this one with `;` and begin another"),
        ("process p { if (1 == 1 and 2 == 2) yield; }", "write `&&`"),
        ("process p { goto l; }", "there is no `goto`"),
        ("process p { var x = 2 ** 3; }", "there is no `**`"),
        ("process p { for i in 0..=3 { } }", "a range ends before its second number"),
        ("#define N 3", "a constant is `const N = 3;`"),
        ("#include <x.h>", "other files are read with `import"),
        ("process p { var x = null; }", "there is no null"),
        ("process p { print(3); }", "send it to the environment"),
        ("process p { sleep(10); }", "wait with `alt { after (10 ms) { } }`"),
        ("channel c: union { a, b }; process p { out(c, a); } process q { in(c, _); }", "is written `a |> {}`"),
        ("process p { match (3) { default => { } } }", "`_` takes the rest"),
    ] {
        let mut sources = SourceMap::default();
        let root = sources.add(SourceFile::new("p.esp", text));
        let diagnostics = analyze(&mut sources, root, &mut NoFiles).diagnostics;
        let said = human(&sources, &diagnostics, Color::Never);
        assert!(said.contains(help), "{text}\n{said}");
    }
    // The same words as declared names.
    for (text, help) in [
        ("process p { var x = 1 var size = 2; }", "write `;` here"),
        ("process p { var x = 1, size = 2; x = 2 size = 3; }", "write `;` here"),
        ("channel echoC(int); process p { out(echo, 1); }", "no channel named `echo`"),
    ] {
        let mut sources = SourceMap::default();
        let root = sources.add(SourceFile::new("p.esp", text));
        let diagnostics = analyze(&mut sources, root, &mut NoFiles).diagnostics;
        let said = human(&sources, &diagnostics, Color::Never);
        assert!(
            said.contains(help) && !said.contains("the length of") && !said.contains("to the environment"),
            "{text}\n{said}"
        );
    }
}

/// Carets stay below their text in a terminal that is narrower than the line.
#[test]
fn lines_are_cut_to_the_terminal() {
    let text = format!("process p {{ var a = {}b{}; }}", "1 + ".repeat(30), " + 1".repeat(30));
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("p.esp", &text));
    let diagnostics = analyze(&mut sources, root, &mut NoFiles).diagnostics;
    let wide = human(&sources, &diagnostics, Color::Never);
    assert!(wide.lines().any(|line| line.len() > 60), "{wide}");
    for columns in [40, 60, 80] {
        let narrow = human_within(&sources, &diagnostics, Color::Never, columns);
        let mut lines = narrow.lines().skip_while(|line| !line.starts_with("1 |"));
        let (source, carets) = (lines.next().expect("the line is shown"), lines.next().expect("with its carets"));
        assert!(source.chars().count() <= columns && carets.chars().count() <= columns, "{columns}:\n{narrow}");
        let caret = carets.find('^').expect("the place has a caret");
        assert_eq!(&source[caret..caret + 1], "b", "{narrow}");
    }
}
