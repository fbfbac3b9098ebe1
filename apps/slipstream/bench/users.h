// Decoding for several users in one step, as the server does it, without a server.
#pragma once

#include "engine/engine.h"

namespace slip {

// Of each user, before the clock runs: they record graphs and touch the memory.
inline constexpr int64_t kUntimedTokens = 3;

// Tokens per second of all `users` together, each with `depth` positions behind it. Their contexts
// are not computed but taken as they lie in memory: that changes what is said, not how long it
// takes. The engine was loaded for so many sequences and rows of logits.
Result<double> users_rate(Engine& engine, int64_t users, int64_t depth, int64_t tokens);

}  // namespace slip
