//! `examples/chip` on emulated boards: the TFTP server, with curl as client through a bridge from UDP to the boards'
//! serial line, the Modbus slave, with rmodbus's client, and a main loop without a tick.

use quaject_test_support::qj::qj_binary;
use quaject_test_support::{Effort, HANG_TIMEOUT, tool};
use rmodbus::ModbusProto;
use rmodbus::client::ModbusRequest;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The numbers of ports in frames (examples/chip/tftp.c).
const REQUEST: u8 = 0;
const TRANSFER: u8 = 1;
const DROPPED: u8 = 2;

struct Board {
    name: &'static str,
    compiler: &'static str,
    emulator: &'static str,
    machine: &'static [&'static str],
}

const BOARDS: &[Board] = &[
    Board {
        name: "cortex-m3",
        compiler: "arm-none-eabi-gcc",
        emulator: "qemu-system-arm",
        machine: &["-M", "mps2-an385"],
    },
    Board {
        name: "rv32",
        compiler: "riscv64-unknown-elf-gcc",
        emulator: "qemu-system-riscv32",
        machine: &["-M", "virt", "-bios", "none"],
    },
];

impl Board {
    /// The examples, in a folder of this test's own.
    fn folder(&self, purpose: &str) -> PathBuf {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chip-{}-{purpose}", self.name));
        let _ = std::fs::remove_dir_all(&folder);
        for part in ["chip", "tftp", "modbus"] {
            std::fs::create_dir_all(folder.join(part)).expect("the scratch folder belongs to this test");
            for entry in std::fs::read_dir(examples.join(part)).expect("examples are readable") {
                let path = entry.expect("examples are readable").path();
                if path.is_file() {
                    let name = path.file_name().expect("a file");
                    std::fs::copy(&path, folder.join(part).join(name)).expect("the scratch folder is ours");
                }
            }
        }
        folder.join("chip")
    }

    /// The image of a program, in such a folder; `None` if the machine lacks the tools.
    fn image(&self, program: &str, purpose: &str, flags: &str) -> Option<PathBuf> {
        for needed in ["make", "curl", self.compiler, self.emulator] {
            tool(&[needed])?;
        }
        let chip = self.folder(purpose);
        let image = format!("{program}-{}.elf", self.name);
        let output = Command::new("make")
            .arg(&image)
            .arg(format!("QJ={}", qj_binary()))
            .arg(format!("WARNINGS=-Werror {flags}"))
            .current_dir(&chip)
            .output()
            .expect("make was found");
        assert!(output.status.success(), "{}: {}", self.name, String::from_utf8_lossy(&output.stderr));
        Some(chip.join(image))
    }

    /// Runs an image; its serial line is the process's input and output.
    fn emulate(&self, image: &Path) -> Child {
        Command::new(self.emulator)
            .args(self.machine)
            .args(["-display", "none", "-monitor", "none", "-serial", "stdio", "-kernel"])
            .arg(image)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the emulator was found")
    }
}

/// The master of a Modbus line, with a board at its other end.
struct Master {
    emulator: Child,
    line: ChildStdin,
    heard: Receiver<Vec<u8>>,
    client: ModbusRequest,
}

impl Master {
    fn of(board: &Board, image: &Path) -> Master {
        let mut emulator = board.emulate(image);
        let line = emulator.stdin.take().expect("it is a pipe");
        let mut output = emulator.stdout.take().expect("it is a pipe");
        let (sender, heard) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 512];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let _ = sender.send(bytes[..count].to_vec());
            }
        });
        // The address of examples/chip/modbus.esp.
        Master { emulator, line, heard, client: ModbusRequest::new(17, ModbusProto::Rtu) }
    }

    /// Sends a request until it is answered with this many bytes. On a busy machine a request can have a gap that ends
    /// it, and the slave does not answer.
    fn ask(&mut self, request: &[u8], length: usize) -> Vec<u8> {
        let begun = Instant::now();
        while begun.elapsed() < HANG_TIMEOUT {
            while self.heard.try_recv().is_ok() {}
            self.line.write_all(request).and_then(|()| self.line.flush()).expect("the board runs");
            let mut answer = Vec::new();
            while let Ok(more) = self.heard.recv_timeout(Duration::from_secs(2)) {
                answer.extend(more);
                if answer.len() >= length {
                    self.client.parse_ok(&answer).expect("the slave has done it");
                    return answer;
                }
            }
        }
        panic!("the slave does not answer");
    }

    fn write(&mut self, first: u16, values: &[u16]) {
        let mut request = Vec::new();
        self.client.generate_set_holdings_bulk(first, values, &mut request).expect("the request has room");
        self.ask(&request, 8);
    }

    fn read(&mut self, first: u16, count: u16) -> Vec<u16> {
        let (mut request, mut values) = (Vec::new(), Vec::new());
        self.client.generate_get_holdings(first, count, &mut request).expect("the request has room");
        let answer = self.ask(&request, 5 + 2 * usize::from(count));
        self.client.parse_u16(&answer, &mut values).expect("the answer is whole");
        values
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }
}

/// A board that runs the TFTP server, and its line.
struct Running {
    emulator: Child,
    line: Arc<Mutex<ChildStdin>>,
    /// The port of this machine that is the server's.
    port: u16,
    dropped: Receiver<u32>,
}

impl Running {
    fn start(board: &Board, image: &Path) -> Running {
        let mut emulator = board.emulate(image);
        let line = Arc::new(Mutex::new(emulator.stdin.take().expect("it is a pipe")));
        let socket = || UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
        let sockets = [socket(), socket()];
        let port = sockets[0].local_addr().expect("it is bound").port();
        for (kind, socket) in [REQUEST, TRANSFER].into_iter().zip(&sockets) {
            let (socket, line) = (socket.try_clone().expect("descriptors are left"), Arc::clone(&line));
            std::thread::spawn(move || to_board(kind, &socket, &line));
        }
        let (report, dropped) = channel();
        let output = emulator.stdout.take().expect("it is a pipe");
        std::thread::spawn(move || from_board(output, &sockets, &report));
        let running = Running { emulator, line, port, dropped };
        running.await_start();
        running
    }

    /// What comes before the board listens is lost.
    fn await_start(&self) {
        let answers = (0..HANG_TIMEOUT.as_secs()).any(|_| {
            send(&self.line, DROPPED, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0), &[]);
            self.dropped.recv_timeout(Duration::from_secs(1)).is_ok()
        });
        assert!(answers, "the board does not answer");
        while self.dropped.recv_timeout(Duration::from_millis(300)).is_ok() {}
    }

    /// Whether curl succeeds; on a busy machine it times out early and is run again.
    fn curl(&self, folder: &Path, arguments: &[&str]) -> bool {
        let url = format!("tftp://127.0.0.1:{}/image", self.port);
        (0..5).any(|_| {
            let mut curl = Command::new("timeout");
            curl.args(["600", "curl", "-s", &url]).args(arguments).current_dir(folder);
            curl.status().is_ok_and(|status| status.success())
        })
    }

    /// How many datagrams the interrupt handler has dropped.
    fn dropped(&self) -> u32 {
        send(&self.line, DROPPED, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0), &[]);
        self.dropped.recv_timeout(HANG_TIMEOUT).expect("the board answers")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }
}

fn send(line: &Mutex<ChildStdin>, kind: u8, peer: SocketAddrV4, content: &[u8]) {
    let mut frame = vec![0xa5];
    frame.extend((content.len() as u16 + 9).to_be_bytes());
    frame.push(kind);
    frame.extend(peer.ip().octets());
    frame.extend(peer.port().to_be_bytes());
    frame.extend(content);
    frame.extend(fletcher(&frame[3..]).to_be_bytes());
    let mut line = line.lock().expect("no thread panics while it writes");
    // A board that was stopped hears nothing more.
    let _ = line.write_all(&frame).and_then(|()| line.flush());
}

/// Fletcher's sum of 16 bits.
fn fletcher(bytes: &[u8]) -> u16 {
    let sums = |(low, high): (u16, u16), byte: &u8| {
        ((low + u16::from(*byte)) % 255, (high + (low + u16::from(*byte)) % 255) % 255)
    };
    let (low, high) = bytes.iter().fold((0, 0), sums);
    high << 8 | low
}

fn to_board(kind: u8, socket: &UdpSocket, line: &Mutex<ChildStdin>) {
    let mut content = [0; 2048];
    while let Ok((length, SocketAddr::V4(peer))) = socket.recv_from(&mut content) {
        send(line, kind, peer, &content[..length]);
    }
}

fn from_board(mut output: impl Read, sockets: &[UdpSocket; 2], dropped: &Sender<u32>) {
    let mut head = [0; 10];
    while output.read_exact(&mut head).is_ok() {
        assert_eq!(head[0], 0xa5, "the board writes frames and nothing else");
        let mut content = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]])) - 7];
        if output.read_exact(&mut content).is_err() {
            return;
        }
        let sum = content.split_off(content.len() - 2);
        assert_eq!(fletcher(&[&head[3..], &content].concat()).to_be_bytes()[..], sum, "what the board writes arrives");
        let peer = SocketAddrV4::new(
            Ipv4Addr::new(head[4], head[5], head[6], head[7]),
            u16::from_be_bytes([head[8], head[9]]),
        );
        if head[3] == DROPPED {
            let _ = dropped.send(u32::from_be_bytes(content.try_into().expect("four bytes")));
        } else {
            let _ = sockets[usize::from(head[3])].send_to(&content, peer);
        }
    }
}

/// The initial file of the board.
fn image_of_64_kib() -> Vec<u8> {
    let mut state = 1_u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..65_536).map(next).collect()
}

fn checksum(path: &Path) -> u32 {
    crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC).checksum(&std::fs::read(path).expect("it was transferred"))
}

#[test]
fn boards_give_and_take_64_kib() {
    for board in Effort::wanted().pick(&BOARDS[..1], BOARDS, BOARDS) {
        let Some(image) = board.image("tftp", "transfer", "") else { return };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let running = Running::start(board, &image);
        std::fs::write(folder.path().join("expected"), image_of_64_kib()).expect("the folder is writable");
        let reversed: Vec<u8> = image_of_64_kib().into_iter().rev().collect();
        std::fs::write(folder.path().join("mine"), reversed).expect("the folder is writable");
        assert!(running.curl(folder.path(), &["-o", "got"]), "{}: get", board.name);
        assert_eq!(checksum(&folder.path().join("got")), checksum(&folder.path().join("expected")), "{}", board.name);
        assert!(running.curl(folder.path(), &["-T", "mine"]), "{}: put", board.name);
        assert!(running.curl(folder.path(), &["-o", "back"]), "{}: get again", board.name);
        assert_eq!(checksum(&folder.path().join("back")), checksum(&folder.path().join("mine")), "{}", board.name);
    }
}

/// As many as a request may write (Application Protocol 1.1b3, 6.12), and read (6.3).
const WRITTEN: usize = 123;
const READ: u16 = 125;

#[test]
fn boards_keep_64_kib_in_modbus_registers() {
    for board in Effort::wanted().pick(&BOARDS[1..], BOARDS, BOARDS) {
        let Some(image) = board.image("modbus", "modbus", "") else { return };
        let mut master = Master::of(board, &image);
        let file = image_of_64_kib();
        let values: Vec<u16> = file.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
        for (number, part) in values.chunks(WRITTEN).enumerate() {
            master.write((number * WRITTEN) as u16, part);
        }
        let mut back = Vec::new();
        for first in (0..32_768).step_by(READ.into()) {
            let values = master.read(first, READ.min(32_768 - first));
            back.extend(values.iter().flat_map(|value| value.to_be_bytes()));
        }
        let crc = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);
        assert_eq!((back.len(), crc.checksum(&back)), (65_536, crc.checksum(&file)), "{}", board.name);
    }
}

/// An emulator, which does not end by itself.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The board has no tick: a byte that the main loop overlooks before it sleeps stays unanswered, and no other follows.
#[test]
fn a_loop_without_a_tick_answers_each_byte() {
    let board = &BOARDS[0];
    let Some(image) = board.image("echo", "echo", "") else { return };
    let mut emulator = Emulator(board.emulate(&image));
    let mut line = emulator.0.stdin.take().expect("it is a pipe");
    let mut output = emulator.0.stdout.take().expect("it is a pipe");
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        let mut byte = [0];
        while output.read_exact(&mut byte).is_ok() {
            let _ = sender.send(byte[0]);
        }
    });
    for number in 0..Effort::wanted().pick(100, 2_000, 100_000) {
        let byte = (number % 256) as u8;
        line.write_all(&[byte]).and_then(|()| line.flush()).expect("the board runs");
        assert_eq!(heard.recv_timeout(HANG_TIMEOUT), Ok(byte.wrapping_add(1)), "byte {number}");
    }
}

#[test]
fn a_flood_of_interrupts_is_dropped_and_counted() {
    for board in Effort::wanted().pick(&BOARDS[1..], BOARDS, BOARDS) {
        let Some(image) = board.image("tftp", "flood", "-DERASE_DROPS=1") else { return };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let running = Running::start(board, &image);
        // While the memory is erased for a new file, here until a datagram is dropped, the interrupt handler alone
        // runs, and its ring fills.
        let stranger = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9);
        send(&running.line, REQUEST, stranger, b"\0\x02image\0octet\0");
        for _ in 0..3_000 {
            send(&running.line, TRANSFER, stranger, &[0, 4, 9, 9]);
        }
        // Late answers to the questions at the start come first; they say 0.
        let asked = Instant::now();
        let mut dropped = 0;
        while dropped == 0 && asked.elapsed() < HANG_TIMEOUT {
            dropped = running.dropped();
        }
        assert!((1..3_000).contains(&dropped), "{}: {dropped} of 3000 datagrams were dropped", board.name);
        // The client that requested an upload never starts it; after its timeout the next client is served.
        send(&running.line, TRANSFER, stranger, b"\0\x05\0\0enough\0");
        std::fs::write(folder.path().join("expected"), image_of_64_kib()).expect("the folder is writable");
        assert!(running.curl(folder.path(), &["-o", "got"]), "{}: get after the flood", board.name);
        assert_eq!(checksum(&folder.path().join("got")), checksum(&folder.path().join("expected")), "{}", board.name);
    }
}

/// Bytes of the generated code that the linker has put into the image, constants included, from the map it writes.
fn flash_of_core(map: &Path) -> u64 {
    let map = std::fs::read_to_string(map).expect("the linker has written a map");
    let (_, placed) = map.split_once("Linker script and memory map").expect("maps have this heading");
    let words: Vec<&str> = placed.split_whitespace().collect();
    let hexadecimal = |word: &str| word.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let sections = words.windows(4).filter(|words| words[3].contains("-core-") && words[3].ends_with(".o"));
    let in_flash = sections.filter(|words| [".text", ".rodata", ".data"].iter().any(|kind| words[0].starts_with(kind)));
    in_flash.filter_map(|words| hexadecimal(words[1]).and(hexadecimal(words[2]))).sum()
}

/// The output of a command that runs in a folder.
fn output_of(command: &mut Command, folder: &Path) -> String {
    let output = command.current_dir(folder).output().expect("it was found");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names are ASCII")
}

/// Bytes of the TFTP server's state in blocks of this size; `chip` is the folder of the image.
fn state_in_blocks(board: &Board, chip: &Path, block: u32) -> u64 {
    let source = std::fs::read_to_string(chip.join("tftp.esp")).expect("the example is readable");
    assert!(source.contains("const BLOCK = 512;"));
    let name = format!("blocks-{block}");
    let changed = source.replace("const BLOCK = 512;", &format!("const BLOCK = {block};"));
    std::fs::write(chip.join(format!("{name}.esp")), changed).expect("the folder is ours");
    state_bytes(board, chip, &format!("{name}.esp"))
}

/// Bytes of a program's state, by the compiler of the first board.
fn state_bytes(board: &Board, chip: &Path, program: &str) -> u64 {
    let mut build = Command::new(qj_binary());
    output_of(build.args(["build", program, "--emit", "c", "--style", "post", "-o", "state"]), chip);
    let header = Path::new(program).with_extension("h");
    let header = header.file_name().expect("a program is a file").display();
    std::fs::write(chip.join("state.c"), format!("#include \"{header}\"\nchar state[sizeof(esp_t)];\n"))
        .expect("the folder is ours");
    let flags = ["-mcpu=cortex-m3", "-mthumb", "-ffreestanding", "-Istate", "-c", "state.c", "-o", "state.o"];
    output_of(Command::new(board.compiler).args(flags), chip);
    let symbols = output_of(Command::new("arm-none-eabi-nm").args(["-S", "state.o"]), chip);
    let size = symbols.lines().find(|line| line.ends_with(" state")).and_then(|line| line.split(' ').nth(1));
    u64::from_str_radix(size.expect("the state is there"), 16).expect("sizes are numbers")
}

/// An upper bound on the stack of the core: the sum over all its functions.
fn stack_of_core(usage: &Path) -> u64 {
    let usage = std::fs::read_to_string(usage).expect("the compiler has written it");
    usage.lines().filter_map(|line| line.split('\t').nth(1)?.parse::<u64>().ok()).sum()
}

#[test]
fn the_core_fits_6_kib_of_flash_and_1536_bytes_of_memory_beyond_packets() {
    let board = &BOARDS[0];
    let Some(image) = board.image("tftp", "size", "") else { return };
    let chip = image.parent().expect("it is in a folder");
    let flash = flash_of_core(&image.with_extension("map"));
    // The packets grow with the block. Each of three rings has three words and its messages.
    let (state, longer) = (state_in_blocks(board, chip, 512), state_in_blocks(board, chip, 576));
    let packets = (longer - state) / 64;
    let memory = state - packets * 512 + 3 * 3 * 4;
    let stack = stack_of_core(&chip.join("tftp-core-cortex-m3.su"));
    println!("{flash} bytes of flash; {memory} of memory without {packets} packets, at most {stack} of stack");
    assert!((3_000..=6_144).contains(&flash), "{flash} bytes of flash");
    assert!((8..16).contains(&packets), "{packets} packets");
    assert!(memory + stack <= 1_536, "{memory} bytes of memory and {stack} of stack without {packets} packets");
}

/// The rows of a report, or of a table of the README: a name, and its numbers.
type Rows = Vec<(String, Vec<u64>)>;

/// Memory and code by process, as `--report` says them.
fn reported(report: &str) -> Rows {
    let rows = report.lines().skip_while(|line| !line.starts_with("bytes ")).skip(1);
    let rows = rows.take_while(|line| !line.trim_start().starts_with("code as"));
    let numbers = |line: &str| line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let name = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().take_while(|word| word.parse::<u64>().is_err()).collect();
        words.join(" ")
    };
    rows.map(|line| (name(line), numbers(line))).collect()
}

/// The tables of the README with the memory and code of processes, in order.
fn promised(readme: &str) -> Vec<Rows> {
    let mut tables: Vec<Rows> = Vec::new();
    for line in readme.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if cells[0].ends_with(", bytes") {
            tables.push(Vec::new());
        } else if let Some(table) = tables.last_mut() {
            let numbers: Vec<u64> = cells[1..].iter().filter_map(|cell| cell.replace(',', "").parse().ok()).collect();
            if !numbers.is_empty() {
                table.push((cells[0].to_string(), numbers));
            }
        }
    }
    tables
}

#[test]
fn the_readme_states_memory_and_code_of_each_process() {
    for needed in ["make", "arm-none-eabi-nm", BOARDS[0].compiler, BOARDS[1].compiler] {
        if tool(&[needed]).is_none() {
            return;
        }
    }
    let chip = BOARDS[0].folder("report");
    let report = output_of(Command::new("make").arg("report").arg(format!("QJ={}", qj_binary())), &chip);
    let reports: Vec<Rows> = report.split("CC=").skip(1).map(reported).collect();
    let readme = std::fs::read_to_string(chip.join("README.md")).expect("the example has one");
    let tables = promised(&readme);
    assert_eq!((reports.len(), tables.len()), (4, 2), "two programs for two boards");
    for ((table, boards), program) in tables.iter().zip(reports.chunks(2)).zip(["tftp.esp", "../modbus/slave.esp"]) {
        let [cortex, risc] = boards else { panic!("two boards") };
        assert!(cortex.len() > 4, "{program}: {report}");
        let mut memory = 0;
        for ((name, first), (_, second)) in cortex.iter().zip(risc) {
            let found: Vec<u64> = first.iter().chain(second.last()).copied().collect();
            let promised = table.iter().find(|(row, _)| row == name).map(|(_, numbers)| numbers);
            let promised = promised.unwrap_or_else(|| panic!("{program}: the README has no row `{name}`"));
            // Compilers differ a little from version to version.
            let close = |(one, other): (&u64, &u64)| one.abs_diff(*other) <= 8 + other / 20;
            assert!(
                found.len() == promised.len() && found.iter().zip(promised).all(close),
                "{program}, {name}: {found:?}, the README says {promised:?}"
            );
            memory += if found.len() == 3 { found[0] } else { 0 };
        }
        assert_eq!(table.len(), cortex.len() + 1, "{program}: the README has rows that no report has");
        // The object file has no other memory.
        let (name, rest) = table.last().expect("it has rows");
        assert_eq!(name, "the rest of the state");
        let state = state_bytes(&BOARDS[0], &chip, program);
        assert_eq!(memory + rest[0], state, "{program}: the state");
    }
}
