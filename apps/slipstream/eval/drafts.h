// Drafts of the MTP layer at every place of a text, as the engine makes them while it decodes.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/session.h"
#include "models/drafter.h"

namespace slip {

// Feeds `ids` to a fresh session of a model with MTP: final hidden states [ids, hidden], and what
// `each` makes of the logits.
Result<std::vector<float>> feed_for_drafts(
    Session& session, std::span<const int32_t> ids,
    const std::function<void(int64_t position, std::span<const float> logits)>& each);

// What TextDrafts cannot do: a drafter that reads the model's keys finds those of a window gone
// when the text is over.
inline constexpr const char* kNoDraftsAfterTheText =
    "only drafts of MTP layers with keys of their own can be written for a whole text; \"eval "
    "accept\" says how often those of this model are right";

class TextDrafts {
 public:
  // `session` must outlive it.
  explicit TextDrafts(Session& session);

  // Gets the logits of draft `place` (0 is the first) of slot p, which stands for token
  // p + 2 + place, and says with which token the slot's drafting goes on, if it does.
  using Follow = std::function<std::optional<int32_t>(int64_t slot, int64_t place,
                                                      std::span<const float> logits)>;

  // Slot p = 0 .. ids - 2 joins the hidden state of position p with token p + 1. The session holds
  // `ids`, and `hidden` [ids, hidden] are their states. Drafts must stay inside the text:
  // p + place < ids. Slots do not come in order.
  void run(std::span<const int32_t> ids, std::span<const float> hidden, const Follow& follow);

  // The token that logits given to Follow choose.
  int32_t best(std::span<const float> logits) const;

 private:
  enum class Logits : uint8_t { none, all };
  // One pass over rows [first, first + rows) of the tensors, at slots that begin at `start`.
  void pass(int64_t first, int64_t rows, int64_t start, const View& hidden, Logits wanted);
  // Whether the slot drafted more than once.
  bool follow_slot(int64_t row, int64_t slot, const Follow& follow);
  std::span<const float> logits_of(int64_t row) const;

  Session& session_;
  Drafter& drafter_;
  std::vector<int64_t> rows_;  // 0, 1, ...
  Tensor ids_;                 // i32 [block]
  Tensor hidden_;              // [block, hidden]
  Tensor passed_;              // [block, hidden]: what the layer hands on to the next draft
  Tensor logits_;              // [block, tokens that can be drafted]
};

// What became of the drafts of one place.
struct DraftAgreement {
  int64_t judged = 0, agreed = 0;

  double share() const { return judged > 0 ? double(agreed) / double(judged) : 0; }
};

// Drafts at every place of `ids`, up to `places` in a row, and judges them by the model's own
// choices: draft 1 of slot p by that at position p + 1, draft k by that at p + k. The model has
// read the text there, so later drafts count where all earlier ones are the text. Clears the
// session, whose engine must have an MTP layer or a drafter.
Status judge_drafts(Session& session, std::span<const int32_t> ids,
                    std::span<DraftAgreement> places);

// What a step yields on average if it always makes these drafts: one token of the model's own, and
// every draft that is right and follows right ones.
double tokens_per_step(std::span<const DraftAgreement> places);

}  // namespace slip
