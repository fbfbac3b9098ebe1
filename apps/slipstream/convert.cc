#include "convert.h"

#include <algorithm>
#include <cstdio>

#include "environment.h"
#include "pull_progress.h"
#include "run_stats.h"

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
    : quiet_(quiet),
      one_line_(Terminal::detect(user_environment()).error),
      columns_(terminal_size().columns),
      interrupts_(InterruptScope::Again::ends_program) {
  InterruptScope::reset();
}

ConvertDisplay::~ConvertDisplay() { clear_line(); }

void ConvertDisplay::clear_line() {
  if (line_open_) std::fputs("\r\033[K", stderr);
  line_open_ = false;
}

void ConvertDisplay::say(const std::string& text) {
  if (quiet_) return;
  clear_line();
  std::fprintf(stderr, "%s\n", text.c_str());
}

void ConvertDisplay::stage(std::string what, Unit unit) {
  if (what != stage_) meter_ = RateMeter();  // of another kind of work
  stage_ = std::move(what);
  unit_ = unit;
}

std::string ConvertDisplay::line(uint64_t done, uint64_t total) const {
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
  meter_.add(clock_.seconds(), done);
  const double interval = one_line_ ? kLineInterval : kReportInterval;
  if (!quiet_ && done < total && clock_.seconds() - shown_at_ >= interval) {
    shown_at_ = clock_.seconds();
    std::string text = line(done, total);
    if (one_line_) {
      text.resize(std::min(text.size(), size_t(std::max(columns_ - 1, 10))));
      std::fprintf(stderr, "\r\033[K%s", text.c_str());
      std::fflush(stderr);
      line_open_ = true;
    } else {
      say(text);
    }
  }
  return !InterruptScope::interrupted();
}

Result<int> convert_failure(Error failure) {
  if (!InterruptScope::interrupted()) return failure;
  std::fprintf(stderr, "%s\n", kInterrupted);
  return 130;
}

std::string tensor_class_words() {
  std::string words;
  for (const TensorClass one : all_tensor_classes())
    words += cat(words.empty() ? "" : " ", word_of(one));
  return words;
}

Result<std::set<TensorClass>> parse_tensor_classes(const std::vector<std::string>& words) {
  std::set<TensorClass> classes;
  for (const std::string& list : words) {
    for (size_t begin = 0; begin <= list.size();) {
      const size_t comma = std::min(list.find(',', begin), list.size());
      const std::string word = list.substr(begin, comma - begin);
      begin = comma + 1;
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
