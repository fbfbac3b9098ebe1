// A checkpoint behind an Engine, on any backend, and the runs that goldens are compared with.
#pragma once

#include <filesystem>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "base/threads.h"
#include "engine/session.h"

namespace slip {

// The reference, the fast CPU backend with one instruction set, or CUDA.
struct Backend {
  std::string name;  // letters, digits and underscores: part of a test's name
  std::unique_ptr<Ops> (*make)(ThreadPool& pool) = nullptr;
  // Rows of a step whose bits do not depend on the rows beside them; longer steps are prompts.
  int64_t invariant_rows = 1 << 20;
};
inline std::ostream& operator<<(std::ostream& out, const Backend& backend) {
  return out << backend.name;
}

Backend ref_backend();
std::vector<Backend> cpu_backends();   // best first
std::vector<Backend> fast_backends();  // the CPU's, best first, and the GPU's if there is one
std::vector<Backend> all_backends();   // the reference first

// Rows of logits, one after the other.
struct LogitRows {
  int64_t vocabulary = 0;
  std::vector<float> values;

  int64_t rows() const { return int64_t(values.size()) / vocabulary; }
  std::span<const float> row(int64_t index) const {
    return {values.data() + index * vocabulary, size_t(vocabulary)};
  }
};

int32_t argmax(std::span<const float> logits);
double log_sum_exp(std::span<const float> logits);

struct LoadedOptions {
  int threads = 2;
  bool with_drafter = false;
  int64_t context = 2048;
  int64_t max_rows = 256;
  int64_t max_drafts = 0;
  KvRecipe kv{};
  int64_t sequences = 1;
  int64_t checkpoints = 0;
  std::optional<int64_t> pages{};
  std::filesystem::path drafter{};  // the folder of one with files of its own
  WeightChoices weights{};
};

class LoadedModel {
 public:
  // Stops the test program if it cannot be loaded.
  LoadedModel(const std::filesystem::path& folder, const Backend& backend,
              const LoadedOptions& options = {});

  Engine& engine() { return *engine_; }
  Memory& memory() { return ops_->memory(); }

  // Logits of every position, from an empty state.
  LogitRows logits(std::span<const int32_t> ids);

  // Greedy continuation, decoded token by token.
  std::vector<int32_t> greedy(std::span<const int32_t> ids, int count);

  // Mean negative log-likelihood of tokens 1, 2, ...
  double nll(std::span<const int32_t> ids);

  // Drafts of the slots p = 0 .. ids - 3, as the goldens define step1 and forced_step2.
  struct Drafts {
    LogitRows step1, step2;
  };
  Drafts drafts(std::span<const int32_t> ids);

  // One row of the drafter, at the slot of position `position`.
  struct DraftRow {
    int32_t next_id;
    int64_t position;
    View hidden;       // [1, hidden]
    View logits;       // [1, vocabulary]
    View next_hidden;  // [1, hidden]
  };
  void draft_row(const DraftRow& row, const Session& session);

 private:
  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace slip
