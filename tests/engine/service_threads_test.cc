// Clients on many threads at once; small enough for the thread sanitizer.
#include <atomic>
#include <thread>

#include "tests/engine/service_harness.h"

namespace slip {
namespace {

TEST(ServiceThreads, ClientsComeAndGoOnThreadsOfTheirOwn) {
  const auto folder = golden_folder() / "tiny/qwen3_5_moe";
  LoadedModel model(
      folder, fast_backends().front(),
      {.context = 256, .max_drafts = 2, .sequences = 3, .checkpoints = 3, .pages = 6});
  // The text does not matter, so any tokenizer will do.
  const Tokenizer tokenizer = Tokenizer::load(minnow_folder()).value();
  const std::vector<int32_t> text = GoldenFile(folder / "golden.safetensors").ints("far.ids");
  Service service(model.engine(), tokenizer, {.max_queue = 4, .max_drafts = 2});

  std::atomic<int> answered{0}, refused{0};
  const auto client = [&](int number) {
    for (int i = 0; i < 6; ++i) {
      auto listener = std::make_shared<Listener>();
      const size_t length = size_t(20 + 17 * number + 5 * i);
      Request request = sampled({text.begin(), text.begin() + int64_t(length)}, 12, uint64_t(i));
      request.message_ends = {int64_t(length) - 3};
      const auto taken = service.submit(std::move(request), listener);
      if (taken.index() == 1) {
        EXPECT_EQ(std::get<Refusal>(taken).kind, Refusal::Kind::queue_full);
        ++refused;
        continue;
      }
      if (i % 3 == 1) service.cancel(std::get<RequestId>(taken));
      EXPECT_LE(service.stats().running, 3);
      EXPECT_GE(service.silence(), 0);
      listener->wait();
      EXPECT_EQ(listener->finishes, 1);
      ++answered;
    }
  };
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 6; ++i) clients.emplace_back(client, i);
  }
  EXPECT_EQ(answered + refused, 36);
  EXPECT_TRUE(service.drain(10));
  expect_all_free(service.stats());
}

}  // namespace
}  // namespace slip
