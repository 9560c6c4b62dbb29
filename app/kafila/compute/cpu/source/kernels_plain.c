/* The arithmetic, compiled for any processor. */
#include <math.h>
#include <string.h>

#include "kafila_cpu.h"
#include "simd_plain.h"

enum { INPUTS = 2, WEIGHTS = 4 };

#include "unpack.h"

#include "arrange.h"

#include "multiply.h"
#include "operations.h"

KC_TABLE(kc_plain, "plain C");
