//! The filters as async functions over embassy-sync channels of capacity 1: joined in one task, or each a task of an
//! executor. Arguments: program, `joined` or `tasks`, times. Prints nanoseconds per input byte, then the result.

use embassy_executor::{Executor, Spawner};
use embassy_futures::block_on;
use embassy_futures::join::{join, join5};
use embassy_sync::blocking_mutex::raw::NoopRawMutex;
use embassy_sync::channel::Channel;
use quaject_bench_filters_process::{KEY, LENGTH, WINDOW, data, result};
use std::time::Instant;

type Pipe = Channel<NoopRawMutex, i32, 1>;
const END: i32 = -1;

async fn read(data: &[u8], times: u32, to: &Pipe) {
    for _ in 0..times {
        for byte in data {
            to.send(i32::from(*byte)).await;
        }
    }
    to.send(END).await;
}

async fn evener(from: &Pipe, to: &Pipe) {
    let mut odd = false;
    loop {
        let byte = from.receive().await;
        if byte == END {
            break;
        }
        to.send(byte).await;
        odd = !odd;
    }
    if odd {
        to.send(0).await;
    }
    to.send(END).await;
}

async fn swap(from: &Pipe, to: &Pipe) {
    loop {
        let first = from.receive().await;
        if first == END {
            break;
        }
        let second = from.receive().await;
        if second == END {
            to.send(first).await;
            break;
        }
        to.send(second).await;
        to.send(first).await;
    }
    to.send(END).await;
}

async fn crc32(from: &Pipe, to: &Pipe) {
    let mut table = [0u32; 256];
    for (index, entry) in table.iter_mut().enumerate() {
        *entry = (0..8).fold(index as u32, |rest, _| if rest & 1 != 0 { (rest >> 1) ^ 0xedb8_8320 } else { rest >> 1 });
    }
    let mut crc = 0xffff_ffffu32;
    loop {
        let byte = from.receive().await;
        if byte == END {
            break;
        }
        crc = table[((crc ^ byte as u32) & 0xff) as usize] ^ (crc >> 8);
        to.send(byte).await;
    }
    for byte in (!crc).to_le_bytes() {
        to.send(i32::from(byte)).await;
    }
    to.send(END).await;
}

async fn rle(from: &Pipe, to: &Pipe) {
    let (mut count, mut last) = (0, 0);
    loop {
        let byte = from.receive().await;
        if count > 0 && (byte != last || count == 255) {
            to.send(count).await;
            to.send(last).await;
            count = 0;
        }
        if byte == END {
            break;
        }
        last = byte;
        count += 1;
    }
    to.send(END).await;
}

async fn pes(from: &Pipe, to: &Pipe) {
    let mut at = 0;
    loop {
        let byte = from.receive().await;
        if byte == END {
            break;
        }
        to.send(byte ^ i32::from(KEY[at])).await;
        at = (at + 1) % 8;
    }
    to.send(END).await;
}

async fn rld(from: &Pipe, to: &Pipe) {
    loop {
        let count = from.receive().await;
        if count == END {
            break;
        }
        let value = from.receive().await;
        if value == END {
            break;
        }
        for _ in 0..count {
            to.send(value).await;
        }
    }
    to.send(END).await;
}

async fn write(from: &Pipe, written: &mut [u8], count: &mut u32) {
    loop {
        let byte = from.receive().await;
        if byte == END {
            break;
        }
        written[*count as usize % WINDOW] = byte as u8;
        *count += 1;
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
