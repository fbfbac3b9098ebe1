// Addresses, heads of replies, bodies, and lists of files: everything that reads a server's words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "hub/client_connection.h"
#include "hub/repo_listing.h"
#include "hub/url.h"

namespace slip {
namespace {

TEST(Url, Parts) {
  const Url url = Url::parse("HTTPS://user:p%40ss@Example.org:8443/a/b?c=d#e").value();
  EXPECT_EQ(url.scheme, "https");
  EXPECT_EQ(url.host, "Example.org");
  EXPECT_EQ(url.port, "8443");
  EXPECT_EQ(url.target, "/a/b?c=d");
  EXPECT_EQ(url.user_info, "user:p@ss");
  EXPECT_EQ(Url::parse("http://a").value().target, "/");
  EXPECT_EQ(Url::parse("http://a?x").value().target, "/?x");
  EXPECT_EQ(Url::parse("https://a").value().authority(), "a");
  EXPECT_EQ(Url::parse("http://[::1]:80/x").value().authority(), "[::1]");
  EXPECT_EQ(Url::parse("http://[::1]:81/x").value().origin(), "http://[::1]:81");
}

TEST(Url, Refusals) {
  for (const char* text : {"", "a", "ftp://a", "http://", "http://a:b", "http://a:123456",
                           "http://[::1", "http://a/\r\nX: y", "http://a b", "http://a/\x01"})
    EXPECT_FALSE(Url::parse(text).ok()) << text;
}

TEST(Url, Redirects) {
  const Url base = Url::parse("https://a.org/x/y?z").value();
  EXPECT_EQ(base.resolve("http://b/c").value().origin(), "http://b:80");
  EXPECT_EQ(base.resolve("//b/c").value().origin(), "https://b:443");
  EXPECT_EQ(base.resolve("/c").value().target, "/c");
  EXPECT_EQ(base.resolve("c?d=/e").value().target, "/x/c?d=/e");
  EXPECT_FALSE(base.resolve("/c\r\nCookie: x").ok());
}

TEST(Url, Encoding) {
  EXPECT_EQ(percent_encoded("a b/ü+%.json"), "a%20b/%C3%BC%2B%25.json");
  EXPECT_EQ(percent_encoded_component("refs/pr/1"), "refs%2Fpr%2F1");
}

TEST(HttpReply, Heads) {
  const auto head = HttpReplyHead::parse(
      "HTTP/1.1 206 Partial Content\r\nA: 1\r\ncontent-RANGE:  bytes 0-9/20 \r\n");
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head.value().status, 206);
  EXPECT_EQ(head.value().header("Content-Range"), "bytes 0-9/20");
  for (const char* text : {"", "HTTP/2 200", "HTTP/1.1 xx", "HTTP/1.1 20", "junk\r\n",
                           "HTTP/1.1 200 OK\r\nno colon\r\n", "HTTP/1.1 200 OK\r\n: empty\r\n"})
    EXPECT_FALSE(HttpReplyHead::parse(text).ok()) << text;
}

TEST(HttpReply, Ranges) {
  const auto range = ContentRange::parse("bytes 10-19/100");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->begin, 10u);
  EXPECT_EQ(range->end, 20u);
  EXPECT_EQ(range->total, 100u);
  for (const char* text :
       {"", "bytes */100", "bytes 10-19/*", "bytes 19-10/100", "bytes 0-100/100", "items 0-1/2",
        "bytes 0-1", "bytes -1/2", "bytes 0-99999999999999999999/999999999999999999999"})
    EXPECT_FALSE(ContentRange::parse(text)) << text;
}

// Gives its text in steps of random size, and takes everything.
class ScriptedStream : public ByteStream {
 public:
  ScriptedStream(std::string text, unsigned seed) : text_(std::move(text)), random_(seed) {}
  Result<size_t> read(std::span<char> into) override {
    const size_t count = std::min({into.size(), text_.size(), size_t(random_() % 7 + 1)});
    text_.copy(into.data(), count);
    text_.erase(0, count);
    return count;
  }
  Status write(std::string_view) override { return {}; }

 private:
  std::string text_;
  std::mt19937 random_;
};

Result<std::string> body_of(const std::string& reply, unsigned seed, bool* reusable = nullptr) {
  ClientConnection connection(std::make_unique<ScriptedStream>(reply, seed));
  SLIP_TRY(const HttpReplyHead head, connection.exchange("GET / HTTP/1.1\r\n\r\n"));
  std::string body;
  char bytes[5];
  for (;;) {
    SLIP_TRY(const size_t count, connection.read(bytes));
    if (count == 0) break;
    body.append(bytes, count);
  }
  if (reusable) *reusable = connection.reusable();
  return body;
}

TEST(ClientConnection, BodiesInEveryForm) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    bool reusable = false;
    EXPECT_EQ(body_of("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello worldX", seed, &reusable)
                  .value(),
              "hello world");
    EXPECT_TRUE(reusable);
    EXPECT_EQ(body_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nA: b\r\n\r\n",
                      seed, &reusable)
                  .value(),
              "hello world");
    EXPECT_TRUE(reusable);
    EXPECT_EQ(body_of("HTTP/1.1 200 OK\r\n\r\nhello", seed, &reusable).value(), "hello");
    EXPECT_FALSE(reusable);
    EXPECT_EQ(body_of("HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 204 No\r\nConnection: "
                      "close\r\n\r\n",
                      seed, &reusable)
                  .value(),
              "");
    EXPECT_FALSE(reusable);
  }
}

TEST(ClientConnection, BrokenBodies) {
  for (const char* rest :
       {"Content-Length: 11\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n",
        "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "Content-Length: 1"})
    EXPECT_FALSE(body_of(cat("HTTP/1.1 200 OK\r\n", rest), 3).ok()) << rest;
  EXPECT_FALSE(body_of("HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'x'), 3).ok());
}

TEST(RepoListing, ReadsPages) {
  std::vector<RemoteFile> files;
  const std::string sha(64, 'a'), git(40, 'b');
  ASSERT_TRUE(read_tree_page(R"([{"type": "directory", "path": "x", "oid": "1", "size": 0},
                              {"type": "file", "path": "a.json", "oid": ")" +
                                 git + R"(", "size": 12},
                              {"type": "file", "path": "b.safetensors", "oid": ")" +
                                 git + R"(", "size": 9, "lfs": {"oid": ")" + sha +
                                 R"(", "size": 9000000000, "pointerSize": 134}}])",
                             files)
                  .ok());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].oid, git);
  EXPECT_EQ(files[1].oid, sha);
  EXPECT_EQ(files[1].size, 9'000'000'000u);
  EXPECT_TRUE(files[1].sha256);
}

TEST(RepoListing, RefusesNonsense) {
  const std::string git(40, 'b');
  const auto entry = [&](const std::string& path, const std::string& oid, const std::string& size) {
    return R"([{"type": "file", "path": ")" + path + R"(", "oid": ")" + oid + R"(", "size": )" +
           size + "}]";
  };
  std::vector<RemoteFile> files;
  EXPECT_TRUE(read_tree_page(entry("a/b.json", git, "1"), files).ok());
  for (const std::string& text :
       {std::string("{}"), std::string("[1]"), std::string("[{}]"), std::string("not json"),
        entry("../a", git, "1"), entry("a/./b", git, "1"), entry("", git, "1"),
        entry("/a", git, "1"), entry("a\\u0000b", git, "1"), entry("a", "../../x", "1"),
        entry("a", git, "-1"), entry("a", git, "1e30"), entry("a", git, "\"1\""),
        entry("a", git.substr(1), "1"), entry(std::string(300, 'a'), git, "1")})
    EXPECT_FALSE(read_tree_page(text, files).ok()) << text;
}

TEST(RepoListing, FindsTheNextPage) {
  EXPECT_EQ(next_page("<https://a/b?c=1>; rel=\"next\""), "https://a/b?c=1");
  EXPECT_EQ(next_page("<https://a>; rel=\"prev\", </n>; rel=\"next\""), "/n");
  EXPECT_EQ(next_page("<https://a>; rel=\"prev\""), "");
  EXPECT_EQ(next_page("><;"), "");
  EXPECT_EQ(next_page(""), "");
}

TEST(Digest, AsTheHubNamesFiles) {
  Digest sha = Digest::sha256();
  sha.add(std::string_view("abc"));
  EXPECT_EQ(sha.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Digest git = Digest::git_blob(6);  // echo hello | git hash-object --stdin
  git.add(std::string_view("hello\n"));
  EXPECT_EQ(git.finish(), "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(Digest::git_blob(0).finish(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

}  // namespace
}  // namespace slip
