//! Gives values their places: machine registers by weight, cells of the frame for the rest. Values that hand one
//! another on along edges get one place if they never matter at once. Knows numbers of registers, not registers.

use super::flow::{Flow, Point, edges};
use super::live::Live;
use super::values::Values;
use quaject_esp_exec::native::Cell;
use quaject_esp_ir::ir::{Op, Value};
use std::collections::VecDeque;

/// How often all webs are looked at for a better register.
const LOOKS: usize = 2;

/// Where a value is while machine code runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Home {
    /// Nobody reads it.
    Nowhere,
    /// In the register of this number.
    Register(u8),
    /// In this cell behind the registers' address: the low half holds what a smaller register would.
    Cell(usize),
}

/// Where everything is.
pub(super) struct Homes {
    /// Per value that has its own; others are found by [`Values::root`].
    homes: Vec<Home>,
    pub(super) memory: Home,
    pub(super) fuel: Home,
    /// Per point: the registers that hold something before it.
    pub(super) occupied: Vec<u32>,
}

impl Homes {
    pub(super) fn of(&self, root: Value) -> Home {
        self.homes[root.0 as usize]
    }
}

/// What shares one place: a set of values, the points at which it matters, what it costs to have it in memory.
struct Web {
    /// One bit per point.
    live: Vec<u64>,
    weight: f32,
    /// How often code runs in which it matters: what it costs others that it has a register.
    span: f32,
    home: Home,
    /// What its cell is.
    cell: usize,
    /// Whether it has to do without a register.
    is_evicted: bool,
}

impl Web {
    fn new(points: usize, cell: usize) -> Web {
        Web { live: vec![0; points.div_ceil(64)], weight: 0.0, span: 0.0, home: Home::Nowhere, cell, is_evicted: false }
    }

    fn mark(&mut self, point: Point) {
        self.live[point / 64] |= 1 << (point % 64);
    }

    fn is_live(&self, point: Point) -> bool {
        self.live[point / 64] >> (point % 64) & 1 == 1
    }

    fn density(&self) -> f32 {
        self.weight / self.span.max(f32::MIN_POSITIVE)
    }

    fn points(&self) -> impl Iterator<Item = Point> + '_ {
        self.live.iter().enumerate().flat_map(|(index, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                (bit < 64).then(|| {
                    rest &= rest - 1;
                    index * 64 + bit as usize
                })
            })
        })
    }

    fn meets(&self, other: &Web) -> bool {
        self.live.iter().zip(&other.live).any(|(a, b)| a & b != 0)
    }
}

/// Finds places, again with fewer in registers when the emitter lacks one at some point.
pub(super) struct Allocator {
    webs: Vec<Web>,
    /// Per value: its web's index after merging.
    web_of: Vec<Option<usize>>,
    /// Results, the operands that machines with two operands like to find in their register, and how often.
    alike: Vec<(Value, Value, f32)>,
    memory: usize,
    fuel: usize,
    points: usize,
}

impl Allocator {
    pub(super) fn new(flow: &Flow<'_>, values: &Values, live: &Live) -> Allocator {
        let count = flow.body.values.len();
        let points = flow.points.len();
        let mut allocator =
            Allocator { webs: Vec::new(), web_of: vec![None; count], alike: Vec::new(), memory: 0, fuel: 0, points };
        allocator.find_webs(flow, values, live);
        allocator.merge(flow, values, live);
        allocator.memory = allocator.everywhere(Cell::Memory.index(count), memory_weight(flow));
        let turns = flow.order.iter().filter(|block| flow.turns[block.0 as usize]);
        let weight = turns.map(|block| 2.0 * flow.frequency[block.0 as usize]).sum();
        allocator.fuel = allocator.everywhere(Cell::Fuel.index(count), weight);
        for web in &mut allocator.webs {
            let frequency = |point: Point| flow.frequency[flow.points[point].0.0 as usize];
            web.span = web.points().map(frequency).sum();
        }
        allocator
    }

    fn everywhere(&mut self, cell: usize, weight: f32) -> usize {
        let mut web = Web::new(self.points, cell);
        (0..self.points).for_each(|point| web.mark(point));
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

    fn find_webs(&mut self, flow: &Flow<'_>, values: &Values, live: &Live) {
        for point in 0..self.points {
            for root in live.before(point).filter_map(|value| values.root(value)) {
                let web = self.web(root);
                self.webs[web].mark(point);
            }
            let frequency = flow.frequency[flow.points[point].0.0 as usize];
            for root in live.uses[point].iter().filter_map(|value| values.root(*value)) {
                let web = self.web(root);
                self.webs[web].weight += frequency;
            }
        }
        for block in &flow.order {
            let frequency = flow.frequency[block.0 as usize];
            for (point, instruction) in flow.points_of(*block).zip(&flow.body.blocks[block.0 as usize].instructions) {
                let Some(result) = instruction.result else { continue };
                if values.root(result) == Some(result)
                    && let Some(web) = self.web_of[result.0 as usize]
                {
                    // It is written even where nobody reads it.
                    self.webs[web].mark(point + 1);
                    self.webs[web].weight += frequency;
                    let operands = if matches!(&instruction.op, Op::Binary(op, ..) if op.commutes()) { 2 } else { 1 };
                    let roots = live.uses[point].iter().take(operands).filter_map(|operand| values.root(*operand));
                    self.alike.extend(roots.map(|operand| (result, operand, frequency)));
                }
            }
        }
    }

    /// Gives the parameters of blocks the places of what is handed to them, where edges are hot first.
    fn merge(&mut self, flow: &Flow<'_>, values: &Values, live: &Live) {
        let mut moves = Vec::new();
        for block in &flow.order {
            for (to, arguments, chance) in edges(flow.body, *block) {
                let start = flow.start[to.0 as usize].expect("an edge leads to compiled code");
                for (argument, parameter) in arguments.iter().zip(&flow.body.blocks[to.0 as usize].parameters) {
                    if live.is_live(start, *parameter)
                        && let (Some(argument), Some(parameter)) = (values.root(*argument), values.root(*parameter))
                    {
                        moves.push((flow.frequency[block.0 as usize] * chance, argument, parameter));
                    }
                }
            }
        }
        moves.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (frequency, argument, parameter) in moves {
            let (from, to) = (self.web(argument), self.web(parameter));
            let is_alike = values.width(argument).bits.max(32) == values.width(parameter).bits.max(32);
            if from == to || !is_alike || self.webs[from].meets(&self.webs[to]) {
                self.webs[from].weight += frequency;
                self.webs[to].weight += frequency;
                continue;
            }
            let gone = std::mem::replace(&mut self.webs[from], Web::new(0, 0));
            let kept = &mut self.webs[to];
            kept.live.iter_mut().zip(&gone.live).for_each(|(kept, gone)| *kept |= gone);
            kept.weight += gone.weight;
            self.web_of.iter_mut().filter(|web| **web == Some(from)).for_each(|web| *web = Some(to));
        }
    }

    /// Places everything, what matters most where it does first; what weighs more takes the place of what weighs less.
    pub(super) fn place(&mut self, registers: u8) -> Homes {
        self.webs.iter_mut().for_each(|web| web.home = Home::Nowhere);
        let mut occupied = vec![0u32; self.points + 1];
        let mut order: Vec<(f32, usize)> = (0..self.webs.len())
            .filter(|web| !self.webs[*web].live.is_empty())
            .map(|web| (self.webs[web].density(), web))
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let wishes = self.wishes();
        let mut displacements = self.webs.len();
        let mut waiting: VecDeque<usize> = order.iter().map(|(_, index)| *index).collect();
        while let Some(index) = waiting.pop_front() {
            let taken = self.webs[index].points().fold(0u32, |taken, point| taken | occupied[point]);
            let wished = self.wished(&wishes[index], taken).map(|(number, _)| number);
            let mut free = wished.unwrap_or((!taken).trailing_zeros() as u8);
            let web = &self.webs[index];
            let can_have_one = !web.is_evicted && web.weight > 0.0;
            if can_have_one
                && free >= registers
                && displacements > 0
                && let Some((number, displaced)) = self.displaced(index, registers, &occupied)
            {
                displacements -= 1;
                for other in displaced {
                    self.webs[other].points().for_each(|point| occupied[point] &= !(1 << number));
                    self.webs[other].home = Home::Nowhere;
                    waiting.push_back(other);
                }
                free = number;
            }
            let web = &mut self.webs[index];
            if !can_have_one || free >= registers {
                web.home = Home::Cell(web.cell);
                continue;
            }
            web.points().for_each(|point| occupied[point] |= 1 << free);
            web.home = Home::Register(free);
        }
        for _ in 0..LOOKS {
            order.iter().for_each(|(_, index)| self.move_to_wished(*index, &wishes[*index], &mut occupied));
        }
        let home = |web: &Option<usize>| web.map_or(Home::Nowhere, |web| self.webs[web].home);
        Homes {
            homes: self.web_of.iter().map(home).collect(),
            memory: self.webs[self.memory].home,
            fuel: self.webs[self.fuel].home,
            occupied,
        }
    }

    /// The register in which a web costs least the others that have it where it matters, if those that find no other one
    /// weigh less than the web, and all that have to look for one.
    fn displaced(&self, index: usize, registers: u8, occupied: &[u32]) -> Option<(u8, Vec<usize>)> {
        let web = &self.webs[index];
        let mut others = vec![(0.0, Vec::new()); usize::from(registers)];
        for (other, candidate) in self.webs.iter().enumerate() {
            if let Home::Register(number) = candidate.home
                && !candidate.live.is_empty()
                && web.meets(candidate)
            {
                let taken = candidate.points().fold(0u32, |taken, point| taken | occupied[point]);
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

    /// Per web: the others whose register it would best have, and how often that saves a move.
    fn wishes(&self) -> Vec<Vec<(usize, f32)>> {
        let mut wishes = vec![Vec::new(); self.webs.len()];
        for (a, b, frequency) in &self.alike {
            if let (Some(a), Some(b)) = (self.web_of[a.0 as usize], self.web_of[b.0 as usize])
                && a != b
            {
                wishes[a].push((b, *frequency));
                wishes[b].push((a, *frequency));
            }
        }
        wishes
    }

    /// The register outside `taken` that saves most moves, and how many.
    fn wished(&self, wishes: &[(usize, f32)], taken: u32) -> Option<(u8, f32)> {
        let mut saved = [0.0; 32];
        for (other, frequency) in wishes {
            match self.webs[*other].home {
                Home::Register(number) if taken >> number & 1 == 0 => saved[usize::from(number)] += frequency,
                Home::Register(_) | Home::Cell(_) | Home::Nowhere => {}
            }
        }
        let best = (0u8..32).max_by(|a, b| saved[usize::from(*a)].total_cmp(&saved[usize::from(*b)]).then(b.cmp(a)))?;
        let saved = saved[usize::from(best)];
        (saved > 0.0).then_some((best, saved))
    }

    /// What matters at few points was placed before what it is made from, or becomes: now all have their registers, it
    /// moves to a better one that is free.
    fn move_to_wished(&mut self, index: usize, wishes: &[(usize, f32)], occupied: &mut [u32]) {
        let web = &self.webs[index];
        let Home::Register(own) = web.home else { return };
        let taken = web.points().fold(0u32, |taken, point| taken | occupied[point] & !(1 << own));
        let now = self.wished(wishes, !(1 << own)).map_or(0.0, |(_, saved)| saved);
        if let Some((better, saved)) = self.wished(wishes, taken)
            && saved > now
        {
            let web = &mut self.webs[index];
            web.home = Home::Register(better);
            web.points().for_each(|point| occupied[point] = occupied[point] & !(1 << own) | 1 << better);
        }
    }

    /// Takes the register from what matters least at this point; false if nothing there has one.
    pub(super) fn evict(&mut self, point: Point) -> bool {
        let in_register = |web: &&mut Web| match web.home {
            Home::Register(_) => !web.live.is_empty() && web.is_live(point),
            Home::Nowhere | Home::Cell(_) => false,
        };
        let least = self.webs.iter_mut().filter(in_register).min_by(|a, b| a.weight.total_cmp(&b.weight));
        least.is_some_and(|web| !std::mem::replace(&mut web.is_evicted, true))
    }
}

/// How often instructions look into the frame's memory.
fn memory_weight(flow: &Flow<'_>) -> f32 {
    let touches = |op: &Op| {
        matches!(op, Op::Load(_) | Op::Store(..) | Op::Tag(_) | Op::Length(_) | Op::Copy { .. } | Op::SetTag(..))
    };
    let weight = |block: &quaject_esp_ir::ir::BlockId| {
        let count = flow.body.blocks[block.0 as usize].instructions.iter().filter(|i| touches(&i.op)).count();
        count as f32 * flow.frequency[block.0 as usize]
    };
    flow.order.iter().map(weight).sum()
}
