//! `examples/ports`: the kernel's stack sends requests to the processes at the ports, through a pair of interfaces in a
//! network namespace.

use super::engines;
use super::network::{assert_output, in_own_network};
use quaject_test_support::tool;

const SCRIPT: &str = "
set -e
ip link set lo up
ip link add v0 type veth peer name v1
ip addr add 10.0.0.1/24 dev v0
ip link set v0 up
ip link set v1 up
cp $PORTS $RULES .
$QJ run ports.esp --engine $ENGINE > knocks & ports=$!
trap 'kill $ports; wait' EXIT
for size in 1 100 1400; do
  text=$(head -c $size /dev/zero | tr '\\0' x)
  answer=
  for attempt in $(seq 100); do
    exec 3<>/dev/udp/10.0.0.2/7
    printf %s $text >&3
    answer=$(timeout 1 head -c $size <&3) && break
  done
  test \"$answer\" = $text
  echo $size echoed
done
# Neither the two ports next to the range, nor a packet to another host.
ip neigh add 10.0.0.3 lladdr 02:00:00:00:00:02 dev v0
for port in 6999 7000 7042 7999 8000; do printf x > /dev/udp/10.0.0.2/$port; done
printf x > /dev/udp/10.0.0.3/7042
for attempt in $(seq 600); do
  test $(wc -l < knocks) -ge 3 && break
  printf x > /dev/udp/10.0.0.2/7001
  sleep 0.05
done
grep -v 7001 knocks
";

#[test]
fn each_frame_goes_to_the_process_at_its_port() {
    if tool(&["ip"]).is_none() {
        return;
    }
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = SCRIPT.replace("$ENGINE", engine);
        let programs = [("PORTS", "examples/ports/ports.esp"), ("RULES", "examples/ports/ports.rules")];
        let output = in_own_network(&script, folder.path(), &programs);
        let expected = "1 echoed\n100 echoed\n1400 echoed\n10 0 0 1 7000\n10 0 0 1 7042\n10 0 0 1 7999\n";
        assert_output(&output, expected, engine);
    }
}
