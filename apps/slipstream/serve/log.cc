#include "slipstream/serve/log.h"

#include <cstdio>
#include <ctime>

#include "slipstream/common/numbers.h"
#include "text/utf8.h"

namespace slip {
namespace {

// "2026-11-15T13:33:37.123Z"
std::string now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  tm parts{};
  ::gmtime_r(&time.tv_sec, &parts);
  char text[32];
  const size_t used = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + used, sizeof(text) - used, ".%03dZ", int(time.tv_nsec / 1'000'000));
  return text;
}

// Paths are the client's to choose.
std::string shown_path(const std::string& path) {
  constexpr size_t kLongest = 200;
  return printable_line(path, kLongest);
}

double rate(const TokenUsage& usage) {
  return usage.decode_seconds > 0 ? double(usage.generated) / usage.decode_seconds : 0;
}

}  // namespace

std::string ServeLog::text_of(const HttpRecord& record) {
  std::string line =
      cat(record.status, " ", record.method.empty() ? "-" : record.method, " ",
          record.path.empty() ? "-" : shown_path(record.path), " ", fixed(record.seconds, 3), " s");
  const TokenUsage& usage = record.usage;
  if (usage.prompt > 0 || usage.generated > 0)
    line += cat(", prompt ", usage.prompt, " (", usage.cached, " cached), ", usage.generated,
                " tokens, ", fixed(rate(usage), 1), " tok/s");
  return cat(line, ", ", record.id, " from ", record.client);
}

JsonObject ServeLog::json_of(const HttpRecord& record) {
  JsonObject line{{"method", record.method}, {"path", shown_path(record.path)},
                  {"status", record.status}, {"seconds", record.seconds},
                  {"request_id", record.id}, {"client", record.client}};
  const TokenUsage& usage = record.usage;
  if (usage.prompt > 0 || usage.generated > 0) {
    line["prompt_tokens"] = usage.prompt;
    line["cached_tokens"] = usage.cached;
    line["tokens"] = usage.generated;
    line["tokens_per_second"] = rate(usage);
  }
  return line;
}

void ServeLog::request(const HttpRecord& record) const {
  if (format_ == Format::text) return print(cat(now(), " ", text_of(record)));
  JsonObject line{{"time", now()}, {"event", "request"}};
  for (auto& entry : json_of(record)) line[entry.key()] = std::move(entry.value());
  print(dump_json(line));
}

void ServeLog::note(std::string_view event, const std::string& message, JsonObject details) const {
  if (format_ == Format::text) return print(cat(now(), " ", message));
  JsonObject line{{"time", now()}, {"event", event}, {"message", message}};
  for (auto& entry : details) line[entry.key()] = std::move(entry.value());
  print(dump_json(line));
}

// One call per line, so that lines of several threads do not mix.
void ServeLog::print(std::string line) const {
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace slip
