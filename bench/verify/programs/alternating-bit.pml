// The same states as in ESP, where what follows a rendezvous is part of it: so the receiver of a message also does what
// its sender does next, on variables both can reach. Elements 2 and 3 never meet: a guard and its rendezvous are one step.
#define LAST 8
#define BOTH 2
chan frameIn[3] = [0] of { byte, byte };
chan frameOut[4] = [0] of { byte, byte };
chan ackIn[3] = [0] of { byte };
chan ackOut[4] = [0] of { byte };
chan deliver[2] = [0] of { byte };
byte b0[BOTH], b1[BOTH], d0[BOTH], d1[BOTH], framesUsed[BOTH];
byte a0[BOTH], a1[BOTH], acksUsed[BOTH];
byte expected[BOTH], last[BOTH], got[BOTH];

inline shiftFrames() { b0[me] = b1[me]; d0[me] = d1[me]; b1[me] = 0; d1[me] = 0; framesUsed[me]-- }
inline shiftAcks() { a0[me] = a1[me]; a1[me] = 0; acksUsed[me]-- }

proctype sender(byte me) {
  byte bit_, data, ack;
  do
  :: frameIn[me]!bit_, data
  :: atomic { ackOut[me]?ack -> shiftAcks(); if :: ack == bit_ -> bit_ = 1 - bit_; data = (data + 1) % LAST :: else fi; ack = 0 }
  od
}

proctype frames(byte me) {
  byte b, d;
  do
  :: atomic { frameIn[(framesUsed[me] < 2 -> me : 2)]?b, d -> if :: framesUsed[me] == 0 -> b0[me] = b; d0[me] = d :: else -> b1[me] = b; d1[me] = d fi; framesUsed[me]++; b = 0; d = 0 }
  :: frameOut[(framesUsed[me] > 0 -> me : 3)]!b0[me], d0[me]
  :: d_step { framesUsed[me] > 0 -> shiftFrames() }
  od
}

proctype acks(byte me) {
  byte b;
  do
  :: atomic { ackIn[(acksUsed[me] < 2 -> me : 2)]?b -> if :: acksUsed[me] == 0 -> a0[me] = b :: else -> a1[me] = b fi; acksUsed[me]++; b = 0 }
  :: ackOut[(acksUsed[me] > 0 -> me : 3)]!a0[me]
  :: d_step { acksUsed[me] > 0 -> shiftAcks() }
  od
}

proctype receiver(byte me) {
  byte bit_;
receive:
  if
  :: ackIn[me]!last[me] -> goto receive
  :: atomic { frameOut[me]?bit_, got[me] -> shiftFrames(); if :: bit_ == expected[me] -> bit_ = 0 :: else -> bit_ = 0; got[me] = 0; goto receive fi }
  fi;
  deliver[me]!got[me];
  goto receive
}

proctype consumer(byte me) {
  byte next, data;
end_idle:
  do
  :: atomic { deliver[me]?data -> assert(data == next); next = (next + 1) % LAST; data = 0; last[me] = expected[me]; expected[me] = 1 - expected[me]; got[me] = 0 }
  od
}

init {
  atomic {
    last[0] = 1; last[1] = 1;
    run sender(0); run sender(1); run frames(0); run frames(1); run acks(0); run acks(1);
    run receiver(0); run receiver(1); run consumer(0); run consumer(1)
  }
}
