fastpath large {
  process read  { statement readC/out@1 as R, readC/out@2; start R; follows R*; }
  process flip  { statement readC, writeC/out@1, writeC/out@3; start readC; exit readC; }
  process write { statement writeC, outputC; start writeC; exit writeC; }
}
