// Several schemas that must all hold, as one.
#pragma once

#include "base/json.h"
#include "base/result.h"

namespace slip {

// Keyword by keyword; properties and items that both describe become an allOf, to be merged when
// they are looked at. Fails where two keywords cannot become one.
Result<JsonObject> merge_schemas(const JsonObject& first, const JsonObject& second);

}  // namespace slip
