// bench's result, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "slipstream/bench/result.h"
#include "slipstream/common/backend.h"
#include "slipstream/common/text_table.h"

namespace slip {

std::string bench_table(const BenchResult& result, TableStyle style);

// What a person should know beside the table: the backend and its roofs.
std::string bench_remarks(const BenchResult& result, const Backend& backend);

// With the names that outside checks expect.
JsonObject bench_json(const BenchResult& result, const Backend& backend);

}  // namespace slip
