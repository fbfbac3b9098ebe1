#include "convert/descent_loops.h"

namespace slip {

const DescentLoops kPortableDescentLoops = {axpy, dot<8>, gram};

}  // namespace slip
