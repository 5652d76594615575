//! A ring in shared memory between two processes: the parent consumes what the child produces. Linux; the child gets
//! the memory as its standard input. `cargo run -p quaject-queue --example two_processes`

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use quaject_queue::shared::{Ring, bytes_needed};
    use quaject_queue::{Mapping, Single, Yield};
    use std::os::fd::AsFd;
    use std::process::{Command, Stdio};

    /// Sixteen slots.
    const CAPACITY_LOG2: u32 = 4;
    const MESSAGES: u64 = 1000;

    if std::env::args().nth(1).as_deref() == Some("producer") {
        let memory = Mapping::of(std::io::stdin().as_fd().try_clone_to_owned()?)?;
        let ring = Ring::<Single, Single, _>::attach(memory, CAPACITY_LOG2, 2)?;
        let mut producer = Ring::producer(&ring)?;
        for number in 1..=MESSAGES {
            producer.push_wait([number, number * number, 0, 0, 0, 0, 0], Yield)?;
        }
        return Ok(());
    }
    let memory = Mapping::new(bytes_needed(CAPACITY_LOG2))?;
    let descriptor = memory.as_fd().try_clone_to_owned()?;
    let ring = Ring::<Single, Single, _>::create(memory, CAPACITY_LOG2, 1)?;
    let mut consumer = Ring::consumer(&ring)?;
    let mut child = Command::new(std::env::current_exe()?).arg("producer").stdin(Stdio::from(descriptor)).spawn()?;
    let mut sum = 0;
    for _ in 0..MESSAGES {
        // A program that must survive the death of its peer waits with a limit (`Until`) and checks the child in
        // between.
        sum += consumer.pop_wait(Yield)?[1];
    }
    println!("the sum of {MESSAGES} squares is {sum}");
    assert!(child.wait()?.success());
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("shared memory is for Linux");
}
