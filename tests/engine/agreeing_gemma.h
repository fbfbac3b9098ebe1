// A Gemma 4 and a drafter that is mostly right about it: built, not trained.
//
// Every token has a successor. The first half of a token's embedding is its name, the second half
// the name of its successor. The last MLP of the model copies the second half over the first, so
// that the head finds the successor; all other weights are random, and of a size that rarely
// changes its mind. The drafter's first projection takes the successor's name out of the embedding
// that it is given, and its head knows the names, but for a few that it mixes up.
#pragma once

#include <cstdint>
#include <filesystem>

namespace slip {

struct AgreeingSizes {
  int64_t vocabulary, hidden, layers, width;
  int64_t q_heads, kv_heads, head_dim;  // heads of full layers are twice as large
  int64_t window;
  int64_t drafter_width;
  int64_t mixed_up_every;  // of so many tokens the drafter takes one for another
};

inline constexpr AgreeingSizes kAgreeingInSmall{.vocabulary = 512,
                                                .hidden = 256,
                                                .layers = 6,
                                                .width = 256,
                                                .q_heads = 4,
                                                .kv_heads = 2,
                                                .head_dim = 32,
                                                .window = 48,
                                                .drafter_width = 256,
                                                .mixed_up_every = 20};

// Big enough that a step is a walk through weights that no cache holds (BF16, 290 MB), and 8 times
// the drafter's.
inline constexpr AgreeingSizes kAgreeingOnTheRoof{.vocabulary = 8192,
                                                  .hidden = 1024,
                                                  .layers = 12,
                                                  .width = 3072,
                                                  .q_heads = 16,
                                                  .kv_heads = 4,
                                                  .head_dim = 64,
                                                  .window = 512,
                                                  .drafter_width = 1024,
                                                  .mixed_up_every = 20};

// The model in `folder`, the drafter in "FOLDER-assistant", where it is found without being named.
void write_agreeing_gemma(const std::filesystem::path& folder, const AgreeingSizes& sizes);

}  // namespace slip
