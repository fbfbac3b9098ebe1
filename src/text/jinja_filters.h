// Filters that work on lists; find_filter() in jinja_filters.cc knows them all.
#pragma once

#include <string_view>

#include "text/jinja_value.h"

namespace slip::jinja {

Builtin find_sequence_filter(std::string_view name);  // null if there is none

}  // namespace slip::jinja
