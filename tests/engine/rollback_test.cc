// Promise 2 at its root: tokens that were verified and rejected leave no trace. Drafts are forced
// here, so that every place of a step is rejected many times, over texts with several turns.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

namespace slip {
namespace {

constexpr int64_t kDrafts = 4;

struct Case {
  Backend backend;
  std::string recipe;

  friend std::ostream& operator<<(std::ostream& out, const Case& each) {
    return out << each.backend << " with " << each.recipe;
  }
};

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  return info.param.backend.name + "_" + info.param.recipe;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Backend& backend : fast_backends())
    for (const char* recipe : {"f32", "k4v4"}) all.push_back({backend, recipe});
  if (fast_backends().back().name == "cuda")
    for (const char* recipe : {"bf16", "fp8", "int8", "k3v2"})
      all.push_back({fast_backends().back(), recipe});
  for (const char* recipe : {"bf16", "fp8", "int8", "k8v4", "k4v3", "k3v3", "k3v2"})
    all.push_back({fast_backends().front(), recipe});
  return all;
}

// What the model itself says, token by token: two turns of text with greedy answers between.
struct Text {
  std::vector<int32_t> ids;
  std::vector<bool> given;                 // by a user: fed as certain
  std::vector<std::vector<float>> logits;  // after each
};

class Rollback : public ::testing::TestWithParam<Case> {
 protected:
  Text speak(Session& session) {
    Text text;
    const auto add = [&](int32_t id, bool given) {
      EXPECT_TRUE(session.feed({&id, 1}).ok());
      text.ids.push_back(id);
      text.given.push_back(given);
      text.logits.emplace_back(session.logits().begin(), session.logits().end());
    };
    for (const char* turn : {"story", "sum_think", "json"}) {
      const std::vector<int32_t> prompt = prompt_ids(turn);
      for (const int32_t id : prompt) add(id, true);
      for (int i = 0; i < 75; ++i) add(argmax(text.logits.back()), false);
    }
    return text;
  }

  // Everything the cache remembers of the sequence, brought up to date by one more certain token.
  std::vector<std::byte> memory_after(Session& session, int32_t last) {
    EXPECT_TRUE(session.feed({&last, 1}).ok());
    std::vector<std::byte> bytes;
    const auto append = [&](const View& view) {
      bytes.resize(bytes.size() + view.bytes());
      model_.memory().download(bytes.data() + bytes.size() - view.bytes(), view.data, view.bytes());
    };
    const auto positions = int64_t(session.tokens().size());
    for (size_t i = 0; i < size_t(model_.engine().model().info().layers); ++i) {
      const Cache::Layer& layer = model_.engine().cache().layer(i);
      if (!layer.state.empty()) {
        append(layer.state);
        append(layer.conv_tail.slice(0, 1)
                   .reshaped({layer.conv_tail.count()})
                   .first(layer.conv_tail.shape[2] * (layer.conv_tail.shape[1] - kDrafts - 1)));
        continue;
      }
      // Whole pages; the last, half full one shows in the logits.
      for (int64_t p = 0; p < positions / kPageLen; ++p) {
        const int64_t page = session.engine().cache().pages(session.sequence())[size_t(p)];
        append(layer.kv.keys.slice(page, 1));
        append(layer.kv.values.slice(page, 1));
      }
    }
    return bytes;
  }

  LoadedModel model_{
      minnow_folder(),
      GetParam().backend,
      {.context = 640, .max_drafts = kDrafts, .kv = parse_kv_recipe(GetParam().recipe).value()}};
};

TEST_P(Rollback, RejectedTokensLeaveNoTrace) {
  Text text;
  std::vector<std::byte> expected;
  {
    Session plain(model_.engine());
    text = speak(plain);
    expected = memory_after(plain, 7);
  }
  const auto length = int64_t(text.ids.size());
  for (int64_t shift = 0; shift < kDrafts; ++shift) {
    Session session(model_.engine());
    int64_t done = 0, step = shift;
    const auto same_logits = [&](int64_t row) {
      const std::vector<float>& right = text.logits[size_t(done + row)];
      return std::memcmp(session.choice(row).values().data(), right.data(),
                         right.size() * sizeof(float)) == 0;
    };
    while (done < length) {
      if (text.given[size_t(done)]) {  // a turn of the user, in one go if the backend allows it
        const int64_t most = std::min(length, done + GetParam().backend.invariant_rows);
        int64_t end = done;
        while (end < most && text.given[size_t(end)]) ++end;
        ASSERT_TRUE(
            session.feed(std::span(text.ids).subspan(size_t(done), size_t(end - done))).ok());
        done = end - 1;
        ASSERT_TRUE(same_logits(0)) << "after the turn that ends at " << end;
        ++done;
        continue;
      }
      // Drafts are right up to `right`, then wrong; every number of right ones comes in turn.
      const int64_t right = step % (kDrafts + 1), drafts = 1 + (step / 3) % kDrafts;
      ++step;
      std::vector<int32_t> ids;
      for (int64_t i = 0; i <= drafts && done + i < length; ++i) {
        const int32_t truth = text.ids[size_t(done + i)];
        ids.push_back(i <= right ? truth : (truth + 1 + int32_t(i)) % 8000);
      }
      ASSERT_TRUE(session.verify(ids).ok());
      const int64_t accepted = std::min(right + 1, int64_t(ids.size()));
      for (int64_t row = 0; row < accepted; ++row)
        ASSERT_TRUE(same_logits(row)) << "position " << done + row << ", step of " << ids.size();
      session.accept(accepted);
      done += accepted;
    }
    EXPECT_EQ(session.tokens(), text.ids);
    EXPECT_EQ(memory_after(session, 7), expected) << "shift " << shift;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Rollback, ::testing::ValuesIn(cases()), name_of_case);

}  // namespace
}  // namespace slip
