/* The arithmetic, compiled for AVX-512. */
#include <math.h>
#include <string.h>

#include "kafila_cpu.h"

#if defined(__x86_64__)
#include "simd_avx512.h"

enum { INPUTS = 6, WEIGHTS = 4 };

#include "unpack.h"

#include "arrange.h"

#include "multiply.h"
#include "operations.h"

KC_TABLE(kc_avx512, "AVX-512 VNNI");
#endif
