// Asks a loop to stop when the process gets SIGINT (Ctrl-C) or SIGTERM.
//
// While one exists, the first signal is only noted; a second one ends the process as it would
// without. One at a time in a process; made and destroyed by the thread that runs the loop.
#pragma once

#include <csignal>

namespace skiff::training {

class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // The signal that came; 0: none yet.
  int signal() const;

 private:
  struct sigaction previous_interrupt_;
  struct sigaction previous_terminate_;
};

}  // namespace skiff::training
