#include "convert/descent_loops.h"

namespace slip {

const DescentLoops kAvx512DescentLoops = {axpy, dot<32>, gram};

}  // namespace slip
