//! The functions that `include/quaject/filter.h` declares, on the Rust ones. Knows nothing that those do not.
//!
//! Every function demands of its pointers what the header says: that they are valid, and null only where it says so.
#![allow(non_camel_case_types, reason = "types are called as the header calls them")]

use crate::bpf::{Instruction, Program};
use crate::classifier::{Classifier, Reader, View};
use crate::error::Error;
use crate::ir::{self, Expression, Filter, Scope, Test};
use crate::packet::Packet;
use crate::pcap::Pcap;
use crate::types::{Id, Match};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::slice;
use std::sync::OnceLock;

const OK: c_int = 0;
const REFUSED: c_int = 7;
const ABSENT: c_int = 8;
const UNFIT: c_int = 9;
const ENCODING: c_int = 10;
const SHIFT: c_int = 11;

/// An error for C: its code and its message.
#[derive(Clone)]
struct Failure(c_int, String);

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let number = match error {
            Error::Bytecode { .. } => 1,
            Error::Text { .. } => 2,
            Error::Width(_) => 3,
            Error::Alternatives(_) => 4,
            Error::Unknown(_) => 5,
            Error::Full => 6,
            Error::Shift(_) => SHIFT,
        };
        Failure(number, format!("{error}\nhelp: {}", error.help()))
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Stores the message of a failure for the thread; returns its code.
fn status(outcome: Result<(), Failure>) -> c_int {
    let Err(Failure(number, text)) = outcome else { return OK };
    let text = CString::new(text.replace('\0', " ")).expect("zero bytes were replaced");
    MESSAGE.with_borrow_mut(|message| *message = text);
    number
}

// SAFETY: no other library has functions that begin so.
#[unsafe(no_mangle)]
extern "C" fn qj_filter_message() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}

/// A filter that is being built test by test, or a complete one.
pub(crate) struct qj_filter {
    made: Option<Filter>,
    /// Tests that must all hold, one list for each alternative.
    alternatives: Vec<Vec<Expression>>,
    scope: Scope,
    negated: bool,
    /// The first thing that was wrong.
    wrong: Option<Failure>,
}

impl qj_filter {
    fn new(made: Option<Filter>) -> *mut qj_filter {
        let alternatives = vec![Vec::new()];
        let filter = qj_filter { made, alternatives, scope: Scope::packet(), negated: false, wrong: None };
        Box::into_raw(Box::new(filter))
    }

    fn fail(&mut self, failure: Failure) {
        self.wrong.get_or_insert(failure);
    }

    fn is_built(&mut self) -> bool {
        if self.made.is_some() {
            self.fail(Failure(UNFIT, "a test for a filter that was made of a text or program".to_owned()));
        }
        self.made.is_none()
    }

    fn width(&mut self, width: u32) -> u8 {
        if !(1..=4).contains(&width) {
            self.fail(Error::Width(width).into());
        }
        width.clamp(1, 4) as u8
    }

    fn test(&mut self, test: impl Into<Expression>) {
        if self.is_built() {
            let test = test.into();
            let test = if std::mem::take(&mut self.negated) { !test } else { test };
            self.alternatives.last_mut().expect("there is one at least").push(test);
        }
    }

    fn filter(&self) -> Result<Filter, Failure> {
        match (&self.wrong, &self.made) {
            (Some(wrong), _) => Err(wrong.clone()),
            (None, Some(made)) => Ok(made.clone()),
            (None, None) => {
                let alternatives = self.alternatives.iter().map(|tests| Expression::All(tests.clone()));
                Ok(Expression::Any(alternatives.collect()).filter()?)
            }
        }
    }
}

// SAFETY: no other library has functions that begin so.
#[unsafe(no_mangle)]
extern "C" fn qj_filter_new() -> *mut qj_filter {
    qj_filter::new(None)
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_equal(filter: *mut qj_filter, offset: u32, width: u32, value: u32) {
    // SAFETY: the pointer is valid, as the header demands.
    let filter = unsafe { &mut *filter };
    let width = filter.width(width);
    filter.test(Test::equal(filter.scope.field(offset, width), value));
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_masked(filter: *mut qj_filter, offset: u32, width: u32, mask: u32, value: u32) {
    // SAFETY: the pointer is valid, as the header demands.
    let filter = unsafe { &mut *filter };
    let width = filter.width(width);
    filter.test(Test::masked(filter.scope.field(offset, width), mask, value));
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_range(filter: *mut qj_filter, offset: u32, width: u32, low: u32, high: u32) {
    // SAFETY: the pointer is valid, as the header demands.
    let filter = unsafe { &mut *filter };
    let width = filter.width(width);
    filter.test(Test::range(filter.scope.field(offset, width), low, high));
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_any_of(
    filter: *mut qj_filter,
    offset: u32,
    width: u32,
    values: *const u32,
    count: usize,
) {
    // SAFETY: the pointers are valid, as the header demands.
    let (filter, values) = unsafe { (&mut *filter, array(values, count)) };
    let width = filter.width(width);
    filter.test(Expression::any_of(&filter.scope.field(offset, width), values.iter().copied()));
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_prefix(filter: *mut qj_filter, offset: u32, value: u32, bits: u32) {
    // SAFETY: the pointer is valid, as the header demands.
    let filter = unsafe { &mut *filter };
    filter.test(Expression::prefix(filter.scope.field(offset, 4), value, bits));
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_length(filter: *mut qj_filter, low: u32, high: u32) {
    // SAFETY: the pointer is valid, as the header demands.
    let filter = unsafe { &mut *filter };
    filter.test(Test::length(low, high));
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_not(filter: *mut qj_filter) {
    // SAFETY: the pointer is valid, as the header demands.
    let filter = unsafe { &mut *filter };
    filter.negated ^= filter.is_built();
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_or(filter: *mut qj_filter) {
    // SAFETY: the pointer is valid, as the header demands.
    let filter = unsafe { &mut *filter };
    if filter.is_built() {
        filter.alternatives.push(Vec::new());
        filter.scope = Scope::packet();
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_skip(filter: *mut qj_filter, bytes: u32) {
    // SAFETY: the pointer is valid, as the header demands.
    let filter = unsafe { &mut *filter };
    filter.scope = filter.scope.skip(bytes);
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_shift(filter: *mut qj_filter, offset: u32, width: u32, mask: u32, shift: c_int) {
    // SAFETY: the pointer is valid, as the header demands.
    let filter = unsafe { &mut *filter };
    let width = filter.width(width);
    match i8::try_from(shift) {
        Ok(by @ -31..=31) => filter.scope = filter.scope.shift(offset, width, mask, by),
        Ok(_) | Err(_) => filter.fail(Failure(SHIFT, format!("a shift by {shift}, not by -31 to 31 bits"))),
    }
}

/// Passes a filter to the caller.
///
/// # Safety
/// There is a place for it.
unsafe fn give(made: Result<Filter, Failure>, place: *mut *mut qj_filter) -> c_int {
    status(made.map(|filter| {
        // SAFETY: the caller says so.
        unsafe { *place = qj_filter::new(Some(filter)) };
    }))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_of_program(
    instructions: *const Instruction,
    count: usize,
    place: *mut *mut qj_filter,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    unsafe {
        let made = Program::new(array(instructions, count)).map(|program| Filter::of_program(&program));
        give(made.map_err(Failure::from), place)
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_of_text(text: *const c_char, place: *mut *mut qj_filter) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    unsafe { give(string(text).and_then(|text| Ok(ir::parse(text)?)), place) }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_of_expression(
    expression: *const c_char,
    link_type: c_int,
    place: *mut *mut qj_filter,
) -> c_int {
    static PCAP: OnceLock<Result<Pcap, Failure>> = OnceLock::new();
    let pcap = PCAP
        .get_or_init(|| Pcap::load().map_err(|absent| Failure(ABSENT, format!("{absent}\nhelp: {}", absent.help()))));
    // SAFETY: the pointers are valid, as the header demands.
    unsafe {
        let made = string(expression).and_then(|text| match pcap {
            Ok(pcap) => match pcap.compile(text, link_type) {
                Ok(program) => Ok(Filter::of_program(&program)),
                Err(refused) => Err(Failure(REFUSED, refused.to_string())),
            },
            Err(absent) => Err(absent.clone()),
        });
        give(made, place)
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_free(filter: *mut qj_filter) {
    if !filter.is_null() {
        // SAFETY: it comes from `Box::into_raw`, and the caller gives it back.
        drop(unsafe { Box::from_raw(filter) });
    }
}

/// Elements behind a pointer that may be null if there are none.
///
/// # Safety
/// There are as many, for as long as the slice is used.
unsafe fn array<'a, T>(first: *const T, count: usize) -> &'a [T] {
    // SAFETY: the caller says so.
    if count == 0 { &[] } else { unsafe { slice::from_raw_parts(first, count) } }
}

/// # Safety
/// It is a string that ends with zero, for as long as it is used.
unsafe fn string<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: the caller says so.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure(ENCODING, "the text is not UTF-8".to_owned()))
}

pub(crate) struct qj_classifier(Classifier);

// SAFETY: no other library has functions that begin so.
#[unsafe(no_mangle)]
extern "C" fn qj_classifier_new() -> *mut qj_classifier {
    Box::into_raw(Box::new(qj_classifier(Classifier::new())))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_classifier_free(classifier: *mut qj_classifier) {
    if !classifier.is_null() {
        // SAFETY: it comes from `Box::into_raw`, and the caller gives it back.
        drop(unsafe { Box::from_raw(classifier) });
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_classifier_insert(
    classifier: *const qj_classifier,
    filter: *const qj_filter,
    priority: u32,
    number: *mut u32,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    let (classifier, filter, number) = unsafe { (&*classifier, &*filter, &mut *number) };
    status(filter.filter().and_then(|filter| {
        *number = classifier.0.insert(&filter, priority)?.number();
        Ok(())
    }))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_classifier_insert_all(
    classifier: *const qj_classifier,
    filters: *const *const qj_filter,
    priorities: *const u32,
    count: usize,
    numbers: *mut u32,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    let (classifier, filters) = unsafe { (&*classifier, array(filters, count)) };
    // SAFETY: if it is not null it is valid.
    let priorities = (!priorities.is_null()).then(|| unsafe { array(priorities, count) });
    // SAFETY: every filter is valid.
    let filters: Result<Vec<Filter>, Failure> = filters.iter().map(|own| unsafe { &**own }.filter()).collect();
    status(filters.and_then(|filters| {
        let all = filters.iter().enumerate().map(|(at, own)| (own, priorities.map_or(0, |priorities| priorities[at])));
        for (at, id) in classifier.0.insert_all(all)?.into_iter().enumerate() {
            // SAFETY: there is room for as many numbers as there are filters.
            unsafe { *numbers.add(at) = id.number() };
        }
        Ok(())
    }))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_classifier_remove(classifier: *const qj_classifier, number: u32) -> c_int {
    // SAFETY: the pointer is valid, as the header demands.
    status(unsafe { &*classifier }.0.remove(Id(number)).map_err(Failure::from))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_classifier_explain(classifier: *const qj_classifier) -> *mut c_char {
    // SAFETY: the pointer is valid, as the header demands.
    let text = unsafe { &*classifier }.0.explain();
    CString::new(text).expect("explanations have no zero bytes").into_raw()
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_filter_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it comes from `CString::into_raw`, and the caller gives it back.
        drop(unsafe { CString::from_raw(text) });
    }
}

#[repr(C)]
pub(crate) struct qj_classifier_stats {
    filters: u64,
    groups: u64,
    programs: u64,
    chunks: u64,
    interpreted: u64,
    code_bytes: u64,
    table_bytes: u64,
    generations: u64,
    waiting: u64,
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_classifier_stats(classifier: *const qj_classifier, place: *mut qj_classifier_stats) {
    // SAFETY: the pointers are valid, as the header demands.
    let (classifier, place) = unsafe { (&*classifier, &mut *place) };
    let own = classifier.0.stats();
    *place = qj_classifier_stats {
        filters: own.filters as u64,
        groups: own.groups as u64,
        programs: own.programs as u64,
        chunks: own.chunks as u64,
        interpreted: own.interpreted as u64,
        code_bytes: own.code_bytes as u64,
        table_bytes: own.table_bytes as u64,
        generations: own.generations,
        waiting: own.waiting as u64,
    };
}

/// A reader, and whether the caller has pinned it.
pub(crate) struct qj_reader {
    reader: Reader,
    pinned: bool,
}

impl qj_reader {
    /// Calls `read` with a pinned view, for the call only or as long as the caller has pinned the reader.
    fn with<T>(&mut self, read: impl FnOnce(&mut View<'_>) -> T) -> T {
        // A reader that another thread had pinned at a fork is pinned for each call.
        if self.pinned && self.reader.is_pinned() {
            read(&mut ManuallyDrop::new(self.reader.view()))
        } else {
            read(&mut self.reader.pin())
        }
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_reader_new(classifier: *const qj_classifier) -> *mut qj_reader {
    // SAFETY: the pointer is valid, as the header demands.
    let reader = unsafe { &*classifier }.0.reader();
    Box::into_raw(Box::new(qj_reader { reader, pinned: false }))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_reader_free(reader: *mut qj_reader) {
    if !reader.is_null() {
        // SAFETY: it comes from `Box::into_raw`, and the caller gives it back.
        let mut reader = unsafe { Box::from_raw(reader) };
        if reader.pinned {
            // Dropping this view unpins the reader.
            drop(reader.reader.view());
        }
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_reader_pin(reader: *mut qj_reader) {
    // SAFETY: the pointer is valid, as the header demands.
    let reader = unsafe { &mut *reader };
    if !reader.pinned {
        let _stays = ManuallyDrop::new(reader.reader.pin());
        reader.pinned = true;
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_reader_unpin(reader: *mut qj_reader) {
    // SAFETY: the pointer is valid, as the header demands.
    let reader = unsafe { &mut *reader };
    if std::mem::take(&mut reader.pinned) {
        drop(reader.reader.view());
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct qj_packet {
    data: *const c_void,
    length: u32,
    wire_length: u32,
}

impl qj_packet {
    /// # Safety
    /// There are as many bytes, for as long as the packet is used.
    unsafe fn packet<'a>(self) -> Packet<'a> {
        // SAFETY: the caller says so.
        Packet::captured(unsafe { array(self.data.cast(), self.length as usize) }, self.wire_length)
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_classify(reader: *mut qj_reader, data: *const c_void, length: u32) -> u64 {
    // SAFETY: the pointers are valid, as the header demands.
    let (reader, packet) = unsafe { (&mut *reader, qj_packet { data, length, wire_length: length }.packet()) };
    reader.with(|view| view.classify(packet).0)
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_classify_packet(reader: *mut qj_reader, packet: *const qj_packet) -> u64 {
    // SAFETY: the pointers are valid, as the header demands.
    let (reader, packet) = unsafe { (&mut *reader, (*packet).packet()) };
    reader.with(|view| view.classify(packet).0)
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_classify_batch(
    reader: *mut qj_reader,
    packets: *const qj_packet,
    count: usize,
    matches: *mut Match,
) {
    if count == 0 {
        return;
    }
    // SAFETY: 1. The pointers are valid, as the header demands. 2. A packet of C is laid out as one of Rust, whose
    // pointer is read only as far as its length reaches.
    let (reader, packets, matches) = unsafe {
        let packets: &[Packet<'_>] = slice::from_raw_parts(packets.cast(), count);
        // Written to, never read.
        (&mut *reader, packets, slice::from_raw_parts_mut(matches, count))
    };
    reader.with(|view| view.classify_batch(packets, matches));
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_classify_all(
    reader: *mut qj_reader,
    packet: *const qj_packet,
    matches: *mut Match,
    room: usize,
) -> usize {
    // SAFETY: the pointers are valid, as the header demands.
    let (reader, packet) = unsafe { (&mut *reader, (*packet).packet()) };
    let mut all = Vec::new();
    reader.with(|view| view.matches(packet, &mut all));
    for (at, found) in all.iter().take(room).enumerate() {
        // SAFETY: there is room for so many.
        unsafe { *matches.add(at) = *found };
    }
    all.len()
}
