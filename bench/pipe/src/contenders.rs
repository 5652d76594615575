//! What is compared: pipes, C, C with intrinsics, memcpy.

use quaject_pipe::{Composer, Options, Pipe, Step, Temperature};

// SAFETY: the declarations of c/loops.c, compiled twice, and of c/hand.c.
unsafe extern "C" {
    fn o2_copy_sum_words(to: *mut u8, from: *const u8, bytes: usize) -> u16;
    fn o2_copy_sum_swap_words(to: *mut u8, from: *const u8, bytes: usize) -> u16;
    fn o2_sum_words(from: *const u8, bytes: usize) -> u16;
    fn o2_swap(data: *mut u8, bytes: usize);
    fn o2_copy(to: *mut u8, from: *const u8, bytes: usize);
    fn o3_copy_sum_words(to: *mut u8, from: *const u8, bytes: usize) -> u16;
    fn o3_copy_sum_halves(to: *mut u8, from: *const u8, bytes: usize) -> u16;
    fn o3_copy_sum_swap_words(to: *mut u8, from: *const u8, bytes: usize) -> u16;
    fn o3_copy_sum_swap_halves(to: *mut u8, from: *const u8, bytes: usize) -> u16;
    fn o3_sum_words(from: *const u8, bytes: usize) -> u16;
    fn o3_swap(data: *mut u8, bytes: usize);
    fn o3_copy(to: *mut u8, from: *const u8, bytes: usize);
    safe fn hand_is_there() -> i32;
    fn hand_copy_sum(to: *mut u8, from: *const u8, bytes: usize) -> u16;
    fn hand_copy_sum_swap(to: *mut u8, from: *const u8, bytes: usize) -> u16;
}

/// Source and target, at multiples of 64 bytes.
pub struct Buffers {
    source: Vec<Line>,
    target: Vec<Line>,
    /// The first line of the target that is used.
    first: usize,
    pub bytes: usize,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; 64]);

impl Buffers {
    /// The target lies `first` lines behind where the allocator puts it.
    pub fn new(bytes: usize, first: usize) -> Buffers {
        let lines = bytes.div_ceil(64);
        let (source, target) = (vec![Line([1; 64]); lines], vec![Line([2; 64]); lines + first]);
        let mut buffers = Buffers { source, target, first, bytes };
        let all = buffers.source.iter_mut().flat_map(|line| &mut line.0);
        all.enumerate().for_each(|(at, byte)| *byte = ((at as u32).wrapping_mul(2_654_435_761) >> 13) as u8);
        buffers
    }

    fn pointers(&mut self) -> (*mut u8, *const u8) {
        (self.target[self.first..].as_mut_ptr().cast(), self.source.as_ptr().cast())
    }

    fn slices(&mut self) -> (&mut [u8], &[u8]) {
        let (to, from) = self.pointers();
        // SAFETY: the lines hold at least `bytes` bytes, and are borrowed as this value is.
        unsafe { (std::slice::from_raw_parts_mut(to, self.bytes), std::slice::from_raw_parts(from, self.bytes)) }
    }

    /// Takes source and target out of the caches.
    pub fn flush(&mut self) {
        for lines in [&self.source, &self.target] {
            for line in lines.iter() {
                // SAFETY: the line is readable; flushing it changes no value.
                unsafe { std::arch::x86_64::_mm_clflush((&raw const *line).cast()) };
            }
        }
        // SAFETY: a fence has no other effect; flushes are ordered by it.
        unsafe { std::arch::x86_64::_mm_mfence() };
    }
}

/// What is done to the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Checksum,
    ChecksumSwap,
}

impl Work {
    pub fn name(self) -> &'static str {
        match self {
            Work::Checksum => "copy+checksum",
            Work::ChecksumSwap => "copy+checksum+swap",
        }
    }
}

/// Something that does it; its result is the sum, but for memcpy.
pub struct Contender {
    pub name: &'static str,
    pub run: Box<dyn FnMut(&mut Buffers) -> u16>,
    sum: Sum,
}

/// What a contender says of the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sum {
    /// The sum of the words as they are in memory.
    InMemory,
    /// What a header holds: complemented, as a number.
    InHeader,
    Nothing,
}

impl Sum {
    /// The same sum as [`Sum::InMemory`], if there is one.
    fn in_memory(self, sum: u16) -> Option<u16> {
        match self {
            Sum::InMemory => Some(sum),
            Sum::InHeader => Some(!sum.to_be()),
            Sum::Nothing => None,
        }
    }
}

fn in_c(name: &'static str, function: unsafe extern "C" fn(*mut u8, *const u8, usize) -> u16) -> Contender {
    let run = move |buffers: &mut Buffers| {
        let (to, from) = buffers.pointers();
        // SAFETY: both have that many bytes, a multiple of 512.
        unsafe { function(to, from, buffers.bytes) }
    };
    Contender { name, run: Box::new(run), sum: Sum::InMemory }
}

fn separate(
    name: &'static str,
    copy: unsafe extern "C" fn(*mut u8, *const u8, usize),
    sum: unsafe extern "C" fn(*const u8, usize) -> u16,
    swap: Option<unsafe extern "C" fn(*mut u8, usize)>,
) -> Contender {
    let run = move |buffers: &mut Buffers| {
        let (to, from) = buffers.pointers();
        // SAFETY: both have that many bytes, a multiple of 4.
        unsafe {
            copy(to, from, buffers.bytes);
            let result = sum(to, buffers.bytes);
            if let Some(swap) = swap {
                swap(to, buffers.bytes);
            }
            result
        }
    };
    Contender { name, run: Box::new(run), sum: Sum::InMemory }
}

fn composed(pipe: Pipe, temperature: Temperature) -> Contender {
    let pipe: &'static Pipe = Box::leak(Box::new(pipe));
    let mut runner = pipe.runner();
    let run = move |buffers: &mut Buffers| {
        let (to, from) = buffers.slices();
        let options = Options { temperature, ..Options::default() };
        let report = runner.run_with(from, to, options).expect("the lengths are equal");
        report.checksum().expect("the pipe has one")
    };
    Contender { name: "pipe", run: Box::new(run), sum: Sum::InHeader }
}

pub fn contenders(work: Work, temperature: Temperature) -> Vec<Contender> {
    let composer = Composer::global().expect("the system gives code memory");
    let pipe = |steps: &[Step]| composed(composer.compose(steps).expect("the steps are a pipe"), temperature);
    let memcpy = |buffers: &mut Buffers| {
        let (to, from) = buffers.slices();
        to.copy_from_slice(from);
        0
    };
    let memcpy = Contender { name: "memcpy", run: Box::new(memcpy), sum: Sum::Nothing };
    let mut contenders = match work {
        Work::Checksum => vec![
            pipe(&[Step::Copy, Step::Checksum]),
            in_c("int. O3", o3_copy_sum_words),
            in_c("int. O3 halves", o3_copy_sum_halves),
            in_c("int. O2", o2_copy_sum_words),
            separate("sep. O3", o3_copy, o3_sum_words, None),
            separate("sep. O2", o2_copy, o2_sum_words, None),
            memcpy,
        ],
        Work::ChecksumSwap => vec![
            pipe(&[Step::Copy, Step::Checksum, Step::Swap32]),
            in_c("int. O3", o3_copy_sum_swap_words),
            in_c("int. O3 halves", o3_copy_sum_swap_halves),
            in_c("int. O2", o2_copy_sum_swap_words),
            separate("sep. O3", o3_copy, o3_sum_words, Some(o3_swap)),
            separate("sep. O2", o2_copy, o2_sum_words, Some(o2_swap)),
            memcpy,
        ],
    };
    if hand_is_there() != 0 {
        contenders.push(match work {
            Work::Checksum => in_c("by hand", hand_copy_sum),
            Work::ChecksumSwap => in_c("by hand", hand_copy_sum_swap),
        });
    }
    contenders
}

/// Compares what all leave with what the first does.
///
/// # Panics
/// When one differs.
pub fn check(contenders: &mut [Contender], buffers: &mut Buffers) {
    let mut outcome = |contender: &mut Contender| {
        buffers.slices().0.fill(0);
        let sum = (contender.run)(buffers);
        contender.sum.in_memory(sum).map(|sum| (sum, buffers.slices().0.to_vec()))
    };
    let first = outcome(&mut contenders[0]);
    for contender in &mut contenders[1..] {
        assert!(contender.sum == Sum::Nothing || outcome(contender) == first, "{} differs", contender.name);
    }
}
