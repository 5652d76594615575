//! On any input, `qj check` needs at most 100 times its size and 50 MB of memory, and bounded time. An allocator that
//! rounds like common ones counts the memory, so that the numbers are the same in every run.
//!
//! `cargo test --release -p quaject-esp-syntax --test memory -- --nocapture` prints memory and time of every pattern;
//! `MEMORY_PATTERNS=block` measures only those with this word in their name.

use quaject_diagnostic::{Color, human, json};
use quaject_esp_syntax::check::{Loader, analyze, decode};
use quaject_esp_syntax::span::{FileId, SourceMap};
use quaject_test_support::Effort;
use quaject_test_support::hostile::{CLOSEST, PATTERNS, Pattern};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

const LENGTH: usize = 1 << 20;
const MAX_MEMORY: usize = 100 * LENGTH + 50_000_000;
/// Of an optimised build; others get five times as much.
const MAX_TIME: Duration = Duration::from_secs(2);

/// The system's allocator, counting what is in use. One thread allocates while it is measured; no order is needed.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK_IN_USE: AtomicUsize = AtomicUsize::new(0);

/// The size of an allocation, with its header and rounding.
fn taken(bytes: usize) -> usize {
    (bytes + 8).next_multiple_of(16).max(32)
}

fn count(bytes: usize) {
    let now = IN_USE.fetch_add(taken(bytes), Relaxed) + taken(bytes);
    PEAK_IN_USE.fetch_max(now, Relaxed);
}

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the caller keeps the allocator's contract, which is handed on unchanged to the system's.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc_zeroed(layout) }
    }

    // SAFETY: the caller keeps the allocator's contract, which is handed on unchanged to the system's.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(taken(layout.size()), Relaxed);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    // SAFETY: the caller keeps the allocator's contract, which is handed on unchanged to the system's.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Large ones are remapped: old and new are not in use together.
        IN_USE.fetch_sub(taken(layout.size()), Relaxed);
        count(size);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Every path leads to an empty file of its own, but the empty one.
struct EmptyFiles;

impl Loader for EmptyFiles {
    fn load(&mut self, path: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        match path {
            "" => Err("no such file".to_string()),
            _ => Ok((path.to_string(), Vec::new())),
        }
    }
}

/// Time this thread has run: unlike wall-clock time it does not depend on other processes.
fn running_time(start: Instant) -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = statistics.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

struct Measured {
    bytes: usize,
    time: Duration,
    diagnostics: usize,
    accepted: bool,
}

fn measure(pattern: &Pattern) -> Measured {
    let clock = Instant::now();
    let text = pattern.text(LENGTH);
    let before = IN_USE.load(Relaxed) - taken(text.capacity());
    PEAK_IN_USE.store(before, Relaxed);
    let start = running_time(clock);
    let mut sources = SourceMap::default();
    let (root, fault) = decode(&mut sources, "hostile.esp".to_string(), text);
    let mut analysis = analyze(&mut sources, root, &mut EmptyFiles);
    analysis.diagnostics.extend(fault);
    human(&sources, &analysis.diagnostics, Color::Never);
    json(&sources, &analysis.diagnostics);
    let time = running_time(clock) - start;
    Measured {
        bytes: PEAK_IN_USE.load(Relaxed) - before,
        time,
        diagnostics: analysis.diagnostics.len(),
        accepted: analysis.program.is_some(),
    }
}

#[test]
fn memory_and_time_are_bounded() {
    let max_time = if cfg!(debug_assertions) { 5 * MAX_TIME } else { MAX_TIME };
    let word = std::env::var("MEMORY_PATTERNS").unwrap_or_default();
    let quick = Effort::wanted() == Effort::Quick;
    let mut broken = String::new();
    for pattern in PATTERNS {
        if !pattern.name.contains(&word) || (quick && !CLOSEST.contains(&pattern.name)) {
            continue;
        }
        let Measured { bytes, time, diagnostics, accepted } = measure(pattern);
        let row = format!(
            "{:34} {:4} MB {:5} ms {diagnostics:5} diagnostics{}",
            pattern.name,
            bytes / 1_000_000,
            time.as_millis(),
            if accepted { ", accepted" } else { "" }
        );
        println!("{row}");
        if bytes > MAX_MEMORY || time > max_time {
            writeln!(broken, "{row}").expect("a string takes any text");
        }
    }
    assert!(broken.is_empty(), "1 MiB took more than {} MB or {max_time:?}:\n{broken}", MAX_MEMORY / 1_000_000);
}

#[test]
fn the_patterns_of_a_quick_run_exist() {
    for name in CLOSEST {
        assert!(PATTERNS.iter().any(|pattern| pattern.name == *name), "no pattern is called {name}");
    }
}
