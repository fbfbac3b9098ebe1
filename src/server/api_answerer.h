// What the API asks for answers: the service, or a script in tests.
#pragma once

#include <memory>
#include <utility>
#include <variant>

#include "engine/service.h"

namespace slip {

class Answerer {
 public:
  virtual ~Answerer() = default;

  // As those of Service.
  virtual std::variant<RequestId, Refusal> submit(Request request,
                                                  std::shared_ptr<RequestListener> listener) = 0;
  virtual void cancel(RequestId id) = 0;
  virtual int64_t context() const = 0;

  // How a request ended for its client, which may be before it did for the service.
  virtual void ended(const RequestSummary& /*summary*/) {}
};

}  // namespace slip
