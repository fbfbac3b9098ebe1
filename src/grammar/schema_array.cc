#include <algorithm>

#include "grammar/schema_compiler.h"

namespace slip {
namespace {

constexpr size_t kMaxPrefixItems = 256;

}  // namespace

Result<ExprId> SchemaCompiler::compile_array(const JsonObject& schema, const std::string& path) {
  Result<std::optional<int64_t>> min = count_keyword(schema, "minItems");
  if (!min.ok()) return at_path(std::move(min).failure(), path);
  Result<std::optional<int64_t>> max = count_keyword(schema, "maxItems");
  if (!max.ok()) return at_path(std::move(max).failure(), path);
  const int64_t fewest = min.value().value_or(0);
  int64_t most = max.value().value_or(kUnbounded);
  if (most != kUnbounded && fewest > most)
    return at_path(error("minItems is larger than maxItems"), path);

  // Before 2020-12 the items of a tuple were a list in "items", those behind it "additionalItems".
  static const Json kAnything = true;
  const Json* items = schema.if_contains("items");
  const Json* prefix = schema.if_contains("prefixItems");
  std::string prefix_name = "prefixItems";
  if (items && items->is_array()) {
    prefix = items;
    prefix_name = "items";
    items = schema.if_contains("additionalItems");
  }
  std::vector<ExprId> first_items;
  if (prefix) {
    if (!prefix->is_array()) return at_path(error("prefixItems: expected an array"), path);
    if (prefix->get_array().size() > kMaxPrefixItems)
      return at_path(error("prefixItems: more than ", kMaxPrefixItems), path);
    for (size_t i = 0; i < prefix->get_array().size(); ++i) {
      SLIP_TRY(const ExprId item,
               value_of(prefix->get_array()[i], below(path, cat(prefix_name, "/", i))));
      first_items.push_back(item);
    }
  }
  const int64_t prefix_count = int64_t(first_items.size());
  const bool closed = prefix && !items && options_.closed_objects;
  if (closed || (items && *items == Json(false)))
    most = most == kUnbounded ? prefix_count : std::min(most, prefix_count);
  if (most != kUnbounded && fewest > most)
    return at_path(error("minItems asks for more items than there may be"), path);

  const ExprId comma = rules_.sequence({rules_.literal(","), json_.space()});
  const ExprId nothing = rules_.literal("");
  // From the last to the first: what may follow once i items have been written.
  ExprId rest = nothing;
  if (most == kUnbounded || most > prefix_count) {
    SLIP_TRY(const ExprId item, value_of(items ? *items : kAnything, below(path, "items")));
    const auto repeated = [&](int64_t written) {
      return rules_.repeat(rules_.sequence({comma, item}), std::max<int64_t>(0, fewest - written),
                           most == kUnbounded ? kUnbounded : most - written);
    };
    rest = repeated(prefix_count);
    if (prefix_count == 0) {
      rest = rules_.sequence({item, repeated(1), json_.space()});
      if (fewest == 0) rest = rules_.choice({nothing, rest});
    }
  }
  for (int64_t i = prefix_count; i-- > 0;) {
    if (most != kUnbounded && i >= most) {
      rest = nothing;
      continue;
    }
    std::vector<ExprId> parts = {first_items[size_t(i)], rest};
    if (i > 0) parts.insert(parts.begin(), comma);
    if (i == 0) parts.push_back(json_.space());
    rest = rules_.sequence(std::move(parts));
    if (i >= fewest) rest = rules_.choice({nothing, rest});
  }
  return rules_.sequence({rules_.literal("["), json_.space(), rest, rules_.literal("]")});
}

}  // namespace slip
