// Tells a loop to stop when the process gets SIGINT (Ctrl-C) or SIGTERM.
//
// While one exists, the first signal is only noted; a second one ends the process. If several
// exist, in as many threads, each notes the signal; when the last one goes, signals have their
// former effect again.
#pragma once

namespace skiff::training {

class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Returns the signal that came, or 0.
  int signal() const;
};

}  // namespace skiff::training
