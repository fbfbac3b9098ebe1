#include "engine/job.h"

#include <algorithm>
#include <utility>

namespace slip {

Job::Job(Request asked, std::shared_ptr<RequestListener> hears, int64_t segment)
    : request(std::move(asked)),
      listener(std::move(hears)),
      prompt_length(int64_t(request.prompt.size())),
      cuts(cut_prompt(prompt_length, request.message_ends, segment)),
      cuts_matter(segment > 0),
      tokens(std::move(request.prompt)) {
  summary.prompt_tokens = prompt_length;
  if (!request.score_prompt) scored = prompt_length;
}

int64_t Job::next_cut() const {
  const auto cut = std::ranges::upper_bound(cuts.ends, computed);
  return cut == cuts.ends.end() ? int64_t(tokens.size()) : *cut;
}

bool Job::at_checkpoint() const {
  return request.reuse_prefix && std::ranges::binary_search(cuts.checkpoints, computed);
}

PrefixIndex::Text Job::text(int64_t length) const {
  const std::span<const int64_t> ends = cuts.ends;
  const auto within = std::ranges::upper_bound(ends, length) - ends.begin();
  return {.salt = request.salt,
          .tokens = std::span(tokens).first(size_t(length)),
          .cuts = cuts_matter ? ends.first(size_t(within)) : std::span<const int64_t>()};
}

}  // namespace slip
