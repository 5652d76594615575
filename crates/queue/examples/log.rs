//! Several threads write a log that one thread collects: many producers, one consumer, records of several items that
//! stay together. `cargo run -p quaject-queue --example log`

use quaject_queue::{WaitError, Yield, mp_sc};

fn main() {
    let (producer, mut consumer) = mp_sc(64);
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let mut producer = producer.clone();
            std::thread::spawn(move || {
                for number in 0..4 {
                    // Both items of a record are inserted together, or neither: no other writer comes between.
                    let record = [format!("writer {writer}"), format!("record {number}")];
                    let mut pending = Some(record);
                    while let Some(record) = pending.take() {
                        if let Err(failed) = producer.push_all(record) {
                            pending = Some(failed.item);
                            std::thread::yield_now();
                        }
                    }
                }
            })
        })
        .collect();
    // The last clone must be dropped too: the consumer's wait ends when no producer is left.
    drop(producer);
    let mut records = 0;
    loop {
        match consumer.pop_wait(Yield) {
            Ok(writer) => {
                let record = consumer.pop_wait(Yield).expect("a record is inserted as a unit");
                println!("{writer}: {record}");
                records += 1;
            }
            Err(WaitError::Disconnected) => break,
            Err(error) => panic!("{error}"),
        }
    }
    writers.into_iter().for_each(|writer| writer.join().expect("a writer does not panic"));
    assert_eq!(records, 12);
}
