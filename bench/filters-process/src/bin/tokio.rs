//! The filters as tasks of tokio's runtime of one thread, over its channels of capacity 1, the least it has. Arguments:
//! program, times. Prints nanoseconds per input byte, then the result.

use quaject_bench_filters_process::stages::{Sink, Source, crc32, evener, pes, read, rld, rle, swap, write};
use quaject_bench_filters_process::{LENGTH, WINDOW, data, result};
use std::time::Instant;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{LocalSet, spawn_local};

struct From(Receiver<i32>);
struct To(Sender<i32>);

impl Source for From {
    async fn receive(&mut self) -> i32 {
        self.0.recv().await.expect("the end is sent before the channel closes")
    }
}

impl Sink for To {
    async fn send(&mut self, byte: i32) {
        self.0.send(byte).await.expect("the reader waits for the end");
    }
}

fn pipe() -> (To, From) {
    let (to, from) = channel(1);
    (To(to), From(from))
}

async fn run(program: u32, times: u32, written: &mut [u8], count: &mut u32) {
    let (to, mut last) = pipe();
    spawn_local(async move { read(&data(), times, to).await });
    macro_rules! stages {
        ($($stage:ident),*) => {{ $(
            let (to, next) = pipe();
            spawn_local($stage(last, to));
            last = next;
        )* }};
    }
    match program {
        1 => stages!(evener, swap, crc32),
        2 => stages!(rle, swap, pes),
        3 => stages!(rle, swap, pes, pes, swap, rld),
        _ => stages!(crc32, swap, pes, pes, swap, rld),
    }
    write(last, written, count).await;
}

fn main() {
    let number = |index: usize| std::env::args().nth(index).and_then(|text| text.parse().ok()).expect("a number");
    let (program, times) = (number(1), number(2));
    let (mut written, mut count) = (vec![0u8; WINDOW], 0);
    let runtime = Builder::new_current_thread().build().expect("a runtime of one thread");
    let start = Instant::now();
    LocalSet::new().block_on(&runtime, run(program, times, &mut written, &mut count));
    let nanoseconds = start.elapsed().as_nanos() as f64 / (f64::from(times) * LENGTH as f64);
    println!("{nanoseconds:.3}\n{}", result(&written, count));
}
