#include "quant/int4_loops.h"

namespace slip {

const Int4Loops kAvx2Int4Loops = {candidate_errors<16>, scale_sums, int4_codes};

}  // namespace slip
