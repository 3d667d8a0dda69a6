#include "framework/training/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/steady_seconds.h"

namespace skiff::training {

std::string DurationText(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  // The limit keeps the cast defined for absurd estimates.
  const auto whole = static_cast<int64_t>(std::min(seconds + 0.5, 1e9));
  char text[32];
  if (whole < 60) {
    std::snprintf(text, sizeof(text), "%lds", static_cast<long>(whole));
  } else if (whole < 3600) {
    std::snprintf(text, sizeof(text), "%ldm%02lds", static_cast<long>(whole / 60),
                  static_cast<long>(whole % 60));
  } else {
    std::snprintf(text, sizeof(text), "%ldh%02ldm", static_cast<long>(whole / 3600),
                  static_cast<long>(whole % 3600 / 60));
  }
  return text;
}

bool StdoutIsTerminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

Progress::Progress(std::string label, int64_t first, int64_t total, bool is_terminal,
                   std::ostream* out, Seconds clock)
    : label_(std::move(label)),
      first_(first),
      total_(std::max<int64_t>(total, 1)),
      is_terminal_(is_terminal),
      out_(out),
      clock_(clock ? std::move(clock) : SteadySeconds),
      start_seconds_(clock_()),
      quarters_(4 * first / total_) {}

Progress::~Progress() {
  // Leaves no half line in front of the messages that follow.
  if (is_terminal_ && drawn_seconds_ >= 0) *out_ << "\r\033[K" << std::flush;
}

void Progress::Update(int64_t done, std::string_view note) {
  const double now = clock_();
  const double elapsed = now - start_seconds_;
  // By the mean speed since this process began. Steps that an earlier process made say nothing
  // about this one's speed.
  const double left = done > first_ ? elapsed / static_cast<double>(done - first_) *
                                          static_cast<double>(total_ - done)
                                    : NAN;
  if (is_terminal_) {
    // A step may take less than drawing it.
    if (drawn_seconds_ >= 0 && elapsed - drawn_seconds_ < 0.1 && done < total_) return;
    drawn_seconds_ = elapsed;
    DrawBar(done, left, note);
    return;
  }
  // The last quarter ends with the loop, which has a line of its own.
  const int64_t quarters = 4 * done / total_;
  if (quarters == quarters_ || done >= total_) return;
  quarters_ = quarters;
  WriteLine(done, left, note);
}

void Progress::DrawBar(int64_t done, double left_seconds, std::string_view note) {
  constexpr int64_t kCells = 24;
  const int64_t filled = std::clamp<int64_t>(kCells * done / total_, 0, kCells);
  *out_ << "\r\033[K" << label_ << " [" << std::string(filled, '#')
        << std::string(kCells - filled, '.') << "] " << done << "/" << total_ << "  " << note
        << "  " << DurationText(left_seconds) << " left" << std::flush;
}

void Progress::WriteLine(int64_t done, double left_seconds, std::string_view note) {
  *out_ << label_ << "  " << done << "/" << total_ << "  " << note << "  "
        << DurationText(left_seconds) << " left" << std::endl;
}

}  // namespace skiff::training
