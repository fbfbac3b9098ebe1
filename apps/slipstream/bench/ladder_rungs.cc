#include "slipstream/bench/ladder_rungs.h"

#include <algorithm>
#include <map>

#include "engine/engine.h"

namespace slip {
namespace {

// The format that holds most of the parameters.
const char* main_format(const ModelPlan& plan) {
  std::map<WeightFormat, int64_t> parameters;
  for (const PlacedWeight& weight : plan.weights)
    parameters[weight.info.format] += weight.info.out * weight.info.in;
  const auto most =
      std::max_element(parameters.begin(), parameters.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return name_of(most->first);
}

bool same_weights(const ModelPlan& a, const ModelPlan& b) {
  return std::equal(a.weights.begin(), a.weights.end(), b.weights.begin(), b.weights.end(),
                    [](const PlacedWeight& x, const PlacedWeight& y) {
                      return x.name == y.name && x.info.format == y.info.format;
                    });
}

}  // namespace

Result<std::vector<Rung>> plan_ladder(const ModelSource& source, const Ops& ops,
                                      int64_t shortlist) {
  SLIP_TRY(const ModelPlan files, source.plan({}, ops));
  SLIP_TRY(const ModelPlan fp8,
           source.plan({.weights = {.shared_experts = WeightFormat::fp8_block}}, ops));
  SLIP_TRY(const ModelPlan int8, source.plan({.weights = {.int8_head = true}}, ops));
  const std::string no_drafts = source.can_draft() ? "" : "the files have no usable MTP layer";

  const bool on_cpu = ops.memory().on_host();
  std::vector<Rung> ladder;
  Rung rung;
  if (!on_cpu) rung.kv = {.keys = KvCodec::bf16, .values = KvCodec::bf16};
  const auto add = [&](std::string name, const std::string& skipped = "") {
    rung.name = std::move(name);
    rung.skipped = skipped;
    ladder.push_back(rung);
  };
  add(cat(main_format(files), " baseline"));

  rung.weights.shared_experts = WeightFormat::fp8_block;
  add("+ fp8 shared experts",
      same_weights(files, fp8) ? "the files have no 16-bit shared experts" : "");

  rung.same_text = true;
  if (source.can_draft()) rung.drafts = DraftLength::fixed(1);
  add("+ MTP-1", no_drafts);
  if (source.can_draft()) rung.drafts = DraftLength::fixed(2);
  add("+ MTP-2", no_drafts);

  rung.same_text = false;
  rung.weights.int8_head = true;
  add("+ int8 head", same_weights(files, int8) ? "the files have no 16-bit head" : "");

  rung.same_text = true;
  rung.weights.drafter = WeightFormat::int4_group;
  rung.weights.draft_shortlist = shortlist;
  if (source.can_draft()) rung.drafts = DraftLength::automatic(kMaxDrafts);
  add("+ drafts as they pay", no_drafts);

  // What suits processors: integers instead of FP8, activations of one byte.
  rung.same_text = false;
  if (on_cpu) rung.weights.shared_experts = WeightFormat::int8_row;
  add("+ int8 shared experts", !on_cpu ? "FP8 is as fast on a GPU"
                               : same_weights(files, fp8)
                                   ? "the files have no 16-bit shared experts"
                                   : "");

  if (on_cpu) rung.activation_bytes = 1;
  add("+ 8-bit activations", on_cpu ? "" : "only the CPU kernels have them");

  rung.kv = {.keys = KvCodec::tq4, .values = KvCodec::tq4};
  add(cat("+ TurboQuant ", name_of(rung.kv)));
  return ladder;
}

}  // namespace slip
