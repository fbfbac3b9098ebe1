#include "engine/memory_plan.h"

#include <algorithm>
#include <cstdio>

namespace slip {
namespace {

constexpr int64_t kDefaultContext = 8192;

// Left to the rest of the machine when no budget was given.
constexpr uint64_t kReserve = uint64_t{512} << 20;

int64_t whole_pages(int64_t positions) { return (positions + kPageLen - 1) / kPageLen * kPageLen; }

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

Result<MemoryPlan> plan_memory(const ModelPlan& model, const MemoryRequest& request,
                               uint64_t available) {
  MemoryPlan plan;
  plan.budget = request.budget.value_or(available > kReserve ? available - kReserve : 0);
  plan.weights = model.weight_bytes;
  plan.activations = model.activation_bytes;
  plan.max_context = model.info.max_context;
  plan.cache_format = {.kv = request.kv, .record_rows = request.record_rows};
  SLIP_TRY_STATUS(check_format(model.cache_specs, plan.cache_format));
  const CacheCost cost = cache_cost(model.cache_specs, plan.cache_format);
  plan.state = cost.bytes_per_sequence;

  const uint64_t fixed = plan.weights + plan.activations + plan.state;
  const char* source = request.budget ? "--memory allows " : "the machine has free ";
  if (fixed + cost.bytes_per_page > plan.budget)
    return error("the model needs ", describe_bytes(fixed + cost.bytes_per_page), " (weights ",
                 describe_bytes(plan.weights), "), ", source, describe_bytes(plan.budget),
                 "; take a smaller model or quantisation");
  const int64_t affordable = cost.bytes_per_page == 0
                                 ? whole_pages(plan.max_context)
                                 : int64_t((plan.budget - fixed) / cost.bytes_per_page) * kPageLen;
  if (request.context) {
    if (*request.context > plan.max_context)
      return error("--ctx ", *request.context, " exceeds what the model was made for (",
                   plan.max_context, ")");
    if (whole_pages(*request.context) > affordable)
      return error("--ctx ", *request.context, " needs ",
                   describe_bytes(fixed + uint64_t(whole_pages(*request.context) / kPageLen) *
                                              cost.bytes_per_page),
                   ", ", source, describe_bytes(plan.budget), "; up to ", affordable,
                   " positions fit");
    plan.context = *request.context;
  } else {
    plan.context = std::min({kDefaultContext, plan.max_context, affordable});
  }
  plan.kv = uint64_t(plan.cache_size().pages) * cost.bytes_per_page;
  return plan;
}

std::string MemoryPlan::describe() const {
  return cat("weights        ", describe_bytes(weights), "\nactivations    ",
             describe_bytes(activations), "\nrecurrent      ", describe_bytes(state),
             "\nkeys, values   ", describe_bytes(kv), " for ", context, " positions (",
             name_of(cache_format.kv), ")\ntotal          ", describe_bytes(total()), " of ",
             describe_bytes(budget), "\n");
}

}  // namespace slip
