#include "grammar/formats.h"

namespace slip {
namespace {

const std::string kDate =
    R"(\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8])))";
const std::string kTime =
    R"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))";
const std::string kLabel = R"([A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?)";
const std::string kHost = kLabel + R"((\.)" + kLabel + "){0,5}";
const std::string kByte = R"((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))";

}  // namespace

std::optional<std::string> format_pattern(std::string_view format) {
  if (format == "date") return kDate;
  if (format == "time") return kTime;
  if (format == "date-time") return kDate + "T" + kTime;
  if (format == "duration")
    return R"(P(\d{1,4}W|\d{1,4}D(T\d{1,4}H)?|T(\d{1,4}H(\d{1,4}M(\d{1,4}S)?)?|\d{1,4}M(\d{1,4}S)?|\d{1,4}S)))";
  if (format == "email")
    return R"([\w+-]+(\.[\w+-]+)*@([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,10})";
  if (format == "hostname") return kHost;
  if (format == "ipv4") return kByte + R"(\.)" + kByte + R"(\.)" + kByte + R"(\.)" + kByte;
  if (format == "ipv6") return "([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}";
  if (format == "uuid") return "[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}";
  if (format == "uri")
    return "https?://" + kHost +
           R"((:\d{1,4})?(/[A-Za-z0-9._~-]*)*(\?[A-Za-z0-9._~=&-]*)?(#[A-Za-z0-9._~-]*)?)";
  return std::nullopt;
}

}  // namespace slip
