// Elements 1 and 2 never meet: a guard and its rendezvous are one step.
#define LAST 250
chan frameIn[3] = [0] of { byte, byte };
chan frameOut[3] = [0] of { byte, byte };
chan ackIn[3] = [0] of { byte };
chan ackOut[3] = [0] of { byte };
chan deliver = [0] of { byte };

active proctype sender() {
  byte bit_, data, ack;
  do
  :: frameIn[0]!bit_, data
  :: ackOut[0]?ack -> d_step { if :: ack == bit_ -> bit_ = 1 - bit_; data = (data + 1) % LAST :: else fi; ack = 0 }
  od
}

active proctype frames() {
  byte b0, b1, d0, d1, used, b, d;
  do
  :: atomic { frameIn[(used < 2 -> 0 : 1)]?b, d; if :: used == 0 -> b0 = b; d0 = d :: else -> b1 = b; d1 = d fi; used++; b = 0; d = 0 }
  :: atomic { frameOut[(used > 0 -> 0 : 2)]!b0, d0; b0 = b1; d0 = d1; b1 = 0; d1 = 0; used-- }
  :: d_step { used > 0 -> b0 = b1; d0 = d1; b1 = 0; d1 = 0; used-- }
  od
}

active proctype acks() {
  byte b0, b1, used, b;
  do
  :: atomic { ackIn[(used < 2 -> 0 : 1)]?b; if :: used == 0 -> b0 = b :: else -> b1 = b fi; used++; b = 0 }
  :: atomic { ackOut[(used > 0 -> 0 : 2)]!b0; b0 = b1; b1 = 0; used-- }
  :: d_step { used > 0 -> b0 = b1; b1 = 0; used-- }
  od
}

active proctype receiver() {
  byte expected, last = 1, bit_, data;
  do
  :: frameOut[0]?bit_, data -> if :: bit_ == expected -> deliver!data; d_step { last = bit_; expected = 1 - expected; bit_ = 0; data = 0 } :: else -> d_step { bit_ = 0; data = 0 } fi
  :: ackIn[0]!last
  od
}

active proctype consumer() {
  byte next, data;
end_idle:
  do
  :: deliver?data -> d_step { assert(data == next); next = (next + 1) % LAST; data = 0 }
  od
}
