//! Random programs. Some are generated from the grammar alone (reference, section 2): their names and types are
//! inconsistent. Others are made from programs by damaging them.

use quaject_esp_syntax::ast::File;
use quaject_esp_syntax::check::Loader;
use quaject_esp_syntax::diagnostics::Code;
use quaject_esp_syntax::lexer::tokenize;
use quaject_esp_syntax::span::FileId;
use quaject_esp_syntax::tree::SyntaxKind;
use quaject_test_support::Random;

/// No file can be imported.
pub(crate) struct NoFiles;

impl Loader for NoFiles {
    fn load(&mut self, _: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        Err("no such file".to_string())
    }
}

/// The program in the explanation of a code that has this mark.
pub(crate) fn explained(code: Code, mark: &str) -> &'static str {
    let text = code.explanation();
    let (_, rest) =
        text.split_once(&format!("```{mark}\n")).unwrap_or_else(|| panic!("{} has a `{mark}`", code.name()));
    rest.split_once("```").expect("a code block is closed").0
}

/// The abstract syntax, without locations.
pub(crate) fn meaning(file: &File) -> String {
    let debug = format!("{file:?}");
    let mut pieces = debug.split("Span { ");
    let mut meaning = pieces.next().expect("there is always a first piece").to_string();
    // A location is `Span { file: FileId(0), start: 1, end: 2 }`.
    meaning.extend(pieces.filter_map(|piece| piece.split_once('}')).map(|(_, rest)| rest));
    meaning
}

/// Programs to damage.
pub(crate) const PROGRAMS: [&str; 5] = [
    include_str!("../data/figure2.esp"),
    include_str!("../data/figure5.fp"),
    include_str!("../data/page_table.esp"),
    include_str!("../data/bounded_buffer.esp"),
    include_str!("../data/stop_and_wait.esp"),
];

/// Valid tokens and fragments.
pub(crate) const PIECES: [&str; 96] = [
    "process",
    "p",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "in",
    "out",
    "alt",
    "pri",
    "idle",
    ";",
    ",",
    ":",
    "=",
    "==",
    "=>",
    "|>",
    "#",
    "#1",
    "$x",
    "$",
    "@",
    "?",
    "..",
    ".",
    "1",
    "010",
    "'a'",
    "\"s\"",
    "if",
    "else",
    "while",
    "for",
    "match",
    "when",
    "after",
    "ms",
    "var",
    "const",
    "channel",
    "type",
    "record",
    "union",
    "array",
    "of",
    "bytes",
    "<=",
    "fn",
    "->",
    "extern",
    "pure",
    "fastpath",
    "statement",
    "start",
    "follows",
    "exit",
    "yield",
    "<=>",
    "*",
    "+",
    "-",
    "|",
    "model",
    "env",
    "ltl",
    "abstract",
    "range",
    "layout",
    "le",
    "pool",
    "memory",
    "auto",
    "import",
    "external",
    "interface",
    "policy",
    "shared",
    "_",
    "true",
    "return",
    "break",
    "// c\n",
    "/* c */",
    "\n",
    "\\",
    "\"",
    "'",
    "é",
    "\u{0}",
    "<<=",
    "1e5",
    "18446744073709551615",
    "-",
];

/// Damaged program number `number`.
pub(crate) fn mutation(number: u64) -> String {
    let mut writer =
        Writer { random: Random((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1), text: String::new(), budget: 0 };
    for _ in 0..4 {
        writer.below(2);
    }
    let mut text = match writer.below(10) {
        0 => String::new(),
        1..=3 => {
            let code = Code::ALL[writer.below(Code::ALL.len())];
            let mark = ["esp", "esp fails"][writer.below(2)];
            explained(code, mark).to_string()
        }
        4..=6 => PROGRAMS[writer.below(PROGRAMS.len())].to_string(),
        _ => {
            let size = writer.below(120) as u32;
            program(number, size)
        }
    };
    // Half of them stay close to the grammar, so that later stages are tested, too.
    let close = writer.below(2) == 0;
    for _ in 0..writer.below(8) {
        if close {
            writer.exchange(&mut text);
        } else {
            writer.damage(&mut text);
        }
    }
    text
}

fn boundary(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

impl Writer {
    fn place_in(&mut self, text: &str) -> usize {
        let index = self.below(text.len() + 1);
        boundary(text, index)
    }

    /// Replaces a token by another of the same kind, or repeats a line.
    fn exchange(&mut self, text: &mut String) {
        const TOKENS: [&str; 16] = [
            "0",
            "1",
            "4294967296",
            "18446744073709551615",
            "'a'",
            "x",
            "int",
            "u8",
            "i64",
            "bool",
            "true",
            "==",
            "+",
            "<<",
            "%",
            "-",
        ];
        let (tokens, _) = tokenize(FileId(0), text);
        let exchanged = |kind: SyntaxKind| !kind.is_trivia() && kind != SyntaxKind::EndOfFile;
        let places: Vec<usize> = (0..tokens.len()).filter(|index| exchanged(tokens[*index].kind)).collect();
        if places.is_empty() {
            return;
        }
        let range = |index: usize| tokens[index].start as usize..tokens[index + 1].start as usize;
        let place = places[self.below(places.len())];
        let alike: Vec<usize> =
            places.iter().copied().filter(|other| tokens[*other].kind == tokens[place].kind).collect();
        match self.below(8) {
            0 => {
                let replacement = TOKENS[self.below(TOKENS.len())];
                text.replace_range(range(place), replacement);
            }
            1 => {
                let lines: Vec<&str> = text.lines().collect();
                let line = lines[self.below(lines.len())].to_string();
                let at = self.place_in(text);
                let at = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
                text.insert_str(at, &(line + "\n"));
            }
            _ => {
                let replacement = text[range(alike[self.below(alike.len())])].to_string();
                text.replace_range(range(place), &replacement);
            }
        }
    }

    fn damage(&mut self, text: &mut String) {
        let at = self.place_in(text);
        let length = self.below(40);
        let end = boundary(text, (at + length).min(text.len())).max(at);
        match self.below(10) {
            0 => text.replace_range(at..end, ""),
            1 => {
                let copy = text[at..end].to_string();
                let to = self.place_in(text);
                text.insert_str(to, &copy);
            }
            2..=5 => {
                for _ in 0..=self.below(4) {
                    text.insert_str(at, PIECES[self.below(PIECES.len())]);
                    if self.below(2) == 0 {
                        text.insert(at, ' ');
                    }
                }
            }
            6 => {
                let character = char::from_u32(self.below(0x11_0000) as u32).unwrap_or('\u{fffd}');
                text.insert(at, character);
            }
            7 => {
                let byte = self.below(128) as u8;
                text.insert(at, char::from(byte));
            }
            8 => text.truncate(at),
            _ => {
                let piece = text[at..end].to_string();
                let times = self.below(400);
                text.insert_str(at, &piece.repeat(times));
            }
        }
    }
}

/// A random program of about `size` pieces.
pub(crate) fn program(seed: u64, size: u32) -> String {
    let mut writer = Writer { random: Random(seed | 1), text: String::new(), budget: size };
    while writer.budget > 0 {
        writer.item();
    }
    writer.text
}

struct Writer {
    random: Random,
    text: String,
    /// How many more pieces are wanted; at 0 everything takes its shortest form.
    budget: u32,
}

const NAMES: [&str; 12] =
    ["a", "b", "size", "of", "idle", "pool", "start", "follows", "as", "ms", "aRatherLongNameOfSomething", "x1"];

impl Writer {
    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.random.index(bound)
    }

    /// As `below`, but 0 when no more pieces are wanted.
    fn choose(&mut self, bound: usize) -> usize {
        if self.budget == 0 {
            return 0;
        }
        self.budget -= 1;
        self.below(bound)
    }

    fn write(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push(' ');
    }

    fn name(&mut self) {
        let index = self.below(NAMES.len());
        self.write(NAMES[index]);
    }

    fn maybe(&mut self, rule: impl FnOnce(&mut Self)) {
        if self.choose(2) == 1 {
            rule(self);
        }
    }

    fn list(&mut self, mut rule: impl FnMut(&mut Self)) {
        rule(self);
        while self.choose(3) > 0 {
            self.write(",");
            rule(self);
        }
        self.maybe(|w| w.write(","));
    }

    fn many(&mut self, mut rule: impl FnMut(&mut Self)) {
        while self.choose(4) > 0 {
            rule(self);
        }
    }

    fn item(&mut self) {
        self.budget = self.budget.saturating_sub(1);
        match self.below(14) {
            0 => self.write("import \"a.esp\" ;"),
            1 => {
                self.write("type");
                self.name();
                self.write("=");
                self.ty();
                self.write(";");
            }
            2 => self.constant(),
            3 => self.channel(),
            4 => {
                self.write("external interface");
                self.name();
                let direction = if self.below(2) == 0 { "( in" } else { "( out" };
                self.write(direction);
                self.name();
                self.write(") {");
                self.list(|w| {
                    w.name();
                    w.write("(");
                    w.maybe(|w| w.list(Writer::pattern));
                    w.write(")");
                });
                self.write("}");
            }
            5 => {
                self.write("extern");
                self.maybe(|w| w.write("pure"));
                self.write("fn");
                self.name();
                self.write("(");
                self.maybe(|w| {
                    w.list(|w| {
                        w.maybe(|w| {
                            w.name();
                            w.write(":");
                        });
                        w.value_type();
                    });
                });
                self.write(")");
                self.maybe(|w| {
                    w.write("->");
                    w.ty();
                });
                self.write(";");
            }
            6 => {
                self.write("fn");
                self.name();
                self.write("(");
                self.maybe(|w| {
                    w.list(|w| {
                        w.name();
                        w.write(":");
                        w.ty();
                    });
                });
                self.write(") ->");
                self.ty();
                self.block();
            }
            7 => {
                self.write("layout");
                self.name();
                self.write("{");
                self.list(|w| {
                    w.name();
                    w.write(": 16");
                    w.maybe(|w| w.write("le"));
                });
                self.write("}");
            }
            8 => self.fast_path(),
            9 => self.model(),
            10 => {
                self.write("pool");
                self.name();
                self.expression();
                self.write("; memory auto ; memory manual ;");
            }
            _ => {
                self.write("process");
                self.process_rest();
            }
        }
    }

    fn process_rest(&mut self) {
        self.name();
        self.maybe(|w| {
            w.write("[");
            w.expression();
            w.write("]");
        });
        self.block();
    }

    fn constant(&mut self) {
        let word = if self.below(2) == 0 { "const" } else { "constant" };
        self.write(word);
        self.name();
        self.maybe(|w| {
            w.write(":");
            w.ty();
        });
        self.write("=");
        self.expression();
        self.write(";");
    }

    fn channel(&mut self) {
        self.write("channel");
        self.name();
        if self.choose(2) == 0 {
            self.write("(");
            self.maybe(|w| w.list(Writer::ty));
            self.write(")");
        } else {
            self.write(":");
            self.ty();
        }
        self.many(|w| {
            let attributes =
                ["external in", "external out", "shared", "policy sender", "policy receiver", "policy queue"];
            let index = w.below(attributes.len());
            w.write(attributes[index]);
        });
        self.maybe(|w| w.write("= \"text:-\""));
        self.write(";");
    }

    fn ty(&mut self) {
        match self.choose(8) {
            0 => self.write("int"),
            1 => self.write("bool"),
            2 => self.name(),
            3 => {
                self.write("bytes [ <=");
                self.expression();
                self.write("]");
            }
            4 => {
                self.write("pid (");
                self.list(Writer::name);
                self.write(")");
            }
            5 => {
                self.write("array");
                self.maybe(|w| {
                    w.write("[");
                    w.expression();
                    w.write("]");
                });
                self.write("of");
                self.ty();
            }
            6 => {
                self.write("record");
                self.maybe(|w| w.write("of"));
                self.write("{");
                self.list(|w| {
                    w.name();
                    w.write(":");
                    w.ty();
                });
                self.write("}");
            }
            _ => {
                self.write("union {");
                self.list(|w| {
                    w.name();
                    w.maybe(|w| {
                        w.write(":");
                        w.ty();
                    });
                });
                self.write("}");
            }
        }
    }

    fn value_type(&mut self) {
        self.maybe(|w| w.write("#"));
        self.ty();
    }

    fn block(&mut self) {
        self.write("{");
        self.many(|w| match w.choose(8) {
            0 => w.write("# 1"),
            1 => w.write("#retry"),
            2 => w.constant(),
            3 => {
                w.write("var");
                let mut first = true;
                while std::mem::take(&mut first) || w.choose(3) > 0 {
                    if !w.text.ends_with("var ") {
                        w.write(",");
                    }
                    w.name();
                    w.maybe(|w| {
                        w.write(":");
                        w.value_type();
                    });
                    w.maybe(|w| {
                        w.write("=");
                        w.expression();
                    });
                }
                w.write(";");
            }
            _ => w.statement(),
        });
        self.write("}");
    }

    fn statement(&mut self) {
        match self.choose(16) {
            0 => self.write("yield ;"),
            1 => self.block(),
            2 => {
                self.write("if (");
                self.expression();
                self.write(")");
                self.statement();
                self.maybe(|w| {
                    w.write("else");
                    w.statement();
                });
            }
            3 => {
                self.write("while");
                if self.choose(2) == 0 {
                    self.block();
                } else {
                    self.write("(");
                    self.expression();
                    self.write(")");
                    self.statement();
                }
            }
            4 => {
                self.write("for");
                self.name();
                self.write("in");
                self.expression();
                self.write("..");
                self.expression();
                self.block();
            }
            5 => {
                self.write("match");
                self.expression();
                self.write("{");
                self.many(|w| {
                    w.pattern();
                    w.write("=>");
                    w.statement();
                });
                self.write("}");
            }
            6 => self.write("break ;"),
            7 => self.write("continue ;"),
            8 => {
                let words = ["return (", "exit (", "assert ("];
                let index = self.below(words.len());
                self.write(words[index]);
                self.expression();
                self.write(") ;");
            }
            9 => {
                self.name();
                self.arguments();
                self.write(";");
            }
            10 | 11 => {
                self.place();
                let operators = ["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="];
                let index = self.below(operators.len());
                self.write(operators[index]);
                self.expression();
                self.write(";");
            }
            12 | 13 => {
                self.maybe(|w| w.write("idle"));
                self.operation();
                if self.choose(2) == 0 {
                    self.write(";");
                } else {
                    self.block();
                }
            }
            _ => {
                self.maybe(|w| w.write("idle"));
                self.maybe(|w| w.write("pri"));
                self.write("alt {");
                self.many(|w| {
                    w.maybe(|w| {
                        w.write("when (");
                        w.expression();
                        w.write(")");
                    });
                    if w.choose(4) == 1 {
                        w.write("after (");
                        w.expression();
                        w.write("ms )");
                    } else {
                        w.operation();
                    }
                    w.block();
                });
                self.maybe(|w| {
                    w.write("else");
                    w.block();
                });
                self.write("}");
            }
        }
    }

    fn operation(&mut self) {
        let receives = self.below(2) == 0;
        self.write(if receives { "in (" } else { "out (" });
        self.name();
        self.maybe(|w| {
            w.write(",");
            // The grammar has no comma after the last operand.
            if receives { w.pattern() } else { w.expression() }
        });
        self.write(")");
    }

    fn place(&mut self) {
        self.name();
        self.many(|w| {
            if w.choose(2) == 0 {
                w.write(".");
                w.name();
            } else {
                w.index();
            }
        });
    }

    fn index(&mut self) {
        self.write("[");
        match self.choose(4) {
            0 => self.expression(),
            1 => {
                self.write("..");
                self.maybe(Writer::expression);
            }
            _ => {
                self.expression();
                self.write("..");
                self.maybe(Writer::expression);
            }
        }
        self.write("]");
    }

    fn pattern(&mut self) {
        match self.choose(12) {
            0 => self.write("_"),
            1 => {
                self.write("$");
                self.name();
            }
            2 => {
                self.write("==");
                self.primary();
            }
            3 => self.write("@"),
            4 => self.write("- 5"),
            5 => self.write("'a'"),
            6 => self.write("\"GET\\r\\n\""),
            7 => self.write("true"),
            8 => {
                self.name();
                self.write("|>");
                self.pattern();
                return;
            }
            9 => self.place(),
            10 => {
                self.write("{");
                self.maybe(|w| {
                    w.list(|w| {
                        w.maybe(|w| {
                            w.name();
                            w.write(":");
                        });
                        w.pattern();
                    });
                });
                self.write("}");
            }
            _ => {
                self.write("[");
                self.list(Writer::pattern);
                self.write("]");
            }
        }
        if self.choose(6) == 1 {
            self.write("if");
            self.expression();
        }
    }

    fn arguments(&mut self) {
        self.write("(");
        self.maybe(|w| w.list(Writer::expression));
        self.write(")");
    }

    fn expression(&mut self) {
        match self.choose(8) {
            0 | 1 => self.primary(),
            2 => {
                self.name();
                self.write("|>");
                self.expression();
            }
            3 => {
                self.primary();
                self.write("?");
                self.expression();
                self.write(":");
                self.expression();
            }
            4 => {
                self.primary();
                let operators = ["==", "!=", "<", "<=", ">", ">="];
                let index = self.below(operators.len());
                self.write(operators[index]);
                self.primary();
            }
            _ => {
                self.primary();
                while self.choose(3) > 0 {
                    let operators = ["||", "&&", "|", "^", "&", "<<", ">>", "+", "-", "*", "/", "%"];
                    let index = self.below(operators.len());
                    self.write(operators[index]);
                    self.primary();
                }
            }
        }
    }

    fn primary(&mut self) {
        match self.choose(14) {
            0 => self.write("1_000"),
            1 => self.write("'\\n'"),
            2 => self.write("false"),
            3 => self.name(),
            4 => {
                self.name();
                self.arguments();
            }
            5 => {
                self.write("u8 (");
                self.expression();
                self.write(")");
            }
            6 => {
                self.write("(");
                self.expression();
                self.write(")");
            }
            7 => {
                self.write("@");
                self.maybe(|w| {
                    w.name();
                    w.maybe(|w| {
                        w.write("[");
                        w.expression();
                        w.write("]");
                    });
                });
            }
            8 => {
                self.maybe(|w| w.write("#"));
                self.write("\"x\\x00\"");
            }
            9 => {
                self.maybe(|w| w.write("#"));
                self.write("{");
                self.maybe(|w| {
                    w.list(|w| {
                        w.maybe(|w| {
                            w.name();
                            w.write(":");
                        });
                        w.expression();
                    });
                });
                self.write("}");
            }
            10 => {
                self.maybe(|w| w.write("#"));
                self.write("[");
                if self.choose(2) == 0 {
                    self.expression();
                    self.write(";");
                    self.expression();
                } else {
                    self.list(Writer::expression);
                }
                self.write("]");
            }
            11 => {
                let operators = ["!", "~", "-"];
                let index = self.below(operators.len());
                self.write(operators[index]);
                self.primary();
            }
            12 => {
                self.name();
                self.write(".");
                self.name();
            }
            _ => {
                self.name();
                self.index();
            }
        }
    }

    fn fast_path(&mut self) {
        self.write("fastpath");
        self.name();
        self.write("{");
        self.maybe(|w| w.write("bound 3 ; retries 1 ;"));
        loop {
            self.write("process");
            self.name();
            self.maybe(|w| w.write("[ 2 ]"));
            self.write("{ statement");
            self.list(|w| {
                w.statement_ref();
                w.maybe(|w| {
                    w.write("as");
                    w.name();
                });
            });
            self.write("; start");
            self.element();
            self.write(";");
            self.maybe(|w| {
                w.write("follows");
                w.regex();
                w.write(";");
            });
            self.maybe(|w| {
                w.write("exit");
                w.list(Writer::element);
                w.write(";");
            });
            self.write("}");
            if self.choose(2) == 0 {
                break;
            }
        }
        self.write("}");
    }

    fn statement_ref(&mut self) {
        match self.choose(4) {
            0 => self.write("H0"),
            1 => self.write("c / in"),
            2 => self.write("c / out @ 2"),
            _ => self.write("# retry"),
        }
    }

    fn element(&mut self) {
        self.statement_ref();
        self.maybe(|w| {
            w.write("? (");
            w.expression();
            w.write(")");
        });
        self.maybe(|w| {
            w.write("<=>");
            w.statement_ref();
        });
        self.maybe(|w| w.write("yield q [ 1 ]"));
    }

    fn regex(&mut self) {
        loop {
            loop {
                if self.choose(3) == 1 {
                    self.write("(");
                    self.regex();
                    self.write(")");
                } else {
                    self.element();
                }
                let signs = ["", "*", "+", "{ 1 , 2 }"];
                let index = self.below(signs.len());
                self.write(signs[index]);
                if self.choose(2) == 0 {
                    break;
                }
            }
            if self.choose(3) == 0 {
                break;
            }
            self.write("|");
        }
    }

    fn model(&mut self) {
        self.write("model");
        self.name();
        self.write("{");
        self.many(|w| match w.below(6) {
            0 => w.write("process p ;"),
            1 => {
                w.write("slice");
                w.list(Writer::name);
                w.write(";");
            }
            2 => {
                w.write("env");
                w.process_rest();
            }
            3 => w.write("ltl \"[] p\" ; bound c 3 ;"),
            4 => w.write("abstract forget c . 1 ; abstract drop p . v ; abstract hash x ;"),
            _ => {
                w.write("abstract range f");
                w.expression();
                w.write("..");
                w.expression();
                w.write(";");
            }
        });
        self.write("}");
    }
}
