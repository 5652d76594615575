#define N 12
chan pick[N] = [0] of { bit };
chan drop[N] = [0] of { bit };

proctype fork(byte me) {
  do
  :: pick[me]?1; drop[me]?1
  od
}

proctype philosopher(byte left; byte right) {
  do
  :: pick[left]!1; pick[right]!1; drop[left]!1; drop[right]!1
  od
}

init {
  byte i;
  atomic {
    do
    :: i < N -> run fork(i); i++
    :: else -> break
    od;
    run philosopher(1, 0);
    i = 1;
    do
    :: i < N -> run philosopher(i, (i + 1) % N); i++
    :: else -> break
    od
  }
}
