// What a hub, or whoever stands in its place, may send: replies, addresses, lists of files.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "hub/client_connection.h"
#include "hub/repo_listing.h"
#include "hub/url.h"

namespace {

class Replay : public slip::ByteStream {
 public:
  explicit Replay(std::string_view text) : text_(text) {}
  slip::Result<size_t> read(std::span<char> into) override {
    const size_t count = std::min({into.size(), text_.size(), size_t{37}});
    text_.copy(into.data(), count);
    text_.remove_prefix(count);
    return count;
  }
  slip::Status write(std::string_view) override { return {}; }

 private:
  std::string_view text_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  slip::ClientConnection connection(std::make_unique<Replay>(text));
  if (const auto head = connection.exchange(""); head.ok()) {
    (void)slip::ContentRange::parse(head.value().header("Content-Range"));
    (void)slip::next_page(head.value().header("Link"));
    const slip::Url base = slip::Url::parse("https://a.org/b/c").value();
    if (const auto url = base.resolve(head.value().header("Location")); url.ok())
      (void)slip::Url::parse(url.value().origin() + url.value().target);
    char bytes[64];
    std::string body;
    for (auto count = connection.read(bytes); count.ok() && count.value() > 0;
         count = connection.read(bytes))
      body.append(bytes, count.value());
    std::vector<slip::RemoteFile> files;
    (void)slip::read_tree_page(body, files);
    for (const slip::RemoteFile& file : files)
      if (file.path.find("..") == 0 || file.path[0] == '/') __builtin_trap();
  }
  return 0;
}
