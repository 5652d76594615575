//! Assigns values to machine registers by priority, to cells of the frame otherwise. Values that are passed along an
//! edge and do not interfere form one web, which gets one location (coalescing). Knows numbers of registers, not
//! registers.

use super::code_layout::{CodeLayout, Point, weighted_edges};
use super::liveness::Liveness;
use super::value_forms::ValueForms;
use quaject_esp_exec::native::Cell;
use quaject_esp_ir::ir::{Op, Value};
use quaject_esp_ir::sets::DenseSet;
use std::collections::VecDeque;

/// How often all webs are tried for a better register.
const IMPROVEMENT_ROUNDS: usize = 2;

/// The location of a value while machine code runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MachineLocation {
    /// It is never read.
    None,
    /// In the register of this number.
    Register(u8),
    /// In this cell behind the registers' address: the low half holds what a smaller register would.
    Cell(usize),
}

/// The location of every value.
pub(super) struct Assignment {
    /// Per value that has its own; others are found by [`ValueForms::root`].
    locations: Vec<MachineLocation>,
    pub(super) memory: MachineLocation,
    pub(super) fuel: MachineLocation,
    /// Per point: the registers that hold something before it.
    pub(super) occupied: Vec<u32>,
}

impl Assignment {
    pub(super) fn of(&self, root: Value) -> MachineLocation {
        self.locations[root.0 as usize]
    }
}

/// Values that share one location.
struct Web {
    /// The points at which it is live.
    live: DenseSet,
    /// How often it is accessed: what it costs to have it in memory.
    weight: f32,
    /// How often code runs in which it is live: what its register costs other webs.
    span: f32,
    location: MachineLocation,
    /// What its cell is.
    cell: usize,
    /// Whether it has to do without a register.
    is_evicted: bool,
}

impl Web {
    fn new(points: usize, cell: usize) -> Web {
        Web {
            live: DenseSet::new(points),
            weight: 0.0,
            span: 0.0,
            location: MachineLocation::None,
            cell,
            is_evicted: false,
        }
    }

    /// Whether its values have become part of another web.
    fn is_merged(&self) -> bool {
        self.live == DenseSet::default()
    }

    fn density(&self) -> f32 {
        self.weight / self.span.max(f32::MIN_POSITIVE)
    }
}

/// The allocator. It assigns anew, with fewer webs in registers, when the emitter lacks a register at some point.
pub(super) struct Allocator {
    webs: Vec<Web>,
    /// Per value: its web's index after merging.
    web_of: Vec<Option<usize>>,
    /// Hints: results, the operands that should share their register on two-operand machines, and how often that
    /// counts.
    hints: Vec<(Value, Value, f32)>,
    memory: usize,
    fuel: usize,
    points: usize,
}

impl Allocator {
    pub(super) fn new(layout: &CodeLayout<'_>, values: &ValueForms, live: &Liveness) -> Allocator {
        let count = layout.body.values.len();
        let points = layout.points.len();
        let mut allocator =
            Allocator { webs: Vec::new(), web_of: vec![None; count], hints: Vec::new(), memory: 0, fuel: 0, points };
        allocator.find_webs(layout, values, live);
        allocator.merge(layout, values, live);
        allocator.memory = allocator.whole_body_web(Cell::Memory.index(count), memory_weight(layout));
        let is_loop_header = layout.order.iter().filter(|block| layout.is_loop_header[block.0 as usize]);
        let weight = is_loop_header.map(|block| 2.0 * layout.frequency[block.0 as usize]).sum();
        allocator.fuel = allocator.whole_body_web(Cell::Fuel.index(count), weight);
        for web in &mut allocator.webs {
            let frequency = |point: Point| layout.frequency[layout.points[point].0.0 as usize];
            web.span = web.live.numbers().map(frequency).sum();
        }
        allocator
    }

    fn whole_body_web(&mut self, cell: usize, weight: f32) -> usize {
        let mut web = Web::new(self.points, cell);
        (0..self.points).for_each(|point| web.live.insert(point));
        web.weight = weight;
        self.webs.push(web);
        self.webs.len() - 1
    }

    fn web(&mut self, root: Value) -> usize {
        if let Some(web) = self.web_of[root.0 as usize] {
            return web;
        }
        self.webs.push(Web::new(self.points, root.0 as usize));
        self.web_of[root.0 as usize] = Some(self.webs.len() - 1);
        self.webs.len() - 1
    }

    fn find_webs(&mut self, layout: &CodeLayout<'_>, values: &ValueForms, live: &Liveness) {
        for point in 0..self.points {
            for root in live.before(point).filter_map(|value| values.root(value)) {
                let web = self.web(root);
                self.webs[web].live.insert(point);
            }
            let frequency = layout.frequency[layout.points[point].0.0 as usize];
            for root in live.uses[point].iter().filter_map(|value| values.root(*value)) {
                let web = self.web(root);
                self.webs[web].weight += frequency;
            }
        }
        for block in &layout.order {
            let frequency = layout.frequency[block.0 as usize];
            for (point, instruction) in layout.points_of(*block).zip(&layout.body.blocks[block.0 as usize].instructions)
            {
                let Some(result) = instruction.result else { continue };
                if values.root(result) == Some(result)
                    && let Some(web) = self.web_of[result.0 as usize]
                {
                    // A result that is never read is still written.
                    self.webs[web].live.insert(point + 1);
                    self.webs[web].weight += frequency;
                    let operands = if matches!(&instruction.op, Op::Binary(op, ..) if op.commutes()) { 2 } else { 1 };
                    let roots = live.uses[point].iter().take(operands).filter_map(|operand| values.root(*operand));
                    self.hints.extend(roots.map(|operand| (result, operand, frequency)));
                }
            }
        }
    }

    /// Coalesces parameters of blocks with their arguments, along hot edges first.
    fn merge(&mut self, layout: &CodeLayout<'_>, values: &ValueForms, live: &Liveness) {
        let mut moves = Vec::new();
        for block in &layout.order {
            for (to, arguments, chance) in weighted_edges(layout.body, *block) {
                let start = layout.start[to.0 as usize].expect("an edge leads to compiled code");
                for (argument, parameter) in arguments.iter().zip(&layout.body.blocks[to.0 as usize].parameters) {
                    if live.is_live(start, *parameter)
                        && let (Some(argument), Some(parameter)) = (values.root(*argument), values.root(*parameter))
                    {
                        moves.push((layout.frequency[block.0 as usize] * chance, argument, parameter));
                    }
                }
            }
        }
        moves.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (frequency, argument, parameter) in moves {
            let (from, to) = (self.web(argument), self.web(parameter));
            let is_alike = values.width(argument).bits.max(32) == values.width(parameter).bits.max(32);
            if from == to || !is_alike || self.webs[from].live.intersects(&self.webs[to].live) {
                self.webs[from].weight += frequency;
                self.webs[to].weight += frequency;
                continue;
            }
            let merged = std::mem::replace(&mut self.webs[from], Web::new(0, 0));
            let kept = &mut self.webs[to];
            kept.live.add_all(&merged.live);
            kept.weight += merged.weight;
            self.web_of.iter_mut().filter(|web| **web == Some(from)).for_each(|web| *web = Some(to));
        }
    }

    /// Assigns locations, the densest web first. A heavier web may displace lighter ones from their register.
    pub(super) fn assign(&mut self, registers: u8) -> Assignment {
        self.webs.iter_mut().for_each(|web| web.location = MachineLocation::None);
        let mut occupied = vec![0u32; self.points + 1];
        let mut order: Vec<(f32, usize)> = (0..self.webs.len())
            .filter(|web| !self.webs[*web].is_merged())
            .map(|web| (self.webs[web].density(), web))
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let hints_of_webs = self.hints_of_webs();
        let mut displacements = self.webs.len();
        let mut waiting: VecDeque<usize> = order.iter().map(|(_, index)| *index).collect();
        while let Some(index) = waiting.pop_front() {
            let taken = self.webs[index].live.numbers().fold(0u32, |taken, point| taken | occupied[point]);
            let hinted = self.hinted(&hints_of_webs[index], taken).map(|(number, _)| number);
            let mut free = hinted.unwrap_or((!taken).trailing_zeros() as u8);
            let web = &self.webs[index];
            let can_have_one = !web.is_evicted && web.weight > 0.0;
            if can_have_one
                && free >= registers
                && displacements > 0
                && let Some((number, displaceable)) = self.displaceable(index, registers, &occupied)
            {
                displacements -= 1;
                for other in displaceable {
                    self.webs[other].live.numbers().for_each(|point| occupied[point] &= !(1 << number));
                    self.webs[other].location = MachineLocation::None;
                    waiting.push_back(other);
                }
                free = number;
            }
            let web = &mut self.webs[index];
            if !can_have_one || free >= registers {
                web.location = MachineLocation::Cell(web.cell);
                continue;
            }
            web.live.numbers().for_each(|point| occupied[point] |= 1 << free);
            web.location = MachineLocation::Register(free);
        }
        for _ in 0..IMPROVEMENT_ROUNDS {
            order.iter().for_each(|(_, index)| self.move_to_hinted(*index, &hints_of_webs[*index], &mut occupied));
        }
        let location = |web: &Option<usize>| web.map_or(MachineLocation::None, |web| self.webs[web].location);
        Assignment {
            locations: self.web_of.iter().map(location).collect(),
            memory: self.webs[self.memory].location,
            fuel: self.webs[self.fuel].location,
            occupied,
        }
    }

    /// The register whose present webs cost least to displace, with those webs, if those of them that find no other
    /// register weigh less than this web.
    fn displaceable(&self, index: usize, registers: u8, occupied: &[u32]) -> Option<(u8, Vec<usize>)> {
        let web = &self.webs[index];
        let mut others = vec![(0.0, Vec::new()); usize::from(registers)];
        for (other, candidate) in self.webs.iter().enumerate() {
            if let MachineLocation::Register(number) = candidate.location
                && !candidate.is_merged()
                && web.live.intersects(&candidate.live)
            {
                let taken = candidate.live.numbers().fold(0u32, |taken, point| taken | occupied[point]);
                let (weight, webs): &mut (f32, Vec<usize>) = &mut others[usize::from(number)];
                if (!taken).trailing_zeros() >= u32::from(registers) {
                    *weight += candidate.weight;
                }
                webs.push(other);
            }
        }
        let (number, (weight, webs)) = others.into_iter().enumerate().min_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
        (weight < web.weight).then_some((number as u8, webs))
    }

    /// Per web: the webs whose register it should share, and how often that saves a move.
    fn hints_of_webs(&self) -> Vec<Vec<(usize, f32)>> {
        let mut hints_of_webs = vec![Vec::new(); self.webs.len()];
        for (a, b, frequency) in &self.hints {
            if let (Some(a), Some(b)) = (self.web_of[a.0 as usize], self.web_of[b.0 as usize])
                && a != b
            {
                hints_of_webs[a].push((b, *frequency));
                hints_of_webs[b].push((a, *frequency));
            }
        }
        hints_of_webs
    }

    /// The register outside `taken` that saves most moves, and how many.
    fn hinted(&self, hints_of_webs: &[(usize, f32)], taken: u32) -> Option<(u8, f32)> {
        let mut saved = [0.0; 32];
        for (other, frequency) in hints_of_webs {
            match self.webs[*other].location {
                MachineLocation::Register(number) if taken >> number & 1 == 0 => {
                    saved[usize::from(number)] += frequency
                }
                MachineLocation::Register(_) | MachineLocation::Cell(_) | MachineLocation::None => {}
            }
        }
        let best = (0u8..32).max_by(|a, b| saved[usize::from(*a)].total_cmp(&saved[usize::from(*b)]).then(b.cmp(a)))?;
        let saved = saved[usize::from(best)];
        (saved > 0.0).then_some((best, saved))
    }

    /// Moves a web to a free register that saves more moves. Short webs are assigned before those that they are hinted
    /// to, so this is known only when all have their registers.
    fn move_to_hinted(&mut self, index: usize, hints_of_webs: &[(usize, f32)], occupied: &mut [u32]) {
        let web = &self.webs[index];
        let MachineLocation::Register(own) = web.location else { return };
        let taken = web.live.numbers().fold(0u32, |taken, point| taken | occupied[point] & !(1 << own));
        let now = self.hinted(hints_of_webs, !(1 << own)).map_or(0.0, |(_, saved)| saved);
        if let Some((better, saved)) = self.hinted(hints_of_webs, taken)
            && saved > now
        {
            let web = &mut self.webs[index];
            web.location = MachineLocation::Register(better);
            web.live.numbers().for_each(|point| occupied[point] = occupied[point] & !(1 << own) | 1 << better);
        }
    }

    /// Evicts the lightest web that is live in a register at this point; false if there is none.
    pub(super) fn evict(&mut self, point: Point) -> bool {
        let in_register = |web: &&mut Web| match web.location {
            MachineLocation::Register(_) => !web.is_merged() && web.live.contains(point),
            MachineLocation::None | MachineLocation::Cell(_) => false,
        };
        let least = self.webs.iter_mut().filter(in_register).min_by(|a, b| a.weight.total_cmp(&b.weight));
        least.is_some_and(|web| !std::mem::replace(&mut web.is_evicted, true))
    }
}

/// How often instructions access the frame's memory.
fn memory_weight(layout: &CodeLayout<'_>) -> f32 {
    let touches = |op: &Op| {
        matches!(op, Op::Load(_) | Op::Store(..) | Op::Tag(_) | Op::Length(_) | Op::Copy { .. } | Op::SetTag(..))
    };
    let weight = |block: &quaject_esp_ir::ir::BlockId| {
        let count = layout.body.blocks[block.0 as usize].instructions.iter().filter(|i| touches(&i.op)).count();
        count as f32 * layout.frequency[block.0 as usize]
    };
    layout.order.iter().map(weight).sum()
}
