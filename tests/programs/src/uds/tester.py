"""Asks the control unit of examples/uds what scapy's and python-can's implementations of ISO-TP, UDS and CAN can ask, and some
things that they would not. Says nothing if all is well."""
import logging
import sys
import time
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

import can
from scapy.config import conf

conf.contribs["CANSocket"] = {"use-python-can": True}
conf.contribs["ISOTP"] = {"use-can-isotp-kernel-module": False}
from scapy.contrib.cansocket_python_can import PythonCANSocket
from scapy.contrib.automotive.uds import UDS
from scapy.contrib.isotp import ISOTP, ISOTPSoftSocket

PORT = int(sys.argv[1])
SECRET = 0x5EEDC0DE
VIN = b"WQJUDS00000000042"


def bus():
    return can.Bus(interface="udp_multicast", channel="239.74.163.2", port=PORT)


def key(seed):
    mixed = (seed ^ SECRET) * 0x01010101 & 0xFFFFFFFF
    return ((mixed << 7 | mixed >> 25) & 0xFFFFFFFF).to_bytes(4, "big")


def equal(got, wanted, what):
    if got != wanted:
        print(f"{what}: {got!r} instead of {wanted!r}")
        sys.exit(1)


# Frames as they are.
raw = bus()


def send(data, identifier=0x7E0):
    raw.send(can.Message(arbitration_id=identifier, data=data, is_extended_id=False))


def received(seconds=20.0):
    """The next frame of the control unit."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        frame = raw.recv(end - time.monotonic())
        if frame is not None and frame.arbitration_id == 0x7E8:
            return bytes(frame.data)
    return None


def frames(data, wanted, what, identifier=0x7E0):
    send(data, identifier)
    got = received(20.0 if wanted else 0.2)
    equal(got, wanted and wanted.ljust(8, b"\xcc"), what)


for attempt in range(600):
    send(b"\x02\x3e\x00")
    if received(0.2):
        break
while received(0.5):
    pass
frames(b"\x02\x3e\x00", b"\x02\x7e\x00", "present")
frames(b"\x02\x3e\x80", None, "present, silently")
frames(b"\x02\x3e\x00", b"\x02\x7e\x00", "present, functionally addressed", 0x7DF)
frames(b"\x01\x85", b"\x03\x7f\x85\x11", "an unknown service")
frames(b"\x01\x85", None, "an unknown service, functionally addressed", 0x7DF)
frames(b"\x01\x85", None, "for another unit", 0x7E1)
frames(b"\x00\x85", None, "a frame of no length")
frames(b"\x05\x3e\x00", None, "a frame that is too short")
frames(b"", None, "an empty frame")
frames(b"\x21\x00", None, "a frame of no message")
frames(b"\x1f\xff123456", b"\x32\x08\x00", "a message that is too long")
frames(b"\x10\x09\x22\xf1\x90\xf1\x90\xff", b"\x30\x08\x00", "a first frame")
frames(b"\x22\xff\xff\xff", None, "a frame out of order")
frames(b"\x21\xff\xff\xff", None, "and it is ignored now")
frames(b"\x10\x09\x22\xf1\x90\xf1\x90\xff", b"\x30\x08\x00", "a first frame, and silence")
time.sleep(1.5)
frames(b"\x21\xff\xff\xff", None, "too late")

# An answer in several frames, as slow and in such pieces as we say.
frames(b"\x03\x22\xf1\x90", b"\x10\x14\x62\xf1\x90WQJ", "the first frame of an answer")
frames(b"\x31\x00\x00", None, "a flow control that says wait")
frames(b"\x30\x01\x00", b"\x21UDS0000", "one frame")
equal(received(0.2), None, "no more than one")
frames(b"\x30\x00\x7f", b"\x22" + b"0000042", "the rest")
frames(b"\x03\x22\xf1\x90", b"\x10\x14\x62\xf1\x90WQJ", "again")
begun = time.monotonic()
frames(b"\x30\x00\x64", b"\x21UDS0000", "one frame")
equal(received(20), b"\x22" + b"0000042", "another one")
if time.monotonic() - begun < 0.09:
    print("the frames do not keep their distance")
frames(b"\x03\x22\xf1\x90", b"\x10\x14\x62\xf1\x90WQJ", "once more")
frames(b"\x30\x00\x64", b"\x21UDS0000", "one frame")
another = None
for turn in range(6000):
    send(b"\x30\x00\x00")
    another = received(0.01)
    if another:
        break
equal(another, b"\x22" + b"0000042", "another one, whatever is said in the pause")
frames(b"\x03\x22\xf1\x90", b"\x10\x14\x62\xf1\x90WQJ", "and again")
frames(b"\x32\x00\x00", None, "we have no room for it")
frames(b"\x02\x3e\x00", b"\x02\x7e\x00", "which is not the end")
frames(b"\x03\x22\xf1\x90", b"\x10\x14\x62\xf1\x90WQJ", "nor is silence")
time.sleep(1.5)
frames(b"\x30\x00\x00", None, "a flow control that is too late")
raw.shutdown()

# Scapy's ISO-TP.
tester = ISOTPSoftSocket(
    PythonCANSocket(bustype="udp_multicast", channel="239.74.163.2", port=PORT), tx_id=0x7E0, rx_id=0x7E8, padding=True
)


def ask(request, wanted, what):
    """The answer, which is `wanted` or satisfies it; counts those that say to wait."""
    global pending
    tester.send(ISOTP(request))
    while True:
        found = tester.sniff(timeout=20, count=1)
        if not found:
            equal(None, wanted, what)
        answer = found[0].data
        if answer[:1] != b"\x7f" or answer[2:] != b"\x78":
            break
        pending += 1
    if callable(wanted):
        equal(wanted(answer), True, f"{what}, {answer!r}")
    else:
        equal(answer, wanted, what)
    return answer


pending = 0
EXTENDED = b"\x50\x03\x00\x32\x01\xf4"
vehicle = UDS(ask(b"\x22\xf1\x90", b"\x62\xf1\x90" + VIN, "the vehicle"))
equal((vehicle.sprintf("%UDS.service%"), vehicle.dataIdentifier), ("ReadDataByIdentifierPositiveResponse", 0xF190), "scapy")
many = b"\xf1\x90\xf1\x8c" * 3
ask(b"\x22" + many, b"\x62" + (b"\xf1\x90" + VIN + b"\xf1\x8cQJ-000042") * 3, "many identifiers")
ask(b"\x22" + b"\xf1\x90" * 20, b"\x7f\x22\x14", "more than an answer holds")
ask(b"\x22\xff\xff", b"\x7f\x22\x31", "an identifier that is not there")
ask(b"\x22\xff\xff\xf1\x86", b"\x62\xf1\x86\x01", "and one that is")
ask(b"\x22\xf1", b"\x7f\x22\x13", "half an identifier")
ask(b"\x27\x01", b"\x7f\x27\x7f", "a seed in the wrong session")
ask(b"\x10\x02", b"\x7f\x10\x12", "a session that is not there")
ask(b"\x10\x03", EXTENDED, "the extended session")
ask(b"\x22\xf1\x86", b"\x62\xf1\x86\x03", "which it is in")
ask(b"\x31\x01\xff\x00", b"\x7f\x31\x33", "to erase, without a key")
ask(b"\x27\x02\x00\x00\x00\x00", b"\x7f\x27\x24", "a key before a seed")
seed = int.from_bytes(ask(b"\x27\x01", lambda a: len(a) == 6 and a[:2] == b"\x67\x01", "a seed")[2:], "big")
ask(b"\x27\x02" + key(seed), b"\x67\x02", "the key")
ask(b"\x27\x01", b"\x67\x01\0\0\0\0", "no need for a seed")
ask(b"\x31\x01\x02\x03", b"\x71\x01\x02\x03", "a self-test")
ask(b"\x31\x03\x02\x03", b"\x71\x03\x02\x03\x01", "runs")
ask(b"\x31\x01\xff\x00", b"\x7f\x31\x22", "to erase meanwhile")
time.sleep(2.3)
ask(b"\x31\x03\x02\x03", b"\x71\x03\x02\x03\x02", "has passed")
ask(b"\x31\x01\x02\x03", b"\x71\x01\x02\x03", "another one")
ask(b"\x31\x02\x02\x03", b"\x71\x02\x02\x03", "is stopped")
ask(b"\x31\x03\x02\x03", b"\x7f\x31\x24", "and has no results")
pending = 0
ask(b"\x31\x01\xff\x00", b"\x71\x01\xff\x00", "to erase")
equal(pending, 2, "answers that say to wait")
ask(b"\x31\x81\xff\x00", b"\x71\x01\xff\x00", "to erase without an answer, which comes as one had to wait")
ask(b"\x31\x01\x02\x03", b"\x71\x01\x02\x03", "a self-test, whose end does not make the session longer")
time.sleep(5.3)
ask(b"\x22\xf1\x86", b"\x62\xf1\x86\x01", "the session after silence")
ask(b"\x10\x03", EXTENDED, "the extended session")
ask(b"\x31\x01\xff\x00", b"\x7f\x31\x33", "which is locked again")
for attempt in range(3):
    ask(b"\x27\x01", lambda a: len(a) == 6, "a seed")
    ask(b"\x27\x02\x00\x00\x00\x00", b"\x7f\x27" + (b"\x36" if attempt == 2 else b"\x35"), "a wrong key")
ask(b"\x27\x01", b"\x7f\x27\x37", "too many")
for second in range(4):
    time.sleep(3)
    ask(b"\x3e\x00", b"\x7e\x00", "still there")
ask(b"\x27\x01", lambda a: len(a) == 6, "a seed, some time later")
tester.close()
