// The path of a received frame, as `qj fastpath suggest` derives it from a profile of curl and ping.
fastpath hotPath {
  process ethernetInput { statement inC, arpC; start inC; follows inC*; }
  process ipInput       { statement ipC, receivedC/out@2, receivedC/out@4; start ipC; exit ipC; }
  process icmp          { statement receivedC/in@1 as R, receivedC/in@2, sendC/out@2, refusedC, sendC/out@3; start R; exit R; }
  process tcpInput      { statement receivedC, secretC, nowC/in@2, transmitC/out@1, openC/out@2, transmitC/out@2, transmitC/out@3; start receivedC; follows receivedC*; }
}
