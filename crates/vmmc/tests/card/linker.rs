//! The linker: what it places and writes, and where and why it refuses. Objects are made by clang, and broken ones from
//! those.

use crate::common::{BASE, MEMORY_BYTES, clang, compile, runtime};
use fastrand::Rng;
use quaject_test_support::Effort;
use quaject_vmmc::lanai::Lanai;
use quaject_vmmc::{Image, LinkError, Memory, ObjectFile, Processor, Stop, link};

fn link_sources(clang: &str, sources: &[&str]) -> Result<Image, Vec<String>> {
    let objects: Vec<Vec<u8>> = sources.iter().map(|source| compile(clang, source, "-O2")).collect();
    let names = ["first.o", "second.o", "third.o"];
    let files: Vec<ObjectFile<'_>> =
        names.iter().zip(&objects).map(|(name, bytes)| ObjectFile { name, bytes }).collect();
    link(&files, BASE, MEMORY_BYTES).map_err(texts)
}

fn texts(errors: Vec<LinkError>) -> Vec<String> {
    errors.iter().map(LinkError::to_string).collect()
}

fn run(image: &Image) -> Result<Stop, quaject_vmmc::Fault> {
    let mut memory = Memory::new(MEMORY_BYTES as usize);
    memory.bytes_mut()[image.base as usize..image.end() as usize].copy_from_slice(&image.bytes);
    let mut lanai = Lanai::new();
    lanai.start(&mut memory, image.symbols["main"], MEMORY_BYTES)?;
    lanai.run(&mut memory, 20_000)
}

const MAIN: &str = "extern int value; extern const int *const place; int twice(int); int main(void);
    static int zeros[5]; static int local(int x) { return x + zeros[2]; }
    int main(void) { return twice(value) + *place + local(1); }";
const OTHERS: &str = "int value = 20; static const int table[] = {1, 2, 3}; extern const int *const place;
    const int *const place = table + 2; int twice(int x); int twice(int x) { return x + x; }";

#[test]
fn objects_refer_to_each_other() {
    let Some(clang) = clang() else { return };
    for sources in [[MAIN, OTHERS], [OTHERS, MAIN]] {
        let image = link_sources(clang, &sources).expect("all symbols are defined");
        assert_eq!(run(&image), Ok(Stop::Returned(44)));
        let (value, main) = (image.symbols["value"], image.symbols["main"]);
        assert!(main >= BASE && main < BASE + image.code_bytes && value >= BASE + image.code_bytes, "code, then data");
        assert!(!image.symbols.contains_key("local"), "a symbol of one object");
    }
}

#[test]
fn weak_symbols_yield() {
    let Some(clang) = clang() else { return };
    let weak = "__attribute__((weak)) int twice(int x); __attribute__((weak)) int twice(int x) { return x; }";
    for sources in [[MAIN, weak, OTHERS], [weak, MAIN, OTHERS], [OTHERS, MAIN, weak]] {
        assert_eq!(run(&link_sources(clang, &sources).expect("one definition is global")), Ok(Stop::Returned(44)));
    }
    let absent = "__attribute__((weak)) extern int absent; int main(void); int main(void) { return &absent == 0; }";
    assert_eq!(run(&link_sources(clang, &[absent]).expect("a weak symbol may be absent")), Ok(Stop::Returned(1)));
}

#[test]
fn errors_have_place_and_cause() {
    let Some(clang) = clang() else { return };
    let refused = |sources: &[&str]| link_sources(clang, sources).expect_err("it cannot be linked");
    let undefined = refused(&[MAIN]);
    assert!(
        undefined.iter().any(|text| text == "first.o:.text+0xc: symbol `value` is defined by no object"),
        "{undefined:#?}"
    );
    assert_eq!(refused(&[MAIN, OTHERS, "int value = 3;"]), ["third.o: symbol `value` is also defined by `second.o`"]);
    assert_eq!(
        refused(&["__attribute__((common)) int shared; int main(void); int main(void) { return shared; }"]),
        ["first.o: symbol `shared` is common; compile with `-fno-common`"]
    );
    let large = refused(&["char large[2000000]; int main(void); int main(void) { return large[0]; }"]);
    assert!(large[0].starts_with("first.o: the program ends at 0x1e9"), "{large:#?}");
    assert!(large[0].ends_with(", after the end 0x100000 of memory"), "{large:#?}");
    // Compiled as `mov`, which has no room for the address of a label.
    let label = "int f(void); int f(void) { void *volatile p = &&here; goto *p; here: return 5; }";
    let texts = refused(&[label]);
    assert!(texts[0].contains("relocation R_LANAI_21 is not for the instruction"), "{texts:#?}");
}

#[test]
fn other_objects_are_refused() {
    let Some(clang) = clang() else { return };
    let cause = |bytes: &[u8]| {
        texts(link(&[ObjectFile { name: "x.o", bytes }], BASE, MEMORY_BYTES).expect_err("it is no object of LANai"))
            .join(" ")
    };
    let start = "x.o: not a relocatable object of LANai: ";
    assert!(cause(b"").starts_with(start));
    assert!(cause(b"int main(void);").starts_with(start));
    let object = compile(clang, "int main(void); int main(void) { return 1; }", "-O2");
    let mut other = object.clone();
    other[19] = 2;
    assert_eq!(cause(&other), format!("{start}its machine is number 2"));
    let mut linked = object;
    linked[17] = 2;
    assert_eq!(cause(&linked), format!("{start}it is linked already"));
}

/// Bytes that are changed anywhere give an error or an image, and images run or fault: nothing panics or hangs.
#[test]
fn broken_objects_are_errors() {
    let Some(clang) = clang() else { return };
    let object = compile(clang, MAIN, "-O0");
    let others = compile(clang, OTHERS, "-O0");
    let mut rng = Rng::with_seed(12);
    let (mut refused, mut returned, mut faulted) = (0, 0, 0);
    for _ in 0..Effort::wanted().pick(1_000, 2_500, 1_000_000) {
        let mut bytes = object.clone();
        for _ in 0..rng.usize(1..4) {
            let position = rng.usize(0..bytes.len());
            bytes[position] = if rng.bool() { rng.u8(..) } else { bytes[position] ^ 1 << rng.u8(0..8) };
        }
        if rng.u8(0..8) == 0 {
            bytes.truncate(rng.usize(0..bytes.len()));
        }
        let files = [
            ObjectFile { name: "broken.o", bytes: &bytes },
            ObjectFile { name: "others.o", bytes: &others },
            ObjectFile { name: "runtime.o", bytes: runtime(clang) },
        ];
        match link(&files, BASE, MEMORY_BYTES) {
            Err(errors) => refused += usize::from(!errors.is_empty()),
            Ok(image) if !image.symbols.contains_key("main") => {}
            Ok(image) => match run(&image) {
                Ok(_) => returned += 1,
                Err(_) => faulted += 1,
            },
        }
    }
    assert!(refused > 50 && returned > 50 && faulted > 50, "{refused} {returned} {faulted}");
}

/// Memory full of random words: any program ends with a value, a fault or its limit.
#[test]
fn wild_programs_are_errors() {
    let mut rng = Rng::with_seed(9);
    for _ in 0..Effort::wanted().pick(300, 1_000, 100_000) {
        let mut memory = Memory::new(1 << 12);
        for byte in memory.bytes_mut() {
            *byte = rng.u8(..);
        }
        let mut lanai = Lanai::new();
        lanai.start(&mut memory, rng.u32(0..1 << 10) * 4, 1 << 12).expect("the stack is in memory");
        match lanai.run(&mut memory, 2_000) {
            Ok(Stop::Limit) => assert!((2_000..2_004).contains(&lanai.cycle())),
            Ok(Stop::Returned(_)) => {}
            Ok(Stop::Paused) => panic!("memory does not ask to wait"),
            Err(fault) => assert!(!fault.to_string().is_empty()),
        }
    }
}
