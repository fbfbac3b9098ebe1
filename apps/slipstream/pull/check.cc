#include "slipstream/pull/check.h"

#include "base/json.h"
#include "engine/memory_plan.h"
#include "slipstream/common/backend.h"

namespace slip {

Status check_before_download(const std::string& config, uint64_t weight_bytes,
                             const ModelFlags& flags) {
  SLIP_TRY(const Json json, parse_json(config, "config.json"));
  if (!json.is_object())
    return error("config.json: expected an object, found ", describe_json_kind(json));
  SLIP_TRY_STATUS(ModelSource::check_family(json.get_object(), "config.json"));

  uint64_t memory = 0;
  if (flags.memory) {
    SLIP_TRY(memory, parse_size(*flags.memory));
  } else {
    SLIP_TRY(const Backend backend, make_backend(flags));
    memory = backend.ops->memory().free_bytes();
  }
  // What files hold beside the text model (eyes, ears), what may be rounded to fewer bits, and what
  // may stay outside a GPU is not known yet: up to a quarter is given the benefit of the doubt.
  if (weight_bytes / 4 * 3 <= memory) return {};
  return error("there are ", describe_bytes(weight_bytes), " of weights, and ",
               describe_bytes(memory), flags.memory ? " of memory are allowed" : " of memory free");
}

}  // namespace slip
