#include "quant/int4_loops.h"

namespace slip {

const Int4Loops kPortableInt4Loops = {candidate_errors<8>, scale_sums, int4_codes};

}  // namespace slip
