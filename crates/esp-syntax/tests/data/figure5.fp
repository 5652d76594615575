fastpath demo {
  process hostRequest {
    statement  hostSendRequestC as H0,
               translateRequestC as H1,
               translateReplyC as H2,
               dataSendC as H3,
               #1;
    start      H0 ? (size < 10000);
    follows    H1 ( H2 H3 )* ;
    exit       #1;
  }
  process translateAddress {
    statement  translateRequestC as T1, #2;
    start      T1 <=> H1;
    exit       T1;
  }
  process networkSend {
    statement  dataSendC, #3;
    start      dataSendC;
    exit       #3;
  }
}
