//! Rules as C for the kernel: `clang -target bpf` compiles it to a program that the eXpress Data Path runs for each
//! packet that arrives. Every filter becomes straight-line code whose bounds checks the kernel's verifier can follow;
//! the first filter that matches determines the result. Knows neither the kernel nor a compiler.
//!
//! ```text
//! qj_rule(data, end)     the number of the first rule that matches, else QJ_RULES: for programs of one's own, which
//!                        define QJ_RULES_ONLY and include the file
//! xdp section            counts packets by rule in the map qj_counts, and does what the map qj_actions says of the
//!                        rule: an XDP action; passes where that is zero
//! ```
//!
//! A frame is its linear part; bytes from [`REACH`] on count as absent.

use crate::bpf::{Arithmetic, Condition, Operand, Operation, Program, Size};
use crate::ir::{Base, Conjunction, Field, Filter, Sense, Subject, Test};
use std::fmt;
use std::fmt::Write as _;

/// The limit on offsets: the verifier allows two additions of this size to a packet pointer.
pub const REACH: u64 = 0x7fff;

/// The limit on checks: comparisons, and tests that a load is inside the frame. The verifier follows every path, and
/// keeps at most 8192 branches of one path; with twice as many instructions for each, jumps stay in the range of 16
/// bits.
pub const MAX_CHECKS: usize = 4096;

/// Why a filter cannot be compiled for XDP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum XdpProblem {
    /// It is a program with loops.
    Loop,
    /// With it, the filters have more than [`MAX_CHECKS`] checks.
    TooLong,
}

/// A filter that cannot be compiled for XDP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XdpError {
    /// The index of the filter, from zero.
    pub filter: usize,
    /// The cause.
    pub problem: XdpProblem,
}

impl fmt::Display for XdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            XdpProblem::Loop => write!(f, "XDP programs are generated without loops, and this filter has one"),
            XdpProblem::TooLong => write!(
                f,
                "with this filter, the program has more than {MAX_CHECKS} checks: the kernel's verifier cannot follow it"
            ),
        }
    }
}

impl std::error::Error for XdpError {}

impl XdpError {
    /// The help text.
    pub fn help(&self) -> &'static str {
        match self.problem {
            XdpProblem::Loop => "leave out `protochain`, or name the headers that may come",
            XdpProblem::TooLong => "export fewer rules; `qj filter --xdp` applies any number of them by AF_XDP",
        }
    }
}

const BEFORE: &str = r#"#include <linux/bpf.h>
#include <linux/types.h>

#define QJ_INLINE static inline __attribute__((always_inline))
/* Keeps the compiler from looking behind a value: the verifier has to see the bound that was just checked. Each check of
   the length has a pointer of its own: the compiler would keep the outcome of an earlier one, as a bit that means nothing
   to the verifier. */
#define QJ_HIDE(value) __asm__ volatile("" : "+r"(value))
#define QJ_1(at) ((__u32)*(const __u8 *)(at))
#define QJ_2(at) ((__u32)__builtin_bswap16(*(const __u16 *)(at)))
#define QJ_3(at) (QJ_1(at) << 16 | QJ_1((at) + 1) << 8 | QJ_1((at) + 2))
#define QJ_4(at) ((__u32)__builtin_bswap32(*(const __u32 *)(at)))

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "compile it with -target bpfel"
#endif
"#;

const AFTER: &str = r#"
#ifndef QJ_RULES_ONLY
struct {
    int (*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
    int (*max_entries)[QJ_RULES + 1];
    __u32 *key;
    __u64 *value;
} qj_counts __attribute__((section(".maps"), used));

struct {
    int (*type)[BPF_MAP_TYPE_ARRAY];
    int (*max_entries)[QJ_RULES + 1];
    __u32 *key;
    __u32 *value;
} qj_actions __attribute__((section(".maps"), used));

static void *(*qj_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;

__attribute__((section("xdp"), used)) int qj_filter(struct xdp_md *context) {
    __u32 rule = qj_rule((const __u8 *)(long)context->data, (const __u8 *)(long)context->data_end);
    __u64 *count = qj_lookup(&qj_counts, &rule);
    if (count) ++*count;
    __u32 *action = qj_lookup(&qj_actions, &rule);
    return action && *action ? *action : XDP_PASS;
}

char qj_license[] __attribute__((section("license"), used)) = "Dual MIT/GPL";
#endif
"#;

/// C for these filters, the first with the highest priority. Names appear in comments only.
///
/// # Errors
/// [`XdpError`] if a filter is a program with loops, or the kernel could not load so many checks.
pub fn source(filters: &[(&str, &Filter)]) -> Result<String, XdpError> {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "/* Rules for XDP, made by qj: clang -O2 -g -target bpf -c FILE. */\n#define QJ_RULES {}",
        filters.len()
    );
    text.push_str(BEFORE);
    let mut checks = 0;
    for (number, (name, filter)) in filters.iter().enumerate() {
        let written = text.len();
        let name: String = name.chars().map(|own| if own == '*' || own.is_control() { ' ' } else { own }).collect();
        let _ = writeln!(text, "\n/* {name} */");
        let _ = writeln!(text, "QJ_INLINE int qj_rule_{number}(const __u8 *data, const __u8 *end) {{");
        text.push_str("    (void)data, (void)end;\n");
        match filter {
            Filter::Any(conjunctions) => {
                for conjunction in conjunctions {
                    CWriter { text: &mut text, bases: Vec::new() }.conjunction(conjunction);
                }
                text.push_str("    return 0;\n}\n");
            }
            Filter::Program(own) if own.is_acyclic() => program(&mut text, own),
            Filter::Program(_) => return Err(XdpError { filter: number, problem: XdpProblem::Loop }),
        }
        checks += text[written..].matches("if (").count();
        if checks > MAX_CHECKS {
            return Err(XdpError { filter: number, problem: XdpProblem::TooLong });
        }
    }
    text.push_str("\nQJ_INLINE __u32 qj_rule(const __u8 *data, const __u8 *end) {\n    (void)data, (void)end;\n");
    for number in 0..filters.len() {
        let _ = writeln!(text, "    if (qj_rule_{number}(data, end)) return {number};");
    }
    text.push_str("    return QJ_RULES;\n}\n");
    text.push_str(AFTER);
    Ok(text)
}

/// Writes a conjunction: a block that is left if a test fails.
struct CWriter<'t> {
    text: &'t mut String,
    /// The bases whose pointers are computed already.
    bases: Vec<Base>,
}

impl CWriter<'_> {
    fn line(&mut self, line: fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "        {line}");
    }

    fn conjunction(&mut self, conjunction: &Conjunction) {
        self.text
            .push_str("    do {\n        const __u8 *start = data;\n        QJ_HIDE(start);\n        (void)start;\n");
        for test in conjunction.tests() {
            self.test(test);
        }
        self.text.push_str("        return 1;\n    } while (0);\n");
    }

    fn test(&mut self, test: &Test) {
        let number = match &test.subject {
            Subject::Field(field) => self.load(field),
            Subject::Length => "(__u32)(end - data)".to_owned(),
        };
        let Test { mask, low, high, .. } = test;
        let number = format!("({number} & {mask:#x}u)");
        let inside = if low == high {
            format!("{number} == {low:#x}u")
        } else {
            // One comparison: numbers below the range wrap around.
            format!("{number} - {low:#x}u <= {:#x}u", high.wrapping_sub(*low))
        };
        match test.sense {
            Sense::Inside => self.line(format_args!("if (!({inside})) break;")),
            Sense::Outside => self.line(format_args!("if ({inside}) break;")),
        }
    }

    /// The expression that loads a field, after its bounds check.
    fn load(&mut self, field: &Field) -> String {
        let base = self.base(&field.base);
        if field.end() > REACH {
            self.line(format_args!("break; /* further than XDP reaches */"));
            return "0".to_owned();
        }
        self.line(format_args!("if ({base} + {} > end) break;", field.end()));
        format!("QJ_{}({base} + {})", field.width, field.offset)
    }

    /// The pointer for a base.
    fn base(&mut self, base: &Base) -> String {
        if *base == Base::START {
            return "start".to_owned();
        }
        if let Some(at) = self.bases.iter().position(|own| own == base) {
            return format!("base_{at}");
        }
        let mut sum = Vec::new();
        for term in base.terms() {
            let number = self.load(&term.field);
            let sign = if term.shift < 0 { ">>" } else { "<<" };
            sum.push(format!("((__u64)({number} & {:#x}u) {sign} {})", term.mask, term.shift.unsigned_abs()));
        }
        // The bases of its terms come first.
        let at = self.bases.len();
        self.bases.push(base.clone());
        self.line(format_args!("__u64 offset_{at} = {};", sum.join(" + ")));
        self.line(format_args!("QJ_HIDE(offset_{at});"));
        self.line(format_args!("if (offset_{at} > {REACH}) break;"));
        self.line(format_args!("QJ_HIDE(offset_{at});"));
        self.line(format_args!("offset_{at} &= {REACH};"));
        self.line(format_args!("const __u8 *base_{at} = start + offset_{at};"));
        self.line(format_args!("QJ_HIDE(base_{at});"));
        format!("base_{at}")
    }
}

/// A classic BPF program, instruction by instruction.
fn program(text: &mut String, program: &Program) {
    text.push_str("    __u32 a = 0, x = 0, m[16] = {0};\n    __u64 o = 0;\n    const __u8 *p = data;\n");
    text.push_str("    (void)a, (void)x, (void)m, (void)o, (void)p;\n");
    const START: &str = "p = data; QJ_HIDE(p);";
    let operations = program.operations();
    let operand = |operand: &Operand| match operand {
        Operand::Constant(k) => format!("{k:#x}u"),
        Operand::Index => "x".to_owned(),
    };
    let there = |base: &str, end: u64| format!("if ({base} + {end} > end) return 0;");
    for (at, operation) in operations.iter().enumerate() {
        let load = |size: &Size, k: u32| format!("a = QJ_{}(p + {k});", size.bytes());
        let line = match operation {
            Operation::LoadConstant(k) => format!("a = {k:#x}u;"),
            Operation::LoadAbsolute(size, k) => match u64::from(*k) + u64::from(size.bytes()) {
                end if end > REACH => "return 0;".to_owned(),
                end => format!("{START} {} {}", there("p", end), load(size, *k)),
            },
            // The sum stays below 2^33.
            Operation::LoadIndirect(size, k) => format!(
                "o = (__u64)x + {k:#x}u; QJ_HIDE(o); if (o > {REACH}) return 0; QJ_HIDE(o); o &= {REACH}; \
                 p = data + o; QJ_HIDE(p); {} a = QJ_{}(p);",
                there("p", size.bytes().into()),
                size.bytes()
            ),
            Operation::LoadLength => "a = (__u32)(end - data);".to_owned(),
            Operation::LoadMemory(k) => format!("a = m[{k}];"),
            Operation::IndexConstant(k) => format!("x = {k:#x}u;"),
            Operation::IndexLength => "x = (__u32)(end - data);".to_owned(),
            Operation::IndexMemory(k) => format!("x = m[{k}];"),
            Operation::IndexHeader(k) => match u64::from(*k) + 1 {
                end if end > REACH => "return 0;".to_owned(),
                end => format!("{START} {} x = (QJ_1(p + {k}) & 15) << 2;", there("p", end)),
            },
            Operation::Store(k) => format!("m[{k}] = a;"),
            Operation::StoreIndex(k) => format!("m[{k}] = x;"),
            Operation::Arithmetic(arithmetic, by) => {
                let by = operand(by);
                match arithmetic {
                    Arithmetic::Add => format!("a += {by};"),
                    Arithmetic::Sub => format!("a -= {by};"),
                    Arithmetic::Mul => format!("a *= {by};"),
                    Arithmetic::Div => format!("if ({by} == 0) return 0; a /= {by};"),
                    Arithmetic::Mod => format!("if ({by} == 0) return 0; a %= {by};"),
                    Arithmetic::And => format!("a &= {by};"),
                    Arithmetic::Or => format!("a |= {by};"),
                    Arithmetic::Xor => format!("a ^= {by};"),
                    Arithmetic::Lsh => format!("a = {by} > 31 ? 0 : a << ({by} & 31);"),
                    Arithmetic::Rsh => format!("a = {by} > 31 ? 0 : a >> ({by} & 31);"),
                }
            }
            Operation::Negate => "a = -a;".to_owned(),
            Operation::Jump(by) => format!("goto l{};", at as i64 + 1 + i64::from(*by)),
            Operation::Branch(condition, by, jt, jf) => {
                let by = operand(by);
                let holds = match condition {
                    Condition::Equal => format!("a == {by}"),
                    Condition::Greater => format!("a > {by}"),
                    Condition::GreaterEqual => format!("a >= {by}"),
                    Condition::Set => format!("a & {by}"),
                };
                format!("if ({holds}) goto l{}; goto l{};", at + 1 + usize::from(*jt), at + 1 + usize::from(*jf))
            }
            Operation::Return(k) => format!("return {};", u32::from(*k != 0)),
            Operation::ReturnAccumulator => "return a != 0;".to_owned(),
            Operation::Tax => "x = a;".to_owned(),
            Operation::Txa => "a = x;".to_owned(),
        };
        let _ = writeln!(text, "l{at}: __attribute__((unused));\n    {line}");
    }
    // Valid programs end with a return; the compiler may not see it.
    text.push_str("    return 0;\n}\n");
}
