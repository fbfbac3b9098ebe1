#include "engine/memory_plan.h"

#include <algorithm>
#include <cstdio>

namespace slip {
namespace {

// Left to the rest of the machine when no budget was given.
constexpr uint64_t kReserve = uint64_t{512} << 20;

int64_t whole_pages(int64_t positions) { return pages_for(positions) * kPageLen; }

// When the number of sequences is left to the plan: each has room for a short conversation, and two
// states are remembered for each.
constexpr int64_t kShortContext = 1024;
constexpr int64_t kCheckpointsPerSequence = 2;

// What one sequence costs beside its pages.
struct SlotCost {
  uint64_t running, remembered;
};

// Divides what is left behind the first sequence and its context.
void share(MemoryPlan& plan, const MemoryRequest& request, const CacheCost& cost,
           const SlotCost& slot, uint64_t left) {
  const int64_t context_pages = pages_for(plan.context);
  const auto slots = [&] {
    return uint64_t(plan.sequences - 1) * slot.running +
           uint64_t(plan.checkpoints) * slot.remembered;
  };
  plan.sequences = request.sequences;
  plan.checkpoints = request.checkpoints;
  if (request.sequences == 0) {
    const int64_t short_pages = pages_for(std::min(plan.context, kShortContext));
    for (plan.sequences = kMostSequences;; plan.sequences /= 2) {
      plan.checkpoints = kCheckpointsPerSequence * plan.sequences;
      const int64_t more_pages = std::max<int64_t>(0, plan.sequences * short_pages - context_pages);
      if (plan.sequences == 1 || slots() + uint64_t(more_pages) * cost.bytes_per_page <= left)
        break;
    }
  }
  while (plan.checkpoints > 0 && slots() > left) --plan.checkpoints;

  int64_t pages = plan.sequences * context_pages;
  if (!request.context)
    pages = std::max(pages, std::min(pages_for(request.shared_positions),
                                     plan.sequences * pages_for(plan.max_context)));
  plan.pages = std::max(context_pages, request.pages.value_or(pages));
  if (request.pages || slots() > left || cost.bytes_per_page == 0) return;
  plan.pages =
      std::min(plan.pages, context_pages + int64_t((left - slots()) / cost.bytes_per_page));
}

}  // namespace

std::string describe_bytes(uint64_t bytes) {
  char text[32];
  if (bytes >= 1'000'000'000) {
    std::snprintf(text, sizeof(text), "%.2f GB", double(bytes) / 1e9);
  } else {
    std::snprintf(text, sizeof(text), "%.1f MB", double(bytes) / 1e6);
  }
  return text;
}

int64_t most_context(const MemoryRequest& request, int64_t max_context) {
  if (request.context) return *request.context;
  const int64_t sequences = request.sequences == 0 ? kMostSequences : request.sequences;
  return std::min(max_context, std::max(request.shared_positions, sequences * kDefaultContext));
}

Result<MemoryPlan> plan_memory(const ModelPlan& model, const MemoryRequest& request,
                               uint64_t available) {
  MemoryPlan plan;
  plan.budget = request.budget.value_or(available > kReserve ? available - kReserve : 0);
  plan.weights = model.weight_bytes;
  const uint64_t per_running = request.bytes_per_running + request.bytes_per_slot;
  plan.activations = model.activation_bytes + per_running;
  plan.max_context = model.info.max_context;
  plan.cache_format = {.kv = request.kv.value_or(KvRecipe{}),
                       .record_rows = request.record_rows,
                       .step_rows = request.step_rows};
  SLIP_TRY_STATUS(check_format(model.cache_specs, plan.cache_format));
  const CacheCost cost = cache_cost(model.cache_specs, plan.cache_format);
  plan.state = cost.bytes_per_sequence;

  const uint64_t fixed = plan.weights + plan.activations + plan.state;
  const char* source = request.budget ? "the budget allows " : "the machine has free ";
  const char* setting = request.budget ? "memory budget" : nullptr;
  if (fixed + cost.bytes_per_page > plan.budget)
    return error("the model needs ", describe_bytes(fixed + cost.bytes_per_page), " (weights ",
                 describe_bytes(plan.weights), "), ", source, describe_bytes(plan.budget),
                 "; take a smaller model or quantisation")
        .about(setting);
  const int64_t affordable = cost.bytes_per_page == 0
                                 ? whole_pages(plan.max_context)
                                 : int64_t((plan.budget - fixed) / cost.bytes_per_page) * kPageLen;
  if (request.context) {
    if (*request.context > plan.max_context)
      return error("a context of ", *request.context, " exceeds what the model was made for (",
                   plan.max_context, ")")
          .about("context");
    if (whole_pages(*request.context) > affordable)
      return error("a context of ", *request.context, " needs ",
                   describe_bytes(fixed + uint64_t(whole_pages(*request.context) / kPageLen) *
                                              cost.bytes_per_page),
                   ", ", source, describe_bytes(plan.budget), "; up to ", affordable,
                   " positions fit")
          .about("context");
    plan.context = *request.context;
  } else {
    plan.context = std::min({kDefaultContext, plan.max_context, affordable});
  }
  const uint64_t first = fixed + uint64_t(pages_for(plan.context)) * cost.bytes_per_page;
  const SlotCost slot{.running = cost.bytes_per_sequence + per_running,
                      .remembered = cost.bytes_per_sequence + request.bytes_per_slot};
  share(plan, request, cost, slot, plan.budget - first);
  // One long text at a time may have the pages of all: the others wait, or start over behind it.
  if (!request.context)
    plan.context = std::max(
        plan.context, std::min(most_context(request, plan.max_context), plan.pages * kPageLen));
  plan.state = uint64_t(plan.sequences + plan.checkpoints) * cost.bytes_per_sequence;
  plan.activations += uint64_t(plan.sequences - 1) * per_running +
                      uint64_t(plan.checkpoints) * request.bytes_per_slot;
  plan.kv = uint64_t(plan.pages) * cost.bytes_per_page;
  if (plan.total() > plan.budget)
    return error(plan.sequences, " sequences at once need ", describe_bytes(plan.total()), ", ",
                 source, describe_bytes(plan.budget), "; allow fewer")
        .about(setting);
  return plan;
}

std::string MemoryPlan::describe() const {
  return cat("weights        ", describe_bytes(weights), "\nactivations    ",
             describe_bytes(activations), "\nrecurrent      ", describe_bytes(state),
             sequences > 1
                 ? cat(" for ", sequences, " sequences at once, ", checkpoints, " remembered")
                 : "",
             "\nkeys, values   ", describe_bytes(kv), " for ",
             sequences > 1 ? cat(pages * kPageLen, " positions in all, up to ") : "", context,
             sequences > 1 ? " each (" : " positions (", name_of(cache_format.kv),
             ")\ntotal          ", describe_bytes(total()), " of ", describe_bytes(budget), "\n");
}

}  // namespace slip
