/* The emitters of Alpha: the generated header under its public name. */
#include "generated/alpha.h"
