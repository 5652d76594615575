//! What the contenders share: the data, the result they print, and the filters written as plain loops, against which
//! every contender is checked. The checksum is crc32fast's, not ours.

pub mod chains;
pub mod stages;

/// Bytes of the array that is read again and again.
pub const LENGTH: usize = 10_000;
/// Bytes of the array that is written, over and over.
pub const WINDOW: usize = 65_536;
/// The key of PES.
pub const KEY: [u8; 8] = [0x1f, 0x2e, 0x3d, 0x4c, 0x5b, 0x6a, 0x79, 0x88];

/// The array: values 1 to 15, no two neighbours equal.
pub fn data() -> Vec<u8> {
    let (mut state, mut last) = (1u32, 0u8);
    let mut next = || loop {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let byte = 1 + ((state >> 24) % 15) as u8;
        if byte != last {
            last = byte;
            return byte;
        }
    };
    (0..LENGTH).map(|_| next()).collect()
}

/// What a contender prints of its output: how many bytes it wrote, and a hash of the array it wrote them to.
pub fn result(written: &[u8], count: u32) -> String {
    let hash = written.iter().fold(2_166_136_261u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619));
    format!("{count} {hash:08x}")
}

fn even(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() % 2 == 1 {
        bytes.push(0);
    }
    bytes
}

fn swap(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
    bytes
}

fn checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32fast::hash(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes
}

fn pes(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.iter_mut().zip(KEY.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    bytes
}

fn rle(bytes: &[u8]) -> Vec<u8> {
    bytes.chunk_by(|a, b| a == b).flat_map(|run| run.chunks(255)).flat_map(|run| [run.len() as u8, run[0]]).collect()
}

fn rld(bytes: &[u8]) -> Vec<u8> {
    bytes.chunks_exact(2).flat_map(|pair| std::iter::repeat_n(pair[1], usize::from(pair[0]))).collect()
}

/// The result of a program on the array read `times` times.
pub fn expected(program: u32, times: u32) -> String {
    let input = data().repeat(times as usize);
    let output = match program {
        1 => checksum(swap(even(input))),
        2 => pes(swap(rle(&input))),
        3 => rld(&swap(pes(pes(swap(rle(&input)))))),
        _ => rld(&swap(pes(pes(swap(checksum(input)))))),
    };
    let mut written = vec![0; WINDOW];
    for (index, byte) in output.iter().enumerate() {
        written[index % WINDOW] = *byte;
    }
    result(&written, output.len() as u32)
}
