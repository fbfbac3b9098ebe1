// Per-layer embeddings where the table lies in another memory than the backend's.
#include <gtest/gtest.h>

#include "kernels/ref/ref_ops_impl.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/tiny_folder.h"
#include "tests/gpu/far_memory.h"
#include "tests/models/direct_model.h"

namespace slip {
namespace {

class FarRefOps final : public RefOps {
 public:
  Memory& memory() const override { return memory_; }
  void embed(const EmbedArgs& args) override {
    EXPECT_TRUE(args.table.packed || memory_.holds(args.table.values));
    RefOps::embed(args);
  }

 private:
  mutable FarMemory memory_;
};

const Backend kNear{.name = "near", .make = [](ThreadPool&) -> std::unique_ptr<Ops> {
                      return std::make_unique<RefOps>();
                    }};
const Backend kFar{.name = "far", .make = [](ThreadPool&) -> std::unique_ptr<Ops> {
                     return std::make_unique<FarRefOps>();
                   }};

TEST(PerLayerRows, FetchedOrReadInPlaceAreTheSame) {
  const std::filesystem::path folder = tiny_folder("gemma4_e");
  std::vector<int32_t> ids = GoldenFile(folder / "golden.safetensors").ints("short.ids");
  DirectModel near(folder, kNear), far(folder, kFar);
  for (const size_t chunk : {size_t{1}, size_t{3}, ids.size()})
    EXPECT_EQ(far.run(ids, chunk), near.run(ids, chunk)) << "in steps of " << chunk;
}

}  // namespace
}  // namespace slip
