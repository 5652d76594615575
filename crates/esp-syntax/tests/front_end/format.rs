//! `qj fmt`: its output; it changes only white space, and it is idempotent.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use quaject_esp_syntax::format::format;
use quaject_esp_syntax::lexer::tokenize;
use quaject_esp_syntax::parser::parse;
use quaject_esp_syntax::span::FileId;

/// Tokens and comments, without the white space.
fn words(text: &str) -> Vec<&str> {
    let (tokens, _) = tokenize(FileId(0), text);
    let ends = tokens.iter().skip(1).map(|token| token.start as usize);
    tokens
        .iter()
        .zip(ends)
        .map(|(token, end)| {
            text[token.start as usize..end].trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
        })
        .filter(|w| !w.is_empty())
        .collect()
}

/// Formats a text without syntax errors, and checks what must hold of any.
fn formatted(text: &str) -> Option<String> {
    let once = format(&parse(FileId(0), text)).ok()?;
    assert_eq!(words(text), words(&once), "tokens and comments stay\n{text}\n---\n{once}");
    let twice = format(&parse(FileId(0), &once)).expect("formatting leaves no syntax errors");
    assert_eq!(once, twice, "a second time changes nothing");
    for line in once.lines().filter(|_| !once.contains("/*")) {
        assert_eq!(line, line.trim_end(), "no line ends with blanks");
    }
    Some(once)
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&formatted(text).expect("the program has no syntax errors"));
}

#[test]
fn one_line_blocks_stay() {
    check(
        "process p{while{in(c,$x){out(d,x);}}}",
        expect![[r#"
        process p { while { in(c, $x) { out(d, x); } } }
    "#]],
    );
}

#[test]
fn open_blocks_stay() {
    check(
        "process p {\n while { yield; \n}}",
        expect![[r#"
        process p {
          while {
            yield;
          }
        }
    "#]],
    );
}

#[test]
fn spaces_around_operators() {
    check(
        "const a=1+-2*( 3-~4)<<1|x?y:z;const b = t|>{ x : 1,y:'a'};const c = #[ 0 ; 64 ][ 1 .. 2 ] . len;",
        expect![[r#"
            const a = 1 + -2 * (3 - ~4) << 1 | x ? y : z;
            const b = t |> { x: 1, y: 'a' };
            const c = #[0; 64][1..2].len;
        "#]],
    );
}

/// `decline` and `settle` are words only where a number of a fast path is expected.
#[test]
fn earlier_words_of_fast_paths_are_replaced() {
    let text = "process settle{var decline=1;}fastpath f{decline 3;settle 1;process settle{statement c;start c;}}";
    let expected = "process settle { var decline = 1; }\n\
                    fastpath f { bypass 3; retries 1; process settle { statement c; start c; } }\n";
    assert_eq!(format(&parse(FileId(0), text)), Ok(expected.to_string()));
    assert_eq!(format(&parse(FileId(0), expected)), Ok(expected.to_string()));
}

#[test]
fn items() {
    check(
        "import\"a.esp\";type t=record of{a:int,b:bytes[<=4]};\n\n\n\nchannel c(int,from:pid(p,q))external out=\"text:-\";channel d:t shared policy sender;memory manual;pool t 4;\nexternal interface i(out c){A($x,_),B(==1,@)}\nextern pure fn f(#bytes[<=4],n:int)->u8;fn g(a:int)->int{return a;}\nlayout l{a:4,b:12,c:16 le}",
        expect![[r#"
            import "a.esp";
            type t = record of { a: int, b: bytes[<=4] };

            channel c(int, from: pid(p, q)) external out = "text:-";
            channel d: t shared policy sender;
            memory manual;
            pool t 4;
            external interface i(out c) { A($x, _), B(==1, @) }
            extern pure fn f(#bytes[<=4], n: int) -> u8;
            fn g(a: int) -> int { return a; }
            layout l { a: 4, b: 12, c: 16 le }
        "#]],
    );
}

#[test]
fn comments() {
    check(
        "// first\n\n// second\nprocess p { // behind\n\n  // before\n\n  yield; // one\n  /* two */ yield; /* three */\n\n\n  // last\n\n} // end\n// the end",
        expect![[r#"
            // first

            // second
            process p { // behind

              // before

              yield; // one
              /* two */
              yield; /* three */

              // last
            } // end
            // the end
        "#]],
    );
}

#[test]
fn if_and_else() {
    check(
        "process p {\nif(a)x=1;else if(b){x=2;}else x=3;\nif (a)\nx=1;\nelse\nx=2;\nif (a) while (b) {\nyield; }\n}",
        expect![[r#"
            process p {
              if (a) x = 1; else if (b) { x = 2; } else x = 3;
              if (a)
                x = 1;
              else
                x = 2;
              if (a) while (b) {
                yield;
              }
            }
        "#]],
    );
}

#[test]
fn alternatives() {
    check(
        "process p { while {\nalt { when(n>0)in(c,$x if x>1){n=1;} after(5 ms){} }\npri alt { in(c) { } else { n = 0; } }\nidle in(c,_);\n}\n}",
        expect![[r#"
            process p {
              while {
                alt { when (n > 0) in(c, $x if x > 1) { n = 1; } after (5 ms) { } }
                pri alt { in(c) { } else { n = 0; } }
                idle in(c, _);
              }
            }
        "#]],
    );
}

#[test]
fn match_arms() {
    check(
        "process p { match m {\nsend|>{$d,_}if d>0=>a=d;\nsend|>_=>{}\neos|>{}=>break;\n}\n}",
        expect![[r#"
            process p {
              match m {
                send |> { $d, _ } if d > 0 => a = d;
                send |> _ => { }
                eos |> {} => break;
              }
            }
        "#]],
    );
}

#[test]
fn long_lists_open() {
    check(
        "process p {\nout(someChannel, theFirstOperandIsLong, theSecondOperandIsLong, theThirdOperandIsLong, theFourth, 5);\nvar a: array[4] of int = [\n1,2, 3 // three\n,4];\n}\ntype userT = union {\n send: sendT, fetch: fetchT };",
        expect![[r#"
            process p {
              out(
                someChannel,
                theFirstOperandIsLong,
                theSecondOperandIsLong,
                theThirdOperandIsLong,
                theFourth,
                5
              );
              var a: array[4] of int = [
                1, 2, 3 // three
                , 4
              ];
            }
            type userT = union {
              send: sendT,
              fetch: fetchT
            };
        "#]],
    );
}

#[test]
fn arrays_of_short_elements_fill_their_lines() {
    let numbers: Vec<String> = (0..40).map(|number| (number * 37 - 300).to_string()).collect();
    let table = numbers.join(",");
    check(
        &format!(
            "const a = [{table}];\nconst b = [\n1, // one\n2, 3, /* four */ 4,\n\n5,\n6 // six\n];\nconst c = [1, 2];\nprocess p {{ var v = #[{table}]; }}"
        ),
        expect![[r#"
            const a = [
              -300, -263, -226, -189, -152, -115, -78, -41, -4, 33, 70, 107, 144, 181, 218, 255, 292, 329, 366,
              403, 440, 477, 514, 551, 588, 625, 662, 699, 736, 773, 810, 847, 884, 921, 958, 995, 1032, 1069,
              1106, 1143
            ];
            const b = [
              1, // one
              2, 3, /* four */ 4, 5, 6 // six
            ];
            const c = [1, 2];
            process p {
              var v = #[
                -300, -263, -226, -189, -152, -115, -78, -41, -4, 33, 70, 107, 144, 181, 218, 255, 292, 329,
                366, 403, 440, 477, 514, 551, 588, 625, 662, 699, 736, 773, 810, 847, 884, 921, 958, 995, 1032,
                1069, 1106, 1143
              ];
            }
        "#]],
    );
}

#[test]
fn long_expressions_are_broken_at_operators() {
    check(
        "const a = aVeryLongNameOfAConstant + anotherVeryLongNameOfAConstant * aThirdVeryLongNameOfAConstant - theLastOne;",
        expect![[r#"
            const a = aVeryLongNameOfAConstant + anotherVeryLongNameOfAConstant *
              aThirdVeryLongNameOfAConstant - theLastOne;
        "#]],
    );
}

#[test]
fn long_blocks_open() {
    check(
        "process p { while { in(someChannel, $aVariable); out(anotherChannel, aVariable + 1); in(someChannel, $another); } }",
        expect![[r#"
            process p {
              while {
                in(someChannel, $aVariable);
                out(anotherChannel, aVariable + 1);
                in(someChannel, $another);
              }
            }
        "#]],
    );
}

#[test]
fn labels() {
    check(
        "process p { while { #1 in(c, $x); #two\nout(d, x); } #3 }",
        expect![[r#"
        process p {
          while {
            #1
            in(c, $x);
            #two
            out(d, x);
          }
          #3
        }
    "#]],
    );
}

#[test]
fn windows_line_ends() {
    check(
        "\u{feff}// a\r\nconst a = 1; // b\r\n\r\n\r\nconst b = 2;\r\n",
        expect![[r#"
        // a
        const a = 1; // b

        const b = 2;
    "#]],
    );
}

#[test]
fn fast_paths() {
    check(
        "fastpath demo{bound 3;process p[1]{statement a as H0,b/in@2,#1;start H0?(size<3)<=>T1;follows H1(H2 H3)*|(H4?(x==1)yield q[1])?H5{1,2};exit #1,b;}\nprocess q { statement a,\n b,\n c; start a; } }",
        expect![[r#"
            fastpath demo {
              bound 3;
              process p[1] {
                statement a as H0, b/in@2, #1;
                start H0 ? (size < 3) <=> T1;
                follows H1 (H2 H3)* | (H4 ? (x == 1) yield q[1])? H5{1, 2};
                exit #1, b;
              }
              process q {
                statement a,
                  b,
                  c;
                start a;
              }
            }
        "#]],
    );
}

#[test]
fn models() {
    check(
        "model m{slice a,b;bound c 3;abstract range f 0..2;abstract forget c.1;env host{out(c,0);}ltl\"[] <> (p@L1)\";}",
        expect![[r#"
            model m {
              slice a, b;
              bound c 3;
              abstract range f 0..2;
              abstract forget c.1;
              env host { out(c, 0); }
              ltl "[] <> (p@L1)";
            }
        "#]],
    );
}

#[test]
fn slices() {
    check(
        "process p { p[0..4]=q[ ..2]; x.be16 [ 2 ] += @q[1] == @ ? 1 : u8 ( 3 ) ; }",
        expect![[r#"
        process p { p[0..4] = q[..2]; x.be16[2] += @q[1] == @ ? 1 : u8(3); }
    "#]],
    );
}

#[test]
fn empty_things() {
    check(
        "process p{}\nprocess q{//c\n}\nprocess r{in(c){}f();alt{}}",
        expect![[r#"
            process p { }
            process q { //c
            }
            process r { in(c) { } f(); alt { } }
        "#]],
    );
}

#[test]
fn figure_2() {
    check(
        include_str!("../data/figure2.esp"),
        expect![[r#"
            channel hostSendRequestC(int, int) external out;
            channel hostFetchRequestC(int) external out;
            channel translateRequestC(int, int);
            channel translateReplyC(int, int);
            channel dataSendC(int, int);
            channel networkSendC(int) external in;

            process hostRequest {
              var virtualAddress, physicalAddress, size, source;
              while (true) {
                alt {
                  in(hostSendRequestC, virtualAddress, size) {
                    out(translateRequestC, virtualAddress, size);
                    while (true) {
                      in(translateReplyC, physicalAddress, size);
                      if (size == 0) break;
                      out(dataSendC, physicalAddress, size);
                    } // while
                    #1
                  } // in
                  in(hostFetchRequestC, source) {
                    // Code omitted
                  } // in
                } // alt
              } // while
            }

            process translateAddress {
              constant pageSize = 4096;
              var virtualAddress, physicalAddress, size;
              while (true) {
                in(translateRequestC, virtualAddress, size);
                assert(virtualAddress % pageSize == 0);
                assert(size % pageSize == 0);
                while (size > 0) {
                  if (translationUnavailable(virtualAddress)) {
                    #2
                    // Code to fetch the translation entry
                  } // if
                  physicalAddress = translate(virtualAddress);
                  out(translateReplyC, physicalAddress, pageSize);
                  size = size - pageSize;
                } // while
                out(translateReplyC, 0, 0); // Done
              } // while
            }

            process networkSend {
              var physicalAddress, size, packet;
              while (true) {
                in(dataSendC, physicalAddress, size);
                packet = preparePacket(physicalAddress, size);
                out(networkSendC, packet);
                #3
              } // while
            }
        "#]],
    );
}

#[test]
fn figure_5() {
    check(
        include_str!("../data/figure5.fp"),
        expect![[r#"
        fastpath demo {
          process hostRequest {
            statement hostSendRequestC as H0,
              translateRequestC as H1,
              translateReplyC as H2,
              dataSendC as H3,
              #1;
            start H0 ? (size < 10000);
            follows H1 (H2 H3)*;
            exit #1;
          }
          process translateAddress {
            statement translateRequestC as T1, #2;
            start T1 <=> H1;
            exit T1;
          }
          process networkSend {
            statement dataSendC, #3;
            start dataSendC;
            exit #3;
          }
        }
    "#]],
    );
}

#[test]
fn text_with_syntax_errors_is_refused() {
    let complaints = format(&parse(FileId(0), "process p { x = ; }")).expect_err("there is a syntax error");
    assert_eq!(complaints.len(), 1);
}

/// A program's tokens with other white space and comments between them.
fn relaid(text: &str, choices: &[u8]) -> String {
    const BETWEEN: [&str; 8] = [" ", "\n", "\n\n\n", " // c\n", " /* c */ ", "\n// d\n\n", "\n\n/* e\nf */\n", "  "];
    let mut choices = choices.iter().cycle();
    let mut laid = String::new();
    let (tokens, _) = tokenize(FileId(0), text);
    for pair in tokens.windows(2).filter(|pair| !pair[0].kind.is_trivia()) {
        laid.push_str(&text[pair[0].start as usize..pair[1].start as usize]);
        // Mostly blanks, so that long lines occur.
        let choice = usize::from(*choices.next().expect("a cycle does not end"));
        laid.push_str(if choice < 200 { " " } else { BETWEEN[choice % BETWEEN.len()] });
    }
    laid
}

fn assert_layout_alone_changes(text: &str) {
    let laid = formatted(text).unwrap_or_else(|| panic!("a syntax error in\n{text}"));
    let meaning = |text| crate::support::meaning(&parse(FileId(0), text).ast());
    assert_eq!(meaning(text), meaning(&laid), "the meaning stays\n{text}\n---\n{laid}");
}

#[test]
fn examples() {
    let mut directories = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"))];
    let mut programs = 0;
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("the repository holds examples") {
            let path = entry.expect("the directory can be read").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "esp" || extension == "fp") {
                assert_layout_alone_changes(&std::fs::read_to_string(&path).expect("an example can be read"));
                programs += 1;
            }
        }
    }
    assert!(programs > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn random_programs(seed in any::<u64>(), choices in prop::collection::vec(any::<u8>(), 50..200)) {
        let program = crate::support::program(seed, 60);
        let complaints = parse(FileId(0), &program).into_diagnostics();
        prop_assert!(complaints.is_empty(), "{complaints:?}\n{program}");
        assert_layout_alone_changes(&program);
        assert_layout_alone_changes(&relaid(&program, &choices));
    }

    #[test]
    fn programs_with_other_white_space(which in 0..crate::support::PROGRAMS.len(), choices in prop::collection::vec(any::<u8>(), 50..400)) {
        assert_layout_alone_changes(&relaid(crate::support::PROGRAMS[which], &choices));
    }
}

#[test]
fn elaborated_items() {
    check(
        "proc f( x:int,r : #array [2] of u8 , in c:T,out d( int,u8 ) )->bool{return x>0;}
proc g(){return;}
process w( in c (int ),n:int){}
process a = w(c,3);process b [ 4 ]=w( d , N+1 );
if DEBUG{channel t(int) external in;process p{}} else if(N==2){const A=1;}else{
const A = 2;

process q [0]{ } }
process long_name = a_template(first_channel_of_all, second_channel_of_all, third_channel_of_all, 4);
",
        expect![[r#"
            proc f(x: int, r: #array[2] of u8, in c: T, out d(int, u8)) -> bool { return x > 0; }
            proc g() { return; }
            process w(in c(int), n: int) { }
            process a = w(c, 3);
            process b[4] = w(d, N + 1);
            if DEBUG { channel t(int) external in; process p { } } else if (N == 2) { const A = 1; } else {
              const A = 2;

              process q[0] { }
            }
            process long_name = a_template(
              first_channel_of_all,
              second_channel_of_all,
              third_channel_of_all,
              4
            );
        "#]],
    );
}
