fastpath stream {
  process read   { statement readC/out@1 as R, readC/out@2; start R; follows R*; }
  process evener { statement readC, evenC/out@2, evenC/out@3; start readC; exit readC; }
  process swap   { statement evenC/in@1 as S, swappedC/out@1, swappedC/out@4; start S; exit S; }
  process crc32  { statement swappedC, writeC/out@2; start swappedC; exit swappedC; }
  process write  { statement writeC, outputC; start writeC; exit writeC; }
}
