// Which instruction set the inner loops use; chosen once, at run time.
#pragma once

#include <vector>

namespace slip {

enum class Isa { portable, avx2, avx512, amx, neon, i8mm };

const char* name_of(Isa isa);

// As one word: "avx512".
const char* id_of(Isa isa);

// Best first. `portable` is always there.
std::vector<Isa> available_isas();

}  // namespace slip
