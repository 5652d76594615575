//! Programs with words removed, doubled and swapped: analysis ends without a panic.

use super::analyze;
use quaject_esp_syntax::lexer::tokenize;
use quaject_esp_syntax::span::FileId;
use quaject_test_support::{HANG_TIMEOUT, Random};
use std::time::Instant;

/// Programs that use everything the language has: the examples of the tests beside this one.
const SEEDS: [&str; 10] = [
    include_str!("accepted.rs"),
    include_str!("channels.rs"),
    include_str!("fast_paths.rs"),
    include_str!("names.rs"),
    include_str!("statements.rs"),
    include_str!("types.rs"),
    include_str!("warnings.rs"),
    concat!(include_str!("../data/figure2.esp"), include_str!("../data/functions.esp")),
    include_str!("../data/page_table.esp"),
    include_str!("../data/stop_and_wait.esp"),
];

/// The programs inside a test file: its raw strings that are not expectations.
fn programs() -> Vec<String> {
    let mut programs = Vec::new();
    for seed in SEEDS {
        if seed.contains("#[test]") {
            let parts = seed.split("r##\"").skip(1).filter_map(|part| part.split("\"##").next());
            programs.extend(parts.filter(|part| part.len() > 20).map(str::to_string));
        } else {
            programs.push(seed.to_string());
        }
    }
    programs
}

/// The words of a program, as the compiler's own lexer finds them; what is between them is dropped.
fn words(text: &str) -> Vec<String> {
    let (tokens, _) = tokenize(FileId(0), text);
    tokens
        .windows(2)
        .filter(|pair| !pair[0].kind.is_trivia())
        .map(|pair| text[pair[0].start as usize..pair[1].start as usize].to_string())
        .collect()
}

/// The class of a word: a replacement of the same class is often well-formed.
fn class(word: &str) -> u8 {
    match word.as_bytes()[0] {
        b'0'..=b'9' => 0,
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => 1,
        b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'<' | b'>' | b'=' | b'!' => 2,
        _ => 3,
    }
}

/// Changes a program in a few places: mostly a word for another of its kind in the same program.
fn mutate(words: &[String], pool: &[String], random: &mut Random) -> String {
    let mut words = words.to_vec();
    for _ in 0..=random.index(3) {
        let at = random.index(words.len());
        match random.index(14) {
            0 => {
                words.remove(at);
            }
            1 => words[at] = pool[random.index(pool.len())].clone(),
            2 => words.insert(at, pool[random.index(pool.len())].clone()),
            3 => {
                let end = (at + random.index(12)).min(words.len());
                let part = words[at..end].to_vec();
                let to = random.index(words.len());
                words.splice(to..to, part);
            }
            _ => {
                let alike: Vec<usize> =
                    (0..words.len()).filter(|other| class(&words[*other]) == class(&words[at])).collect();
                words[at] = words[alike[random.index(alike.len())]].clone();
            }
        }
        if words.is_empty() {
            break;
        }
    }
    words.join(" ")
}

#[test]
fn senseless_programs() {
    let rounds = std::env::var("SENSELESS_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(40);
    let seed = std::env::var("SENSELESS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let programs: Vec<Vec<String>> = programs().iter().map(|program| words(program)).collect();
    let pool: Vec<String> = programs.concat();
    let mut random = Random(u64::max(seed, 1));
    assert!(programs.len() > 80, "the seeds are found");
    for _ in 0..rounds {
        for program in &programs {
            let source = mutate(program, &pool, &mut random);
            let start = Instant::now();
            let outcome = std::panic::catch_unwind(|| analyze(&source, &[], &[]));
            assert!(outcome.is_ok(), "panics on:\n{source}");
            assert!(start.elapsed() < HANG_TIMEOUT, "takes {:?} on:\n{source}", start.elapsed());
        }
    }
}
