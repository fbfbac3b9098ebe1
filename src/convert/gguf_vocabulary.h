// A model's vocabulary as GGUF's metadata has it.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "convert/gguf_file.h"

namespace slip {

// From tokenizer.json (byte-level BPE), with the ends of turns and the chat template. The list is
// filled up to `size`, the rows of the embedding.
Status add_vocabulary(const std::filesystem::path& model_folder, int64_t size,
                      GgufMetadata& metadata);

// Tokens that mean nothing, for random weights.
void add_placeholder_vocabulary(int64_t size, GgufMetadata& metadata);

}  // namespace slip
