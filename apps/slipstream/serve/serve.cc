// serve: the engine for many, over HTTP.
#include "slipstream/pull/model.h"
#include "slipstream/serve/run.h"
#include "slipstream/verb.h"

namespace slip {
namespace {

class Serve : public Verb {
 public:
  Serve() : flags_("serve", "Serve the OpenAI and Anthropic APIs and a chat page") {
    options_.add_to(flags_);
  }
  Flags& flags() override { return flags_; }

  Status settle() override { return options_.settle(flags_); }

  Result<int> run() override {
    SLIP_TRY_STATUS(fetch_model(options_.model));
    return serve(options_);
  }

 private:
  Flags flags_;
  ServeOptions options_;
};

}  // namespace

std::unique_ptr<Verb> make_serve_verb() { return std::make_unique<Serve>(); }

}  // namespace slip
