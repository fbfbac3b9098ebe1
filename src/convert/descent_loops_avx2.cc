#include "convert/descent_loops.h"

namespace slip {

const DescentLoops kAvx2DescentLoops = {axpy, dot<16>, gram};

}  // namespace slip
