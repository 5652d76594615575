//! The assembler: a cursor, the space left before the next check, and a reference to the state of the function.
//!
//! ```text
//! region   start ............ body ........... ip ......... limit ... end
//!          |  room for the   |  instructions  |  free      | slack   |
//!          |  prologue       |  so far        |            |         |
//! ```
//!
//! The fast path is `space` and a store. Everything that happens once per label, function or error is out of line and
//! takes the cursor by value: the address of an [`Asm`] on the caller's stack must not escape, or its cursor could not
//! stay in a register.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use crate::abi::{Convention, Scratch};
use crate::architecture::Architecture;
use crate::cursor::{Cursor, SLACK};
use crate::error::Error;
use crate::features::Features;
use crate::kind::Kind;
use crate::registers::RegisterState;

/// Memory that a function is written to: writable at one address, executable at the same or another.
#[derive(Debug)]
pub struct Region<'a> {
    pub(crate) write: *mut u8,
    pub(crate) length: usize,
    pub(crate) execute: usize,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> From<&'a mut [u8]> for Region<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        Region { write: bytes.as_mut_ptr(), length: bytes.len(), execute: bytes.as_ptr() as usize, memory: PhantomData }
    }
}

impl<'a> Region<'a> {
    /// The region as it will be seen at `address` when it is executed: code that is written here to run elsewhere.
    #[must_use]
    pub fn executed_at(mut self, address: usize) -> Self {
        self.execute = address;
        self
    }

    /// A region of dual-mapped memory.
    ///
    /// # Safety
    /// `write` must be valid for writes of `length` bytes for `'a`, and nothing else may access those bytes meanwhile.
    pub unsafe fn from_raw(write: *mut u8, length: usize, execute: usize) -> Region<'a> {
        Region { write, length, execute, memory: PhantomData }
    }
}

/// A position in the code, bound or not yet bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(pub(crate) u32);

impl Label {
    /// The label of the epilogue, the target of `ret`.
    pub(crate) const EPILOGUE: Label = Label(MAX_LABELS);
    /// The label of the tail epilogue, the target of tail calls: it ends with a jump instead of a return.
    pub(crate) const TAIL: Label = Label(MAX_LABELS - 1);
    /// The label of the function itself.
    pub(crate) const ENTRY: Label = Label(MAX_LABELS - 2);
}

const UNBOUND: u32 = u32::MAX;

/// Label numbers are below this one, which stands for the epilogue.
const MAX_LABELS: u32 = 0xff_ffff;

/// An instruction that refers to a label, in one word: the site in the low half, then 24 bits of label, then the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fixup(u64);

impl Fixup {
    /// The kind of an entry that is no reference: `jal` calls the label.
    pub(crate) const CALLED_PROCEDURE: u8 = 254;
    /// The kind of an entry that is no reference: `procedure` bound the label.
    pub(crate) const PROCEDURE: u8 = 255;
    /// No reference.
    pub(crate) const NONE: Fixup = Fixup(u64::MAX);

    #[inline(always)]
    fn new(site: u32, label: Label, kind: u8) -> Fixup {
        Fixup(u64::from(site) | u64::from(label.0 | u32::from(kind) << 24) << 32)
    }

    #[inline(always)]
    pub(crate) fn site(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    pub(crate) fn label(self) -> Label {
        Label((self.0 >> 32) as u32 & MAX_LABELS)
    }

    #[inline(always)]
    pub(crate) fn kind(self) -> u8 {
        (self.0 >> 56) as u8
    }
}

/// A constant to be placed after the code: a float or double, or sixteen bytes that are repeated over a vector.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Constant {
    pub(crate) bits: u64,
    /// The second eight bytes, of vectors.
    pub(crate) high: u64,
    pub(crate) label: u32,
    pub(crate) size: u32,
}

/// A bounded table in memory of the caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool<T> {
    first: *mut T,
    room: u32,
    count: u32,
}

impl<T: Copy> Pool<T> {
    #[inline(always)]
    fn new(storage: &mut [MaybeUninit<T>]) -> Self {
        Pool { first: storage.as_mut_ptr().cast(), room: storage.len() as u32, count: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) -> Option<u32> {
        if self.count == self.room {
            return None;
        }
        // SAFETY: `first` points to `room` elements that the workspace lends for as long as the function is written.
        unsafe { self.first.add(self.count as usize).write(value) };
        self.count += 1;
        Some(self.count - 1)
    }

    #[inline]
    pub(crate) fn pop(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// Truncates the table to `count` elements.
    pub(crate) fn truncate(&mut self, count: u32) {
        self.count = self.count.min(count);
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        if index >= self.count {
            return None;
        }
        // SAFETY: elements below `count` were written by `push`, and the workspace lends them.
        Some(unsafe { &mut *self.first.add(index as usize) })
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<T> {
        if index >= self.count {
            return None;
        }
        // SAFETY: elements below `count` were written by `push`, and the workspace lends them.
        Some(unsafe { *self.first.add(index as usize) })
    }

    #[inline]
    pub(crate) fn last(&self) -> Option<T> {
        self.get(self.count.wrapping_sub(1))
    }

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.count
    }
}

/// The state of the function under construction.
#[derive(Debug)]
pub(crate) struct FunctionState {
    pub(crate) start: *mut u8,
    pub(crate) limit: *mut u8,
    pub(crate) execute: usize,
    pub(crate) labels: Pool<u32>,
    pub(crate) fixups: Pool<Fixup>,
    pub(crate) constants: Pool<Constant>,
    pub(crate) convention: &'static Convention,
    pub(crate) int: RegisterState,
    pub(crate) float: RegisterState,
    pub(crate) locals: u32,
    pub(crate) last_bound: u32,
    pub(crate) error: Option<Error>,
    pub(crate) features: Features,
    /// Whether `end` must take the general path: the function has locals, constants, or an error.
    pub(crate) needs_general_path: bool,
    pub(crate) kind: Kind,
    /// Whether there are tail calls, and finally the offset of their epilogue.
    pub(crate) tail: Option<u32>,
    pub(crate) calls: bool,
    pub(crate) incoming: bool,
    pub(crate) caller_save_area: Option<i32>,
}

/// Memory for labels, unresolved references and floating constants of a function under construction. It can be used
/// again for the next one.
#[derive(Debug)]
pub struct Workspace<M, const LABELS: usize = 32, const FIXUPS: usize = 128, const CONSTANTS: usize = 16> {
    function: MaybeUninit<FunctionState>,
    labels: [MaybeUninit<u32>; LABELS],
    fixups: [MaybeUninit<Fixup>; FIXUPS],
    constants: [MaybeUninit<Constant>; CONSTANTS],
    machine: PhantomData<M>,
}

impl<M> Workspace<M> {
    /// Memory for 32 labels, 128 unresolved references, 16 constants.
    pub const fn new() -> Self {
        Self::with_room()
    }
}

impl<M> Default for Workspace<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M, const LABELS: usize, const FIXUPS: usize, const CONSTANTS: usize> Workspace<M, LABELS, FIXUPS, CONSTANTS> {
    /// Memory for as many as the type says.
    pub const fn with_room() -> Self {
        Workspace {
            function: MaybeUninit::uninit(),
            labels: [MaybeUninit::uninit(); LABELS],
            fixups: [MaybeUninit::uninit(); FIXUPS],
            constants: [MaybeUninit::uninit(); CONSTANTS],
            machine: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn open(&mut self, region: &Region<'_>, convention: &'static Convention) -> &mut FunctionState {
        self.tables().open(region, convention)
    }

    #[inline(always)]
    pub(crate) fn tables(&mut self) -> Tables<'_> {
        let Workspace { function, labels, fixups, constants, machine: _ } = self;
        Tables { function, labels, fixups, constants }
    }
}

/// What a [`Workspace`] lends to a function under construction. A client that knows the sizes only at run time lends
/// slices of its own.
pub(crate) struct Tables<'a> {
    pub(crate) function: &'a mut MaybeUninit<FunctionState>,
    pub(crate) labels: &'a mut [MaybeUninit<u32>],
    pub(crate) fixups: &'a mut [MaybeUninit<Fixup>],
    pub(crate) constants: &'a mut [MaybeUninit<Constant>],
}

impl<'a> Tables<'a> {
    #[inline(always)]
    pub(crate) fn open(self, region: &Region<'_>, convention: &'static Convention) -> &'a mut FunctionState {
        self.function.write(FunctionState {
            start: region.write,
            limit: region.write.wrapping_add(region.length - SLACK),
            execute: region.execute,
            labels: Pool::new(self.labels),
            fixups: Pool::new(self.fixups),
            constants: Pool::new(self.constants),
            convention,
            int: RegisterState { free: 0, touched: 0, saved_around_calls: 0 },
            float: RegisterState { free: 0, touched: 0, saved_around_calls: 0 },
            locals: 0,
            last_bound: UNBOUND,
            error: None,
            features: Features::NONE,
            needs_general_path: convention.scratch == Scratch::Preserved,
            kind: Kind::Leaf,
            tail: None,
            calls: false,
            incoming: false,
            caller_save_area: None,
        })
    }
}

/// A finished function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The address to call.
    pub entry: usize,
    /// The first byte of the function, from the start of the region.
    pub offset: usize,
    /// Bytes from there to the end of the code and its constants.
    pub length: usize,
    /// Bytes of instructions; floating constants follow them.
    pub instructions: usize,
}

/// A function under construction for machine `M`. The instructions are the methods of [`Core`](crate::Core).
#[derive(Debug)]
pub struct Asm<'a, M> {
    pub(crate) cursor: Cursor,
    pub(crate) left: usize,
    /// The start of the region, copied here so that the compiler can fold distances from it.
    pub(crate) start: *mut u8,
    /// Whether a short branch reaches all of the region.
    pub(crate) small: bool,
    /// The last jump to the epilogue, which is removed if nothing follows it.
    pub(crate) last_return: Fixup,
    /// The last reference to an unbound label, which is usually the label that is bound next. Kept here instead of in
    /// the table, so that the compiler, which often knows its kind, can eliminate the search.
    pub(crate) forward: Fixup,
    pub(crate) f: &'a mut FunctionState,
    pub(crate) machine: PhantomData<M>,
}

impl FunctionState {
    /// Distance of an address from the start.
    #[inline]
    pub(crate) fn at(&self, ip: *mut u8) -> u32 {
        (ip as usize).wrapping_sub(self.start as usize) as u32
    }

    #[cold]
    pub(crate) fn fail(&mut self, error: Error) {
        self.error = self.error.or(Some(error));
        self.needs_general_path = true;
    }

    /// Reserves more space for the cursor at `ip`. If the region is full, the error is recorded and the cursor returns
    /// to the start, which is safe because `end` does not return that code. Reserves only a part of the rest, so that
    /// out-of-line code of a layer can reserve some without invalidating this reservation.
    #[cold]
    #[inline(never)]
    fn refill(&mut self, ip: *mut u8, bytes: usize) -> (*mut u8, usize) {
        let left = (self.limit as usize).saturating_sub(ip as usize);
        if left >= bytes {
            return (ip, bytes.max(left / 8));
        }
        self.fail(Error::Overflow);
        (self.start, self.limit as usize - self.start as usize)
    }

    /// Records a reference that `end` resolves.
    #[inline(always)]
    pub(crate) fn add_fixup(&mut self, fixup: Fixup) {
        if self.fixups.push(fixup).is_none() {
            self.fail(Error::Fixups);
        }
    }

    /// Records something about a label, once.
    #[cold]
    pub(crate) fn note_label(&mut self, kind: u8, label: Label) {
        let note = Fixup::new(0, label, kind);
        if !self.has_fixup(note) {
            self.add_fixup(note);
        }
    }

    fn has_fixup(&self, fixup: Fixup) -> bool {
        (0..self.fixups.len()).any(|index| self.fixups.get(index) == Some(fixup))
    }

    /// Whether [`Asm::procedure`] bound a label.
    #[cold]
    pub(crate) fn is_procedure(&self, label: Label) -> bool {
        self.has_fixup(Fixup::new(0, label, Fixup::PROCEDURE))
    }

    /// Resolves all references on the fast path; false if a label is unbound or out of reach.
    #[inline(always)]
    pub(crate) fn resolve_plain<M: Architecture>(&mut self) -> bool {
        for index in 0..self.fixups.len() {
            let Some(fixup) = self.fixups.get(index) else { return false };
            let done = match self.labels.get(fixup.label().0) {
                Some(target) if target != UNBOUND => patch_here::<M>(self.start, fixup.site(), fixup.kind(), target),
                Some(_) | None => false,
            };
            if !done {
                return false;
            }
        }
        true
    }

    /// Writes the distance to `target` into the instruction at `site`.
    #[inline(never)]
    pub(crate) fn patch<M: Architecture>(&mut self, site: u32, kind: u8, target: u32) {
        if !patch_here::<M>(self.start, site, kind, target) {
            self.fail(Error::BranchRange);
        }
    }
}

/// Like [`FunctionState::patch`], in the region that begins at `start`; false if the distance is too large.
#[inline(always)]
fn patch_here<M: Architecture>(start: *mut u8, site: u32, kind: u8, target: u32) -> bool {
    let bytes = start.wrapping_add(site as usize).cast::<[u8; 4]>();
    // SAFETY: sites are addresses of words that were stored in this region, so these four bytes are inside it.
    let word = unsafe { &mut *bytes };
    // A label outside of the region may lie before it.
    M::patch(kind, word, i64::from(target as i32) - i64::from(site))
}

impl<'a, M: Architecture> Asm<'a, M> {
    /// Distance of an address from the start of the region.
    #[inline(always)]
    pub(crate) fn at(&self, ip: *mut u8) -> u32 {
        (ip as usize).wrapping_sub(self.start as usize) as u32
    }

    /// Reserves `bytes` bytes.
    #[inline(always)]
    pub(crate) fn space(&mut self, bytes: usize) {
        if self.left < bytes {
            (self.cursor.ip, self.left) = self.f.refill(self.cursor.ip, bytes);
        }
        self.left -= bytes;
    }

    /// Checks once that `bytes` are free, so that the compiler eliminates the checks of the following straight-line
    /// instructions. Instructions beyond the reservation check for themselves.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the region has no such space; nothing is written.
    #[inline(always)]
    pub fn reserve(&mut self, bytes: usize) -> Result<(), Error> {
        // The cursor never passes the limit.
        if (self.f.limit as usize).wrapping_sub(self.cursor.ip as usize) < bytes {
            self.f.fail(Error::Overflow);
            return Err(Error::Overflow);
        }
        self.left = bytes;
        Ok(())
    }

    /// Allows instructions of these features from here on. A function starts with none, so that it runs on every
    /// processor of the machine.
    pub fn use_features(&mut self, features: Features) {
        self.f.features = features;
    }

    /// Whether the processor has the feature with this bit.
    #[inline(always)]
    pub(crate) fn has(&self, bit: u32) -> bool {
        self.f.features.contains(Features::bit(bit))
    }

    /// The first error so far. Errors are sticky: further instructions have no effect, and [`Asm::end`] reports the
    /// error.
    pub fn error(&self) -> Option<Error> {
        self.f.error
    }

    /// Makes a label, not bound yet.
    #[inline(always)]
    pub fn label(&mut self) -> Label {
        match self.f.labels.push(UNBOUND) {
            Some(index) if index < Label::ENTRY.0 => Label(index),
            Some(_) | None => {
                self.f.fail(Error::Labels);
                Label(0)
            }
        }
    }

    /// Binds a label to the next instruction.
    #[inline(always)]
    pub fn bind(&mut self, label: Label) {
        let at = self.at(self.cursor.ip);
        self.f.last_bound = at;
        match self.f.labels.get_mut(label.0) {
            Some(target) if *target == UNBOUND => *target = at,
            Some(_) => self.f.fail(Error::BoundTwice),
            None => self.f.fail(Error::Labels),
        }
        if self.forward.label() == label {
            if !patch_here::<M>(self.start, self.forward.site(), self.forward.kind(), at) {
                self.f.fail(Error::BranchRange);
            }
            self.forward = Fixup::NONE;
        }
    }

    /// Records that `jal` calls a label; a call of the function itself is none of a procedure.
    pub(crate) fn note_procedure_call(&mut self, label: Label) {
        if label != Label::ENTRY {
            self.f.note_label(Fixup::CALLED_PROCEDURE, label);
        }
    }

    /// The address at which a bound label will be executed.
    pub fn address(&self, label: Label) -> Option<usize> {
        let at = self.f.labels.get(label.0).filter(|at| *at != UNBOUND)?;
        Some(self.f.execute.wrapping_add_signed(at as i32 as isize))
    }

    /// Bytes of code so far.
    pub fn position(&self) -> usize {
        self.f.at(self.cursor.ip) as usize
    }

    /// Calls `write` with a copy of this assembler, so that the cursor of this one can stay in a register.
    #[inline(always)]
    pub(crate) fn out_of_line(&mut self, write: impl FnOnce(&mut Asm<'_, M>)) {
        let mut copy = Asm {
            cursor: self.cursor,
            left: self.left,
            start: self.start,
            small: self.small,
            last_return: self.last_return,
            forward: self.forward,
            f: &mut *self.f,
            machine: PhantomData,
        };
        write(&mut copy);
        (self.cursor, self.left) = (copy.cursor, copy.left);
        (self.last_return, self.forward) = (copy.last_return, copy.forward);
    }

    /// Records an error.
    #[inline]
    pub(crate) fn fail(&mut self, error: Error) {
        self.f.fail(error);
    }

    /// The offset of a label; `UNBOUND` if it is not bound yet.
    #[inline(always)]
    pub(crate) fn target(&self, label: Label) -> u32 {
        self.f.labels.get(label.0).unwrap_or(UNBOUND)
    }

    /// Whether a label is not bound yet.
    #[inline]
    pub(crate) fn is_ahead(&self, label: Label) -> bool {
        self.target(label) == UNBOUND
    }

    /// Records that the instruction at `site` refers to a label, whose offset is `target`.
    #[inline(always)]
    pub(crate) fn refer(&mut self, site: *mut u8, kind: u8, label: Label, target: u32) {
        if label == Label::EPILOGUE {
            if self.last_return != Fixup::NONE {
                self.f.add_fixup(self.last_return);
            }
            self.last_return = Fixup::new(self.at(site), label, kind);
            return;
        }
        let site = self.at(site);
        if target != UNBOUND {
            if !patch_here::<M>(self.start, site, kind, target) {
                self.f.fail(Error::BranchRange);
            }
            return;
        }
        self.record_forward();
        self.forward = Fixup::new(site, label, kind);
    }

    /// Moves the last reference to an unbound label to the table.
    #[inline(always)]
    pub(crate) fn record_forward(&mut self) {
        if self.forward != Fixup::NONE {
            self.f.add_fixup(self.forward);
        }
    }

    /// Whether a short branch from here certainly reaches a label at `target`: the label is near, or the region is
    /// small.
    #[inline(always)]
    pub(crate) fn near(&self, target: u32) -> bool {
        self.small || target != UNBOUND && self.at(self.cursor.ip).abs_diff(target) < M::SHORT_BRANCH_RANGE
    }

    /// A label for a floating constant after the code.
    pub(crate) fn constant(&mut self, bits: u64, size: u32) -> Label {
        self.pool_constant(0, bits, size)
    }

    /// A label for data after the code. Equal constants share an entry.
    pub(crate) fn pool_constant(&mut self, high: u64, bits: u64, size: u32) -> Label {
        for index in 0..self.f.constants.len() {
            if let Some(known) = self.f.constants.get(index)
                && (known.bits, known.high, known.size) == (bits, high, size)
            {
                return Label(known.label);
            }
        }
        let label = self.label();
        self.f.needs_general_path = true;
        if self.f.constants.push(Constant { bits, high, label: label.0, size }).is_none() {
            self.f.fail(Error::Constants);
        }
        label
    }

    /// A shift count, which must be below the width.
    #[inline(always)]
    pub(crate) fn count(&mut self, count: i64, width: i64) -> i64 {
        if (0..width).contains(&count) {
            return count;
        }
        self.f.fail(Error::Immediate);
        0
    }

    /// A constant for a machine whose long has 32 bits.
    #[inline(always)]
    pub(crate) fn long32(&mut self, value: i64) -> i64 {
        if value != i64::from(value as i32) {
            self.f.fail(Error::Immediate);
        }
        i64::from(value as i32)
    }

    /// An unsigned constant or address for a machine whose long has 32 bits.
    #[inline(always)]
    pub(crate) fn unsigned32(&mut self, value: u64) -> i64 {
        if value > u64::from(u32::MAX) {
            self.f.fail(Error::Immediate);
        }
        i64::from(value as i32)
    }

    /// Records that the function makes calls.
    #[inline]
    pub(crate) fn note_call(&mut self) {
        if self.f.kind != Kind::Calls {
            self.f.fail(Error::CallInLeaf);
        }
        if !self.f.calls {
            self.preserve_from_calls();
        }
        self.f.calls = true;
        self.f.needs_general_path = true;
    }

    /// Marks the registers that this function must preserve and C functions may destroy as saved.
    #[cold]
    #[inline(never)]
    fn preserve_from_calls(&mut self) {
        let (int, float) = (&self.f.convention.int, &self.f.convention.float);
        let (ints, floats) = (int.set_of(M::INT.temp), float.set_of(M::FLOAT.temp));
        self.f.int.touched |= ints & int.preserved;
        self.f.float.touched |= floats & float.preserved;
    }
}
