//! Fast paths that are C functions ("Fast Paths in Concurrent Programs", sections 1 and 6: manual fast paths). The code
//! of such a path passes the members' variables to the function, calls it, and exits as its return value says.
//!
//! ```text
//!   enter --> state.P_x = x of P ..          scalars that are live at the start or at an exit
//!             exit = f(&state, &array of P ..)
//!             switch (exit): 0 --> leave: every member is at its start
//!                            k --> leave: every member is at its k-th exit
//!                            else  fault range
//! ```

use crate::path_spec::{PathElement, PathSpec, PathStatement};
use crate::product::{Group, PathSchedule};
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{
    Aggregate, Base, Block, BlockId, Body, Edge, Extern, ExternId, Fault, Instruction, Leave, Location, Mutability, Op,
    Operand, PathId, Place, Program, Projection, Purity, Resume, Slot, SlotId, Terminator, Type, TypeId, TypeTable,
    Value, ValueData,
};
use quaject_esp_ir::visit::region_slots;
use smol_str::SmolStr;
use std::collections::BTreeSet;

/// The body of a path that is a C function, which the program gets as an extern function.
pub(super) fn body(
    program: &mut Program,
    group: &Group<'_>,
    schedule: &PathSchedule,
    spec: &PathSpec,
    function: &SmolStr,
) -> Result<Body, Refusal> {
    let mut manual = ManualPath { group, spec, table: &program.types, starts: Vec::new(), exits: Vec::new() };
    manual.starts = (0..spec.members.len()).map(|member| schedule.start(member).0).collect();
    let exit_count = spec.members.iter().map(|member| member.exit.len()).max().unwrap_or(0);
    for number in 0..exit_count {
        let resume_blocks = spec.members.iter().enumerate().map(|(member, spec)| match spec.exit.get(number) {
            Some(exit) => manual.resume_block(member, exit),
            None => Ok(manual.starts[member]),
        });
        let resume_blocks = resume_blocks.collect::<Result<Vec<BlockId>, Refusal>>()?;
        manual.exits.push(resume_blocks);
    }
    let (fields, slots) = (manual.fields()?, manual.slots()?);
    let entry = manual.entry();
    let parts = fields.iter().map(|field| (field.name.clone(), Some(field.ty))).collect();
    let (exits, starts) = (manual.exits.clone(), manual.starts.clone());
    let aggregate = Aggregate { name: Some(SmolStr::from(format!("{}_state", spec.name))), parts };
    let aggregate = program.types.add_aggregate(aggregate);
    let state_type = program.types.intern(Type::Record(aggregate));
    let mut body = Body { values: entry.values, slots: Vec::new(), blocks: Vec::new() };
    body.slots.extend(group.bodies().flat_map(|body| body.slots.iter().cloned()));
    let state = SlotId(body.slots.len() as u32);
    body.slots.push(Slot { ty: state_type, name: None });
    let parameters = std::iter::once(state_type).chain(slots.iter().map(|slot| body.slots[slot.0 as usize].ty));
    program.externs.push(Extern {
        name: function.clone(),
        purity: Purity::Impure,
        parameters: parameters.map(|ty| (ty, Mutability::Mutable)).collect(),
        result: Some(TypeTable::U32),
    });
    let mut builder = PathBodyBuilder {
        group,
        body,
        fields: &fields,
        captured: entry.captured,
        state,
        location: spec.location,
        exits: 0,
    };
    builder.call(ExternId(program.externs.len() as u32 - 1), &slots, entry.parameters);
    for resume_blocks in std::iter::once(&starts).chain(&exits) {
        builder.leave(resume_blocks);
    }
    Ok(builder.finish())
}

/// A variable in the record that is passed to the function: its name there, its member, and its type.
struct Field {
    name: SmolStr,
    member: usize,
    variable: SmolStr,
    ty: TypeId,
}

/// A manual path, and where its members resume.
struct ManualPath<'m, 'p> {
    group: &'m Group<'p>,
    spec: &'m PathSpec,
    table: &'m TypeTable,
    /// Per member: the block it starts at.
    starts: Vec<BlockId>,
    /// Per exit, per member: the block it resumes at.
    exits: Vec<Vec<BlockId>>,
}

/// The parameters of the path's entry, and per member the own value that each is.
struct ManualEntry {
    values: Vec<ValueData>,
    parameters: Vec<Value>,
    captured: Vec<Vec<(Value, Value)>>,
}

impl ManualPath<'_, '_> {
    /// The block at which a member resumes, before a statement.
    fn resume_block(&self, member: usize, exit: &PathElement) -> Result<BlockId, Refusal> {
        let body = self.group.body(member);
        let found = match exit.statement {
            PathStatement::Site(site) => self.group.wait_of(member, site),
            PathStatement::Label(label) => {
                let is_here = |block: &Block| matches!(block.instructions.first().map(|first| &first.op), Some(Op::Mark(own)) if *own == label);
                body.blocks.iter().position(is_here).map(|block| BlockId(block as u32))
            }
        };
        found.ok_or_else(|| self.refuse(member, "an exit that is never reached"))
    }

    /// The blocks at which a member resumes: its start and its exits.
    fn resume_blocks(&self, member: usize) -> impl Iterator<Item = BlockId> {
        std::iter::once(self.starts[member]).chain(self.exits.iter().map(move |resume_blocks| resume_blocks[member]))
    }

    /// The named scalars that are live at a start or exit. Any other value has to be the same at both.
    fn fields(&self) -> Result<Vec<Field>, Refusal> {
        let mut fields: Vec<Field> = Vec::new();
        for member in 0..self.spec.members.len() {
            let body = self.group.body(member);
            let at_start = self.group.live_values(member, self.starts[member]);
            for block in self.resume_blocks(member) {
                let mut variables_here: BTreeSet<&SmolStr> = BTreeSet::new();
                for value in self.group.live_values(member, block) {
                    let ValueData { ty, name } = &body.values[value.0 as usize];
                    match name {
                        Some(variable) if self.table.is_scalar(*ty) => {
                            let known =
                                fields.iter().find(|field| field.member == member && field.variable == *variable);
                            if !variables_here.insert(variable) || known.is_some_and(|known| known.ty != *ty) {
                                return Err(self.refuse(member, "several variables of one name at its start or exit"));
                            }
                            if known.is_none() {
                                let name = format!("{}_{variable}", self.group.instance_name(member));
                                let variable = variable.clone();
                                fields.push(Field { name: SmolStr::from(name), member, variable, ty: *ty });
                            }
                        }
                        Some(_) | None => {
                            if !at_start.contains(&value) && constant_definition(body, value).is_none() {
                                return Err(self.refuse(member, "a value at its exit that cannot be passed to C"));
                            }
                        }
                    }
                }
            }
        }
        Ok(fields)
    }

    /// The named aggregates that are live at a start or exit, as slots of the path.
    fn slots(&self) -> Result<Vec<SlotId>, Refusal> {
        let mut slots = Vec::new();
        let mut first = 0;
        for member in 0..self.spec.members.len() {
            let body = self.group.body(member);
            let of_regions = region_slots(body);
            let at_start = self.group.live_slots(member, self.starts[member]);
            let all: BTreeSet<SlotId> =
                self.resume_blocks(member).flat_map(|block| self.group.live_slots(member, block)).collect();
            for slot in all.into_iter().filter(|slot| !of_regions.contains(slot)) {
                let Slot { ty, name } = &body.slots[slot.0 as usize];
                if name.is_some() && !has_boxes(self.table, *ty) {
                    slots.push(SlotId(first + slot.0));
                } else if !at_start.contains(&slot) {
                    return Err(self.refuse(member, "a value at its exit that cannot be passed to C"));
                }
            }
            first += body.slots.len() as u32;
        }
        Ok(slots)
    }

    fn entry(&self) -> ManualEntry {
        let mut entry = ManualEntry { values: Vec::new(), parameters: Vec::new(), captured: Vec::new() };
        for (member, start) in self.starts.iter().enumerate() {
            let mut captured = Vec::new();
            for own in self.group.live_values(member, *start) {
                entry.values.push(self.group.body(member).values[own.0 as usize].clone());
                let value = Value(entry.values.len() as u32 - 1);
                entry.parameters.push(value);
                captured.push((own, value));
            }
            entry.captured.push(captured);
        }
        entry
    }

    fn refuse(&self, member: usize, what: &'static str) -> Refusal {
        Refusal::Unsupported { process: self.group.process(member), what, location: self.spec.location }
    }
}

/// The body of the path under construction.
struct PathBodyBuilder<'w, 'p> {
    group: &'w Group<'p>,
    body: Body,
    fields: &'w [Field],
    captured: Vec<Vec<(Value, Value)>>,
    state: SlotId,
    location: Location,
    /// Exits so far.
    exits: u32,
}

impl PathBodyBuilder<'_, '_> {
    /// The block that calls the function.
    fn call(&mut self, function: ExternId, slots: &[SlotId], parameters: Vec<Value>) {
        let mut code = Vec::new();
        for (number, field) in self.fields.iter().enumerate() {
            let own = &self.group.body(field.member).values;
            let is_variable =
                |(value, _): &&(Value, Value)| own[value.0 as usize].name.as_ref() == Some(&field.variable);
            let captured = self.captured[field.member].iter().find(is_variable).map(|(_, captured)| *captured);
            // A variable that is dead at the start is passed as zero.
            let value = captured.unwrap_or_else(|| {
                let zero = self.create_value(field.ty);
                code.push(self.definition(zero, Op::Constant(0)));
                zero
            });
            code.push(self.instruction(None, Op::Store(self.field(number), value)));
        }
        let operand = |slot: SlotId| Operand::Place(Place { base: Base::Slot(slot), path: Vec::new() });
        let arguments = std::iter::once(self.state).chain(slots.iter().copied()).map(operand).collect();
        let result = self.create_value(TypeTable::U32);
        code.push(self.definition(result, Op::CallExtern { function, arguments, to: None }));
        let switch = Terminator::Switch { value: result, cases: Vec::new(), default: edge_to(BlockId(1)) };
        self.create_block(parameters, code, switch);
        self.create_block(Vec::new(), Vec::new(), Terminator::Fault(Fault::Range));
    }

    /// The block that exits with every member at its block of `resume_blocks`; the next case of the switch.
    fn leave(&mut self, resume_blocks: &[BlockId]) {
        let mut code = Vec::new();
        let mut resumes = Vec::new();
        for (member, block) in resume_blocks.iter().enumerate() {
            let mut values = Vec::new();
            for own in self.group.live_values(member, *block) {
                let ValueData { ty, name } = self.group.body(member).values[own.0 as usize].clone();
                let field = self.fields.iter().position(|field| {
                    field.member == member && name.as_ref() == Some(&field.variable) && field.ty == ty
                });
                let captured =
                    self.captured[member].iter().find(|(value, _)| *value == own).map(|(_, captured)| *captured);
                let becomes = match (field, captured) {
                    (None, Some(captured)) => captured,
                    (field, _) => {
                        let value = self.create_value(ty);
                        let op = match field {
                            Some(number) => Op::Load(self.field(number)),
                            None => constant_definition(self.group.body(member), own)
                                .expect("`fields` refuses other values"),
                        };
                        code.push(self.definition(value, op));
                        value
                    }
                };
                values.push((own, becomes));
            }
            resumes.push(Resume { to: *block, values });
        }
        let mut resumes = resumes.into_iter();
        let trigger = resumes.next().expect("a path has a first process");
        let members = resumes.enumerate().map(|(number, resume)| (number as u32, resume)).collect();
        let exit = self.exits;
        self.exits += 1;
        let block =
            self.create_block(Vec::new(), code, Terminator::Leave(Leave { path: PathId(0), exit, trigger, members }));
        let Terminator::Switch { cases, .. } = &mut self.body.blocks[0].terminator else {
            unreachable!("`call` ends in a switch")
        };
        cases.push((cases.len() as i128, edge_to(block)));
    }

    fn finish(self) -> Body {
        self.body
    }

    fn field(&self, number: usize) -> Place {
        Place { base: Base::Slot(self.state), path: vec![Projection::Field(number as u32)] }
    }

    fn create_value(&mut self, ty: TypeId) -> Value {
        self.body.values.push(ValueData { ty, name: None });
        Value(self.body.values.len() as u32 - 1)
    }

    fn definition(&self, result: Value, op: Op) -> Instruction {
        self.instruction(Some(result), op)
    }

    fn instruction(&self, result: Option<Value>, op: Op) -> Instruction {
        Instruction { result, op, location: self.location }
    }

    fn create_block(
        &mut self,
        parameters: Vec<Value>,
        instructions: Vec<Instruction>,
        terminator: Terminator,
    ) -> BlockId {
        self.body.blocks.push(Block { parameters, instructions, terminator, location: self.location });
        BlockId(self.body.blocks.len() as u32 - 1)
    }
}

fn edge_to(block: BlockId) -> Edge {
    Edge { to: block, arguments: Vec::new() }
}

/// The operation that defines a value, if it is a constant.
fn constant_definition(body: &Body, value: Value) -> Option<Op> {
    let mut instructions = body.blocks.iter().flat_map(|block| &block.instructions);
    instructions.find(|instruction| instruction.result == Some(value)).and_then(|instruction| match instruction.op {
        Op::Constant(constant) => Some(Op::Constant(constant)),
        _ => None,
    })
}

/// Whether values of a type refer to objects.
fn has_boxes(types: &TypeTable, ty: TypeId) -> bool {
    match types.get(ty) {
        Type::Boxed(_) => true,
        Type::Error | Type::Int(_) | Type::Bool | Type::Bytes { .. } | Type::Pid(_) => false,
        Type::Array { element, .. } => has_boxes(types, *element),
        Type::Record(id) | Type::Union(id) => {
            types.aggregate(*id).parts.iter().filter_map(|(_, part)| *part).any(|part| has_boxes(types, part))
        }
    }
}
