#include "server/operations.h"

#include "base/json.h"
#include "server/chat_page.h"
#include "server/http_answer.h"

namespace slip {
namespace {

// A step takes milliseconds, the longest piece of a prompt some seconds.
constexpr double kHungAfterSeconds = 30;

// Only what lies in the page, and only its own server. The page itself says more, in a tag: it
// names its script and style by their hashes. Only a header can forbid to frame it.
constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

HttpAnswer unwell(JsonObject status, const std::string& message) {
  status["error"] = JsonObject{
      {"message", message}, {"type", "unavailable_error"}, {"param", nullptr}, {"code", "503"}};
  return {.status = 503, .body = dump_json(status), .headers = {{"Retry-After", "1"}}};
}

void answer_page(HttpReply& reply) {
  reply.send(200, "text/html; charset=utf-8", std::string(chat_page()),
             {{"Content-Security-Policy", kPagePolicy},
              {"Referrer-Policy", "no-referrer"},
              {"Cache-Control", "no-cache"}});
}

}  // namespace

Operations::Operations(std::string version, const Metrics& metrics)
    : version_(std::move(version)), metrics_(metrics) {}

void Operations::set_loading(double progress) {
  const std::lock_guard lock(mutex_);
  progress_ = progress;
}
void Operations::set_ready(Service* service) {
  const std::lock_guard lock(mutex_);
  stage_ = Stage::ready;
  service_ = service;
  if (service) canary_.emplace(*service);
}
void Operations::set_draining() {
  const std::lock_guard lock(mutex_);
  stage_ = Stage::draining;
}
void Operations::forget_service() {
  const std::lock_guard lock(mutex_);
  service_ = nullptr;
  canary_.reset();
}

void Operations::answer_health(HttpReply& reply) const {
  const std::lock_guard lock(mutex_);
  if (stage_ == Stage::loading)
    return send(reply, unwell({{"status", "loading"}, {"progress", progress_}}, "Loading model"));
  if (stage_ == Stage::draining)
    return send(reply, unwell({{"status", "draining"}}, "Shutting down"));
  const double silence = service_ ? service_->silence() : 0;
  if (silence > kHungAfterSeconds)
    return send(reply, unwell({{"status", "hung"}, {"seconds", silence}},
                              "The engine has not finished a step for a while"));
  if (const std::optional<std::string> complaint = canary_ ? canary_->complaint() : std::nullopt)
    return send(reply,
                unwell({{"status", "failing"}}, cat("The engine cannot answer: ", *complaint)));
  send(reply, {.body = dump_json(JsonObject{{"status", "ok"}})});
}

void Operations::answer_metrics(HttpReply& reply) const {
  const std::lock_guard lock(mutex_);
  reply.send(200, "text/plain; version=0.0.4; charset=utf-8",
             metrics_.expose(service_ ? service_->stats() : ServiceStats{}));
}

std::vector<ApiRoute> Operations::routes() {
  const auto health = [this](const HttpRequest&, const auto& reply) { answer_health(*reply); };
  std::vector<ApiRoute> routes = {
      {"GET", "/", [](const HttpRequest&, const auto& reply) { answer_page(*reply); }},
      {"GET", "/health", health},
      {"GET", "/v1/health", health},
      {"GET", "/metrics",
       [this](const HttpRequest&, const auto& reply) { answer_metrics(*reply); }},
      {"GET", "/version",
       [this](const HttpRequest&, const auto& reply) {
         send(*reply, {.body = dump_json(JsonObject{{"version", version_}})});
       }},
  };
  for (ApiRoute& route : routes) route.quick = true;
  return routes;
}

}  // namespace slip
