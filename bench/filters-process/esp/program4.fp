fastpath stream {
  process read     { statement readC/out@1 as R, readC/out@2; start R; follows R*; }
  process crc32    { statement readC, checkedC/out@2; start readC; exit readC; }
  process swap     { statement checkedC/in@1 as S, swappedC/out@1, swappedC/out@4; start S; exit S; }
  process encipher { statement swappedC, cipherC/out@2; start swappedC; exit swappedC; }
  process decipher { statement cipherC, plainC/out@2; start cipherC; exit cipherC; }
  process swapBack { statement plainC/in@1 as B, againC/out@1, againC/out@4; start B; exit B; }
  process rld      { statement againC/in@1 as C, writeC/out@2; start C; exit C; }
  process write    { statement writeC, outputC; start writeC; exit writeC; }
}
