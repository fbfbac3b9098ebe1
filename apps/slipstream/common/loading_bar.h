// How far loading is, for a person who waits.
#pragma once

#include <string>

#include "engine/session.h"

namespace slip {

// Draws a bar on stderr when loading takes longer than a moment.
LoadProgress loading_bar(const std::string& what);

}  // namespace slip
