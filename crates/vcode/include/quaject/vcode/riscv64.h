/* The emitters of RISC-V: the generated header under its public name. */
#include "generated/riscv64.h"
