/* The emitters of MIPS: the generated header under its public name. */
#include "generated/mips.h"
