/* The emitters of SPARC V9: the generated header under its public name. */
#include "generated/sparc64.h"
