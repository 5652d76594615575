fastpath stream {
  process read  { statement readC/out@1 as R, readC/out@2; start R; follows R*; }
  process rle   { statement readC, pairC/out@3; start readC; exit readC; }
  process swap  { statement pairC/in@1 as S, swappedC/out@1, swappedC/out@4; start S; exit S; }
  process pes   { statement swappedC, writeC/out@2; start swappedC; exit swappedC; }
  process write { statement writeC, outputC; start writeC; exit writeC; }
}
