// What a frame from outside does on its way to a host inside, as `qj fastpath suggest` writes it from a profile of curl
// and ping.
fastpath hotPath {
  process receive[1]    { statement outsideInC, insideInC, arpC, fragmentC; start outsideInC; follows outsideInC*; }
  process nat           { statement packetC, pieceC, secondC/in@1, routeC/out@1, secondC/in@2; start packetC; exit packetC; }
  process neighbours[0] { statement routeC, arpC, sendC/out@1, sendC/out@2, sendC/out@4; start routeC; exit routeC; }
  process neighbours[1] { statement routeC, arpC, sendC/out@1, sendC/out@2, sendC/out@4; start routeC; exit routeC; }
  process send[0]       { statement sendC, outsideOutC; start sendC; exit sendC; }
  process send[1]       { statement sendC, insideOutC; start sendC; exit sendC; }
}
