chan hostSendRequestC = [0] of { int, int };
chan hostFetchRequestC = [0] of { int };
chan translateRequestC = [0] of { int, int };
chan translateReplyC = [0] of { int, int };
chan dataSendC = [0] of { int, int };
chan networkSendC = [0] of { int };

active proctype hostRequest() {
  int virtualAddress, physicalAddress, size, source;
end_idle:
  do
  :: hostSendRequestC?virtualAddress, size ->
     translateRequestC!virtualAddress, size;
     do
     :: translateReplyC?physicalAddress, size ->
        if :: size == 0 -> break :: else fi;
        dataSendC!physicalAddress, size
     od
  :: hostFetchRequestC?source
  od
}

active proctype translateAddress() {
  int virtualAddress, physicalAddress, size; bit unavailable;
end_idle:
  do
  :: translateRequestC?virtualAddress, size;
     d_step { assert(virtualAddress % 4096 == 0); assert(size % 4096 == 0) }
     do
     :: size > 0 ->
        if :: unavailable = 0 :: unavailable = 1 fi;
        translateReplyC!physicalAddress, 4096;
        size = size - 4096
     :: else -> break
     od;
     translateReplyC!0, 0
  od
}

active proctype networkSend() {
  int physicalAddress, size, packet;
end_idle:
  do
  :: dataSendC?physicalAddress, size; packet = 0; networkSendC!packet
  od
}

active proctype host() {
  int i;
  do :: i < 3 -> hostSendRequestC!0, 4096 * i; i++ :: else -> break od
}
active proctype fetcher() { end_idle: do :: hostFetchRequestC!0 od }
active proctype wire() { int x; end_idle: do :: networkSendC?x od }
