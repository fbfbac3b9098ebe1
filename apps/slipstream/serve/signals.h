// SIGTERM and SIGINT as something to wait for.
#pragma once

namespace slip {

class StopSignals {
 public:
  // Before any thread is started: all of them must leave these signals alone.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  enum class Event { none, signal, woken };
  // Until a signal comes or wake() is called, at most `seconds`; negative: however long it takes.
  Event wait(double seconds = -1);

  // From any thread.
  void wake();

 private:
  int signals_, wakeups_;  // file descriptors
};

}  // namespace slip
