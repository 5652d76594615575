// The same states as in ESP, where what follows a rendezvous is part of it: so the receiver of a message also does what
// its sender does next, on variables both can reach. Elements N and N + 1 never meet: a guard and its rendezvous are one
// step.
#define N 16
chan ring[N + 2] = [0] of { byte };
chan elected = [0] of { byte };
byte q0[N], q1[N], used[N];

proctype node(byte me; byte next; byte before; byte own) {
  byte number;
end_idle:
  do
  :: ring[(used[me] > 0 -> next : N)]!q0[me]
  :: atomic {
       ring[(used[me] < 2 -> me : N + 1)]?number ->
       q0[before] = q1[before]; q1[before] = 0; used[before]--;
       if
       :: number > own -> if :: used[me] == 0 -> q0[me] = number :: else -> q1[me] = number fi; used[me]++; number = 0
       :: number == own -> number = 0; goto won
       :: else -> number = 0
       fi
     }
  od;
won:
  elected!own;
  goto end_idle
}

proctype observer() {
  byte leader;
  atomic { elected?leader -> assert(leader == N - 1); leader = 0 };
end_rest:
  do :: elected?leader -> assert(false) od
}

init {
  byte i;
  atomic {
    run observer();
    do
    :: i < N ->
       q0[i] = (i * 3 + 1) % N; used[i] = 1;
       run node(i, (i + 1) % N, (i + N - 1) % N, (i * 3 + 1) % N); i++
    :: else -> break
    od
  }
}
