// Tells a loop to stop when the process gets SIGINT (Ctrl-C) or SIGTERM.
//
// While one exists, the first signal is only noted; a second one ends the process. There may be one
// at a time in a process; the thread that runs the loop makes and destroys it.
#pragma once

#include <csignal>

namespace skiff::training {

class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Returns the signal that came, or 0.
  int signal() const;

 private:
  struct sigaction previous_interrupt_;
  struct sigaction previous_terminate_;
};

}  // namespace skiff::training
