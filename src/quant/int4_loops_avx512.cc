#include "quant/int4_loops.h"

namespace slip {

const Int4Loops kAvx512Int4Loops = {candidate_errors<32>, scale_sums, int4_codes};

}  // namespace slip
