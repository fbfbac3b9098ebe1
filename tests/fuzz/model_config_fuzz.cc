// Input: the text of a model's config.json. It is put beside the files of small models of each
// kind, and a plan is made: everything that is computed from a config before weights are read.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "checkpoint/config_reader.h"
#include "kernels/ref/ref_ops.h"
#include "models/gemma4/source.h"
#include "models/qwen3_5/source.h"

namespace {

const std::filesystem::path kTiny = SLIP_SOURCE_DIR "/tests/data/golden/tiny";

template <class Source>
void plan(const slip::Result<Source>& source) {
  static const auto ops = slip::make_ref_ops();
  const slip::ModelOptions options{.max_rows = 4, .context = 64, .with_drafter = true};
  if (source.ok()) (void)source.value()->plan(options, *ops).ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto object =
      slip::parse_json_object(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!object.ok()) return 0;
  for (const char* name : {"qwen3_5_dense", "qwen3_5_moe", "qwen3_5_moe_split"})
    plan(slip::qwen3_5::open_source(object.value(), kTiny / name));
  plan(slip::gemma4::Source::open(object.value(), kTiny / "gemma4_e"));
  return 0;
}
