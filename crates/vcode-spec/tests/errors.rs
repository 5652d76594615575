//! Inconsistent specifications are rejected with a location and a reason.

use quaject_vcode_spec::{Source, Sources, read_all};

const PORTABLE: &str = "binary add i l  addition\nset set i l  load a constant\nunary mov i  copy\n";

const HEAD: &str = "machine toy\ncode word little\nlong 64\nnames r int r0..r31\nspecial stack=r1\n\
field d r 11:7\nfield s r 19:15\nfield t r 24:20\nfield i s12 31:20\n\
insn add 33 d,s,t\ninsn addi 13 d,s,i\n";

const TAIL: &str = "\nset l || addi d,r0,i\nenter v || addi r1,r1,-i\nleave v || addi r1,r1,i\nreturn v addi r0,r0,0\n";

fn check(line: &str, expected: &str) {
    let portable = Source { name: "portable.spec".into(), text: PORTABLE.into() };
    let toy = Source { name: "toy.spec".into(), text: format!("{HEAD}{line}{TAIL}") };
    let found = match read_all(&Sources { portable: vec![portable], machines: vec![vec![toy]] }) {
        Ok(_) => "accepted".to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected, "for `{line}`");
}

#[test]
fn valid_lines_are_accepted() {
    check("add i l  add d,s,t || addi d,s,i", "accepted");
    check("add {i,l}  d==s ? add d,d,{t,s} | add d,s,t", "accepted");
}

#[test]
fn invalid_lines_are_rejected_with_a_location() {
    check(
        "frob i  add d,s,t",
        "toy.spec:12: `frob` is neither a declaration nor an operation of the portable instruction set",
    );
    check("add f  add d,s,t", "toy.spec:12: `add` has no type `f` in the portable instruction set");
    check("add i  sub d,s,t", "toy.spec:12: no `insn sub` above this line");
    check("add i  add d,s", "toy.spec:12: `add` has 3 operands, 2 are given");
    check("add i  add d,s,r99", "toy.spec:12: no register named `r99`");
    check("add i  addi d,s,lo(i)", "toy.spec:12: no `def lo` above this line");
    check("add i  addi d,s,i $", "toy.spec:12: unexpected `$` in expression `i $`");
    check("add i  add d,s,t\nadd i  add d,s,t", "toy.spec:13: `add i` is mapped twice");
    check("insn add 33 d,s,t", "toy.spec:12: `add` is defined twice");
    check("insn sub 40000fb3 d,s,t", "toy.spec:12: field `d` overlaps other bits");
    check("field j s12 31:25", "toy.spec:12: `s12` has 12 bits but 7 places");
    check("field j x12 31:20", "toy.spec:12: no field kind `x`");
    check("layer system", "toy.spec:12: the system layer is for code of bytes");
    check("layer other", "toy.spec:12: no layer `other` of machine instructions");
    check(
        "add {i,l} {add,sub,mul} d,s,t",
        "toy.spec:12: groups in `{}` of one line must have the same number of members: 2 and 3",
    );
}

#[test]
fn a_machine_without_frame_rows_is_rejected() {
    let portable = Source { name: "portable.spec".into(), text: PORTABLE.into() };
    let toy = Source { name: "toy.spec".into(), text: HEAD.into() };
    let error =
        read_all(&Sources { portable: vec![portable], machines: vec![vec![toy]] }).expect_err("there is no `enter`");
    assert_eq!(error.to_string(), "toy.spec:0: row `enter v` is missing: functions cannot do without");
}

#[test]
fn the_return_address_has_one_location() {
    let (link, unlink) = ("save_link v || addi r2,r1,i", "restore_link v || addi r2,r1,i");
    check(&format!("{link}\n{unlink}"), "accepted");
    check(link, "toy.spec:0: rows `save_link v` and `restore_link v` go together");
    check(unlink, "toy.spec:0: rows `save_link v` and `restore_link v` go together");
    check("save_special v || addi r2,r1,i", "toy.spec:0: rows `save_special v` and `restore_special v` go together");
    check(
        &format!("special link=r31\n{link}\n{unlink}"),
        "toy.spec:0: the return address is in a register: `link=` or rows, not both",
    );
}

#[test]
fn rows_and_the_system_layer_are_apart() {
    let check = |lines: &str, expected: &str| {
        let portable = Source { name: "portable.spec".into(), text: PORTABLE.into() };
        let head = "machine toy\ncode bytes little\nnames q int r0..r15\nnames x float x0..x15\n";
        let toy = Source { name: "toy.spec".into(), text: format!("{head}{lines}") };
        let error =
            read_all(&Sources { portable: vec![portable], machines: vec![vec![toy]] }).expect_err("it is wrong");
        assert_eq!(error.to_string(), expected, "for `{lines}`");
    };
    check(
        "layer system\ninsn neg r f7 /3,d = q.d\nmov i neg d",
        "toy.spec:7: `neg` has an emitter of its own: rows name instructions above `layer system`",
    );
    check(
        "insn neg r f7 /3,d = q.d",
        "toy.spec:5: `neg` has `r`, `m[s+i]`, `[i]` or `[t*8+i]`, which are for the system layer",
    );
}
