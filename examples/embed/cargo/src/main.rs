//! Prints the packets of a SLIP stream from standard input. The decoder is the ESP program `slip.esp`.

mod slip {
    include!(concat!(env!("OUT_DIR"), "/slip.rs"));
}

use std::io::Read;
use std::time::Instant;

/// Prints what the decoder sends.
struct Printer;

impl slip::Environment for Printer {
    fn on_packet_c(&mut self, packet: &slip::Bytes<256>) {
        let bytes: Vec<String> = packet.iter().map(|byte| format!(" {byte:02x}")).collect();
        println!("{}:{}", packet.len(), bytes.concat());
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let mut decoder = slip::Program::new();
    let mut chunk = [0; 4096];
    loop {
        let count = std::io::stdin().read(&mut chunk)?;
        chunk[..count].iter().for_each(|byte| decoder.send_byte_c(*byte));
        if count == 0 {
            decoder.close_byte_c();
        }
        match decoder.run(start.elapsed(), &mut Printer)? {
            slip::Status::Done { exit_status } => std::process::exit(exit_status),
            slip::Status::Sleep { until: Some(until) } if count == 0 => {
                std::thread::sleep(until.saturating_sub(start.elapsed()));
            }
            slip::Status::Sleep { .. } | slip::Status::Again => {}
        }
    }
}
