// Stands in for libFuzzer: runs a fuzz target over its corpus and over mutations of it that are the
// same in every run.  usage: fuzz_NAME <corpus folder> <mutations>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

class XorShift {
 public:
  size_t below(size_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return bound == 0 ? 0 : size_t(state_ % bound);
  }

 private:
  uint64_t state_ = 0x9E3779B97F4A7C15u;
};

// Bytes that mean something to the parsers under test, more often than chance would pick them.
constexpr char kTelling[] = "{}[]\":,\\0159-.eE<|>%'\n\0\x7F\x80\xC3\xF0\xFF";

void mutate_once(const std::vector<std::string>& corpus, XorShift& random, std::string& input) {
  const size_t at = random.below(input.size() + 1);
  const size_t length = 1 + random.below(16);
  switch (random.below(6)) {
    case 0:  // flip a bit
      if (at < input.size()) input[at] = char(input[at] ^ (1 << random.below(8)));
      break;
    case 1:  // overwrite
      if (at < input.size()) input[at] = kTelling[random.below(sizeof(kTelling) - 1)];
      break;
    case 2:  // insert
      input.insert(at, random.below(4) ? 1 : length, kTelling[random.below(sizeof(kTelling) - 1)]);
      break;
    case 3:  // delete
      input.erase(at, length);
      break;
    case 4: {  // splice
      const std::string& other = corpus[random.below(corpus.size())];
      const size_t from = random.below(other.size() + 1);
      input.insert(at, other, from, random.below(other.size() - from + 1));
      break;
    }
    case 5:  // truncate, rarely, since little survives it
      if (random.below(8) == 0) input.resize(at);
      break;
  }
}

void run(const std::string& input) {
  // A copy of exactly this size, so that the address sanitizer sees a read past the end.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s <corpus folder> <mutations>\n", argv[0]);
    return 2;
  }
  std::error_code failure;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1], failure))
    if (entry.is_regular_file()) paths.push_back(entry.path());
  if (failure || paths.empty()) {
    std::fprintf(stderr, "%s: no corpus in %s\n", argv[0], argv[1]);
    return 2;
  }
  std::sort(paths.begin(), paths.end());  // the order of the folder must not change the run

  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  for (const std::string& input : corpus) run(input);

  XorShift random;
  const long mutations = std::atol(argv[2]);
  for (long i = 0; i < mutations; ++i) {
    std::string input = corpus[random.below(corpus.size())];
    for (size_t steps = 1 + random.below(6); steps > 0; --steps) mutate_once(corpus, random, input);
    run(input);
  }
  std::printf("%zu files and %ld mutations\n", corpus.size(), mutations);
  return 0;
}
