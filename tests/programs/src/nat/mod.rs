//! NAT44 (examples/nat): between two networks, where the kernels' ping, curl and nc use it; its ports and sessions as
//! time passes; and what it makes of any packets, judged without its arithmetic.

pub(crate) mod packets;

use super::network::{HTTP, assert_output, folder, in_own_network, tools_are_there};
use super::{assert_stories, engines, repository};
use quaject_test_support::Effort;
use std::fs;
use std::path::Path;
use std::process::Output;

/// Runs a script in which `inside` and `outside` run a command on either side of the router. Beyond it is 198.51.100.1.
fn between(engine: &str, options: &str, folder: &Path, script: &str) -> Output {
    let script = format!(
        "unshare --net sleep 1000 & inside=$!\n\
         unshare --net sleep 1000 & outside=$!\n\
         $QJ run $NAT --engine {engine} {options} & nat=$!\n\
         trap 'kill -TERM $nat; wait $nat; test $? = 143 || echo the router has ended; kill $inside $outside' EXIT\n\
         for i in $(seq 2400); do\n\
             ip link show nat1 >/dev/null 2>&1 && break; kill -0 $nat || exit 1; sleep 0.05\n\
         done\n\
         inside() {{ nsenter --net=/proc/$inside/ns/net \"$@\"; }}\n\
         outside() {{ nsenter --net=/proc/$outside/ns/net \"$@\"; }}\n\
         ip link set nat0 netns $inside && ip link set nat1 netns $outside || exit 1\n\
         inside ip address add 10.78.0.2/24 dev nat0 && inside ip address add 10.78.0.3/24 dev nat0 || exit 1\n\
         inside ip link set nat0 up && inside ip route add default via 10.78.0.1 || exit 1\n\
         outside ip link set lo up && outside ip address add 198.51.100.1/32 dev lo || exit 1\n\
         outside ip address add 203.0.113.254/24 dev nat1 && outside ip link set nat1 up || exit 1\n\
         inside bash -c 'patient nat0' && outside bash -c 'patient nat1' || exit 1\n\
         # Servers outside: files of this folder, and the senders of datagrams to 7001 and 7002.\n\
         nsenter --net=/proc/$outside/ns/net $QJ run $HTTP --bind eventC=tcp:0.0.0.0:8080 --bind requestC=tcp:0.0.0.0:8080 & servers=$!\n\
         for port in 7001 7002; do nsenter --net=/proc/$outside/ns/net $QJ run senders.esp --bind inC=udp:0.0.0.0:$port & servers=\"$servers $!\"; done\n\
         # Their networks end with them, and the interfaces of the router with those.\n\
         trap 'kill -TERM $nat; wait $nat; test $? = 143 || echo the router has ended; kill $servers $inside $outside' EXIT\n\
         for i in $(seq 600); do outside nc -z 198.51.100.1 8080 && break; sleep 0.05; done\n\
         {script}"
    );
    fs::write(folder.join("senders.esp"), REPORT_SENDERS).expect("the folder is writable");
    in_own_network(&script, folder, &[("NAT", "examples/nat/nat.esp"), ("HTTP", HTTP)])
}

/// Reports the sender and the content of each datagram.
const REPORT_SENDERS: &str = "
channel inC(u32, u16, bytes[<=80]) external out;
channel reportC(u32, u16, bytes[<=80]) external in = \"text:-\";
process reportSenders { while { in(inC, $address, $port, $what); out(reportC, address, port, what); } }
";

#[test]
fn its_fast_path_forwards_the_same_packets() {
    if !tools_are_there() {
        return;
    }
    let folder = folder(&[0, 1_461, 300_000]);
    let options = format!("--mode fastpath --fast-paths {}", repository("examples/nat/nat.fp").display());
    // A path is made anew for each.
    for engine in engines().into_iter().take(Effort::wanted().pick(1, 3, 3)) {
        let script = "
            for size in 0 1461 300000; do
                inside curl -sS -m 1200 http://198.51.100.1:8080/$size | cmp - $size || echo $size differs
            done
            # An address that has just expired is resolved again, which only the last of several packets waits for.
            for i in $(seq 5); do inside ping -q -c 20 -i 0.01 -W 60 198.51.100.1 | grep -o '20 received' && break; done
        ";
        assert_output(&between(engine, &options, folder.path(), script), "20 received\n", engine);
    }
}

#[test]
fn ping_curl_and_nc_reach_hosts_outside() {
    if !tools_are_there() {
        return;
    }
    let folder = folder(&[0, 1_461, 1_048_576]);
    for engine in engines() {
        let script = "
            for size in 0 56 1472; do inside ping -q -c 2 -i 0.1 -W 600 -s $size 198.51.100.1 | grep -o '2 received'; done
            inside ping -q -c 1 -W 600 10.78.0.1 | grep -o '1 received'
            inside ping -c 1 -W 600 -t 1 198.51.100.1 | grep -o 'From 10.78.0.1 .*'
            for size in 0 1461 1048576; do
                inside curl -sS -m 1200 http://198.51.100.1:8080/$size | cmp - $size || echo $size differs
            done
            # Two hosts, one port each, the same, at once.
            for host in 2 3; do
                (inside curl -sS -m 1200 --interface 10.78.0.$host --local-port 4000 http://198.51.100.1:8080/1048576 |
                    cmp - 1048576 || echo $host differs) & all=\"$all $!\"
            done
            wait $all
            # The other way, and a half-closed connection.
            outside nc -l 198.51.100.1 9000 > got & all=$!
            for i in $(seq 600); do outside ss -ltn | grep -q :9000 && break; sleep 0.05; done
            inside timeout 1200 nc -N 198.51.100.1 9000 < 1048576; wait $all; cmp got 1048576
            # One outside port per inside port, for all targets.
            for host in 2 3; do
                for port in 7001 7002; do echo $host | inside nc -u -w 1 -s 10.78.0.$host -p 5000 198.51.100.1 $port; done
            done
            # A closed port: the host receives the ICMP error.
            inside bash -c 'exec 3<>/dev/udp/198.51.100.1/9; for i in $(seq 100); do echo x >&3 || exit; sleep 0.05; done' 2>&1 |
                grep -o refused
            # Strangers do not come in, and the network inside is not seen.
            outside curl -s -m 1 http://203.0.113.1:32768/; echo $?
            outside ip route add 10.78.0.0/24 via 203.0.113.1
            outside ping -q -c 1 -W 1 10.78.0.2 | grep -o '0 received'
            inside ping -q -c 1 -W 600 198.51.100.1 | grep -o '1 received'
        ";
        let output = between(engine, "", folder.path(), script);
        // Datagrams arrive while the rest is under way.
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let (mut senders, rest): (Vec<&str>, Vec<&str>) =
            said.lines().partition(|line| line.starts_with("3405803777 "));
        senders.sort_unstable();
        let ports: Vec<&str> = senders.iter().filter_map(|line| line.split(' ').nth(1)).collect();
        assert_eq!(senders.len(), 4, "{engine}: {said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(ports[0] == ports[1] && ports[1] != ports[2] && ports[2] == ports[3], "{engine}: {senders:?}");
        let expected = "2 received\n2 received\n2 received\n1 received\nFrom 10.78.0.1 icmp_seq=1 Time to live exceeded\n\
            refused\n28\n0 received\n1 received\n";
        let output = Output { stdout: (rest.join("\n") + "\n").into_bytes(), ..output };
        assert_output(&output, expected, engine);
    }
}

/// Packets of two to fourteen fragments, in order, and duplicated and out of order.
#[test]
fn fragments_are_translated_in_any_order() {
    if !tools_are_there() {
        return;
    }
    let folder = folder(&[1, 4_000]);
    for engine in engines() {
        for faults in ["", "--fault tap:reorder=30%,dup=10%,seed=3"] {
            // A neighbour that is being resolved receives one packet only: it is resolved before.
            let script = "
                inside ping -q -c 1 -W 600 198.51.100.1 | grep -o '1 received'
                # One after the other: on a busy machine more packets would be incomplete at a time than there is room.
                for size in 1473 4000 20000; do
                    received=0
                    for i in $(seq 5); do
                        inside ping -q -c 1 -W 20 -s $size 198.51.100.1 >&2 && received=$((received + 1))
                    done
                    echo $received received
                done
                # Datagrams of two hosts, with one identification.
                outside nc -u -l -W 1 198.51.100.1 9000 > first & all=$!
                outside nc -u -l -W 1 198.51.100.1 9001 > second & all=\"$all $!\"
                for i in $(seq 600); do [ $(outside ss -lun | grep -c ':900[01]') = 2 ] && break; sleep 0.05; done
                inside nc -u -w 1 -s 10.78.0.2 198.51.100.1 9000 < 4000
                inside nc -u -w 1 -s 10.78.0.3 198.51.100.1 9001 < 4000
                wait $all; cmp first 4000; cmp second 4000
            ";
            let output = between(engine, faults, folder.path(), script);
            assert_output(&output, "1 received\n5 received\n5 received\n5 received\n", &format!("{engine} {faults}"));
        }
    }
}

#[test]
fn connections_complete_on_bad_networks() {
    if !tools_are_there() {
        return;
    }
    let size = Effort::wanted().pick(30_000, 200_000, 4_000_000);
    let folder = folder(&[size]);
    for engine in &engines()[..Effort::wanted().pick(1, engines().len(), engines().len())] {
        let script = format!(
            "for i in 1 2 3 4; do
                 (inside curl -sS -m 1200 http://198.51.100.1:8080/{size} | cmp - {size} || echo $i differs) & all=\"$all $!\"
             done
             wait $all"
        );
        let output = between(engine, "--fault tap:loss=2%,dup=2%,reorder=2%,flip=1%,seed=3", folder.path(), &script);
        assert_output(&output, "", engine);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(complaint.contains("lost") && complaint.contains("doubled"), "{engine}: {complaint}");
    }
}

/// How long ports and sessions live, on the virtual clock.
#[test]
fn ports_and_sessions_have_their_lifetimes() {
    assert_stories("tests/programs/src/nat");
}
