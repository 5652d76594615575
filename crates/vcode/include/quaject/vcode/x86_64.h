/* The emitters of x86-64: the generated header under its public name. */
#include "generated/x86_64.h"
