//! Rules of waits and their regions: operations belong to their sites, patterns fit the message, blocks after a branch
//! are reached from it alone, regions are closed and without effects.

use super::{Owner, Verifier};
use crate::cfg::{edges, region_blocks, region_entries};
use crate::ir::{
    Base, Bind, BlockId, Boundary, Branch, ChannelId, Direction, Guard, Instruction, Location, Op, Operation, Passed,
    Pattern, Payload, Purity, SiteId, Terminator, TimeUnit, Type, TypeId, TypeTable, Wait,
};
use crate::verify::types::Class;
use crate::visit::written_place;

impl Verifier<'_> {
    pub(super) fn waits(&mut self) {
        let body = self.body;
        let mut entered = vec![0u32; body.blocks.len()];
        let mut in_region = vec![false; body.blocks.len()];
        let mut branch_targets = Vec::new();
        let mut regions = Vec::new();
        for (index, block) in body.blocks.iter().enumerate() {
            edges(&block.terminator).iter().for_each(|edge| entered[edge.to.0 as usize] += 1);
            if let Terminator::Wait(wait) = &block.terminator {
                wait.branches.iter().for_each(|branch| entered[branch.then.0 as usize] += 1);
                wait.otherwise.iter().for_each(|block| entered[block.0 as usize] += 1);
                branch_targets.extend(wait.branches.iter().map(|branch| (index, branch.then, branch.location)));
                regions.extend(region_entries(wait).into_iter().map(|region| (index, region)));
            }
        }
        for (wait, target, location) in branch_targets {
            self.at(wait, location);
            if entered[target.0 as usize] != 1 || target.0 == 0 {
                self.error(format!("block{} is entered from elsewhere too", target.0));
            }
        }
        for (wait, entry) in &regions {
            self.at(*wait, body.blocks[*wait].location);
            if entered[entry.0 as usize] > 0 || regions.iter().filter(|(_, other)| other == entry).count() > 1 {
                self.error(format!("the region block{} is entered from elsewhere too", entry.0));
            }
            for block in region_blocks(body, *entry) {
                in_region[block.0 as usize] = true;
            }
        }
        for (_, entry) in &regions {
            self.region(*entry, &in_region);
        }
        for (index, block) in body.blocks.iter().enumerate() {
            self.at(index, block.location);
            if !in_region[index] {
                if let Terminator::Result(_) = block.terminator {
                    self.error("a result outside a region");
                }
                for edge in edges(&block.terminator).iter().filter(|edge| in_region[edge.to.0 as usize]) {
                    self.error(format!("block{} belongs to a region", edge.to.0));
                }
            }
            if let Terminator::Wait(wait) = &block.terminator {
                self.wait(wait);
            }
        }
        self.block = None;
    }

    fn at(&mut self, block: usize, location: Location) {
        self.block = Some(BlockId(block as u32));
        self.location = location;
    }

    /// The blocks of a region end in results and change nothing outside it.
    fn region(&mut self, entry: BlockId, in_region: &[bool]) {
        let body = self.body;
        let own = region_blocks(body, entry);
        for block in &own {
            let index = block.0 as usize;
            self.at(index, body.blocks[index].location);
            match &body.blocks[index].terminator {
                Terminator::Jump(_)
                | Terminator::Branch { .. }
                | Terminator::Switch { .. }
                | Terminator::Result(_)
                | Terminator::Fault(_) => {}
                Terminator::Wait(_)
                | Terminator::Yield(_)
                | Terminator::Return(_)
                | Terminator::Exit(_)
                | Terminator::Enter(_)
                | Terminator::Leave(_)
                | Terminator::End => self.error("a region ends in a result"),
            }
            for instruction in &body.blocks[index].instructions {
                self.location = instruction.location;
                self.region_instruction(instruction, in_region);
            }
        }
    }

    fn region_instruction(&mut self, instruction: &Instruction, in_region: &[bool]) {
        if let Op::CallExtern { function, .. } = &instruction.op
            && let Some(function) = self.program.externs.get(function.0 as usize)
            && function.purity == Purity::Impure
        {
            self.error(format!("a region calls `{}`, which has effects", function.name));
        }
        if let Op::Mark(_) | Op::Predicate(..) = instruction.op {
            self.error("a region has no labels");
        }
        let body = self.body;
        let mut shared = None;
        written_place(&instruction.op, &mut |place| match place.base {
            Base::Slot(slot) => {
                let elsewhere = body.blocks.iter().enumerate().filter(|(index, _)| !in_region[*index]);
                for (_, block) in elsewhere {
                    for other in &block.instructions {
                        written_place(&other.op, &mut |other| {
                            if other.base == Base::Slot(slot) {
                                shared = Some(slot);
                            }
                        });
                    }
                }
            }
            Base::Object(_) | Base::Constant(..) => {}
        });
        if let Some(slot) = shared {
            self.error(format!("a region writes s{}, which belongs to the process", slot.0));
        }
    }

    fn wait(&mut self, wait: &Wait) {
        if wait.branches.is_empty() && wait.otherwise.is_none() && wait.observed.is_empty() {
            self.error("a wait without branches");
        }
        if let Some(block) = wait.otherwise
            && !self.body.blocks[block.0 as usize].parameters.is_empty()
        {
            self.error(format!("block{} has parameters and follows an `else`", block.0));
        }
        for branch in &wait.branches {
            self.location = branch.location;
            match branch.guard {
                Guard::Open => {}
                Guard::Value(value) => self.expect(value, Class::Bool),
                Guard::Region(entry) => {
                    self.region_parameters(entry, &[]);
                    self.region_results(entry, &[TypeTable::BOOL]);
                }
            }
            self.operation(branch);
        }
        let instances = self.program.instance_count();
        for (branch, edge) in &wait.members {
            self.location = edge.location;
            if *branch as usize >= wait.branches.len() {
                self.error(format!("a member waits at branch {branch}, which does not exist"));
            }
            for instance in edge.partners.iter().chain([&edge.instance]).filter(|instance| **instance >= instances) {
                self.error(format!("instance {instance} does not exist"));
            }
        }
    }

    fn operation(&mut self, branch: &Branch) {
        let mut bound = Vec::new();
        match &branch.operation {
            Operation::In { site, channel, patterns, condition } => {
                let Some(payload) = self.site(*site, *channel, Direction::In) else { return };
                if patterns.len() != payload.len() {
                    return self.error(format!("{} patterns for {} values", patterns.len(), payload.len()));
                }
                for (pattern, ty) in patterns.iter().zip(&payload) {
                    self.pattern(pattern, *ty, &mut bound);
                }
                if let Some(entry) = condition {
                    self.region_parameters(*entry, &bound);
                    self.region_results(*entry, &[TypeTable::BOOL]);
                }
            }
            Operation::Out { site, channel, payload } => {
                let Some(types) = self.site(*site, *channel, Direction::Out) else { return };
                match payload {
                    Payload::Ready(values) => self.message(values, &types),
                    Payload::Region(entry) => {
                        self.region_parameters(*entry, &[]);
                        self.region_results(*entry, &types);
                    }
                }
            }
            Operation::After { amount, unit: TimeUnit::Nanoseconds(unit_ns) } => {
                self.expect(*amount, Class::Int);
                self.unit_of_time(*unit_ns);
            }
            Operation::After { amount, unit: TimeUnit::Absolute } => {
                let is_time = self.ty(*amount) == TypeTable::TIME;
                self.expect_type(*amount, if is_time { TypeTable::TIME } else { TypeTable::I64 });
            }
        }
        self.region_parameters(branch.then, &bound);
    }

    pub(super) fn unit_of_time(&mut self, unit_ns: i64) {
        if unit_ns <= 0 {
            self.error("a unit of time is positive");
        }
    }

    /// The types of a channel's message, if the site is one of this process on it.
    fn site(&mut self, site: SiteId, channel: ChannelId, direction: Direction) -> Option<Vec<TypeId>> {
        let known = match self.owner {
            Owner::Process(process) => process.sites.get(site.0 as usize),
            Owner::Function(_) => None,
        };
        if !known.is_some_and(|site| site.channel == channel && site.direction == direction) {
            self.error(format!("site{} is another operation", site.0));
            return None;
        }
        let channel = &self.program.channels[channel.0 as usize];
        match (channel.boundary, direction) {
            (Boundary::ToEnvironment, Direction::In) => {
                self.error(format!("`{}` is read by the environment", channel.name))
            }
            (Boundary::FromEnvironment, Direction::Out) => {
                self.error(format!("`{}` is written by the environment", channel.name))
            }
            (Boundary::Internal, _)
            | (Boundary::ToEnvironment, Direction::Out)
            | (Boundary::FromEnvironment, Direction::In) => {}
        }
        Some(channel.payload.clone())
    }

    fn region_parameters(&mut self, block: BlockId, wanted: &[TypeId]) {
        let parameters = &self.body.blocks[block.0 as usize].parameters;
        let given: Vec<TypeId> = parameters.iter().map(|value| self.ty(*value)).collect();
        let is_valid = given.len() == wanted.len()
            && given.iter().zip(wanted).all(|(parameter, bound)| self.is_assignable(*bound, *parameter));
        if !is_valid {
            self.error(format!("block{} does not take the {} values that arrive", block.0, wanted.len()));
        }
    }

    fn region_results(&mut self, entry: BlockId, wanted: &[TypeId]) {
        let before = (self.block, self.location);
        for block in region_blocks(self.body, entry) {
            let index = block.0 as usize;
            if let Terminator::Result(values) = &self.body.blocks[index].terminator {
                self.at(index, self.body.blocks[index].location);
                self.message(values, wanted);
            }
        }
        (self.block, self.location) = before;
    }

    fn message(&mut self, values: &[Passed], wanted: &[TypeId]) {
        if values.len() != wanted.len() {
            return self.error(format!("{} values for {}", values.len(), wanted.len()));
        }
        for (value, ty) in values.iter().zip(wanted) {
            self.expect_operand(&value.operand, *ty, "a value");
        }
    }

    /// Checks a pattern against a part's type; `bound` gets the types of its parameters.
    fn pattern(&mut self, pattern: &Pattern, ty: TypeId, bound: &mut Vec<TypeId>) {
        let types = &self.program.types;
        let content = match types.get(ty) {
            Type::Boxed(pool) => types.pool(*pool).content,
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_) => ty,
        };
        let is_valid = match (pattern, types.get(content)) {
            (Pattern::Any, _) => true,
            (Pattern::Bind(Bind::Parameter(number)), _) => {
                let in_order = *number as usize == bound.len();
                bound.push(ty);
                in_order && self.is(ty, Class::Value)
            }
            (Pattern::Bind(Bind::Slot(slot)), _) => self.body.slots[slot.0 as usize].ty == ty,
            (Pattern::Constant(value), Type::Int(int)) => {
                crate::ir::IntType::min(*int) <= *value && *value <= crate::ir::IntType::max(*int)
            }
            (Pattern::Constant(value), Type::Bool) => *value == 0 || *value == 1,
            (Pattern::Constant(value), Type::Pid(_)) => {
                *value >= 0 && *value < i128::from(self.program.instance_count())
            }
            (Pattern::Bytes(_), Type::Bytes { .. }) => true,
            (Pattern::OwnId, Type::Pid(_)) => true,
            (Pattern::Equal(operand), _) => {
                let Some(given) = self.operand(operand) else { return };
                let both_pids = matches!((types.get(given), types.get(ty)), (Type::Pid(_), Type::Pid(_)));
                let both_bytes = self.is(given, Class::Bytes) && self.is(ty, Class::Bytes);
                both_pids || both_bytes || given == ty
            }
            (Pattern::Tag(tag, payload), Type::Union(id)) => {
                match (types.aggregate(*id).parts.get(*tag as usize), payload) {
                    (Some((_, Some(part))), Some(payload)) => {
                        self.pattern(payload, *part, bound);
                        true
                    }
                    (Some(_), None) => true,
                    (Some((_, None)), Some(_)) | (None, _) => false,
                }
            }
            (Pattern::Record(fields), Type::Record(id)) => {
                let parts = &types.aggregate(*id).parts;
                for (field, (_, part)) in fields.iter().zip(parts) {
                    self.pattern(field, part.unwrap_or(TypeTable::ERROR), bound);
                }
                fields.len() == parts.len()
            }
            (Pattern::Array(items), Type::Array { length, element }) => {
                items.iter().for_each(|item| self.pattern(item, *element, bound));
                items.len() == *length as usize
            }
            (
                Pattern::Constant(_)
                | Pattern::Bytes(_)
                | Pattern::OwnId
                | Pattern::Tag(..)
                | Pattern::Record(_)
                | Pattern::Array(_),
                _,
            ) => false,
        };
        if !is_valid {
            self.error(format!("a pattern does not fit {}", self.name(ty)));
        }
    }
}
