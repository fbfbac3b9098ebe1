#include "server/http_server.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <map>
#include <thread>
#include <unordered_map>

#include "base/text.h"
#include "server/http_connection.h"

namespace slip {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Connections beyond the limit that are told so; beyond these they are just closed.
constexpr int kRefusing = 64;

}  // namespace

class HttpServer::Core {
 public:
  Core(const HttpServerOptions& options, Hooks hooks)
      : loop_(std::make_shared<Loop>()),
        shared_{.io = loop_->io,
                .options = options,
                .hooks = std::move(hooks),
                .queue = loop_,
                .on_gone = [this](HttpConnection* gone) { forget(gone); }},
        acceptor_(loop_->io),
        retry_(loop_->io) {}

  ~Core() {
    asio::post(loop_->io, [this] {
      stop_accepting();
      while (!connections_.empty()) connections_.begin()->second->close();
      work_.reset();
    });
    if (thread_.joinable()) thread_.join();
    loop_->end();
  }

  Status listen() {
    const HttpServerOptions& options = shared_.options;
    const bool with_tls = !options.tls_certificate.empty();
    SLIP_TRY(transports_, with_tls ? HttpTransports::tls(options.tls_certificate, options.tls_key)
                                   : HttpTransports::plain());
    error_code code;
    tcp::resolver resolver(loop_->io);
    const auto places =
        resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, code);
    if (code) return error("the address ", options.host, " is not known: ", code.message());
    const tcp::endpoint place = places.begin()->endpoint();
    acceptor_.open(place.protocol(), code);
    // A server that was killed must be able to start again at once.
    if (!code) acceptor_.set_option(tcp::acceptor::reuse_address(true), code);
    if (!code) acceptor_.bind(place, code);
    if (!code) acceptor_.listen(asio::socket_base::max_listen_connections, code);
    if (code)
      return error("cannot listen on ", options.host, " port ", options.port, ": ", code.message());
    port_ = acceptor_.local_endpoint(code).port();
    return {};
  }

  void run() {
    accept_next();
    thread_ = std::thread([this] { loop_->io.run(); });
  }

  uint16_t port() const { return port_; }

  int connections() const {
    const std::lock_guard lock(mutex_);
    return open_;
  }

  bool drain(double seconds) {
    asio::post(loop_->io, [this] {
      stop_accepting();
      std::vector<std::shared_ptr<HttpConnection>> all;
      for (const auto& [key, connection] : connections_) all.push_back(connection);
      for (const auto& connection : all) connection->finish();
      const std::lock_guard lock(mutex_);
      draining_ = true;
      changed_.notify_all();
    });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return draining_; });  // from here on no handler is called
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                             [this] { return open_ == 0; });
  }

 private:
  // Lives as long as the last reply that may post to it. Asio keeps no order among what different
  // threads post; a reply's pieces need one, so they wait in a line of our own.
  struct Loop : IoQueue {
    asio::io_context io;
    std::mutex mutex;
    std::vector<std::function<void()>> waiting;
    bool ended = false;

    void post(std::function<void()> work) override {
      const std::lock_guard lock(mutex);
      if (ended) return;
      waiting.push_back(std::move(work));
      if (waiting.size() == 1) asio::post(io, [this] { run_waiting(); });
    }
    void run_waiting() {
      std::vector<std::function<void()>> now;
      {
        const std::lock_guard lock(mutex);
        now.swap(waiting);
      }
      for (const auto& work : now) work();
    }
    void end() {
      std::vector<std::function<void()>> dropped;
      const std::lock_guard lock(mutex);
      ended = true;
      dropped.swap(waiting);
    }
  };

  void stop_accepting() {
    error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
  }

  void accept_next() {
    acceptor_.async_accept([this](error_code code, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (code) return retry_later();
      welcome(std::move(socket));
      accept_next();
    });
  }

  // No file descriptors are left, most likely: not a reason to end, nor to spin.
  void retry_later() {
    retry_.expires_after(std::chrono::milliseconds(100));
    retry_.async_wait([this](error_code code) {
      if (!code && acceptor_.is_open()) accept_next();
    });
  }

  void welcome(tcp::socket socket) {
    const int before = int(connections_.size());
    error_code ignored;
    const asio::ip::address address = socket.remote_endpoint(ignored).address();
    const std::string client = address.to_string(ignored);
    // Closed without a word: to be told so, they would have to be kept.
    const auto open = clients_.find(client);
    const bool greedy = !address.is_loopback() && open != clients_.end() &&
                        open->second >= shared_.options.connections_per_client;
    if (greedy || before >= shared_.options.connections + kRefusing) {
      socket.close(ignored);
      return;
    }
    // Tokens are small and must not wait for more.
    socket.set_option(tcp::no_delay(true), ignored);
    const auto connection =
        std::make_shared<HttpConnection>(shared_, transports_->make(std::move(socket)), client);
    connections_.emplace(connection.get(), connection);
    ++clients_[client];
    count();
    if (before >= shared_.options.connections)
      connection->start_refusing();
    else
      connection->start();
  }

  void forget(HttpConnection* gone) {
    if (const auto client = clients_.find(gone->client()); --client->second == 0)
      clients_.erase(client);
    connections_.erase(gone);
    count();
  }

  void count() {
    const std::lock_guard lock(mutex_);
    open_ = int(connections_.size());
    changed_.notify_all();
  }

  const std::shared_ptr<Loop> loop_;
  HttpConnection::Shared shared_;
  std::unique_ptr<HttpTransports> transports_;
  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  uint16_t port_ = 0;
  std::unordered_map<HttpConnection*, std::shared_ptr<HttpConnection>> connections_;
  std::map<std::string, int> clients_;  // connections of each address
  asio::executor_work_guard<asio::io_context::executor_type> work_{loop_->io.get_executor()};
  std::thread thread_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int open_ = 0;
  bool draining_ = false;
};

HttpServer::HttpServer(std::unique_ptr<Core> core) : core_(std::move(core)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      Hooks hooks) {
  auto core = std::make_unique<Core>(options, std::move(hooks));
  SLIP_TRY_STATUS(core->listen());
  core->run();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(core)));
}

uint16_t HttpServer::port() const { return core_->port(); }
int HttpServer::connections() const { return core_->connections(); }
bool HttpServer::drain(double seconds) { return core_->drain(seconds); }

}  // namespace slip
