#include "tools/skiff/buffer_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "framework/base/error.h"

namespace skiff {
namespace {

enum Column { kId, kLower, kUpper, kSize, kColumns };
constexpr std::array<std::string_view, kColumns> kNames = {"id", "lower", "upper", "size"};

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

// Returns the lines without their line ends, "\n" or "\r\n", and without empty lines at the end of
// the text.
std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (lines.back().ends_with('\r')) lines.back().remove_suffix(1);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

// Parses the table line by line and keeps the lines as they are, so that TableWithOffsets can write
// them back unchanged. Errors name the line.
class Parser {
 public:
  Parser(const std::string& name, int64_t alignment) : name_(name), alignment_(alignment) {}

  BufferTable Parse(std::string_view text) {
    const std::vector<std::string_view> lines = Lines(text);
    SKIFF_ENFORCE(!lines.empty(), kInvalidArgument, name_,
                  ": the file is empty, expected the header id,lower,upper,size");
    ParseHeader(lines[0]);
    for (line_ = 2; line_ <= lines.size(); ++line_) ParseLine(lines[line_ - 1]);
    NumberInstants();
    return std::move(table_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void Fail(const Args&... args) const {
    Throw(ErrorCode::kInvalidArgument, name_, ", line ", line_, ": found ", args...);
  }

  void ParseHeader(std::string_view header) {
    table_.header = header;
    const std::vector<std::string_view> names = Split(header);
    const bool fits = names.size() == kColumns && std::ranges::is_permutation(names, kNames);
    if (!fits) {
      Fail("the header \"", header, "\", expected the columns ", Join(kNames, ", "),
           " in any order");
    }
    for (size_t column = 0; column < kColumns; ++column) {
      place_[column] =
          static_cast<size_t>(std::ranges::find(names, kNames[column]) - names.begin());
    }
  }

  void ParseLine(std::string_view line) {
    const std::vector<std::string_view> cells = Split(line);
    if (cells.size() != kColumns) {
      Fail(cells.size(), " columns, expected the ", +kColumns, " of the header");
    }
    const int64_t lower = Number(cells, kLower);
    const int64_t upper = Number(cells, kUpper);
    const int64_t size = Number(cells, kSize);
    if (lower >= upper) Fail("lower ", lower, " and upper ", upper, ", expected lower < upper");
    if (size < 0) Fail("size ", size, ", expected at least 0");
    table_.lines.emplace_back(line);
    table_.buffers.push_back({.bytes = size, .alignment = alignment_});
    lowers_.push_back(lower);
    uppers_.push_back(upper);
  }

  int64_t Number(std::span<const std::string_view> cells, Column column) const {
    const std::string_view cell = cells[place_[column]];
    int64_t number = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
    if (error != std::errc() || end != cell.data() + cell.size()) {
      Fail(kNames[column], " \"", cell, "\", expected a 64-bit integer");
    }
    return number;
  }

  // Replaces the instants of the file, which may be any 64-bit numbers, by their ranks among all
  // that occur. That keeps which lives meet. `upper` is exclusive, so the last instant is the one
  // before.
  void NumberInstants() {
    std::vector<int64_t> instants = lowers_;
    instants.insert(instants.end(), uppers_.begin(), uppers_.end());
    std::ranges::sort(instants);
    instants.erase(std::unique(instants.begin(), instants.end()), instants.end());
    const auto rank = [&](int64_t instant) {
      return static_cast<int32_t>(std::ranges::lower_bound(instants, instant) - instants.begin());
    };
    for (size_t i = 0; i < table_.buffers.size(); ++i) {
      table_.buffers[i].first_use = rank(lowers_[i]);
      table_.buffers[i].last_use = rank(uppers_[i]) - 1;
    }
  }

  const std::string& name_;
  const int64_t alignment_;
  size_t line_ = 1;
  std::array<size_t, kColumns> place_{};  // by Column: its index in a line
  BufferTable table_;
  std::vector<int64_t> lowers_;
  std::vector<int64_t> uppers_;
};

}  // namespace

BufferTable ParseBufferTable(std::string_view text, const std::string& name, int64_t alignment) {
  return Parser(name, alignment).Parse(text);
}

std::string TableWithOffsets(const BufferTable& table, const std::vector<int64_t>& offsets) {
  std::string text = table.header + ",offset\n";
  for (size_t i = 0; i < offsets.size(); ++i) {
    text += StrCat(table.lines[i], ",", offsets[i], "\n");
  }
  return text;
}

}  // namespace skiff
