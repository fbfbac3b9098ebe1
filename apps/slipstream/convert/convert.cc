#include "slipstream/convert/convert.h"

#include <algorithm>
#include <cstdio>

#include "base/ascii.h"
#include "slipstream/common/environment.h"
#include "slipstream/common/numbers.h"
#include "slipstream/pull/progress.h"

namespace slip {
namespace {

// "shared experts" as it is typed: "shared_experts".
std::string word_of(TensorClass tensor_class) {
  if (tensor_class == TensorClass::vision) return "vision";
  std::string word = name_of(tensor_class);
  std::replace(word.begin(), word.end(), ' ', '_');
  return word;
}

}  // namespace

ConvertDisplay::ConvertDisplay(bool quiet)
    : line_(progress_style(quiet)), interrupts_(InterruptScope::Again::ends_program) {
  InterruptScope::reset();
}

void ConvertDisplay::stage(std::string what, Unit unit) {
  if (what != stage_) meter_ = RateMeter();  // of another kind of work
  stage_ = std::move(what);
  unit_ = unit;
}

void ConvertDisplay::answer(const std::string& text) {
  line_.clear();
  std::fprintf(stderr, "%s\n", text.c_str());
}

std::string ConvertDisplay::describe(uint64_t done, uint64_t total) const {
  if (unit_ == Unit::bytes) {
    DownloadProgress now;
    now.done = done;
    now.total = total;
    return cat(stage_, "  ", PullDisplay::line(now, meter_.rate()));
  }
  const double rate = meter_.rate();
  return cat(stage_, "  ", with_commas(int64_t(done)), " of ", with_commas(int64_t(total)),
             " tokens",
             rate > 0 ? cat("  ", describe_seconds(double(total - done) / rate), " left") : "");
}

bool ConvertDisplay::progressed(uint64_t done, uint64_t total) {
  meter_.add(line_.seconds(), done);
  if (done < total && line_.is_due()) line_.show(describe(done, total));
  return !InterruptScope::interrupted();
}

Result<int> convert_failure(Error failure) {
  if (!InterruptScope::interrupted()) return failure;
  std::fprintf(stderr, "%s\n", kInterrupted);
  return kInterruptedStatus;
}

std::string tensor_class_words() {
  std::vector<std::string> words;
  for (const TensorClass one : all_tensor_classes()) words.push_back(word_of(one));
  return join(words, " ");
}

Result<std::set<TensorClass>> parse_tensor_classes(const std::vector<std::string>& words) {
  std::set<TensorClass> classes;
  for (const std::string& list : words) {
    for (const std::string_view word : split(list, ',')) {
      const std::optional<TensorClass> one = parse_tensor_class(word);
      if (!one)
        return error("there is no class \"", word, "\" of tensors; there are ",
                     tensor_class_words());
      classes.insert(*one);
    }
  }
  return classes;
}

std::vector<std::unique_ptr<Verb>> make_convert_verbs() {
  std::vector<std::unique_ptr<Verb>> verbs;
  verbs.push_back(make_convert_hybrid_verb());
  verbs.push_back(make_convert_mtp_verb());
  verbs.push_back(make_convert_int4_verb());
  verbs.push_back(make_convert_fp8_verb());
  verbs.push_back(make_convert_check_verb());
  verbs.push_back(make_convert_gguf_verb());
  return verbs;
}

}  // namespace slip
