/* The emitters of Power: the generated header under its public name. */
#include "generated/ppc64le.h"
