#include "base/json.h"

#include <boost/json/parse.hpp>

namespace slip {

Result<Json> parse_json(std::string_view text, const std::string& source) {
  boost::json::parse_options options;
  options.max_depth = 64;
  boost::system::error_code code;
  try {
    Json value =
        boost::json::parse(boost::json::string_view(text.data(), text.size()), code, {}, options);
    if (code) return error(source, ": not valid JSON: ", code.message());
    return value;
  } catch (const std::exception& failure) {  // out of memory; the parser itself reports codes
    return error(source, ": cannot read JSON: ", failure.what());
  }
}

const char* describe_json_kind(const Json& value) {
  switch (value.kind()) {
    case boost::json::kind::null: return "null";
    case boost::json::kind::bool_: return "a boolean";
    case boost::json::kind::int64:
    case boost::json::kind::uint64: return "an integer";
    case boost::json::kind::double_: return "a number";
    case boost::json::kind::string: return "a string";
    case boost::json::kind::array: return "a list";
    case boost::json::kind::object: return "an object";
  }
  unreachable("boost::json::kind");
}

}  // namespace slip
