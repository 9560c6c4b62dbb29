/* The arithmetic, compiled for NEON. */
#include <math.h>
#include <string.h>

#include "kafila_cpu.h"

#if defined(__aarch64__)
#include "simd_neon.h"

enum { INPUTS = 4, WEIGHTS = 4 };

#include "unpack.h"

#include "arrange.h"

#include "multiply.h"
#include "operations.h"

KC_TABLE(kc_neon, "NEON");
#endif
