#include "engine/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/split_mix.h"

namespace slip {
namespace {

// Below every logit of a model and above what is forbidden.
constexpr float kLeastAllowed = std::numeric_limits<float>::lowest();

// A hash of a counter, so that draws need no state.
uint64_t mix(uint64_t counter) { return split_mix(counter + kSplitMixStep); }

// Between 0 and 1, neither of them, from 53 of the bits.
double uniform(uint64_t bits) { return (double(bits >> 11) + 0.5) * 0x1p-53; }

// A damaged model gives logits that are no numbers; sorting needs an order.
float ordered(float logit) { return std::isnan(logit) ? -INFINITY : logit; }

// The order of candidates; equal logits by id, so that the order (and with it the draw) does not
// depend on the sorting algorithm.
constexpr auto comes_before = [](const Candidate& a, const Candidate& b) {
  return a.value > b.value || (a.value == b.value && a.id < b.id);
};

// The largest value, in chains that the compiler can turn into vectors: a loop over one running
// maximum takes longer than a draft's whole attention.
float largest(std::span<const float> values) {
  constexpr size_t kChains = 16;
  float peaks[kChains];
  for (float& peak : peaks) peak = -INFINITY;
  size_t i = 0;
  for (; i + kChains <= values.size(); i += kChains)
    for (size_t j = 0; j < kChains; ++j)
      peaks[j] = values[i + j] > peaks[j] ? values[i + j] : peaks[j];
  float peak = *std::max_element(peaks, peaks + kChains);
  for (; i < values.size(); ++i) peak = std::max(peak, values[i]);
  return peak;
}

// The first of the largest.
int32_t first_largest(std::span<const float> values) {
  const auto place = std::find(values.begin(), values.end(), largest(values));
  return place == values.end() ? 0 : int32_t(place - values.begin());
}

}  // namespace

bool TokenFilter::allows(int32_t id) const {
  if (constraint && !constraint->allows(id)) return false;
  return std::ranges::find(banned, id) == banned.end();
}

void TokenFilter::apply(std::span<float> logits) const {
  const auto is_banned = [&](size_t id) {
    return std::ranges::find(banned, int32_t(id)) != banned.end();
  };
  if (!constraint) {
    for (const int32_t id : banned)
      if (id >= 0 && size_t(id) < logits.size()) logits[size_t(id)] = -INFINITY;
    return;
  }
  const TokenSet& allowed = constraint->allowed();
  bool others = banned.empty();
  for (size_t id = 0; id < logits.size() && !others; ++id)
    others = allowed.contains(int32_t(id)) && !is_banned(id);
  // What a form wants may be suppressed otherwise, or no number in a damaged model; it comes before
  // what the form forbids all the same.
  for (size_t id = 0; id < logits.size(); ++id)
    if (!allowed.contains(int32_t(id)) || (others && !banned.empty() && is_banned(id))) {
      logits[id] = -INFINITY;
    } else if (!(logits[id] > -INFINITY)) {
      logits[id] = kLeastAllowed;
    }
}

Sampler::Sampler(const SamplingOptions& options, int64_t vocabulary, int64_t usable)
    : options_(options), usable_(std::min(usable, vocabulary)) {
  if (adjusts()) {
    in_prompt_.resize(size_t(vocabulary));
    counts_.resize(size_t(vocabulary));
    seen_.reserve(size_t(vocabulary));
  }
  if (options_.greedy()) return;
  const int64_t kept = options_.top_k > 0 ? options_.top_k : vocabulary;
  candidates_.reserve(size_t(std::min(kept, vocabulary)));
}

void Sampler::see_prompt(std::span<const int32_t> ids) {
  if (!adjusts()) return;
  for (const int32_t id : ids) {
    if (id < 0 || size_t(id) >= in_prompt_.size() || in_prompt_[size_t(id)]) continue;
    in_prompt_[size_t(id)] = 1;
    if (counts_[size_t(id)] == 0) seen_.push_back(id);
  }
}

int32_t Sampler::next(std::span<float> logits) {
  adjust(logits);
  return remember(choose(logits.first(size_t(usable_)), chosen_));
}

int32_t Sampler::next(const LogitRow& logits, const TokenFilter& filter) {
  // Mostly the best tokens are right ones, and the set of all need not be made.
  const std::optional<Peak> peak = deciding_peak(logits);
  if (peak && filter.allows(peak->id)) return remember(peak->id);
  const std::span<const Candidate> found = best_found(logits, filter, choices());
  if (!found.empty()) return remember(choose(found, chosen_));
  const std::span<float> values = logits.values();
  adjust(values);
  const auto usable = values.first(size_t(usable_));
  if (options_.greedy()) {
    const int32_t best = first_largest(usable);
    if (filter.allows(best)) return remember(best);
  }
  filter.apply(usable);
  return remember(choose(usable, chosen_));
}

int32_t Sampler::remember(int32_t id) {
  ++chosen_;
  if (adjusts() && counts_[size_t(id)]++ == 0 && !in_prompt_[size_t(id)]) seen_.push_back(id);
  return id;
}

bool Sampler::goes_by_peaks() const {
  const auto raises = [](const auto& bias) { return bias.second > 0; };
  return options_.greedy() && !adjusts() && std::ranges::none_of(options_.logit_bias, raises);
}

// Not padding of the vocabulary, nor a token that a bias lowers, as suppressed ones are.
bool Sampler::decides(int32_t id) const {
  const auto is_peak = [&](const auto& bias) { return bias.first == id; };
  return id < usable_ && std::ranges::none_of(options_.logit_bias, is_peak);
}

std::optional<Peak> Sampler::deciding_peak(const LogitRow& logits) const {
  if (!goes_by_peaks()) return std::nullopt;
  const Peak peak = logits.peak();
  return decides(peak.id) ? std::optional(peak) : std::nullopt;
}

std::span<const Candidate> Sampler::best_found(const LogitRow& logits, const TokenFilter& filter,
                                               size_t wanted) {
  if (wanted == 0 || wanted > best_.size() || !only_lowers()) return {};
  const std::optional<Candidates> found = logits.candidates();
  if (!found) return {};
  // All other tokens come after the last one that was found, and can only fall: what is not after
  // it is certain. What is out of reach is left to those who see the whole row.
  size_t certain = 0;
  for (Candidate candidate : *found) {
    if (candidate.value == -INFINITY || candidate.id >= usable_) continue;
    candidate.value = adjusted(candidate);
    if (candidate.value > -INFINITY && !comes_before(found->back(), candidate))
      best_[certain++] = candidate;
  }
  std::sort(best_.begin(), best_.begin() + int64_t(certain), comes_before);
  size_t kept = 0;
  for (size_t i = 0; i < certain && kept < wanted; ++i)
    if (filter.allows(best_[i].id)) best_[kept++] = best_[i];
  return std::span(best_).first(kept == wanted ? kept : 0);
}

bool Sampler::adjusts() const {
  return options_.repetition_penalty != 1.0f || options_.presence_penalty != 0.0f ||
         options_.frequency_penalty != 0.0f;
}

bool Sampler::only_lowers() const {
  const auto lowers = [](const auto& bias) { return bias.second <= 0; };
  return options_.repetition_penalty >= 1 && options_.presence_penalty >= 0 &&
         options_.frequency_penalty >= 0 && std::ranges::all_of(options_.logit_bias, lowers);
}

Sampler::Proposal Sampler::propose(const LogitRow& logits, int64_t ahead) {
  if (const std::optional<Peak> peak = deciding_peak(logits)) return *propose(*peak);
  const size_t kept = choices();
  // A margin is that to another one.
  const std::span<const Candidate> best =
      best_found(logits, {}, kept == 0 ? 0 : std::max(kept, size_t{2}));
  if (best.empty()) return propose(logits.values(), ahead);
  const int32_t id = choose(best.first(kept), chosen_ + ahead);
  const Candidate& chosen = *std::ranges::find(best, id, &Candidate::id);
  const Candidate& other = best[id == best[0].id ? 1 : 0];
  return {id, chosen.value - other.value};
}

std::optional<Sampler::Proposal> Sampler::propose(const Peak& peak) const {
  if (!decides(peak.id)) return std::nullopt;
  return Proposal{peak.id, peak.value - peak.runner_up};
}

Sampler::Proposal Sampler::propose(std::span<float> logits, int64_t ahead) {
  adjust(logits);
  const auto usable = logits.first(size_t(usable_));
  const int32_t id = choose(usable, chosen_ + ahead);
  const float logit = usable[size_t(id)];
  usable[size_t(id)] = -INFINITY;
  const float margin = logit - largest(usable);
  usable[size_t(id)] = logit;
  return {id, margin};
}

int32_t Sampler::choose(std::span<const float> logits, int64_t index) {
  if (options_.greedy()) return first_largest(logits);
  keep_top_k(logits);
  return draw(index);
}

int32_t Sampler::choose(std::span<const Candidate> best, int64_t index) {
  if (options_.greedy()) return best.front().id;
  candidates_.assign(best.begin(), best.end());
  return draw(index);
}

void Sampler::adjust(std::span<float> logits) const {
  for (const auto& [id, bias] : options_.logit_bias)
    if (id >= 0 && size_t(id) < logits.size()) logits[size_t(id)] += bias;
  if (!adjusts()) return;
  for (const int32_t id : seen_) logits[size_t(id)] = penalized(id, logits[size_t(id)]);
}

float Sampler::adjusted(const Candidate& candidate) const {
  const int32_t id = candidate.id;
  float logit = candidate.value;
  for (const auto& [biased, bias] : options_.logit_bias)
    if (biased == id) logit += bias;
  const bool seen = adjusts() && (in_prompt_[size_t(id)] || counts_[size_t(id)] > 0);
  return seen ? penalized(id, logit) : logit;
}

float Sampler::penalized(int32_t id, float logit) const {
  const float penalty = options_.repetition_penalty;
  logit = logit > 0 ? logit / penalty : logit * penalty;
  const int32_t count = counts_[size_t(id)];
  if (count > 0) logit -= options_.presence_penalty + options_.frequency_penalty * float(count);
  return logit;
}

int32_t Sampler::draw(int64_t index) {
  const Candidate best = *std::ranges::min_element(candidates_, comes_before);
  double total = 0;
  for (Candidate& candidate : candidates_) {
    // What is out of reach must not be drawn beside others, not even by rounding.
    const bool in_reach = candidate.value > kLeastAllowed;
    candidate.value =
        in_reach ? std::exp((candidate.value - best.value) / options_.temperature) : 0;
    total += candidate.value;
  }
  size_t kept = candidates_.size();
  if (options_.top_p < 1.0f) {
    double mass = 0;
    for (size_t i = 0; i < kept; ++i) {
      mass += candidates_[i].value;
      if (mass >= double(options_.top_p) * total) kept = i + 1;
    }
  }
  // A race: every token's clock rings after a random time that is the shorter the likelier it is,
  // and the first one wins. Its chance is its share, and whoever knows the likelihoods only nearly,
  // as a drafter does, mostly sees the same one win: what matters are the clocks of a few tokens,
  // not what all of them add up to.
  const uint64_t clocks = mix(mix(options_.seed) ^ uint64_t(index));
  int32_t winner = best.id;
  double soonest = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < kept; ++i) {
    const auto [id, weight] = candidates_[i];
    // The best weighs 1, so min_p of its probability is min_p here.
    if (weight == 0 || weight < options_.min_p) continue;
    // A time is -log(chance) / weight, and -log(chance) at least 1 - chance: hardly any token of a
    // large vocabulary needs its logarithm.
    const double chance = uniform(mix(clocks ^ uint64_t(id)));
    if (1 - chance >= soonest * double(weight)) continue;
    const double time = -std::log(chance) / double(weight);
    if (time >= soonest) continue;
    soonest = time;
    winner = id;
  }
  return winner;
}

// Fills candidates_ with the top_k largest: falling, unless they are all there are and in which
// order does not matter.
void Sampler::keep_top_k(std::span<const float> logits) {
  candidates_.clear();
  const size_t limit = options_.top_k > 0 ? size_t(options_.top_k) : logits.size();
  if (limit >= logits.size()) {
    for (size_t i = 0; i < logits.size(); ++i)
      candidates_.push_back({int32_t(i), ordered(logits[i])});
    if (options_.top_p < 1.0f) std::sort(candidates_.begin(), candidates_.end(), comes_before);
    return;
  }
  // A heap whose front is the worst of the kept: one comparison for almost every token.
  for (size_t i = 0; i < logits.size(); ++i) {
    const Candidate candidate{int32_t(i), ordered(logits[i])};
    if (candidates_.size() == limit) {
      if (!comes_before(candidate, candidates_.front())) continue;
      std::pop_heap(candidates_.begin(), candidates_.end(), comes_before);
      candidates_.pop_back();
    }
    candidates_.push_back(candidate);
    std::push_heap(candidates_.begin(), candidates_.end(), comes_before);
  }
  std::sort_heap(candidates_.begin(), candidates_.end(), comes_before);
}

}  // namespace slip
