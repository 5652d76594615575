#define N 10
// Elements N and N + 1 never meet: a guard and its rendezvous are one step.
chan ring[N + 2] = [0] of { byte };
chan elected = [0] of { byte };

proctype node(byte me; byte next; byte own; byte q0) {
  byte q1, used = 1, number;
end_idle:
  do
  :: atomic { ring[(used > 0 -> next : N)]!q0; q0 = q1; q1 = 0; used-- }
  :: ring[(used < 2 -> me : N + 1)]?number;
     if
     :: number > own -> d_step { if :: used == 0 -> q0 = number :: else -> q1 = number fi; used++; number = 0 }
     :: number == own -> elected!own; number = 0
     :: else -> number = 0
     fi
  od
}

proctype observer() {
  byte leader;
  elected?leader;
  assert(leader == N - 1);
end_rest:
  do :: elected?leader -> assert(false) od
}

init {
  byte i;
  atomic {
    run observer();
    do
    :: i < N -> run node(i, (i + 1) % N, (i * 3 + 1) % N, (i * 3 + 1) % N); i++
    :: else -> break
    od
  }
}
