//! Reads specification files: resolves names and checks operands, so that printers cannot fail on them.

mod byte_encoding;

use byte_encoding::byte_insn;

use crate::expand::expand;
use crate::expr::{self, Defs, Expr};
use crate::extension::{self, PortableRow};
use crate::model::*;
use crate::portable::operand_class;
use crate::{Source, SpecError};

/// Lines with continuation joined and comments removed: number of the first line, text.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut continued = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("");
        let (line, continues) = match line.trim_end().strip_suffix('\\') {
            Some(start) => (start, true),
            None => (line.trim_end(), false),
        };
        match lines.last_mut() {
            Some((_, joined)) if continued => {
                // A mnemonic belongs to the name before it.
                if !joined.ends_with(':') {
                    joined.push(' ');
                }
                joined.push_str(line.trim());
            }
            _ => lines.push((index + 1, line.to_string())),
        }
        continued = continues;
    }
    lines.retain(|(_, line)| !line.trim().is_empty());
    lines
}

/// Reads `portable.spec` and extension layers: operations, and portable rows.
pub(crate) fn portable(sources: &[Source]) -> Result<(Vec<PortableOp>, Vec<PortableRow>), SpecError> {
    let mut ops: Vec<PortableOp> = Vec::new();
    let mut rows: Vec<PortableRow> = Vec::new();
    for (layer, source) in sources.iter().enumerate() {
        for (line, text) in logical_lines(&source.text) {
            let mut read = || -> Result<(), String> {
                let (head, body) = text.split_once(":=").map_or((text.as_str(), None), |(head, row)| (head, Some(row)));
                let words: Vec<&str> = head.split_whitespace().collect();
                // Further types of an existing operation: `default NAME TYPES := ...`.
                let op = match words.first() {
                    Some(&"default") => {
                        let known = words.get(1).and_then(|name| ops.iter().find(|op| op.name == *name)).cloned();
                        let mut op = known.ok_or("no such operation above this line")?;
                        op.types = words[2..].iter().filter_map(|word| Type::from_letters(word)).collect();
                        op
                    }
                    Some(_) | None => {
                        let layer = match layer {
                            0 => Layer::Core,
                            1 => Layer::Extension,
                            _ => Layer::Vector,
                        };
                        let op = PortableOp { layer, ..portable_op(head)? };
                        ops.push(op.clone());
                        op
                    }
                };
                if let Some(body) = body {
                    for ty in &op.types {
                        rows.push(extension::row(body, &op, *ty, &ops)?);
                    }
                }
                Ok(())
            };
            read().map_err(|message| SpecError { file: source.name.clone(), line, message })?;
        }
    }
    Ok((ops, rows))
}

fn portable_op(text: &str) -> Result<PortableOp, String> {
    let mut words = text.split_whitespace().peekable();
    let family = match words.next().unwrap_or("") {
        "binary" => Family::Binary,
        "shift" => Family::Shift,
        "unary" => Family::Unary,
        "set" => Family::Set,
        "convert" => Family::Convert,
        "load" => Family::Load,
        "store" => Family::Store,
        "return" => Family::Return,
        "branch" => Family::Branch,
        "label" => Family::Label,
        "register" => Family::Register,
        "nullary" => Family::Nullary,
        "select" => Family::Select,
        "checked" => Family::Checked,
        "exchange" => Family::Exchange,
        "loadx" => Family::IndexedLoad,
        "storex" => Family::IndexedStore,
        "hint" => Family::Hint,
        "vbinary" => Family::Vector(Shape::Binary),
        "vaccumulate" => Family::Vector(Shape::Accumulate),
        "vunary" => Family::Vector(Shape::Unary),
        "vwiden" => Family::Vector(Shape::Widen),
        "vshift" => Family::Vector(Shape::Shift),
        "vclear" => Family::Vector(Shape::Clear),
        "vload" => Family::Vector(Shape::Load),
        "vstore" => Family::Vector(Shape::Store),
        "vloadm" => Family::Vector(Shape::MaskedLoad),
        "vstorem" => Family::Vector(Shape::MaskedStore),
        "vsplat" => Family::Vector(Shape::Splat),
        "vreduce" => Family::Vector(Shape::Reduce),
        "vbranch" => Family::Vector(Shape::Branch),
        other => return Err(format!("no operand family named `{other}`")),
    };
    let name = words.next().ok_or("expected the name of an operation")?.to_string();
    let mut types = Vec::new();
    while let Some(ty) = words.peek().and_then(|word| Type::from_letters(word)) {
        types.push(ty);
        words.next();
    }
    if types.is_empty() {
        return Err(format!("`{name}` has no types"));
    }
    Ok(PortableOp { family, name, types, doc: words.collect::<Vec<_>>().join(" "), layer: Layer::Core })
}

/// Reads a machine, from its file and those that extend it.
pub(crate) fn machine(files: &[Source], ops: &[PortableOp], rows: &[PortableRow]) -> Result<Machine, SpecError> {
    let Some(first) = files.first() else {
        return Err(SpecError { file: String::new(), line: 0, message: "a machine has at least one file".into() });
    };
    let mut reader = Reader::new(first, ops);
    for source in files {
        for (line, text) in logical_lines(&source.text) {
            let result = expand(&text).and_then(|lines| lines.iter().try_for_each(|text| reader.line(line, text)));
            result.map_err(|message| SpecError { file: source.name.clone(), line, message })?;
        }
    }
    reader.machine.portable_rows = rows.to_vec();
    reader.finish().map_err(|message| SpecError { file: first.name.clone(), line: 0, message })
}

struct Reader<'a> {
    ops: &'a [PortableOp],
    defs: Defs,
    machine: Machine,
}

impl<'a> Reader<'a> {
    fn new(source: &Source, ops: &'a [PortableOp]) -> Self {
        let mut reader = Reader {
            ops,
            defs: Defs::new(),
            machine: Machine {
                name: String::new(),
                file: source.name.clone(),
                code: Code::Bytes,
                long: 64,
                prefix: String::new(),
                sets: Vec::new(),
                fields: Vec::new(),
                temp: Vec::new(),
                saved: Vec::new(),
                ftemp: Vec::new(),
                fsaved: Vec::new(),
                args: Vec::new(),
                fargs: Vec::new(),
                special: Special::default(),
                features: Vec::new(),
                widths: Vec::new(),
                insns: Vec::new(),
                layer: InsnLayer::Rows,
                rows: Vec::new(),
                portable_rows: Vec::new(),
            },
        };
        for text in ["sext32(v) = ((v & 0xffffffff) ^ 0x80000000) - 0x80000000", "u32(v) = (v & 0xffffffff) == v"] {
            reader.def(text).expect("the built-in macros are well-formed");
        }
        reader
    }

    fn line(&mut self, line: usize, text: &str) -> Result<(), String> {
        let (key, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let rest = rest.trim();
        match key {
            "machine" => self.machine.name = rest.to_string(),
            "code" => {
                self.machine.code = match rest {
                    "word little" => Code::Word { little: true },
                    "word big" => Code::Word { little: false },
                    "bytes little" => Code::Bytes,
                    other => return Err(format!("no code layout `{other}`")),
                }
            }
            "long" => self.machine.long = rest.parse().map_err(|_| format!("`{rest}` is not a number of bits"))?,
            "prefix" => self.machine.prefix = rest.to_string(),
            "names" => self.names(rest)?,
            "temp" => self.machine.temp = self.registers(rest, Class::Int)?,
            "saved" => self.machine.saved = self.registers(rest, Class::Int)?,
            "ftemp" => self.machine.ftemp = self.registers(rest, Class::Float)?,
            "fsaved" => self.machine.fsaved = self.registers(rest, Class::Float)?,
            "args" => self.machine.args = self.registers(rest, Class::Int)?,
            "fargs" => self.machine.fargs = self.registers(rest, Class::Float)?,
            "special" => self.special(rest)?,
            "vector" => self.vector(rest)?,
            "layer" => {
                self.machine.layer = match (rest, self.machine.code) {
                    ("system", Code::Bytes) => InsnLayer::System,
                    ("system", Code::Word { .. }) => return Err("the system layer is for code of bytes".into()),
                    (other, _) => return Err(format!("no layer `{other}` of machine instructions")),
                }
            }
            "features" => self.machine.features.extend(rest.split_whitespace().map(str::to_string)),
            "field" => self.field(rest)?,
            "def" => self.def(rest)?,
            "insn" => self.insn(rest)?,
            op => self.row(line, op, rest)?,
        }
        Ok(())
    }

    fn finish(self) -> Result<Machine, String> {
        for (op, ty) in [("enter", Type::V), ("leave", Type::V), ("return", Type::V), ("set", Type::L)] {
            if self.machine.row(op, ty).is_none() {
                return Err(format!("row `{op} {}` is missing: functions cannot do without", ty.letters()));
            }
        }
        let has = |op| self.machine.row(op, Type::V).is_some();
        for (store, load) in [("save_link", "restore_link"), ("save_special", "restore_special")] {
            if has(store) != has(load) {
                return Err(format!("rows `{store} v` and `{load} v` go together"));
            }
        }
        if has("save_link") && self.machine.special.link.is_some() {
            return Err("the return address is in a register: `link=` or rows, not both".into());
        }
        Ok(self.machine)
    }

    /// A width of vectors: also a feature, which a function has while it is selected.
    fn vector(&mut self, rest: &str) -> Result<(), String> {
        let mut words = rest.split_whitespace();
        let width = words.next().ok_or("expected a number of bits")?;
        let bits = width.parse().map_err(|_| format!("`{width}` is not a number of bits"))?;
        let needs: Vec<String> = words.map(str::to_string).collect();
        if let Some(name) = needs.iter().find(|name| self.machine.feature(name).is_none()) {
            return Err(format!("no `features {name}` above this line"));
        }
        self.machine.features.push(format!("v{bits}"));
        self.machine.widths.push((bits, needs));
        Ok(())
    }

    fn names(&mut self, rest: &str) -> Result<(), String> {
        let mut words = rest.split_whitespace();
        let name = words.next().ok_or("expected the name of a set")?.to_string();
        let class = match words.next() {
            Some("int") => Class::Int,
            Some("float") => Class::Float,
            _ => return Err("expected `int` or `float`".into()),
        };
        let names = words.map(name_range).collect::<Result<Vec<_>, _>>()?.concat();
        self.machine.sets.push(NameSet { name, class, names });
        Ok(())
    }

    fn registers(&self, rest: &str, class: Class) -> Result<Vec<u32>, String> {
        let names = rest.split_whitespace().map(name_range).collect::<Result<Vec<_>, _>>()?.concat();
        names.iter().map(|name| self.register_of(name, class)).collect()
    }

    fn register_of(&self, name: &str, class: Class) -> Result<u32, String> {
        match self.machine.register(name) {
            Some((number, own)) if own == class => Ok(number),
            Some(_) => Err(format!("register `{name}` is of the wrong file")),
            None => Err(format!("no register named `{name}`")),
        }
    }

    fn special(&mut self, rest: &str) -> Result<(), String> {
        for word in rest.split_whitespace() {
            let (duty, name) = word.split_once('=').ok_or_else(|| format!("expected duty=register, found `{word}`"))?;
            let class = if matches!(duty, "z" | "fresult") { Class::Float } else { Class::Int };
            let number = self.register_of(name, class)?;
            match duty {
                "stack" => self.machine.special.stack = number,
                "link" => self.machine.special.link = Some(number),
                "x" => self.machine.special.x = number,
                "y" => self.machine.special.y = number,
                "z" => self.machine.special.z = number,
                "result" => self.machine.special.result = number,
                "fresult" => self.machine.special.fresult = number,
                other => return Err(format!("no duty `{other}`")),
            }
        }
        Ok(())
    }

    fn field(&mut self, rest: &str) -> Result<(), String> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [name, kind, places] = words[..] else { return Err("expected name, kind and bits".into()) };
        let pieces = places
            .split(',')
            .map(|piece| {
                let (high, low) = piece.split_once(':').unwrap_or((piece, piece));
                match (high.parse(), low.parse()) {
                    (Ok(high), Ok(low)) if high >= low && high < 32 => Ok((high, low)),
                    _ => Err(format!("`{piece}` is not a run of bits")),
                }
            })
            .collect::<Result<Vec<Piece>, _>>()?;
        let width: u32 = pieces.iter().map(|(high, low)| high - low + 1).sum();
        let kind = self.field_kind(kind, width)?;
        self.machine.fields.push(Field { name: name.to_string(), kind, pieces });
        Ok(())
    }

    fn field_kind(&self, text: &str, width: u32) -> Result<Kind, String> {
        if let Some(set) = self.machine.sets.iter().position(|set| set.name == text) {
            return Ok(Kind::Register(set));
        }
        let digits = text.find(|c: char| c.is_ascii_digit()).ok_or_else(|| format!("no field kind `{text}`"))?;
        let (prefix, rest) = text.split_at(digits);
        let (rest, origin) = match rest.find(['+', '-']) {
            Some(at) => (&rest[..at], rest[at..].parse().map_err(|_| format!("bad origin in `{text}`"))?),
            None => (rest, 0),
        };
        let (bits, divisor) = rest.split_once('/').unwrap_or((rest, "1"));
        let bits: u32 = bits.parse().map_err(|_| format!("bad width in `{text}`"))?;
        let scale = match divisor.parse::<u32>() {
            Ok(divisor) if divisor.is_power_of_two() => divisor.trailing_zeros(),
            _ => return Err(format!("bad divisor in `{text}`")),
        };
        let relative = |part| Kind::Relative { bits, scale, origin, part };
        let kind = match prefix {
            "s" => Kind::Signed { bits, scale },
            "u" => Kind::Unsigned { bits, scale },
            "down" => Kind::Down { bits },
            "rel" => relative(Part::Whole),
            "relhi" => relative(Part::High { low: 32 - bits }),
            "rello" => relative(Part::Low),
            other => return Err(format!("no field kind `{other}`")),
        };
        // A signed low part may sit in a wider field.
        let fits = if prefix == "rello" { bits <= width } else { bits - scale == width };
        if !fits {
            return Err(format!("`{text}` has {} bits but {width} places", bits - scale));
        }
        Ok(kind)
    }

    fn def(&mut self, rest: &str) -> Result<(), String> {
        let (head, body) = rest.split_once('=').ok_or("expected name(parameter) = expression")?;
        let (name, parameter) = head
            .trim()
            .strip_suffix(')')
            .and_then(|head| head.split_once('('))
            .ok_or("expected name(parameter) before `=`")?;
        let body = expr::parse(body, &self.defs)?;
        self.defs.insert(name.trim().to_string(), (parameter.trim().to_string(), body));
        Ok(())
    }

    fn insn(&mut self, rest: &str) -> Result<(), String> {
        let (names, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let (name, mnemonic) = names.split_once(':').unwrap_or((names, names));
        if self.machine.insns.iter().any(|insn| insn.name == name) {
            return Err(format!("`{name}` is defined twice"));
        }
        let (encoding, operands, text, letters) = match self.machine.code {
            Code::Word { .. } => {
                let (encoding, operands, text) = self.word_insn(rest.trim())?;
                (encoding, operands, text, Vec::new())
            }
            Code::Bytes => byte_insn(&self.machine.sets, rest.trim())?,
        };
        let short = matches!(&encoding, Encoding::Bytes(tokens) if tokens.iter().any(Token::is_system));
        if short && self.machine.layer != InsnLayer::System {
            return Err(format!("`{name}` has `r`, `m[s+i]`, `[i]` or `[t*8+i]`, which are for the system layer"));
        }
        self.machine.insns.push(Insn {
            name: name.into(),
            mnemonic: mnemonic.replace('~', " "),
            encoding,
            operands,
            text,
            letters,
            layer: self.machine.layer,
        });
        Ok(())
    }

    fn word_insn(&self, rest: &str) -> Result<(Encoding, Vec<Operand>, Vec<Segment>), String> {
        let (bits, operand_text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let mut word = 0_u32;
        for part in bits.split('+') {
            word |= u32::from_str_radix(part, 16).map_err(|_| format!("`{part}` is not a hexadecimal word"))?;
        }
        let mut operands = Vec::new();
        let mut text = Vec::new();
        let mut used = 0_u32;
        for token in tokens(operand_text.trim()) {
            let Some(field) = self.machine.fields.iter().find(|field| field.name == token) else {
                push_text(&mut text, &token);
                continue;
            };
            let set = match field.kind {
                Kind::Register(set) => set,
                Kind::Signed { .. } | Kind::Unsigned { .. } | Kind::Down { .. } | Kind::Relative { .. } => 0,
            };
            text.push(Segment::Operand { operand: operands.len(), set });
            let mask = mask_of(&field.pieces);
            if used & mask != 0 || word & mask != 0 {
                return Err(format!("field `{token}` overlaps other bits"));
            }
            used |= mask;
            operands.push(Operand { kind: field.kind, pieces: field.pieces.clone() });
        }
        Ok((Encoding::Word(word), operands, text))
    }

    fn row(&mut self, line: usize, op: &str, rest: &str) -> Result<(), String> {
        let frame = PortableOp::internal(Family::Frame, op, Type::V);
        let portable = match op {
            _ if FRAME_ROWS.contains(&op) => &frame,
            _ => self.ops.iter().find(|own| own.name == op).ok_or_else(|| {
                format!("`{op}` is neither a declaration nor an operation of the portable instruction set")
            })?,
        };
        let mut types = Vec::new();
        let mut body = rest;
        while let Some((word, after)) = body.split_once(char::is_whitespace) {
            let Some(ty) = Type::from_letters(word) else { break };
            types.push(ty);
            body = after.trim_start();
        }
        if types.is_empty() {
            return Err(format!("row `{op}` has no types"));
        }
        let (register, immediate) = match body.split_once("||") {
            Some((register, immediate)) => (register.trim(), Some(immediate.trim())),
            None => (body.trim(), None),
        };
        for ty in types {
            if !portable.types.contains(&ty) {
                return Err(format!("`{op}` has no type `{}` in the portable instruction set", ty.letters()));
            }
            if self.machine.row(op, ty).is_some() {
                return Err(format!("`{op} {}` is mapped twice", ty.letters()));
            }
            let alternatives = |text: &str| -> Result<Vec<Alternative>, String> {
                if text.is_empty() {
                    return Ok(Vec::new());
                }
                text.split(" | ").map(|text| self.alternative(portable, ty, text.trim())).collect()
            };
            let row = Row {
                op: op.into(),
                ty,
                family: portable.family,
                register: alternatives(register)?,
                immediate: immediate.map_or(Ok(Vec::new()), alternatives)?,
                line,
            };
            self.machine.rows.push(row);
        }
        Ok(())
    }

    fn alternative(&self, op: &PortableOp, ty: Type, text: &str) -> Result<Alternative, String> {
        let (guard, steps) = match text.split_once('?') {
            Some((guard, steps)) => (Some(expr::parse(guard, &self.defs)?), steps),
            None => (None, text),
        };
        let unknown = guard.iter().flat_map(Expr::features).find(|name| self.machine.feature(name).is_none());
        if let Some(name) = unknown {
            return Err(format!("no `features {name}` above this line"));
        }
        let steps = steps.split(';').map(|step| self.step(op, ty, step.trim())).collect::<Result<Vec<_>, _>>()?;
        Ok(Alternative { guard, steps })
    }

    fn step(&self, op: &PortableOp, ty: Type, text: &str) -> Result<Step, String> {
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let args: Vec<&str> = rest.split(',').map(str::trim).filter(|arg| !arg.is_empty()).collect();
        if name == "set" {
            let [register, value] = args[..] else { return Err("`set` takes a register and a value".into()) };
            let register = match self.reg_arg(op, ty, register, Class::Int)? {
                RegArg::Fixed(number) => number,
                RegArg::Operand(_) => return Err("`set` takes a register by name".into()),
            };
            return Ok(Step::SetLong { register, value: expr::parse(value, &self.defs)? });
        }
        let insn = self
            .machine
            .insns
            .iter()
            .position(|insn| insn.name == name)
            .ok_or_else(|| format!("no `insn {name}` above this line"))?;
        if self.machine.insns[insn].layer == InsnLayer::System {
            return Err(format!("`{name}` has an emitter of its own: rows name instructions above `layer system`"));
        }
        let operands = &self.machine.insns[insn].operands;
        if operands.len() != args.len() {
            return Err(format!("`{name}` has {} operands, {} are given", operands.len(), args.len()));
        }
        let args = operands.iter().zip(args).map(|(operand, arg)| match operand.kind {
            Kind::Register(set) => self.reg_arg(op, ty, arg, self.machine.sets[set].class).map(Arg::Register),
            Kind::Relative { .. } if arg == "b" => Ok(Arg::Label),
            Kind::Relative { .. } if arg.starts_with('k') => data(arg),
            Kind::Signed { .. } | Kind::Unsigned { .. } | Kind::Down { .. } | Kind::Relative { .. } => {
                expr::parse(arg, &self.defs).map(Arg::Value)
            }
        });
        Ok(Step::Emit { insn, args: args.collect::<Result<Vec<_>, _>>()? })
    }

    fn reg_arg(&self, op: &PortableOp, ty: Type, text: &str, class: Class) -> Result<RegArg, String> {
        let special = &self.machine.special;
        match text {
            "x" => return Ok(RegArg::Fixed(special.x)),
            "y" => return Ok(RegArg::Fixed(special.y)),
            "z" => return Ok(RegArg::Fixed(special.z)),
            "d" | "s" | "t" => {
                let letter = text.chars().next().expect("matched above");
                let own = operand_class(op, ty, letter).file();
                if own != class {
                    return Err(format!(
                        "operand `{text}` of `{} {}` is in the other register file",
                        op.name,
                        ty.letters()
                    ));
                }
                return Ok(RegArg::Operand(letter));
            }
            _ => {}
        }
        self.register_of(text, class).map(RegArg::Fixed)
    }
}

/// Data of a row: `k` and 32 hexadecimal digits.
fn data(text: &str) -> Result<Arg, String> {
    let bad = || format!("`{text}` is not `k` and 32 hexadecimal digits");
    let digits = text.strip_prefix('k').filter(|digits| digits.len() == 32).ok_or_else(bad)?;
    let value = u128::from_str_radix(digits, 16).map_err(|_| bad())?;
    Ok(Arg::Data((value >> 64) as u64, value as u64))
}

fn name_range(word: &str) -> Result<Vec<String>, String> {
    let Some((first, last)) = word.split_once("..") else { return Ok(vec![word.to_string()]) };
    // Before the number, the number, after it.
    let split = |name: &str| {
        let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = digits[..digits.len() - end.len()].parse::<u32>();
        ((name[..name.len() - digits.len()].to_string(), end.to_string()), number)
    };
    match (split(first), split(last)) {
        ((around, Ok(from)), (other, Ok(to))) if around == other && from <= to => {
            let (stem, end) = around;
            Ok((from..=to).map(|number| format!("{stem}{number}{end}")).collect())
        }
        _ => Err(format!("`{word}` is not a range of names")),
    }
}

/// Splits operand text into names (letters, digits, dots) and everything else, character by character.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut in_name = false;
    for character in text.chars() {
        let part_of_name = character.is_ascii_alphanumeric() || character == '.';
        match tokens.last_mut() {
            Some(token) if in_name && part_of_name => token.push(character),
            _ => tokens.push(character.to_string()),
        }
        in_name = part_of_name;
    }
    tokens
}

fn push_text(text: &mut Vec<Segment>, token: &str) {
    match text.last_mut() {
        Some(Segment::Text(last)) => last.push_str(token),
        _ => text.push(Segment::Text(token.to_string())),
    }
}
