//! The random programs have each construct that the language has beyond the papers, often enough that a run of some
//! hundred programs tests it.

use quaject_differential::generate::generate;

/// Programs that are read.
const PROGRAMS: u64 = 1_800;

/// A construct, and how to recognise it in the text of a program: parts of one line, in this order. Each number is `N`.
const CONSTRUCTS: &[(&str, &[&str])] = &[
    ("import with a name", &["import \"mN.esp\" as mN;"]),
    ("import with arguments", &["import \"ring.esp\"(T = ", ", N = ", ", EMPTY = "]),
    ("standard module", &["import \"std:format\" as text;"]),
    ("text of a number", &["text.", "("]),
    ("number of text", &["match text.read_"]),
    ("parameter of a module", &["pub param type "]),
    ("type of a module", &["var ", ": mN."]),
    ("function of a module", &["mN.fN("]),
    ("procedure of a module", &["mN.qN("]),
    ("channel of a module", &["out(mN.askN,"]),
    ("enumeration", &["type ", " = enum ", " { sN"]),
    ("case of every other code", &["type ", " = enum ", ", else other }"]),
    ("conversion of a code", &["eN("]),
    ("case of an enumeration", &["eN.sN"]),
    ("alternatives in a match", &[" | ", " => {"]),
    ("alternatives in an input", &["in(", " | ", ") {"]),
    ("range in a pattern", &["N..N", " => {"]),
    ("range between constants", &["limitN..limitN"]),
    ("condition of an arm", &[" if ", " => {"]),
    ("procedure", &["proc qN("]),
    ("procedure that communicates", &["proc cNq(", " onN("]),
    ("parameter that is a variable of the caller", &["proc ", ": #"]),
    ("variable without a value and a type", &["var vN;"]),
    ("result of a procedure", &["proc ", ") -> "]),
    ("assigned result of a procedure", &["vN = qN("]),
    ("early return", &["if (", ") return"]),
    ("template", &["process TN(in work("]),
    ("instance of a template", &["process AN = TN("]),
    ("replicas of a template", &["process AN[N] = "]),
    ("process without replicas", &["none[N] = "]),
    ("reader of a part of the messages", &["idle in(partN, "]),
    ("deadline", &["until (vN)"]),
    ("elapsed time", &[": duration = now - "]),
    ("duration", &["var ", ": duration = "]),
    ("computed table", &["const table = computed();"]),
    ("static assertion", &["assert(limitN", "\"limits are small\");"]),
    ("item under a condition", &["if WIDEN { fn "]),
    ("append of a byte", &["vN += uN("]),
    ("labelled loop", &["#loopN"]),
    ("break of a labelled loop", &[") break loopN"]),
    ("continue of a labelled loop", &[") continue loopN"]),
    ("message of an assertion", &["assert(", ", \"statement "]),
    ("names of the values of a channel", &["channel ", "(nN: "]),
];

/// A text in which each number is `N`.
fn without_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if !letter.is_ascii_digit() {
            plain.push(letter);
        } else if !plain.ends_with('N') {
            plain.push('N');
        }
    }
    plain
}

/// Whether the line has these parts in their order.
fn has_parts(line: &str, parts: &[&str]) -> bool {
    let mut rest = Some(line);
    parts.iter().all(|part| {
        rest = rest.and_then(|text| text.split_once(part)).map(|(_, rest)| rest);
        rest.is_some()
    })
}

#[test]
fn every_construct_is_frequent() {
    let texts: Vec<String> =
        (100..100 + PROGRAMS).map(generate).map(|sample| without_numbers(&sample.text())).collect();
    let mut rare = Vec::new();
    for (construct, parts) in CONSTRUCTS {
        let count = texts.iter().filter(|text| text.lines().any(|line| has_parts(line, parts))).count();
        println!("{count:4} {construct}");
        if count < 6 {
            rare.push(format!("{count} of {PROGRAMS} programs have this: {construct}"));
        }
    }
    assert!(rare.is_empty(), "{}", rare.join("\n"));
}

#[test]
fn a_third_of_the_programs_has_none() {
    let marks = ["enum ", "import ", "proc ", "until (v", "#loop", "duration = now - "];
    let plain = (100..100 + PROGRAMS).map(generate).filter(|sample| {
        let text = sample.text();
        !marks.iter().any(|mark| text.contains(mark))
    });
    assert!(plain.count() as u64 >= PROGRAMS / 3);
}
