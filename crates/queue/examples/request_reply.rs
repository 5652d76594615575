//! One thread asks another and waits for the reply; both travel in one cache line.
//! `cargo run -p quaject-queue --example request_reply`

use quaject_queue::{Yield, call};

fn main() {
    let (mut caller, mut responder) = call::<u64, u64>();
    let server = std::thread::spawn(move || {
        // Ends with `Disconnected` when the caller is dropped.
        while let Ok(request) = responder.take_request_wait(Yield) {
            responder.reply(request * request).expect("a request was taken");
        }
    });
    let mut sum = 0;
    for number in 1..=10 {
        caller.call(number).expect("no other request is outstanding");
        sum += caller.take_reply_wait(Yield).expect("the responder runs");
    }
    println!("the sum of the squares up to ten is {sum}");
    assert_eq!(sum, 385);
    drop(caller);
    server.join().expect("the server does not panic");
}
