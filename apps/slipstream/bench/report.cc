#include "slipstream/bench/report.h"

#include <algorithm>
#include <cmath>

#include "slipstream/common/machine.h"
#include "slipstream/common/numbers.h"

namespace slip {
namespace {

TableLine line_of(const BenchResult& result, const BenchRow& row) {
  const auto of_decoding = [&](double value, int digits) {
    return row.decodes() ? fixed(value, digits) : "";
  };
  TableLine line{result.model,
                 row.test,
                 cat(row.depth),
                 fixed(row.tokens_per_second, 1),
                 of_decoding(double(row.bytes_per_step) / 1e6, 1),
                 of_decoding(row.bytes_per_second() / 1e9, 1),
                 of_decoding(100 * result.share_of_bandwidth(row), 0),
                 of_decoding(100 * result.share_of_int8_rate(row), 0)};
  if (result.there) line.push_back(of_decoding(result.projected_rate(row), 1));
  return line;
}

JsonObject json_of(const BenchResult& result, const BenchRow& row) {
  const double of_bandwidth = result.share_of_bandwidth(row);
  const double of_int8_rate = result.share_of_int8_rate(row);
  const auto of_decoding = [&](const Json& value) { return row.decodes() ? value : Json(); };
  JsonObject object{{"test", row.test},
                    {"depth", row.depth},
                    {"tokens_per_second", row.tokens_per_second},
                    {"spread", row.spread},
                    {"bytes_per_step", of_decoding(row.bytes_per_step)},
                    {"gb_per_s", of_decoding(row.bytes_per_second() / 1e9)},
                    {"share_of_bandwidth", of_decoding(of_bandwidth)},
                    {"share_of_int8_rate", of_decoding(of_int8_rate)},
                    // Of the time that the binding of the two roofs needs.
                    {"share_of_roof", of_decoding(std::max(of_bandwidth, of_int8_rate))}};
  if (result.there && row.decodes())
    object["projected_tokens_per_second"] = result.projected_rate(row);
  return object;
}

}  // namespace

std::string bench_table(const BenchResult& result, TableStyle style) {
  TableLine head{"model",   "test", "depth",       "tok/s",
                 "MB/step", "GB/s", "% bandwidth", "% int8 rate"};
  if (result.there) head.push_back(result.there->name + " projected");
  TextTable table(std::move(head), 2);
  for (const BenchRow& row : result.rows) table.add(line_of(result, row));
  return table.text(style);
}

std::string bench_remarks(const BenchResult& result, const Backend& backend) {
  const double products = result.roofs.int8_products_per_second;
  std::string text = cat(backend.description, "; memory reads ",
                         fixed(result.roofs.read_bytes_per_second / 1e9, 1), " GB/s");
  if (std::isfinite(products)) text += cat(", int8 products ", fixed(products / 1e9, 0), " G/s");
  text += ", measured in this run\n";
  if (result.there) text += describe_projection(*result.there) + "\n";
  return text;
}

JsonObject bench_json(const BenchResult& result, const Backend& backend) {
  JsonArray rows;
  for (const BenchRow& row : result.rows) rows.push_back(json_of(result, row));
  JsonObject object{{"model", result.model},
                    {"synthetic", result.synthetic},
                    {"kv_cache", name_of(result.kv)},
                    {"weight_bytes", result.weight_bytes},
                    {"load_seconds", result.load_seconds},
                    {"rows", std::move(rows)},
                    {"machine", describe_machine(backend, result.roofs)}};
  if (result.there) object["projection"] = describe_projection(*result.there);
  return object;
}

}  // namespace slip
