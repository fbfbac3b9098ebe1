#include "slipstream/serve/run.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <thread>

#include "base/ascii.h"
#include "base/clock.h"
#include "engine/memory_plan.h"
#include "server/http_gate.h"
#include "server/metrics_answerer.h"
#include "server/operations.h"
#include "server/router.h"
#include "slipstream/common/environment.h"
#include "slipstream/common/numbers.h"
#include "slipstream/run/model.h"
#include "slipstream/serve/log.h"
#include "slipstream/serve/signals.h"
#include "version.h"

namespace slip {
namespace {

// Threads that read requests and tokenise prompts; the model's own do the rest.
constexpr int kRequestThreads = 2;

// For the first token, of which a large model on a cold machine takes its time.
constexpr double kFirstTokenSeconds = 120;

// Between lines that say how far loading is.
constexpr double kLoadNoteSeconds = 5;

// For the last bytes of replies to reach their clients.
constexpr double kGoodbyeSeconds = 2;

std::string what_fits(const TalkingModel& model, const MemoryPlan& plan) {
  const std::string answers =
      plan.sequences == 1 ? cat("one answer at a time, up to ", plan.context, " positions\n")
                          : cat("up to ", plan.sequences, " answers at once, up to ", plan.context,
                                " positions each, ", plan.pages * kPageLen, " in all\n");
  return cat(model.backend().description, ": ", answers, plan.describe());
}

class Serving {
 public:
  Serving(const ServeOptions& options, TalkingModel model)
      : options_(options),
        log_(options.log_format == "json" ? ServeLog::Format::json : ServeLog::Format::text),
        model_(std::move(model)),
        metrics_(model_.name()),
        operations_(kVersion, metrics_),
        api_(served_model(), api_options()) {}

  Status listen(KeyRing keys) {
    HttpServerOptions http{.host = options_.host,
                           .port = uint16_t(options_.port),
                           .tls_certificate = options_.tls_certificate,
                           .tls_key = options_.tls_key};
    http.limits.body_bytes = options_.max_body_bytes;
    // A few of the longest must fit, or they would never be taken.
    http.bodies_bytes = std::max(http.bodies_bytes, 4 * http.limits.body_bytes);
    gate_.emplace(HttpGate::Options{
        .keys = std::move(keys),
        .hosts = our_names(),
        .origins = options_.allowed_origins,
        .host_hint = "start the server with --allowed-host NAME to let it in",
        .origin_hint = "start the server with --allowed-origin URL to let them in"});
    std::vector<ApiRoute> routes = operations_.routes();
    for (ApiRoute& route : api_.routes()) routes.push_back(std::move(route));
    router_ = std::make_unique<Router>(std::move(routes), kRequestThreads);
    HttpServer::Hooks hooks;
    hooks.check = [this](HttpRequest& request) { return gate_->admit(request); };
    hooks.handler = [this](HttpRequest&& request, const std::shared_ptr<HttpReply>& reply) {
      router_->handle(std::move(request), reply);
    };
    hooks.log = [this](const HttpRecord& record) {
      metrics_.http_status(record.status);
      log_.request(record);
    };
    SLIP_TRY(server_, HttpServer::start(http, std::move(hooks)));
    for (const std::string& warning : model_.source().warnings()) log_.note("warning", warning);
    if (!model_.chat_template())
      log_.note("no_chat", cat("chat endpoints are off: ", model_.why_no_template()));
    log_.note("listening",
              cat("listening on ", url(), is_any(options_.host) ? " and all other addresses" : "",
                  ", loading ", model_.name()),
              {{"url", url()}, {"model", model_.name()}});
    return {};
  }

  // Loads while requests are already answered: with 503, and how far it is.
  Result<int> run() {
    std::optional<Error> failure;
    std::atomic<bool> loaded = false;
    std::thread loader([&] {
      if (Status status = load(); !status.ok()) failure = std::move(status).failure();
      loaded = true;
      if (failure) signals_.wake();
    });
    signals_.wait();
    if (!loaded) {
      // Loading cannot be interrupted, and nobody has been promised an answer yet.
      log_.note("stopped", "stopped while loading");
      std::_Exit(0);
    }
    loader.join();
    if (failure) {  // also when a signal came just then: there is no service to stop
      server_->drain(kGoodbyeSeconds);
      return *std::move(failure);
    }
    stop();
    return 0;
  }

 private:
  ServedModel served_model() const {
    ServedModel served;
    served.names = {model_.name()};
    served.names.insert(served.names.end(), options_.aliases.begin(), options_.aliases.end());
    served.tokenizer = model_.tokenizer();
    served.chat_template = model_.chat_template();
    served.why_no_template = model_.why_no_template();
    served.defaults = model_.defaults();
    served.context = model_.source().max_context();
    served.created = std::time(nullptr);
    return served;
  }

  ApiOptions api_options() const {
    ApiOptions api;
    api.reasoning_field = options_.reasoning();
    api.strict_template = options_.strict_template;
    api.version = kVersion;
    api.log = [this](std::string_view message) { log_.note("note", std::string(message)); };
    return api;
  }

  // The names that a browser on another machine may know us by.
  std::vector<std::string> our_names() const {
    std::vector<std::string> names = options_.allowed_hosts;
    names.push_back(options_.host);
    char host[256] = "";
    if (!is_loopback(options_.host) && ::gethostname(host, sizeof(host) - 1) == 0)
      names.insert(names.end(), {host, cat(host, ".local")});
    for (std::string& name : names) name = lower_ascii(name);
    return names;
  }

  // One that can be opened here, whatever else we listen to.
  std::string url() const {
    std::string host = options_.host;
    if (is_any(host)) host = host.find(':') == std::string::npos ? "127.0.0.1" : "::1";
    if (host.find(':') != std::string::npos) host = cat("[", host, "]");
    return cat(options_.tls_certificate.empty() ? "http://" : "https://", host, ":",
               server_->port());
  }

  Status load() {
    const Stopwatch clock;
    double told = 0;
    const auto progress = [&](uint64_t done, uint64_t total) {
      operations_.set_loading(total > 0 ? double(done) / double(total) : 0);
      if (clock.seconds() - told < kLoadNoteSeconds) return;
      told = clock.seconds();
      log_.note(
          "loading",
          cat("loading ", model_.name(), ": ", describe_bytes(done), " of ", describe_bytes(total)),
          {{"bytes", done}, {"total_bytes", total}});
    };
    SLIP_TRY_STATUS(
        model_.load_for_many(options_.model, options_.speculation, options_.max_users, progress));
    Engine& engine = model_.engine();
    const std::optional<DraftLength> drafts = options_.speculation.length();
    ServiceOptions service;
    service.max_queue = options_.max_queue;
    service.max_drafts = engine.max_drafts();
    service.always_draft = drafts && options_.speculation.speculate != "auto";
    service_.emplace(engine, *model_.tokenizer(), service);
    SLIP_TRY_STATUS(Canary(*service_).check_now(kFirstTokenSeconds));
    answerer_.emplace(*service_, metrics_);
    api_.attach(&*answerer_);
    operations_.set_ready(&*service_);
    announce(clock.seconds());
    return {};
  }

  void announce(double seconds) const {
    const MemoryPlan& plan = model_.engine().memory();
    log_.note("ready",
              cat(model_.name(), " is ready after ", fixed(seconds, 1), " s on ",
                  what_fits(model_, plan), "chat page and API: ", url()),
              {{"seconds", seconds},
               {"users", plan.sequences},
               {"context", plan.context},
               {"positions", plan.pages * kPageLen},
               {"bytes", plan.total()},
               {"url", url()}});
  }

  void stop() {
    const Stopwatch clock;
    operations_.set_draining();
    service_->drain(0);  // new requests are refused from here on, with 503
    log_.note("draining", cat("stopping: answers under way have ", options_.shutdown_seconds,
                              " s; a second signal ends at once"));
    constexpr double kLookSeconds = 0.1;
    bool done = false;
    while (!done && clock.seconds() < options_.shutdown_seconds) {
      done = service_->drain(kLookSeconds);
      if (signals_.wait(0) == StopSignals::Event::signal) {
        log_.note("stopped", "stopped at once");
        std::_Exit(0);
      }
    }
    server_->drain(0);  // no more connections and requests
    router_ = nullptr;  // no handler may ask the service any more
    api_.attach(nullptr);
    operations_.forget_service();
    service_.reset();  // ends what is left
    server_->drain(kGoodbyeSeconds);
    server_ = nullptr;
    log_.note("stopped", done ? "stopped" : "stopped before all answers were complete");
  }

  const ServeOptions& options_;
  StopSignals signals_;  // before all threads
  ServeLog log_;
  TalkingModel model_;
  Metrics metrics_;
  Operations operations_;
  Api api_;
  std::optional<HttpGate> gate_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<HttpServer> server_;
  std::optional<Service> service_;
  std::optional<MetricsAnswerer> answerer_;
};

// Connections and the files of a model need more descriptors than shells usually allow.
void raise_descriptor_limit() {
  constexpr rlim_t kEnough = 8192;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(kEnough, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Result<int> serve(const ServeOptions& options) {
  raise_descriptor_limit();
  SLIP_TRY(TalkingModel model, TalkingModel::open(options.model));
  if (!model.tokenizer()) return error(model.why_no_tokenizer(), "; a server needs a tokenizer");
  if (options.dry_run) {
    SLIP_TRY(const MemoryPlan plan,
             model.plan_for_many(options.model, options.speculation, options.max_users));
    std::printf("%s on %s", model.name().c_str(), what_fits(model, plan).c_str());
    return 0;
  }
  Serving serving(options, std::move(model));
  SLIP_TRY_STATUS(serving.listen(options.keys));
  return serving.run();
}

}  // namespace slip
