// How a thread waits for what it can only ask for.
#pragma once

namespace skiff {

class Polling {
 public:
  // Waits for `time_limit` seconds at most; infinity: without a limit.
  explicit Polling(double time_limit);

  // Waits a moment after an answer that said "nothing yet". Returns false once the time limit has
  // passed. At first it lets other threads run, so that an answer is seen at once; later it sleeps,
  // for a fraction of the time waited so far, so that waiting costs no core and the answer is seen
  // late by that fraction.
  bool Wait();
  // Begins anew, after progress.
  void Restart();

 private:
  const double time_limit_;
  double start_;
};

}  // namespace skiff
