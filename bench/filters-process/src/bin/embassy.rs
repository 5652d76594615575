//! The filters as async functions over embassy-sync channels of capacity 1: joined in one task, or each a task of an
//! executor. Arguments: program, `joined` or `tasks`, times. Prints nanoseconds per input byte, then the result.

use embassy_executor::{Executor, Spawner};
use embassy_futures::block_on;
use embassy_futures::join::{join, join5};
use embassy_sync::blocking_mutex::raw::NoopRawMutex;
use embassy_sync::channel::Channel;
use quaject_bench_filters_process::stages::{Sink, Source, crc32, evener, pes, read, rld, rle, swap, write};
use quaject_bench_filters_process::{LENGTH, WINDOW, data, result};
use std::time::Instant;

struct Pipe(Channel<NoopRawMutex, i32, 1>);

impl Pipe {
    fn new() -> Pipe {
        Pipe(Channel::new())
    }
}

impl Source for &Pipe {
    async fn receive(&mut self) -> i32 {
        self.0.receive().await
    }
}

impl Sink for &Pipe {
    async fn send(&mut self, byte: i32) {
        self.0.send(byte).await;
    }
}

fn joined(program: u32, times: u32, data: &[u8]) {
    let (mut written, mut count) = (vec![0u8; WINDOW], 0);
    let pipes: [Pipe; 7] = std::array::from_fn(|_| Pipe::new());
    let [a, b, c, d, e, f, g] = &pipes;
    let start = Instant::now();
    let (written_here, counted) = (&mut written[..], &mut count);
    match program {
        1 => {
            let tail = write(d, written_here, counted);
            block_on(join5(read(data, times, a), evener(a, b), swap(b, c), crc32(c, d), tail));
        }
        2 => {
            let tail = write(d, written_here, counted);
            block_on(join5(read(data, times, a), rle(a, b), swap(b, c), pes(c, d), tail));
        }
        3 => {
            let front = join5(read(data, times, a), rle(a, b), swap(b, c), pes(c, d), pes(d, e));
            block_on(join(front, join(swap(e, f), join(rld(f, g), write(g, written_here, counted)))));
        }
        _ => {
            let front = join5(read(data, times, a), crc32(a, b), swap(b, c), pes(c, d), pes(d, e));
            block_on(join(front, join(swap(e, f), join(rld(f, g), write(g, written_here, counted)))));
        }
    }
    report(start, times, &written, count);
}

fn report(start: Instant, times: u32, written: &[u8], count: u32) {
    let nanoseconds = start.elapsed().as_nanos() as f64 / (f64::from(times) * LENGTH as f64);
    println!("{nanoseconds:.3}\n{}", result(written, count));
}

#[embassy_executor::task]
async fn read_task(data: &'static [u8], times: u32, to: &'static Pipe) {
    read(data, times, to).await;
}

/// The last task: an executor never returns, so it reports and ends the program.
#[embassy_executor::task]
async fn write_task(from: &'static Pipe, times: u32, start: Instant) {
    let (mut written, mut count) = (vec![0u8; WINDOW], 0);
    write(from, &mut written, &mut count).await;
    report(start, times, &written, count);
    std::process::exit(0);
}

/// Every stage as a task of its own, twice at most in a program.
macro_rules! stage_tasks {
    ($($task:ident: $stage:ident;)*) => {$(
        #[embassy_executor::task(pool_size = 2)]
        async fn $task(from: &'static Pipe, to: &'static Pipe) {
            $stage(from, to).await;
        }
    )*};
}

stage_tasks! {
    evener_task: evener;
    swap_task: swap;
    crc32_task: crc32;
    rle_task: rle;
    pes_task: pes;
    rld_task: rld;
}

fn spawn(spawner: Spawner, program: u32, times: u32, data: &'static [u8]) {
    let pipes: &'static [Pipe; 7] = Box::leak(Box::new(std::array::from_fn(|_| Pipe::new())));
    let [a, b, c, d, e, f, g] = pipes;
    macro_rules! spawn {
        ($($stage:expr),*) => {{ $(spawner.spawn($stage.expect("spawned twice at most"));)* }};
    }
    spawn!(read_task(data, times, a));
    match program {
        1 => spawn!(evener_task(a, b), swap_task(b, c), crc32_task(c, d)),
        2 => spawn!(rle_task(a, b), swap_task(b, c), pes_task(c, d)),
        3 => spawn!(rle_task(a, b), swap_task(b, c), pes_task(c, d), pes_task(d, e), swap_task(e, f), rld_task(f, g)),
        _ => spawn!(crc32_task(a, b), swap_task(b, c), pes_task(c, d), pes_task(d, e), swap_task(e, f), rld_task(f, g)),
    }
    let last = if program <= 2 { d } else { g };
    spawn!(write_task(last, times, Instant::now()));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments[index].parse::<u32>().expect("a number");
    let (program, style, times) = (number(0), arguments[1].as_str(), number(2));
    match style {
        "joined" => joined(program, times, &data()),
        "tasks" => {
            let executor: &'static mut Executor = Box::leak(Box::new(Executor::new()));
            let data: &'static [u8] = Box::leak(data().into_boxed_slice());
            executor.run(|spawner| spawn(spawner, program, times, data));
        }
        _ => panic!("`{style}` is neither `joined` nor `tasks`"),
    }
}
