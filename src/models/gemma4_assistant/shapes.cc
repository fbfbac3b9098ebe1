#include "models/gemma4_assistant/shapes.h"

#include <algorithm>

namespace slip::gemma4_assistant {
namespace {

struct PublishedDrafter {
  const char* model;
  int64_t hidden, width, q_heads, clusters = 0;
};

constexpr PublishedDrafter kPublishedDrafters[] = {
    {.model = "gemma-4-e2b", .hidden = 256, .width = 2048, .q_heads = 4, .clusters = 2048},
    {.model = "gemma-4-e4b", .hidden = 256, .width = 2048, .q_heads = 4, .clusters = 2048},
    {.model = "gemma-4-12b", .hidden = 1024, .width = 8192, .q_heads = 16},
    {.model = "gemma-4-26b-a4b", .hidden = 1024, .width = 8192, .q_heads = 16},
    {.model = "gemma-4-31b", .hidden = 1024, .width = 8192, .q_heads = 32},
};

}  // namespace

DrafterConfig drafter_shape(const std::string& name, const gemma4::Config& target) {
  const auto* shape = std::ranges::find(kPublishedDrafters, name, &PublishedDrafter::model);
  check(shape != std::end(kPublishedDrafters), "no drafter of ", name, " was published");
  DrafterConfig drafter;
  drafter.text.family = target.family;
  drafter.text.vocabulary = target.vocabulary;
  drafter.text.max_context = target.max_context;
  drafter.text.eps = target.eps;
  drafter.text.kinds = target.kinds;
  drafter.text.hidden = shape->hidden;
  drafter.text.q_heads = shape->q_heads;
  for (int64_t i = 0; i < 4; ++i)
    drafter.text.layers.push_back(
        {i == 3 ? gemma4::LayerKind::full : gemma4::LayerKind::sliding, shape->width, 0});
  drafter.backbone = target.hidden;
  drafter.clusters = shape->clusters;
  drafter.chosen_clusters = drafter.clusters > 0 ? 32 : 0;
  const Status fits = attach(drafter, target);
  check(fits.ok(), name);
  return drafter;
}

}  // namespace slip::gemma4_assistant
