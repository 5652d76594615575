//! Cards with firmware in C on a network, with and without faults.

use crate::common::{build, clang};
use quaject_vmmc::lanai::Lanai;
use quaject_vmmc::{AccessError, CardState, FaultCause, Image, Network, NetworkFaults, NetworkOptions};

const ROUNDS: usize = 100;

const TEN_PERCENT: NetworkFaults =
    NetworkFaults { lost_per_mille: 100, duplicated_per_mille: 100, delayed_per_mille: 100, max_delay_cycles: 5000 };

fn network(images: &[&Image], faults: NetworkFaults, seed: u64) -> Network<Lanai> {
    let options = NetworkOptions { faults, seed, ..NetworkOptions::default() };
    Network::new(images, "main", options).expect("the firmware has a `main`")
}

fn length_of(number: usize) -> usize {
    4 + ((number * 52) & 0x3fc) % 1021
}

/// Runs the ping-pong in steps of so many cycles; returns the cycles of each round trip and the repeated messages.
fn ping_pong(image: &Image, faults: NetworkFaults, seed: u64, step: u64) -> (Vec<u32>, u32) {
    let mut network = network(&[image, image], faults, seed);
    for (position, byte) in network.cards_mut()[0].host_memory_mut().iter_mut().enumerate() {
        *byte = (position * 7 + position / 251) as u8;
    }
    while network.cards()[0].state() == &CardState::Running {
        network.run_to(network.cycle() + step);
        assert!(network.cycle() < 10_000_000, "no end after {:?}", network.cards()[0].interrupts().last());
    }
    let [ping, pong] = network.cards() else { panic!("two nodes") };
    let CardState::Returned(repeats) = *ping.state() else { panic!("{:?}", ping.state()) };
    assert_eq!(pong.state(), &CardState::Running);
    let delivered: Vec<u32> = pong.interrupts().iter().map(|interrupt| interrupt.value).collect();
    assert_eq!(delivered, (1..=ROUNDS as u32).collect::<Vec<_>>(), "each message once and in order");
    for number in 1..=ROUNDS {
        let sent = &ping.host_memory()[number * 1024 + 4..number * 1024 + length_of(number)];
        assert_eq!(&pong.host_memory()[number * 1024 + 4..][..sent.len()], sent, "message {number} at node 1");
        assert_eq!(&ping.host_memory()[0x40000 + number * 1024 + 4..][..sent.len()], sent, "message {number} back");
    }
    (ping.interrupts().iter().map(|interrupt| interrupt.value).collect(), repeats)
}

#[test]
fn messages_come_back_after_the_same_cycles_in_every_run() {
    let Some(clang) = clang() else { return };
    let image = build(clang, include_str!("../firmware/ping_pong.c"), "-O2");
    let (cycles, repeats) = ping_pong(&image, NetworkFaults::default(), 0, 1_000_000);
    assert_eq!(repeats, 0);
    println!("round trips in cycles: {cycles:?}");
    for step in [1, 13, 4096] {
        assert_eq!(ping_pong(&image, NetworkFaults::default(), 0, step), (cycles.clone(), 0), "steps of {step} cycles");
    }
    // At least the time on two links and four buses, at 160 and 133 MB/s.
    for (number, cycles) in cycles.iter().enumerate() {
        let bytes = length_of(number + 1) as u32;
        let floor = 2 * (bytes * 33 / 160) + 4 * (bytes * 33 / 133) + 2 * 17;
        assert!((floor..floor + 1000).contains(cycles), "{bytes} bytes: {cycles} cycles, wires and buses {floor}");
    }
}

#[test]
fn messages_come_back_although_packets_are_lost_repeated_and_reordered() {
    let Some(clang) = clang() else { return };
    let image = build(clang, include_str!("../firmware/ping_pong.c"), "-O2");
    let mut results = Vec::new();
    for seed in 0..4 {
        let result = ping_pong(&image, TEN_PERCENT, seed, 1_000_000);
        assert_eq!(result, ping_pong(&image, TEN_PERCENT, seed, 777), "seed {seed}");
        assert!(result.1 > 5, "seed {seed}: a tenth of the packets is lost in each direction, {} sent again", result.1);
        results.push(result);
    }
    assert!(results.windows(2).all(|pair| pair[0] != pair[1]), "seeds choose other packets");
}

#[test]
fn two_senders_share_the_link_to_one_receiver() {
    let Some(clang) = clang() else { return };
    let source = "#include <quaject/vmmc-card.h>
        static unsigned buffer[1024];
        int main(void);
        int main(void) {
            if (QJ_CARD_NODE == 0) {
                for (int i = 0; i < 2; i++) {
                    QJ_CARD_RECEIVE_BUFFER = (unsigned)buffer;
                    QJ_CARD_RECEIVE_LIMIT = 4096;
                    QJ_CARD_RECEIVE_COMMAND = QJ_CARD_RECEIVE_START;
                    QJ_CARD_EVENTS = ~0u;
                    QJ_CARD_WAIT = ~0u;
                    QJ_CARD_INTERRUPT = buffer[0];
                }
                return (int)QJ_CARD_NODES;
            }
            buffer[0] = QJ_CARD_NODE;
            QJ_CARD_SEND_BUFFER = (unsigned)buffer;
            QJ_CARD_SEND_LENGTH = 4096;
            QJ_CARD_SEND_NODE = 0;
            QJ_CARD_SEND_COMMAND = QJ_CARD_SEND_LAST;
            return 0;
        }";
    let image = build(clang, source, "-O2");
    let mut network = network(&[&image; 3], NetworkFaults::default(), 0);
    network.run_to(100_000);
    let receiver = &network.cards()[0];
    assert_eq!(receiver.state(), &CardState::Returned(3));
    let [first, second] = receiver.interrupts() else { panic!("{:?}", receiver.interrupts()) };
    assert_eq!((first.value, second.value), (1, 2), "at the same time, the first port is first");
    // 4096 bytes at 160 MB/s are 844.8 cycles.
    assert!((845..855).contains(&(second.cycle - first.cycle)), "{first:?} {second:?}");
    assert_eq!(receiver.lost_packets(), 0);
}

#[test]
fn pages_are_sent_while_they_still_arrive_from_the_host() {
    let Some(clang) = clang() else { return };
    // "Fast Paths" 6.2, footnote: data pipelining. The pieces are sent as soon as the host engine has brought them.
    let source = "#include <quaject/vmmc-card.h>
        static unsigned char buffer[4096];
        int main(void);
        int main(void) {
            if (QJ_CARD_NODE == 1) {
                QJ_CARD_RECEIVE_BUFFER = (unsigned)buffer;
                QJ_CARD_RECEIVE_LIMIT = sizeof buffer;
                QJ_CARD_RECEIVE_COMMAND = QJ_CARD_RECEIVE_START;
                QJ_CARD_WAIT = ~0u;
                QJ_CARD_INTERRUPT = QJ_CARD_RECEIVE_LENGTH;
                return 0;
            }
            QJ_CARD_HOST_ADDRESS = 8192;
            QJ_CARD_HOST_BUFFER = (unsigned)buffer;
            QJ_CARD_HOST_LENGTH = sizeof buffer;
            QJ_CARD_HOST_COMMAND = QJ_CARD_HOST_TO_CARD;
            QJ_CARD_SEND_NODE = 1;
            for (unsigned sent = 0; sent < sizeof buffer; sent += PIECE) {
                while (QJ_CARD_HOST_COMMAND > sizeof buffer - sent - PIECE || QJ_CARD_SEND_COMMAND != 0) {
                }
                QJ_CARD_SEND_BUFFER = (unsigned)buffer + sent;
                QJ_CARD_SEND_LENGTH = PIECE;
                QJ_CARD_SEND_COMMAND = sent + PIECE < sizeof buffer ? QJ_CARD_SEND_PIECE : QJ_CARD_SEND_LAST;
            }
            return 0;
        }";
    let arrival = |piece: u32| {
        let image = build(clang, &format!("#define PIECE {piece}u\n{source}"), "-O2");
        let mut network = network(&[&image; 2], NetworkFaults::default(), 0);
        for (position, byte) in network.cards_mut()[0].host_memory_mut().iter_mut().enumerate() {
            *byte = (position / 3) as u8;
        }
        network.run_to(100_000);
        let receiver = &network.cards()[1];
        assert_eq!(receiver.interrupts().len(), 1, "{:?} {:?}", receiver.state(), network.cards()[0].state());
        assert_eq!(receiver.interrupts()[0].value, 4096);
        let buffer = image_buffer(receiver.memory(), &network.cards()[0].host_memory()[8192..8192 + 4096]);
        assert!(buffer, "the page is in the receiver's memory");
        receiver.interrupts()[0].cycle
    };
    let (whole, pieces) = (arrival(4096), arrival(512));
    // 1017 cycles on the bus and 845 on the wire, one after the other or at the same time.
    assert!((1862..2000).contains(&whole) && (1017 + 845 / 8..1400).contains(&pieces), "{whole} {pieces}");
}

fn image_buffer(memory: &[u8], page: &[u8]) -> bool {
    memory.windows(page.len()).step_by(4).any(|window| window == page)
}

/// The state of a card whose firmware has this body.
fn state_after(clang: &str, body: &str) -> CardState {
    let source = format!(
        "#include <quaject/vmmc-card.h>
        static volatile unsigned words[16];
        int main(void);
        int main(void) {{ {body} return (int)words[0]; }}"
    );
    let image = build(clang, &source, "-O2");
    let mut network = network(&[&image], NetworkFaults::default(), 0);
    network.run_to(100_000);
    network.cards()[0].state().clone()
}

#[test]
fn firmware_without_meaning_is_stopped() {
    let Some(clang) = clang() else { return };
    let cause = |body: &str| match state_after(clang, body) {
        CardState::Faulted(fault) => fault.cause,
        other => panic!("{other:?}: {body}"),
    };
    let store = |offset: u32, error| FaultCause::Store(0x10_0000 + offset, error);
    assert_eq!(cause("QJ_CARD_CLOCK = 1;"), store(0x00, AccessError::ReadOnly));
    assert_eq!(cause("words[0] = QJ_CARD_WAIT;"), FaultCause::Load(0x10_000c, AccessError::WriteOnly));
    assert_eq!(cause("QJ_CARD_REGISTER(0x50) = 1;"), store(0x50, AccessError::OutOfRange));
    assert_eq!(cause("*(volatile unsigned char *)0x100010 = 1;"), store(0x10, AccessError::PartOfRegister));
    assert_eq!(cause("*(volatile unsigned *)0x4002u = 1;"), FaultCause::Store(0x4002, AccessError::Unaligned));
    assert_eq!(cause("QJ_CARD_HOST_COMMAND = 3;"), store(0x2c, AccessError::Command(3)));
    let transfer = |memory, address, length| AccessError::Transfer { memory, address, length };
    assert_eq!(
        cause("QJ_CARD_HOST_ADDRESS = 0xffffe; QJ_CARD_HOST_LENGTH = 4; QJ_CARD_HOST_COMMAND = QJ_CARD_HOST_TO_CARD;"),
        store(0x2c, transfer("the host's memory", 0xffffe, 4))
    );
    assert_eq!(
        cause("QJ_CARD_SEND_BUFFER = 0xfffffff0; QJ_CARD_SEND_LENGTH = 64; QJ_CARD_SEND_COMMAND = 2;"),
        store(0x3c, transfer("the card's memory", 0xffff_fff0, 64))
    );
    assert_eq!(
        cause("QJ_CARD_SEND_LENGTH = 0x10001; QJ_CARD_SEND_COMMAND = 1;"),
        store(0x3c, AccessError::PacketLength(0x10001))
    );
    assert_eq!(
        cause("QJ_CARD_SEND_LENGTH = 400; QJ_CARD_SEND_COMMAND = 1; QJ_CARD_SEND_COMMAND = 2;"),
        store(0x3c, AccessError::EngineBusy)
    );
    assert!(matches!(
        cause(
            "QJ_CARD_SEND_BUFFER = (unsigned)words; QJ_CARD_SEND_LENGTH = 64; QJ_CARD_SEND_COMMAND = 2;
             words[3]++; QJ_CARD_WAIT = ~0u;"
        ),
        FaultCause::SendBufferChanged { length: 64, .. }
    ));
    assert!(matches!(cause("((void (*)(void))0x200000)();"), FaultCause::Fetch(AccessError::OutOfRange)));
    assert!(matches!(cause("words[1] = 0xffffffff; ((void (*)(void))&words[1])();"), FaultCause::Instruction(_)));
    // No end is no fault: the network runs to the cycle that is asked for.
    assert_eq!(state_after(clang, "for (;;) words[0]++;"), CardState::Running);
}

#[test]
fn packets_that_nothing_receives_are_lost_in_the_end() {
    let Some(clang) = clang() else { return };
    let body = "for (unsigned i = 0; i < 70; i++) {
        QJ_CARD_SEND_LENGTH = 4; QJ_CARD_SEND_NODE = 0; QJ_CARD_SEND_COMMAND = 2;
        while (QJ_CARD_SEND_COMMAND != 0) { }
    }
    QJ_CARD_SEND_NODE = 9; QJ_CARD_SEND_COMMAND = 2;";
    let source = format!("#include <quaject/vmmc-card.h>\nint main(void); int main(void) {{ {body} return 5; }}");
    let image = build(clang, &source, "-O2");
    let mut network = network(&[&image], NetworkFaults::default(), 0);
    network.run_to(100_000);
    assert_eq!(network.cards()[0].state(), &CardState::Returned(5));
    assert_eq!((network.cards()[0].lost_packets(), network.misrouted_packets()), (6, 1));
}
