#include "framework/training/rank_log.h"

#include <streambuf>
#include <string>

#include "framework/base/str_cat.h"

namespace skiff::training {

class RankLog::Buffer : public std::streambuf {
 public:
  Buffer(const World& world, std::ostream* out) : start_(world.Text() + ": "), out_(out) {}

 protected:
  int_type overflow(int_type character) override {
    if (traits_type::eq_int_type(character, traits_type::eof())) return 0;
    line_ += traits_type::to_char_type(character);
    if (line_.back() == '\n') EndLine();
    return character;
  }

 private:
  void EndLine() {
    // One write, so that the lines of several ranks don't mix.
    if (line_.starts_with("warning: ")) *out_ << StrCat(start_, line_) << std::flush;
    line_.clear();
  }

  const std::string start_;
  std::ostream* out_;
  std::string line_;
};

RankLog::RankLog(const World& world, std::ostream* out) : stream_(out) {
  if (world.rank == 0) return;
  buffer_ = std::make_unique<Buffer>(world, out);
  filter_ = std::make_unique<std::ostream>(buffer_.get());
  stream_ = filter_.get();
}

RankLog::~RankLog() = default;

}  // namespace skiff::training
