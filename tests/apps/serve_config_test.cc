#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slipstream/serve/config.h"
#include "slipstream/serve/options.h"

namespace slip {
namespace {

using testing::HasSubstr;

Flags::Settings parsed(std::string_view text) {
  const Result<Flags::Settings> settings = parse_config(text, "test");
  EXPECT_TRUE(settings.ok()) << (settings.ok() ? "" : settings.failure().message);
  return settings.ok() ? settings.value() : Flags::Settings{};
}

TEST(ServeConfig, LinesAndJsonSayTheSame) {
  const Flags::Settings expected = {{"port", "8081"},
                                    {"insecure", "true"},
                                    {"alias", "a b"},
                                    {"alias", "c=d"},
                                    {"max-users", "4"}};
  EXPECT_EQ(parsed("# comment\n\n port = 8081\r\ninsecure=true\nalias = \"a b\"\nalias = c=d\n"
                   "max_users = 4"),
            expected);
  EXPECT_EQ(parsed(R"( {"port": 8081, "insecure": true, "alias": ["a b", "c=d"], "max_users": 4})"),
            expected);
  EXPECT_EQ(parsed(""), Flags::Settings{});
}

TEST(ServeConfig, ErrorsNameThePlace) {
  const auto message = [](std::string_view text) {
    const Result<Flags::Settings> settings = parse_config(text, "file");
    return settings.ok() ? "" : settings.failure().message;
  };
  EXPECT_THAT(message("port = 1\nwhat\n"), HasSubstr("file line 2"));
  EXPECT_THAT(message("= 3\n"), HasSubstr("file line 1"));
  EXPECT_THAT(message(R"({"port": {}})"), HasSubstr("file: \"port\" is an object"));
  EXPECT_THAT(message(R"({"port": )"), HasSubstr("file"));
}

TEST(ServeConfig, TheCommandLineWins) {
  Flags flags("serve", "test");
  ServeOptions options;
  options.add_to(flags);
  ASSERT_TRUE(flags.parse({"--port", "9000", "--alias", "mine", "some-model"}).ok());
  ASSERT_TRUE(flags
                  .add_settings({{"port", "1"},
                                 {"host", "::1"},
                                 {"alias", "theirs"},
                                 {"insecure", "true"},
                                 {"shutdown-seconds", "2.5"}})
                  .ok());
  EXPECT_EQ(options.port, 9000);
  EXPECT_EQ(options.host, "::1");
  EXPECT_EQ(options.aliases, std::vector<std::string>{"mine"});
  EXPECT_TRUE(options.insecure);
  EXPECT_EQ(options.shutdown_seconds, 2.5);
  EXPECT_EQ(options.positional_model, "some-model");
  EXPECT_FALSE(flags.add_settings({{"no-such", "1"}}).ok());
  const Status wrong = flags.add_settings({{"max-users", "many"}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.failure().message, HasSubstr("--max-users: expects a whole number"));
  EXPECT_THAT(wrong.failure().message, testing::Not(HasSubstr("slipstream serve")));
}

// What settle() says to one flag; empty if nothing.
std::string refusal_of(const std::string& name, const std::string& value) {
  Flags flags("serve", "test");
  ServeOptions options;
  options.add_to(flags);
  EXPECT_TRUE(flags.parse({name, value}).ok());
  const Status settled = options.settle(flags);
  return settled.ok() ? "" : settled.failure().message;
}

TEST(ServeOptions, RefusesWhatCouldNeverWork) {
  EXPECT_EQ(refusal_of("--max-body", "1KiB"), "");
  EXPECT_THAT(refusal_of("--max-body", "1"), HasSubstr("--max-body is 1KiB to 1GiB"));
  EXPECT_THAT(refusal_of("--alias", " "), HasSubstr("--alias needs a name"));
  for (const char* origin : {"foo", "", "https://", "://a", "https://a.example/page", "/", "a b"})
    EXPECT_THAT(refusal_of("--allowed-origin", origin), HasSubstr("https://chat.example"))
        << origin;
  for (const char* host : {"https://a.example", "a.example:80", "a b", "."})
    EXPECT_THAT(refusal_of("--allowed-host", host), HasSubstr("chat.example")) << host;
}

TEST(ServeOptions, WritesNamesAsBrowsersDo) {
  const auto origin = [](const std::string& url) { return normalised_origin(url).value(); };
  EXPECT_EQ(origin("https://Chat.Example/"), "https://chat.example");
  EXPECT_EQ(origin("https://a.example:443"), "https://a.example");
  EXPECT_EQ(origin("http://a.example:80/"), "http://a.example");
  EXPECT_EQ(origin("http://a.example:8080"), "http://a.example:8080");
  EXPECT_EQ(origin("http://[::1]:3000"), "http://[::1]:3000");
  EXPECT_EQ(origin("chrome-extension://abc"), "chrome-extension://abc");
  EXPECT_EQ(origin("*"), "*");
  EXPECT_EQ(normalised_host("Chat.Example.").value(), "chat.example");
  EXPECT_EQ(normalised_host("*").value(), "*");
}

TEST(ServeOptions, KnowsWhatStandsForAllAddresses) {
  for (const char* host : {"0.0.0.0", "::", "0:0::0"}) EXPECT_TRUE(is_any(host)) << host;
  for (const char* host : {"127.0.0.1", "::1", "localhost", ""}) EXPECT_FALSE(is_any(host)) << host;
}

TEST(ServeOptions, KnowsItsOwnMachine) {
  for (const char* host : {"127.0.0.1", "127.8.9.1", "localhost", "::1"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host :
       {"0.0.0.0", "192.168.1.1", "::", "example.com", "127.0.0.1.example.com", ""})
    EXPECT_FALSE(is_loopback(host)) << host;
}

TEST(ServeOptions, OtherMachinesNeedAKey) {
  ServeOptions options;
  EXPECT_TRUE(options.read_keys({}).ok());
  options.host = "0.0.0.0";
  EXPECT_FALSE(options.read_keys({}).ok());
  UserEnvironment user;
  user.api_key = "secret";
  EXPECT_TRUE(options.read_keys(user).ok());
  options.insecure = true;
  EXPECT_TRUE(options.read_keys({}).ok());
  options.api_key_file = "/no/such/file";
  EXPECT_FALSE(options.read_keys(user).ok());
}

}  // namespace
}  // namespace slip
