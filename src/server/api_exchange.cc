#include "server/api_exchange.h"

#include <mutex>
#include <span>
#include <utility>

#include "engine/stop_strings.h"

namespace slip {
namespace {

ApiError error_of(const Refusal& refusal) {
  switch (refusal.kind) {
    case Refusal::Kind::queue_full: return too_many_requests(refusal.message);
    case Refusal::Kind::stopping: return unavailable(refusal.message);
    case Refusal::Kind::invalid: return bad_request(refusal.message);
    case Refusal::Kind::too_long: {
      ApiError error = bad_request(refusal.message);
      error.code = "context_length_exceeded";
      return error;
    }
  }
  unreachable("Refusal::Kind");
}

// Of what ended an answer: the client's own fault where it could ask for something else.
ApiError error_of(const Error& failure) {
  return failure.setting ? bad_request(failure.message) : server_error(failure.message);
}

// The pieces of an answer up to a stop string in its content. What may still become one is held
// back, until something else follows or the answer ends.
std::vector<OutputEvent> up_to_stop(StopStrings& stops, std::vector<OutputEvent> pieces,
                                    bool last) {
  std::vector<OutputEvent> out;
  const auto add_content = [&](std::string text) {
    if (!text.empty()) add_event(out, {OutputEvent::Kind::content, std::move(text)});
  };
  for (OutputEvent& piece : pieces) {
    if (stops.matched()) return out;
    if (piece.kind == OutputEvent::Kind::content) {
      add_content(stops.push(piece.text));
    } else {
      add_content(stops.finish());
      out.push_back(std::move(piece));
    }
  }
  if (last) add_content(stops.finish());
  return out;
}

bool ended_at_limit(FinishReason reason) {
  return reason == FinishReason::max_tokens || reason == FinishReason::context_full;
}

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(Answerer& answerer, std::shared_ptr<HttpReply> reply,
           std::unique_ptr<AnswerWriter> writer, size_t choices)
      : answerer_(answerer),
        reply_(std::move(reply)),
        writer_(std::move(writer)),
        unfinished_(choices),
        choices_(choices) {}

  void start(std::vector<PlannedChoice> planned);

  // From the listeners.
  void on_prompt(size_t choice, int64_t done, int64_t total);
  void on_prompt_token(size_t index, const TokenEvent& event);
  void on_token(size_t index, const TokenEvent& event);
  void on_finish(size_t index, const RequestSummary& summary);

 private:
  struct Choice {
    std::optional<OutputParser> parser;
    bool shares_prompt = false;
    Request waiting;  // until it is submitted
    std::optional<RequestId> id;
    // Of the content. Without a parser the engine looks for them.
    StopStrings stops{std::vector<std::string>()};
    int64_t tokens = 0;  // up to the stop string
    int64_t reasoning_tokens = 0;
    bool called_tools = false;
    bool begun = false;  // its prompt is computed
    bool finished = false;
  };

  void watch_client();
  // False if the exchange is over. Not under the lock, as cancel_all().
  bool submit(size_t index);
  // The choices that answer the same prompt: they find it remembered.
  void submit_siblings(size_t index);
  void begin_once();
  // What goes on behind its stop string, or if the exchange is over. Not under the lock: the
  // service may be waiting for it.
  void cancel_unwanted();
  void fail(const ApiError& error);
  // Whether it failed because of that.
  bool fails_too_long();
  void end_choice(size_t index, const RequestSummary& summary, std::span<const OutputEvent> pieces);
  std::vector<OutputEvent> pieces_of(Choice& choice, const std::string& text, bool last);

  Answerer& answerer_;
  const std::shared_ptr<HttpReply> reply_;
  std::mutex mutex_;  // guards what follows: the client leaves on another thread
  const std::unique_ptr<AnswerWriter> writer_;
  size_t unfinished_;
  std::vector<Choice> choices_;
  AnswerUsage usage_;
  bool begun_ = false;
  bool over_ = false;  // failed, or nobody listens
};

class Listener final : public RequestListener {
 public:
  Listener(std::shared_ptr<Exchange> exchange, size_t choice)
      : exchange_(std::move(exchange)), choice_(choice) {}

  void on_prompt(int64_t done, int64_t total) override {
    exchange_->on_prompt(choice_, done, total);
  }
  void on_prompt_token(const TokenEvent& event) override {
    exchange_->on_prompt_token(choice_, event);
  }
  void on_token(const TokenEvent& event) override { exchange_->on_token(choice_, event); }
  void on_finish(const RequestSummary& summary) override { exchange_->on_finish(choice_, summary); }

 private:
  std::shared_ptr<Exchange> exchange_;
  size_t choice_;
};

void Exchange::watch_client() {
  reply_->on_close([weak = weak_from_this()] {
    const std::shared_ptr<Exchange> self = weak.lock();
    if (!self) return;
    {
      const std::lock_guard lock(self->mutex_);
      self->over_ = true;
    }
    self->cancel_unwanted();
  });
}

void Exchange::start(std::vector<PlannedChoice> planned) {
  for (size_t i = 0; i < planned.size(); ++i) {
    choices_[i].parser = std::move(planned[i].parser);
    choices_[i].shares_prompt = planned[i].shares_prompt;
    choices_[i].waiting = std::move(planned[i].request);
    if (choices_[i].parser)
      choices_[i].stops = StopStrings(std::exchange(choices_[i].waiting.stop_strings, {}));
  }
  watch_client();
  for (size_t i = 0; i < planned.size(); ++i)
    if (!planned[i].shares_prompt && !submit(i)) return;
  const std::lock_guard lock(mutex_);
  if (!over_) begin_once();
}

bool Exchange::submit(size_t index) {
  auto taken = answerer_.submit(std::move(choices_[index].waiting),
                                std::make_shared<Listener>(shared_from_this(), index));
  bool ended = false;
  {
    const std::lock_guard lock(mutex_);
    if (const auto* refusal = std::get_if<Refusal>(&taken))
      fail(error_of(*refusal));
    else
      choices_[index].id = std::get<RequestId>(taken);
    ended = over_;
  }
  cancel_unwanted();  // maybe since before the id was known
  return !ended;
}

void Exchange::submit_siblings(size_t index) {
  for (size_t i = index + 1; i < choices_.size() && choices_[i].shares_prompt; ++i)
    if (!submit(i)) return;
}

void Exchange::begin_once() {
  if (!begun_) writer_->begin();
  begun_ = true;
}

void Exchange::cancel_unwanted() {
  std::vector<RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    for (const Choice& choice : choices_)
      if (choice.id && !choice.finished && (over_ || choice.stops.matched()))
        ids.push_back(*choice.id);
  }
  for (const RequestId id : ids) answerer_.cancel(id);
}

void Exchange::fail(const ApiError& error) {
  if (over_) return;
  over_ = true;
  writer_->fail(error);
}

bool Exchange::fails_too_long() {
  const ApiStatus problem = writer_->too_long();
  if (problem) fail(*problem);
  return problem.has_value();
}

std::vector<OutputEvent> Exchange::pieces_of(Choice& choice, const std::string& text, bool last) {
  if (!choice.parser) {
    if (text.empty()) return {};
    return {{.kind = OutputEvent::Kind::content, .text = text}};
  }
  std::vector<OutputEvent> pieces = choice.parser->feed(text);
  if (last)
    for (OutputEvent& piece : choice.parser->finish()) add_event(pieces, std::move(piece));
  pieces = up_to_stop(choice.stops, std::move(pieces), last);
  for (const OutputEvent& piece : pieces)
    choice.called_tools |= piece.kind == OutputEvent::Kind::tool_call_start;
  return pieces;
}

void Exchange::on_prompt(size_t choice, int64_t done, int64_t total) {
  const std::lock_guard lock(mutex_);
  if (over_ || choice != 0) return;
  begin_once();
  writer_->prompt_progress(done, total);
}

void Exchange::on_prompt_token(size_t index, const TokenEvent& event) {
  bool failed = false;
  {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    begin_once();
    writer_->prompt_token({int(index), event});
    for (size_t i = index + 1; i < choices_.size() && choices_[i].shares_prompt; ++i)
      writer_->prompt_token({int(i), event});
    failed = fails_too_long();
  }
  if (failed) cancel_unwanted();
}

void Exchange::on_token(size_t index, const TokenEvent& event) {
  bool first = false, failed = false, stopped = false;
  {
    const std::lock_guard lock(mutex_);
    Choice& choice = choices_[index];
    if (over_ || choice.stops.matched()) return;
    begin_once();
    first = !std::exchange(choice.begun, true) && !choice.shares_prompt;
    ++choice.tokens;
    if (choice.parser && choice.parser->in_reasoning()) ++choice.reasoning_tokens;
    const std::vector<OutputEvent> pieces = pieces_of(choice, event.text, false);
    writer_->token({int(index), event, pieces});
    failed = fails_too_long();
    stopped = choice.stops.matched();
  }
  if (failed || stopped) cancel_unwanted();
  if (first && !failed) submit_siblings(index);
}

void Exchange::on_finish(size_t index, const RequestSummary& summary) {
  RequestSummary told = summary;
  bool first = false, failed = false;
  {
    const std::lock_guard lock(mutex_);
    Choice& choice = choices_[index];
    if (choice.parser && ended_at_limit(summary.finish)) choice.parser->cut_off();
    choice.finished = true;
    --unfinished_;
    std::vector<OutputEvent> pieces;
    if (summary.finish != FinishReason::cancelled) pieces = pieces_of(choice, summary.text, true);
    if (choice.stops.matched()) {
      told.finish = FinishReason::stop_string;
      told.stop_string = choice.stops.found();
      told.stop_token.reset();
      told.failure.reset();
      told.tokens = choice.tokens;
    }
    answerer_.ended(told);
    reply_->add_usage({.prompt = told.prompt_tokens,
                       .cached = told.cached_tokens,
                       .generated = told.tokens,
                       .decode_seconds = told.decode_seconds});
    if (over_) return;
    begin_once();
    failed = told.finish == FinishReason::cancelled;
    if (failed) {
      fail(told.failure ? error_of(*told.failure) : unavailable("the server is stopping"));
    } else {
      first = !std::exchange(choice.begun, true) && !choice.shares_prompt;
      end_choice(index, told, pieces);
    }
  }
  if (first) submit_siblings(index);
  if (failed) cancel_unwanted();
}

void Exchange::end_choice(size_t index, const RequestSummary& summary,
                          std::span<const OutputEvent> pieces) {
  const Choice& choice = choices_[index];
  writer_->finish({int(index), summary, pieces, choice.reasoning_tokens, choice.called_tools});
  if (!choice.shares_prompt) {
    usage_.prompt_tokens += summary.prompt_tokens;
    usage_.cached_tokens += summary.cached_tokens;
  }
  usage_.completion_tokens += summary.tokens;
  usage_.reasoning_tokens += choice.reasoning_tokens;
  if (unfinished_ == 0) writer_->complete(usage_);
}

}  // namespace

void start_exchange(Answerer& answerer, std::shared_ptr<HttpReply> reply,
                    std::unique_ptr<AnswerWriter> writer, std::vector<PlannedChoice> choices) {
  const size_t count = choices.size();
  std::make_shared<Exchange>(answerer, std::move(reply), std::move(writer), count)
      ->start(std::move(choices));
}

}  // namespace slip
