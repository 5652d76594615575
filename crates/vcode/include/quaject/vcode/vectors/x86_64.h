/* The vector emitters of x86-64: the generated header under its public name. */
#include "../generated/vectors/x86_64.h"
