//! Messages about ticks: one program for each code and construct that is refused.

use quaject_tickc::translate;

/// The messages about a function body, each with its code and what it points at.
fn messages(body: &str) -> String {
    let text = format!("struct s {{ int bit : 3, x; }} v, *p; int f(int), x; {body}");
    let translation = translate(&text);
    let shown = translation.diagnostics.iter().map(|own| {
        let place = &text[own.span.start as usize..own.span.end as usize];
        format!("{own} [{place}]\n")
    });
    shown.collect()
}

fn check(body: &str, wanted: &str) {
    assert_eq!(messages(body).trim_end(), wanted, "{body}");
}

#[test]
fn each_code_has_a_message() {
    check("int g(void) { return $x; }", "T0001: `$` outside of a tick expression [$]");
    check("int g(void) { return x + self(int); }", "T0001: `self` outside of a tick expression [self]");
    check("int cspec c(void) { return `(1 + `2); }", "T0002: a tick expression in another one [`]");
    check(
        "void cspec c(void) { return `{ int i; i = $i; }; }",
        "T0003: `i` has a value only when the generated code runs [i]",
    );
    check(
        "void cspec c(void) { return `{ int i; switch (x) { case i: ; } }; }",
        "T0003: a case that is no run-time constant [i]",
    );
    check("int cspec c(void) { return `(1 + ); }", "T0005: an expression is expected instead of `)` [)]");
    check("void cspec c(void) { return `{ break; }; }", "T0006: `break` outside of a loop of the tick [break]");
    check(
        "void cspec c(void) { return `{ switch (x) { default: continue; } }; }",
        "T0006: `continue` outside of a loop of the tick [continue]",
    );
    check(
        "int g(int vspec w) { return w + 1; }",
        "T0007: the value of the vspec `w` is used outside of a tick expression [w +]",
    );
    check("int g(int vspec s) { return sizeof(struct s *) + sizeof s; }", "");
    check("int g(int cspec c) { compile(c); }", "T0008: `compile` with 1 arguments [compile(c)]");
    check("int cspec c(void) { return `f(&p->bit); }", "T0009: the address of the bit-field `bit` [bit]");
    let deep = format!("int cspec c(void) {{ return `{}1{}; }}", "(".repeat(300), ")".repeat(300));
    assert!(messages(&deep).starts_with("T0010: constructs are nested deeper than 250 levels"));
}

#[test]
fn what_ticks_lack_is_refused() {
    for (body, what) in [
        ("{ goto out; }", "`goto` in a tick"),
        ("{ out: f(1); }", "`a label` in a tick"),
        ("{ static int calls; }", "`static` in a tick"),
        ("{ int a[2][2] = {1, 2}; }", "an initial value without its inner braces in a tick"),
        ("{ struct s a = {1, 2, 3}; }", "this initial value in a tick"),
        ("{ __typeof__(*p) a = {1, 2}; }", "this initial value in a tick"),
        ("{ int a[9] = {[x] = 1}; }", "this initial value in a tick"),
        ("{ int a[x]; }", "an array of variable length in a tick"),
        ("{ int i, a[3][i + 1]; }", "an array of variable length in a tick"),
        ("{ f(r); }", "the register variable `r` in a tick"),
        ("{ f(({ 1; })); }", "a statement expression in a tick"),
        ("{ f(sizeof(struct s){1}); }", "the size of a compound literal in a tick"),
        ("{ asm(\"nop\"); }", "`asm` in a tick"),
        ("{ f(__builtin_popcount(x)); }", "`__builtin_popcount` in a tick"),
        ("{ int cspec c; }", "a function, cspec or vspec that is declared in a tick"),
        ("{ $x = 1; }", "an assignment to a run-time constant"),
        ("{ f(local(int)); }", "`local` in a tick"),
    ] {
        let found = messages(&format!("void cspec c(void) {{ register int r; return `{body}; }}"));
        assert!(found.starts_with(&format!("T0004: {what}")), "{body}: {found}");
    }
}

#[test]
fn what_names_a_constant_length_or_a_copy_is_accepted() {
    check(
        "void cspec c(void) { return `{ int a[sizeof x]; enum { N = 3 }; int b[N], (*g)(int x[N]); a[0] = b[0]; }; }",
        "",
    );
    check("int cspec c(void) { register int r = 1; return `(f($r)); }", "");
}

#[test]
fn names_of_special_functions_can_be_declared() {
    check("int compile(int); int g(void) { return compile(1); }", "");
    check("int g(void) { int label(void); return label(); }", "");
    assert!(translate("void g(void) { free_code(0); }").text.contains("qjt_free_code"));
    let header = "# 1 \"/usr/include/x.h\" 1 3\nvoid g(void) { free_code(0); }\n";
    assert_eq!(translate(header).text, header);
}
