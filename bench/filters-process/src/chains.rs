//! Random chains of the paper's filters, each as an ESP program of one process a filter and as push-style C: every
//! filter is a function that is inlined where the one before it has a byte for it, always. Knows no compiler.

use std::fmt::Write;

/// A filter of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Filter {
    Evener,
    Swap,
    Crc32,
    Rle,
    Rld,
    Pes,
}

/// Most run-length encoders in a chain: each may double the stream.
const MAX_ENCODERS: usize = 3;

/// The filters of a seed: two to six. Only what has just been encoded is decoded, so that the stream does not explode.
fn filters(seed: u64) -> Vec<Filter> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    let length = 2 + random(5) as usize;
    let mut chain: Vec<Filter> = Vec::new();
    while chain.len() < length {
        let encoders = chain.iter().filter(|filter| **filter == Filter::Rle).count();
        match random(6) {
            0 => chain.push(Filter::Evener),
            1 => chain.push(Filter::Swap),
            2 => chain.push(Filter::Crc32),
            3 if encoders < MAX_ENCODERS => chain.push(Filter::Rle),
            4 if chain.last() == Some(&Filter::Rle) => chain.push(Filter::Rld),
            5 => chain.push(Filter::Pes),
            _ => {}
        }
    }
    chain
}

/// The names of a seed's filters.
pub fn names(seed: u64) -> String {
    let names: Vec<String> = filters(seed).iter().map(|filter| format!("{filter:?}").to_lowercase()).collect();
    names.join(" ")
}

/// The body of a filter's process; `FROM` and `TO` stand for its channels.
fn process(filter: Filter) -> &'static str {
    match filter {
        Filter::Evener => {
            "var odd = false;
  while { in(FROM, $byte); if (byte == END) break; out(TO, byte); odd = !odd; }
  if (odd) out(TO, 0);"
        }
        Filter::Swap => {
            "while {
    in(FROM, $first);
    if (first == END) break;
    in(FROM, $second);
    if (second == END) { out(TO, first); break; }
    out(TO, second);
    out(TO, first);
  }"
        }
        Filter::Crc32 => {
            "var table: #array of u32 = #[0; 256], crc = CRC_INITIAL;
  for i in 0..256 { table[i] = crcEntry(u32(i)); }
  while {
    in(FROM, $byte);
    if (byte == END) break;
    crc = table[(crc ^ u32(byte)) & 0xff] ^ (crc >> 8);
    out(TO, byte);
  }
  crc = ~crc;
  for i in 0..4 { out(TO, int(u8(crc >> 8 * i))); }"
        }
        Filter::Rle => {
            "var count = 0, last = 0;
  while {
    in(FROM, $byte);
    if (count > 0 && (byte != last || count == 255)) { out(TO, count); out(TO, last); count = 0; }
    if (byte == END) break;
    last = byte;
    count += 1;
  }"
        }
        Filter::Rld => {
            "while {
    in(FROM, $count);
    if (count == END) break;
    in(FROM, $value);
    if (value == END) break;
    for copy in 0..count { out(TO, value); }
  }"
        }
        Filter::Pes => {
            "const KEY = \"\\x1f\\x2e\\x3d\\x4c\\x5b\\x6a\\x79\\x88\";
  var at = 0;
  while { in(FROM, $byte); if (byte == END) break; out(TO, byte ^ KEY[at]); at = (at + 1) % 8; }"
        }
    }
}

/// The ESP program of a seed.
pub fn esp(seed: u64) -> String {
    let chain = filters(seed);
    let mut text = String::from(
        "const END = -1;
const CRC_INITIAL: u32 = 0xffff_ffff;
fn crcEntry(byte: u32) -> u32 {
  var rest = byte;
  for bit in 0..8 { rest = rest & 1 != 0 ? (rest >> 1) ^ 0xedb8_8320 : rest >> 1; }
  return rest;
}
channel inputC(bytes[<=10000], int) external out;
channel outputC(array[65536] of u8, u32) external in;
channel c0C(int);
process read {
  in(inputC, $data, $times);
  for round in 0..times { for i in 0..data.len { out(c0C, int(data[i])); } }
  out(c0C, END);
}
",
    );
    for (number, filter) in chain.iter().enumerate() {
        let (from, to) = (format!("c{number}C"), format!("c{}C", number + 1));
        let body = process(*filter).replace("FROM", &from).replace("TO", &to);
        writeln!(text, "channel {to}(int);\nprocess filter{number} {{\n  {body}\n  out({to}, END);\n}}")
            .expect("strings take all");
    }
    let last = format!("c{}C", chain.len());
    write!(
        text,
        "process write {{
  var written: #array of u8 = #[0; 65536], count: u32 = 0;
  while {{ in({last}, $byte); if (byte == END) break; written[count & 0xffff] = u8(byte); count += 1; }}
  out(outputC, freeze(written), count);
}}
"
    )
    .expect("strings take all");
    text
}

/// The state of a filter in C, and what it does with a byte; `NEXT(byte)` hands one on, `s` is the state.
fn pushed(filter: Filter) -> (&'static str, &'static str) {
    match filter {
        Filter::Evener => {
            ("int odd;", "if (byte < 0) { if (s->odd) NEXT(0); NEXT(-1); return; } s->odd = !s->odd; NEXT(byte);")
        }
        Filter::Swap => (
            "int full, first;",
            "if (byte < 0) { if (s->full) NEXT(s->first); NEXT(-1); return; }
    if (s->full) { s->full = 0; NEXT(byte); NEXT(s->first); } else { s->full = 1; s->first = byte; }",
        ),
        Filter::Crc32 => (
            "uint32_t crc;",
            "if (byte < 0) { for (int i = 0; i < 4; i++) NEXT((int)(uint8_t)(~s->crc >> 8 * i)); NEXT(-1); return; }
    s->crc = table[(s->crc ^ (uint32_t)byte) & 0xff] ^ (s->crc >> 8);
    NEXT(byte);",
        ),
        Filter::Rle => (
            "int count, last;",
            "if (s->count > 0 && (byte != s->last || s->count == 255)) { NEXT(s->count); NEXT(s->last); s->count = 0; }
    if (byte < 0) { NEXT(-1); return; }
    s->last = byte;
    s->count++;",
        ),
        Filter::Rld => (
            "int full, count;",
            "if (byte < 0) { NEXT(-1); return; }
    if (!s->full) { s->full = 1; s->count = byte; return; }
    s->full = 0;
    for (int copy = 0; copy < s->count; copy++) NEXT(byte);",
        ),
        Filter::Pes => {
            ("uint32_t at;", "if (byte < 0) { NEXT(-1); return; } NEXT(byte ^ KEY[s->at]); s->at = (s->at + 1) & 7;")
        }
    }
}

/// The push-style C program of a seed. Its argument is how many times the array is read; it prints what `main.c` does.
pub fn push_style(seed: u64) -> String {
    let chain = filters(seed);
    let mut text = String::from(include_str!("../chain.h"));
    text += "struct chain {\n    uint32_t written;\n";
    for (number, filter) in chain.iter().enumerate() {
        writeln!(text, "    struct {{ {} }} f{number};", pushed(*filter).0).expect("strings take all");
    }
    text += "};\n";
    let head = "static inline __attribute__((always_inline)) void";
    let last = chain.len();
    let sink = format!(
        "{head} push{last}(struct chain *all, int byte)\n{{\n    \
         if (byte >= 0) written[all->written++ & (SIZE - 1)] = (uint8_t)byte;\n}}\n"
    );
    text += &sink;
    for (number, filter) in chain.iter().enumerate().rev() {
        let code = pushed(*filter)
            .1
            .replace("NEXT(", &format!("push{}(all, ", number + 1))
            .replace("s->", &format!("all->f{number}."));
        writeln!(text, "{head} push{number}(struct chain *all, int byte)\n{{\n    {code}\n}}")
            .expect("strings take all");
    }
    let initial: String = chain
        .iter()
        .enumerate()
        .filter(|(_, filter)| **filter == Filter::Crc32)
        .map(|(number, _)| format!("    all.f{number}.crc = 0xffffffffu;\n"))
        .collect();
    write!(
        text,
        "static uint32_t run(uint32_t times)
{{
    struct chain all = {{0}};
{initial}    make_table();
    for (uint32_t round = 0; round < times; round++)
        for (uint32_t i = 0; i < LENGTH; i++) push0(&all, input[i]);
    push0(&all, -1);
    return all.written;
}}
"
    )
    .expect("strings take all");
    text
}
