#include "models/gemma4_drafter/shapes.h"

#include <algorithm>

namespace slip::gemma4 {
namespace {

struct PublishedDrafter {
  const char* model;
  int64_t hidden, width, q_heads, clusters;
};

constexpr PublishedDrafter kPublishedDrafters[] = {
    {"gemma-4-e2b", 256, 2048, 4, 2048}, {"gemma-4-e4b", 256, 2048, 4, 2048},
    {"gemma-4-12b", 1024, 8192, 16, 0},  {"gemma-4-26b-a4b", 1024, 8192, 16, 0},
    {"gemma-4-31b", 1024, 8192, 32, 0},
};

}  // namespace

DrafterConfig drafter_shape(const std::string& name, const Config& target) {
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
    drafter.text.layers.push_back({i == 3 ? LayerKind::full : LayerKind::sliding, shape->width, 0});
  drafter.backbone = target.hidden;
  drafter.clusters = shape->clusters;
  drafter.chosen_clusters = drafter.clusters > 0 ? 32 : 0;
  const Status fits = attach(drafter, target);
  check(fits.ok(), name);
  return drafter;
}

}  // namespace slip::gemma4
