//! Copies a message, swaps the bytes of its words and computes two sums, in one pass over memory.
//! `cargo run -p quaject-pipe --example copy_and_sum`

use quaject_pipe::{Composer, Error, Options, Step};

fn main() -> Result<(), Error> {
    // The checksum is that of the input, the CRC that of the swapped words: steps are applied in order.
    let steps = [Step::Checksum, Step::Swap32, Step::Crc32c, Step::Copy];
    let pipe = Composer::global()?.compose(&steps)?;

    let message: Vec<u8> = (0..=255).collect();
    let mut target = vec![0; message.len()];
    let report = pipe.run(&message, &mut target)?;
    assert_eq!(target[..4], [3, 2, 1, 0]);
    println!("checksum {:04x}, CRC {:08x}", report.checksum().unwrap_or(0), report.crc32c().unwrap_or(0));

    // The same in pieces, as data arrive; each but the last a multiple of eight bytes. The reports are equal.
    let mut runner = pipe.runner();
    let mut pass = runner.start();
    for (piece, target) in message.chunks(64).zip(target.chunks_mut(64)) {
        pass.piece(piece, target, Options::default())?;
    }
    assert_eq!(*pass.end(), report);
    Ok(())
}
