/* The arithmetic, compiled for AVX2. */
#include <math.h>
#include <string.h>

#include "kafila_cpu.h"

#if defined(__x86_64__)
#include "simd_avx2.h"

enum { INPUTS = 2, WEIGHTS = 4 };

#include "unpack.h"

#include "arrange.h"

#include "multiply.h"
#include "operations.h"

KC_TABLE(kc_avx2, "AVX2");
#endif
