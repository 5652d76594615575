/* The vector emitters of AArch64: the generated header under its public name. */
#include "../generated/vectors/aarch64.h"
