//! A thousand filters as one classifier: which service a TCP segment is for.
//! `cargo run -p quaject-filter --example ports`

use quaject_filter::{Classifier, Error, Filter, Packet, Scope};

/// Ethernet with IPv4 and TCP to a port, behind a header of any length.
fn to_port(port: u32) -> Result<Filter, Error> {
    let ethernet = Scope::packet();
    let ip = ethernet.skip(14);
    (ethernet.equals(12, 2, 0x0800) & ip.equals(9, 1, 6) & ip.after_ipv4().equals(2, 2, port)).filter()
}

/// The headers of a segment to a port.
fn segment(port: u16) -> [u8; 54] {
    let mut packet = [0; 54];
    packet[12] = 0x08;
    packet[14] = 0x45;
    packet[23] = 6;
    packet[36..38].copy_from_slice(&port.to_be_bytes());
    packet
}

fn main() -> Result<(), Error> {
    let classifier = Classifier::new();
    let filters: Vec<Filter> = (1000..2000).map(to_port).collect::<Result<_, _>>()?;
    let ids = classifier.insert_all(filters.iter().map(|filter| (filter, 0)))?;

    let mut reader = classifier.reader(); // one for each thread
    let view = reader.pin(); // one for each burst of packets
    assert_eq!(view.classify(Packet::new(&segment(1234))).id(), Some(ids[234]));
    assert_eq!(view.classify(Packet::new(&segment(80))).id(), None);
    drop(view);

    // From any thread; readers never wait.
    classifier.remove(ids[234])?;
    assert_eq!(reader.classify(Packet::new(&segment(1234))).id(), None);
    // The code for all of them is shorter than a line for each.
    println!("{}", classifier.explain());
    Ok(())
}
