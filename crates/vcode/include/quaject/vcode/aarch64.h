/* The emitters of AArch64: the generated header under its public name. */
#include "generated/aarch64.h"
