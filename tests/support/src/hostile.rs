//! The shapes of hostile files, as a table: what stands once at the beginning, what fills the file, what stands once at
//! the end. `%N` in the filling is a name of its own in every repetition. Knows nothing of what is measured.

/// A file of one construct.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// What messages call it.
    pub name: &'static str,
    before: &'static str,
    each: &'static str,
    after: &'static str,
}

const fn p(name: &'static str, before: &'static str, each: &'static str, after: &'static str) -> Pattern {
    Pattern { name, before, each, after }
}

/// The patterns that come closest to a limit, for a quick run.
pub const CLOSEST: &[&str] = &["labels", "empty blocks", "variables twice", "not UTF-8", "names"];

/// All of them, those of one kind together.
#[rustfmt::skip]
pub const PATTERNS: &[Pattern] = &[
    // Text that is no program.
    p("blanks", "", " ", ""),
    p("line breaks", "", "\n", ""),
    p("one comment", "/*", "x", "*/"),
    p("comments", "", "/**/", ""),
    p("comments between tokens", "process p{", ";/**/", "}"),
    p("line comments", "", "//\n", ""),
    p("comment not closed", "/*", "* ", ""),
    p("zero bytes", "", "\0", ""),
    p("zero bytes and names", "", "\0x", ""),
    p("not UTF-8", "", "é", ""),
    p("not UTF-8 at the end", "process p{", "{}", "é"),
    p("foreign names", "", "é ", ""),
    p("foreign signs", "", "` ", ""),
    p("quotes", "", "'", ""),
    p("strings not closed", "", "\"\n", ""),
    p("one name", "process p{ var ", "x", ";}"),
    p("one number", "const a = ", "1", ";"),
    p("one hexadecimal number", "const a = 0x", "0", "1;"),
    p("one string", "const a = \"", "x", "\";"),
    p("one string in a process", "process p{ var a = \"", "x", "\"; assert(a == a); }"),
    p("one string of escapes", "const a = \"", "\\n", "\";"),
    p("one string of bad escapes", "const a = \"", "\\q", "\";"),
    p("one string as a pattern", "channel c: bytes[<=9]; process p{ in(c, \"", "x", "\"); }"),
    p("one character", "const a = '", "x", "';"),
    p("one path", "import \"", "x", "\";"),
    p("names", "", "x ", ""),
    p("numbers", "", "1 ", ""),
    p("strings", "", "\"\"", ""),
    p("commas", "", ",", ""),
    p("semicolons", "", ";", ""),
    p("opening braces", "", "{", ""),
    p("closing braces", "", "}", ""),
    p("opening parentheses", "const a = ", "(", ""),
    p("keywords", "", "if ", ""),
    p("keyword process", "", "process ", ""),
    // Items.
    p("imports", "", "import\"%N\";", ""),
    p("imports of one file", "", "import\"a\";", ""),
    p("imports that fail", "", "import\"\";", ""),
    p("types", "", "type %N=int;", ""),
    p("types twice", "", "type a=u8;", ""),
    p("types that double", "type a=u8;", "type %N=record{a:a,b:a};", ""),
    p("types in a chain", "", "type %N=array[2]of u8;", ""),
    p("types unknown", "", "type %N=b;", ""),
    p("constants", "", "const %N=1;", ""),
    p("constants twice", "", "const a=1;", ""),
    p("constants of bytes", "", "const %N=\"abcdefgh\";", ""),
    p("constants that do not fit", "", "const %N:u8=256;", ""),
    p("constants copied", "const a=\"0123456789012345678901234567890123456789012345678901234567890123456789\";", "const %N=a;", ""),
    p("channels", "", "channel %N:u8;", ""),
    p("channels of nothing", "", "channel %N();", ""),
    p("channels twice", "", "channel c();", ""),
    p("channel of many values", "channel c(", "u8,", ");"),
    p("channel attributes", "channel c()", "shared ", ";"),
    p("channel drivers", "", "channel %N:u8 external in=\"x\";", ""),
    p("interfaces", "channel c:int external out;", "external interface %N(out c){A($a)}", ""),
    p("interface entries", "channel c:int external out; external interface i(out c){", "%N($a),", "}"),
    p("interface patterns", "channel c:int external out; external interface i(out c){A(", "_,", ")}"),
    p("extern functions", "", "extern fn %N();", ""),
    p("extern parameters", "extern fn f(", "u8,", ");"),
    p("extern functions implicit", "process p{", "%N();", "}"),
    p("functions", "", "fn %N()->int{return 1;}", ""),
    p("functions without return", "", "fn %N()->u8{}", ""),
    p("function parameters", "fn g(", "%N:u8,", ")->u8{return 1;}"),
    p("functions in a cycle", "", "fn %N()->u8{return a();}fn a()->u8{return %N();}", ""),
    p("layouts", "", "layout %N{a:8}", ""),
    p("layout fields", "layout l{", "%N:8,", "}"),
    p("layout fields twice", "layout l{", "a:8,", "}"),
    p("processes", "", "process %N{}", ""),
    p("processes twice", "", "process p{}", ""),
    p("replicas", "", "process %N[9]{}", ""),
    p("pools", "type a=record{x:u8};", "pool a 1;", ""),
    p("memory", "", "memory auto;", ""),
    // Types.
    p("record fields", "type t=record{", "%N:u8,", "};"),
    p("record fields twice", "type t=record{", "a:u8,", "};"),
    p("union tags", "type t=union{", "%N,", "};"),
    p("union tags twice", "type t=union{", "a,", "};"),
    p("pid list", "process p{} type t=pid(", "p,", ");"),
    p("pid list of unknown names", "type t=pid(", "%N,", ");"),
    p("nested arrays", "type t=", "array[1]of ", "u8;"),
    p("variables of types", "process p{", "var %N:array[2]of u8;", "}"),
    p("array types", "process p{", "var a:array[1+1]of u8;", "}"),
    // Statements.
    p("labels", "process p{", "#%N ", "}"),
    p("labels twice", "process p{", "#a ", "}"),
    p("labels in an environment", "model m{env e{", "#a ", "}}"),
    p("labels in a function", "fn f()->int{", "#a ", "return 1;}"),
    p("labels of digits", "process p{", "#1", "}"),
    p("empty blocks", "process p{", "{}", "}"),
    p("empty blocks in a function", "fn f()->int{", "{}", "return 1;}"),
    p("blocks with a label", "process p{", "{#a}", "}"),
    p("nested blocks", "process p{", "{", ""),
    p("variables", "process p{ var ", "%N,", "z:u8;}"),
    p("variables twice", "process p{ var ", "a,", "z:u8;}"),
    p("variable statements", "process p{", "var %N;", "}"),
    p("variables with values", "process p{ var ", "%N=1,", "z:u8;}"),
    p("variables with mistyped values", "process p{ var ", "%N:bool=1,", "z:u8;}"),
    p("variables of a function", "fn f()->int{ var ", "%N,", "z:u8; return 1;}"),
    p("variables hidden in blocks", "process p{ var a=1;", "{var a;}", "}"),
    p("local constants", "process p{", "const %N=1;", "}"),
    p("assignments", "process p{ var a=1;", "a=1;", "}"),
    p("assignments of variables", "process p{ var a=1;", "a=a;", "}"),
    p("assignments to unknown names", "process p{", "%N=1;", "}"),
    p("updates", "process p{ var a=1;", "a+=1;", "}"),
    p("assignments to elements", "process p{ var a=#[0;9];", "a[1]=1;", "}"),
    p("long place", "process p{ var a=1; a", "[1]", "=1;}"),
    p("yields", "process p{", "yield;", "}"),
    p("exits", "process p{", "exit(1);", "}"),
    p("asserts", "process p{", "assert(1);", "}"),
    p("asserts mistyped", "process p{", "assert(\"\");", "}"),
    p("breaks", "process p{ while{", "break;", "}}"),
    p("breaks outside", "process p{", "break;", "}"),
    p("returns", "fn f()->u8{", "return 1;", "}"),
    p("ifs", "process p{", "if(1){}", "}"),
    p("ifs with breaks", "process p{", "if(1)break;", "}"),
    p("else ifs", "process p{", "if(1){}else ", "{}}"),
    p("whiles", "process p{", "while{}", "}"),
    p("fors", "process p{", "for(i in 0..1){}", "}"),
    p("matches", "process p{", "match(1){_=>{}}", "}"),
    p("match arms", "process p{ match(1){", "1=>{}", "_=>{}}}"),
    p("match arms of bytes", "process p{ match(\"a\"){", "\"%N\"=>{}", "_=>{}}}"),
    p("calls", "extern fn f(); process p{", "f();", "}"),
    p("call arguments", "extern fn f(u8); process p{ f(", "1,", ");}"),
    p("calls that disagree", "process p{ f();", "f(1);", "}"),
    p("receptions", "channel c:u8; process p{", "in(c,_);", "} process q{ out(c,1);}"),
    p("receptions into names", "channel c:u8; process p{", "in(c,$%N);", "} process q{ out(c,1);}"),
    p("receptions with blocks", "channel c:u8; process p{", "in(c,$a){}", "} process q{ out(c,1);}"),
    p("receptions of constants", "channel c:int; process p{", "in(c,1);", "} process q{ out(c,1);}"),
    p("receptions of two constants", "channel c:int; process p{", "in(c,1);in(c,2);", "} process q{ out(c,1);}"),
    p("sends", "channel c:u8; process p{", "out(c,1);", "} process q{ in(c,_);}"),
    p("sends to unknown channels", "process p{", "out(%N,1);", "}"),
    p("sends to oneself", "channel c(); process p{", "out(c);", "in(c);}"),
    p("readers in conflict", "channel c:u8; process q{ out(c,1);}", "process %N{in(c,_);}", ""),
    p("readers of constants", "channel c:int; process q{ out(c,1);}", "process %N{in(c,1);}", ""),
    p("readers of replicas", "channel c:int; process q{ out(c,1);}", "process %N[99]{in(c,@);}", ""),
    p("alt statements", "channel c:u8; process p{", "alt{in(c,_){}}", "} process q{ out(c,1);}"),
    p("empty alt statements", "process p{", "alt{}", "}"),
    p("alt branches", "channel c:u8; process p{ alt{", "in(c,_){}", "}} process q{ out(c,1);}"),
    p("alt guards", "channel c:u8; process p{ alt{", "when(1)in(c,_){}", "}} process q{ out(c,1);}"),
    p("alt timeouts", "process p{ alt{", "after(1 s){}", "}}"),
    p("alts with else", "process p{", "alt{else{}}", "}"),
    // Patterns.
    p("array pattern", "channel c:u8; process p{ in(c,[", "_,", "]);}"),
    p("record pattern", "channel c:u8; process p{ in(c,{", "a:_,", "});}"),
    p("record pattern of names", "channel c:u8; process p{ in(c,{", "$%N,", "});}"),
    p("patterns", "channel c:u8; process p{ in(c,", "1,", ");}"),
    p("patterns of own ids", "channel c:u8; process p{ in(c,", "@,", ");}"),
    p("patterns with conditions", "channel c:u8; process p{ in(c,", "_ if 1,", ");}"),
    p("nested tags in patterns", "channel c:u8; process p{ in(c,", "a|>", "_);}"),
    // Expressions.
    p("sum", "const a=", "1+", "1;"),
    p("sums", "const a=[", "1+1,", "1];"),
    p("negations", "const a=", "-", "1;"),
    p("negations apart", "const a=[", "-1,", "1];"),
    p("array of numbers", "const a=[", "1,", "1];"),
    p("array of names", "const a=[", "a,", "1];"),
    p("array in a process", "process p{ var a=[", "1,", "1]; assert(a==a);}"),
    p("array of variables", "process p{ var b=1; var a=[", "b,", "1]; assert(a==a);}"),
    p("array of strings", "process p{ var a=[", "\"\",", "\"\"]; assert(a==a);}"),
    p("array of arrays", "process p{ var a=[", "[],", "[]]; assert(a==a);}"),
    p("array of records", "process p{ var a=[", "{},", "{}]; assert(a==a);}"),
    p("array of typed arrays", "process p{ var a:array of array[1]of u8=[", "[1],", "[1]]; assert(a==a);}"),
    p("record of fields", "process p{ var a={", "%N:1,", "};}"),
    p("own ids", "process p{ var a=[", "@,", "@];}"),
    p("conversions", "process p{ var a=[", "u8(1),", "1];}"),
    p("conditionals", "process p{ var a=[", "1?1:1,", "1];}"),
    p("fields", "process p{ var b=1; var a=[", "b.b,", "1];}"),
    p("field chain", "const a=a", ".a", ";"),
    p("indices", "process p{ var b=\"abc\"; var a=[", "b[1],", "1];}"),
    p("slices", "process p{ var b=\"abc\"; var a=[", "b[..],", "b];}"),
    p("function calls", "fn f()->u8{return 1;} process p{ var a=[", "f(),", "1];}"),
    p("unknown calls", "process p{ var a=[", "%N(),", "1];}"),
    p("tags", "type t=union{a:u8}; process p{ var b:array of t=[", "a|>1,", "a|>1];}"),
    p("comparisons in a row", "const a=", "1<", "1;"),
    p("parentheses", "const a=[", "(1),", "1];"),
    p("sizes", "const a=[", "sizeof(u8),", "1];"),
    p("lengths of types", "process p{", "var a:bytes[<=1+1];", "}"),
    // Fast paths and models.
    p("fast paths", "process p{#1}", "fastpath %N{process p{statement #1;start #1;exit #1;}}", ""),
    p("fast paths empty", "", "fastpath %N{}", ""),
    p("fast path settings", "fastpath f{", "bound 1;", "}"),
    p("fast path processes", "process p{#1} fastpath f{", "process p{statement #1;start #1;exit #1;}", "}"),
    p("fast path statements", "process p{#1} fastpath f{process p{statement ", "#1,", "#1;start #1;exit #1;}}"),
    p("fast path aliases", "process p{#1} fastpath f{process p{statement ", "#1 as %N,", "#1;start #1;exit #1;}}"),
    p("fast path exits", "process p{#1} fastpath f{process p{statement #1;start #1;exit ", "#1,", "#1;}}"),
    p("path of steps", "process p{#1 #2} fastpath f{process p{statement #1,#2;start #1;follows ", "#2 ", ";exit #1;}}"),
    p("path of choices", "process p{#1 #2} fastpath f{process p{statement #1,#2;start #1;follows ", "#2|", "#2;exit #1;}}"),
    p("path of groups", "process p{#1 #2} fastpath f{process p{statement #1,#2;start #1;follows ", "(", "#2;exit #1;}}"),
    p("path of repetitions", "process p{#1 #2} fastpath f{process p{statement #1,#2;start #1;follows ", "#2{1,9}", ";exit #1;}}"),
    p("path of predicates", "process p{#1 #2} fastpath f{process p{statement #1,#2;start #1;follows ", "#2?(1)", ";exit #1;}}"),
    p("models", "process p{}", "model %N{process p;}", ""),
    p("models empty", "", "model %N{}", ""),
    p("model processes", "process p{} model m{", "process p;", "}"),
    p("model slices", "process p{} model m{slice ", "p,", "p;}"),
    p("model properties", "process p{} model m{process p;", "ltl\"\";", "}"),
    p("model bounds", "channel c(); model m{", "bound c 1;", "}"),
    p("model environments", "model m{", "env %N{}", "}"),
    p("model abstractions", "process p{} model m{process p;", "abstract drop a;", "}"),
    p("model paths", "process p{} model m{process p;abstract drop a", ".a", ";}"),
    p("model ranges", "model m{", "abstract range a 0..1;", "}"),
];

impl Pattern {
    /// A file of at least `length` bytes.
    pub fn text(&self, length: usize) -> Vec<u8> {
        let mut text = String::with_capacity(length + 200);
        text.push_str(self.before);
        let mut number = 0;
        while text.len() + self.after.len() < length {
            let mut parts = self.each.split("%N");
            text.push_str(parts.next().expect("splitting gives a first part"));
            if self.each.contains("%N") {
                let name = distinct_name(number);
                parts.for_each(|part| {
                    text.push_str(&name);
                    text.push_str(part);
                });
            }
            number += 1;
        }
        text.push_str(self.after);
        let mut bytes = text.into_bytes();
        if self.name.starts_with("not UTF-8") {
            // Half of the last character, which has two bytes, is missing.
            bytes.pop();
        }
        bytes
    }
}

/// The shortest names that are no reserved words and differ from all others here.
fn distinct_name(mut number: usize) -> String {
    // Without most vowels no word of the language comes about, without `f` and `n` neither does `fn`.
    const FIRST: &[u8] = b"bcdghjklmpqrstvwxyz";
    const FURTHER: &[u8] = b"0123456789bcdghjklmpqrstvwxyz";
    let mut name = vec![FIRST[number % FIRST.len()]];
    number /= FIRST.len();
    while number > 0 {
        number -= 1;
        name.push(FURTHER[number % FURTHER.len()]);
        number /= FURTHER.len();
    }
    String::from_utf8(name).expect("these letters are ASCII")
}
