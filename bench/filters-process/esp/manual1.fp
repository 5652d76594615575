fastpath stream extern "stream" {
  process read { start readC/out@1; exit #next; }
  process evener { start readC; exit readC; }
  process swap { start evenC/in@1; exit evenC/in@1; }
  process crc32 { start swappedC; exit swappedC; }
  process write { start writeC; exit writeC; }
}
