// Input: what a client sends, up to some requests one after the other. The first byte says in what
// pieces it arrives.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "server/http_gate.h"
#include "server/http_parser.h"

namespace {

constexpr slip::HttpLimits kLimits{.header_bytes = 4096, .body_bytes = 4096};

// What was let through, in words.
std::vector<std::string> requests_in(std::string_view bytes, size_t piece) {
  static const slip::HttpGate gate({});
  std::vector<std::string> requests;
  std::string buffer;
  auto parser = std::make_unique<slip::HttpParser>(kLimits);
  while (!bytes.empty()) {
    buffer += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (bool moved = true; moved;) {
      const slip::HttpParser::Stage before = parser->stage();
      buffer.erase(0, parser->feed(buffer));
      if (parser->stage() == slip::HttpParser::Stage::body) {
        if (before == slip::HttpParser::Stage::head) gate.admit(parser->request());
        if (!parser->has_body()) parser->feed({});
      }
      if (parser->stage() == slip::HttpParser::Stage::refused) {
        slip::check(parser->refusal().status >= 400, "a refusal that is none");
        return requests;
      }
      moved = parser->stage() != before;
      if (parser->stage() != slip::HttpParser::Stage::complete) continue;
      const slip::HttpRequest& request = parser->request();
      slip::check(request.path.starts_with('/'), "a request without a path");
      slip::check(request.body.size() <= kLimits.body_bytes, "a body beyond its limit");
      requests.push_back(slip::cat(request.method, " ", request.path, " ", request.body));
      parser = std::make_unique<slip::HttpParser>(kLimits);
      moved = !buffer.empty();
    }
    slip::check(buffer.size() <= 2 * kLimits.header_bytes + piece, "bytes pile up");
  }
  return requests;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  slip::check(requests_in(bytes, bytes.size()) == requests_in(bytes, 1 + data[0] % 64),
              "pieces change what is let through");
  return 0;
}
