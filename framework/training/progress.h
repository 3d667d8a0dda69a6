// Shows how far a loop is: on a terminal as a bar with the time left, elsewhere in plain lines.
//
// On a terminal the line is redrawn in place, at most ten times a second. Elsewhere (a file, a
// pipe) a line is written at every quarter. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace skiff::training {

class Progress {
 public:
  using Seconds = std::function<double()>;

  // `first` of the `total` steps are done already. `clock` returns seconds; by default those of a
  // steady clock.
  Progress(std::string label, int64_t first, int64_t total, bool is_terminal, std::ostream* out,
           Seconds clock = {});
  // Clears the bar.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows that `done` steps are finished. `note` is shown with it.
  void Update(int64_t done, std::string_view note);

 private:
  void DrawBar(int64_t done, double left_seconds, std::string_view note);
  void WriteLine(int64_t done, double left_seconds, std::string_view note);

  std::string label_;
  int64_t first_;
  int64_t total_;
  bool is_terminal_;
  std::ostream* out_;
  Seconds clock_;
  double start_seconds_;
  double drawn_seconds_ = -1;
  int64_t quarters_;
};

// Returns a text such as "42s", "3m05s" or "2h10m".
std::string DurationText(double seconds);
// Returns whether standard output is a terminal that can move its cursor.
bool StdoutIsTerminal();

}  // namespace skiff::training
