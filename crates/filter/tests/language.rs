//! Programs and filters as text and data: accepted and rejected inputs, diagnostics, and the tests that programs are
//! lifted to.

use quaject_filter::bpf::{Disassembly, Instruction, Operation, Program, assemble};
use quaject_filter::fuzz::Random;
use quaject_filter::ir::{Field, Test, parse};
use quaject_filter::{Classifier, Error, Expression, Filter, Packet, Scope};
use quaject_test_support::Effort;
use system::pcap;

mod system;

#[test]
fn every_code_has_one_meaning_and_one_spelling() {
    let mut known = 0;
    for code in 0..=u16::MAX {
        if let Some(operation) = Operation::of(Instruction { code, jt: 1, jf: 2, k: 3 }) {
            known += 1;
            assert_eq!(operation.instruction().code, code, "{operation:?}");
            assert_eq!(Operation::of(operation.instruction()), Some(operation));
        }
    }
    assert_eq!(known, 49, "as many as `bpf_filter` has cases");
}

#[test]
fn what_is_valid_here_is_valid_for_libpcap() {
    let Some(pcap) = pcap() else { return };
    let mut random = Random::new(5);
    let mut accepted = 0;
    for _ in 0..Effort::wanted().pick(10_000, 200_000, 10_000_000) {
        let instruction = |random: &mut Random| Instruction {
            code: *random
                .pick(&[0, 0x20, 0x28, 0x30, 0x60, 0x80, 1, 0xb1, 2, 3, 4, 0x34, 0x64, 5, 0x15, 0x25, 6, 7, 0x86]),
            jt: random.below(5) as u8,
            jf: random.below(5) as u8,
            k: *random.pick(&[0, 1, 2, 15, 16, 31, 32, u32::MAX]),
        };
        let length = 1 + random.below(5);
        let instructions: Vec<Instruction> = (0..length).map(|_| instruction(&mut random)).collect();
        let ours = Program::new(&instructions);
        if ours.is_ok() {
            accepted += 1;
            assert!(pcap.validates(&instructions), "{instructions:?}");
        }
    }
    assert!(accepted > 100);
}

#[test]
fn wrong_programs_are_refused_with_the_place() {
    let check = |text: &str, expected: &str| {
        let error = assemble(text).expect_err("the program is wrong");
        assert_eq!(error.to_string(), expected);
    };
    check("", "F0002: 1:1: no number of instructions");
    check("x", "F0002: 1:1: `x` is not a number of instructions");
    check("2\n6 0 0 1", "F0002: 1:1: 2 instructions were promised, 1 are there");
    check("1\n6 0 0", "F0002: 2:1: an instruction is four numbers: code, jt, jf, k");
    check("1\n 6 0 0 z", "F0002: 2:2: `z` is not a number");
    check("1,6 0 0 y", "F0002: 1:3: `y` is not a number");
    check("1\n21 0 0 1", "F0001: instruction 0: a jump out of the program");
    check("1\n99 0 0 1", "F0001: instruction 0: no instruction has this code");
    check("2\n52 0 0 0\n6 0 0 1", "F0001: instruction 0: division by the constant zero");
    check("2\n100 0 0 32\n6 0 0 1", "F0001: instruction 0: a shift by 32 or more");
    check("2\n96 0 0 16\n6 0 0 1", "F0001: instruction 0: scratch memory has 16 words");
    check("1\n0 0 0 1", "F0001: instruction 0: the last instruction does not return");
    check("0", "F0001: instruction 0: the program has no instruction");
    let long = format!("{}{}", (1 << 20) + 1, "\n6 0 0 1".repeat((1 << 20) + 1));
    check(&long, "F0001: instruction 1048576: the program has more than 2^20 instructions");
    let ancillary = "F0001: instruction 0: a load of data that only the kernel has, such as the direction of a packet";
    for program in ["2\n40 0 0 4294963204\n6 0 0 1", "2\n48 0 0 4292870144\n6 0 0 1", "2\n177 0 0 4293918720\n6 0 0 1"]
    {
        check(program, ancillary);
    }
    assert_eq!(Disassembly(&assemble("1\n6 0 0 65535").expect("valid")).to_string(), "(000) ret      #65535\n");
}

#[test]
fn tests_as_text_can_be_read_again() {
    let texts = [
        "always",
        "never",
        "[12:2] == 0x800",
        "[12:2] & 0xff0 == 0x800 && [14:1] is there",
        "[(([14:1] & 0xf) << 2) + 16:2] in 0x10..=0x20",
        "[(([14:1] & 0xf0) >> 2) + 16:2] not in 0x10..=0x20 && length != 0x3c",
        // In the book.
        "[12:2] == 0x800 && [23] == 6 && [(([14] & 0xf) << 2) + 16:2] in 80..=443",
    ];
    for text in texts {
        let filter = parse(text).expect("the text is right");
        let printed = filter.to_string();
        assert_eq!(parse(&printed).expect("what is printed can be read"), filter, "{printed}");
    }
    assert_eq!(
        parse("[12] == 1 || !([12:1] in 0..=5)").expect("right").to_string(),
        "[12:1] == 0x1\n|| [12:1] in 0x6..=0xff"
    );
    let wrong = |text: &str, expected: &str| assert_eq!(parse(text).expect_err("wrong").to_string(), expected);
    wrong("[12:2] = 5", "F0002: 1:8: expected `==`, `!=`, `in` or `not in`, found `=`");
    wrong("[12:2] == 5 &&\n  foo", "F0002: 2:3: expected `[`, found `foo`");
    wrong("[12:9] == 5", "F0003: a field of 9 bytes");
    wrong("[12] == 5 5", "F0002: 1:11: expected the end, `&&` or `||`, found `5`");
    wrong(&"(".repeat(10_000), "F0002: 1:65: expected less nesting, found `((((((((((((((((((((`");
    wrong(&"!".repeat(10_000), "F0002: 1:65: expected less nesting, found `!!!!!!!!!!!!!!!!!!!!`");
}

#[test]
fn hostile_text_is_refused() {
    let mut random = Random::new(9);
    let pieces =
        ["[", "]", "(", ")", "12", ":2", "==", "&", "&&", "||", "!", "in", "..=", "length", "0xffffffff", " ", "é"];
    for _ in 0..Effort::wanted().pick(2_000, 50_000, 5_000_000) {
        let text: String = (0..random.below(12)).map(|_| *random.pick(&pieces)).collect();
        let _ = parse(&text);
        let _ = assemble(&text);
    }
}

#[test]
fn expressions_of_tcpdump_become_tests() {
    let Some(pcap) = pcap() else { return };
    let check = |text: &str, expected: &str| {
        let filter = Filter::of_program(&pcap.compile(text, 1).expect("libpcap knows the expression"));
        assert_eq!(filter.to_string(), expected);
    };
    check("ip", "[12:2] == 0x800");
    check("ip or arp", "[12:2] == 0x800\n|| [12:2] == 0x806");
    check("ip and not tcp", "[12:2] == 0x800 && [23:1] != 0x6");
    check("len <= 100", "length in 0x0..=0x64");
    check(
        "udp dst port 53 and ip",
        "[12:2] == 0x800 && [20:2] & 0x1fff == 0x0 && [23:1] == 0x11 && [(([14:1] & 0xf) << 2) + 16:2] == 0x35",
    );
    check("net 10.1.0.0/16 and src portrange 1000-2000 and ip[0] & 0xf != 5", &{
        let filter = Filter::of_program(
            &pcap.compile("net 10.1.0.0/16 and src portrange 1000-2000 and ip[0] & 0xf != 5", 1).expect("known"),
        );
        assert!(matches!(&filter, Filter::Any(all) if all.len() > 1), "{filter}");
        filter.to_string()
    });
    let http = "tcp[((tcp[12] & 0xf0) >> 2):4] = 0x47455420";
    let filter = Filter::of_program(&pcap.compile(http, 1).expect("known"));
    assert!(
        filter.to_string().contains(" & 0xf0) >> 2) + 14:4] =="),
        "a header length from its own upper bits: {filter}"
    );
    let many = (1..200).map(|port| format!("port {port}")).collect::<Vec<_>>().join(" or ");
    assert!(matches!(Filter::of_program(&pcap.compile(&many, 1).expect("known")), Filter::Program(_) | Filter::Any(_)));
    let error = pcap.compile("tcp prot 80", 1).expect_err("it is misspelt");
    assert!(!error.to_string().is_empty());
}

#[test]
fn expressions_have_limits() {
    let port = |port| Scope::packet().equals(0, 2, port);
    let pairs = Expression::All((0..20).map(|at| Expression::Any(vec![port(at), port(at + 1)])).collect());
    assert_eq!(pairs.filter(), Err(Error::Alternatives(65_536)));
    // Each of 65,536 alternatives would have all of these tests, some gigabytes.
    let pairs = (0..16).map(|at| Expression::Any(vec![port(at), port(at + 1)]));
    let many = (0..5000).map(|at| Scope::packet().equals(at, 1, 0));
    assert_eq!(Expression::All(pairs.chain(many).collect()).filter(), Err(Error::Alternatives(65_536)));
    // What has one alternative may be long.
    let long = Expression::All((0..100_000).map(|at| Scope::packet().equals(at, 1, 0)).collect());
    assert!(matches!(long.filter(), Ok(Filter::Any(one)) if one[0].tests().len() == 100_000));
    assert_eq!(Scope::packet().equals(0, 5, 1).filter(), Err(Error::Width(5)));
    for by in [32, 64, 127, -32, -128] {
        let moved = Scope::packet().shift(0, 1, 1, by);
        assert_eq!(moved.equals(0, 1, 0).filter(), Err(Error::Shift(by)));
        let twice = moved.shift(1, 1, 0x0f, 2).field(0, 1);
        assert_eq!(Classifier::new().insert(&Filter::all(vec![Test::equal(twice, 0)]), 0), Err(Error::Shift(by)));
    }
    assert!((port(1) & port(2)).filter().expect("small").is_empty());
    assert!(Scope::packet().equals(0, 2, 0x1_0000).filter().expect("small").is_empty());
}

/// A range that others narrowed to one number, which no byte has under the mask, was taken for that number under the
/// mask.
#[test]
fn a_number_that_is_none_under_the_mask_never_matches() {
    let field = || Field::new(0, 1);
    let within = |low, high| Test { mask: 0xfe, ..Test::range(field(), low, high) };
    let filter = Filter::all(vec![within(1, 0x53), within(0, 1)]);
    assert!(filter.is_empty(), "{filter}");
    // One that some bytes have is an equality.
    let filter = Filter::all(vec![within(1, 0x53), within(0, 2)]);
    let classifier = Classifier::new();
    classifier.insert(&filter, 0).expect("there is room");
    for byte in 0..=u8::MAX {
        let found = classifier.reader().classify(Packet::new(&[byte]));
        assert_eq!(found.id().is_some(), filter.matches(Packet::new(&[byte])), "{byte}: {filter}");
    }
}
