#include "framework/tuning/kernel_choices.h"

#include <optional>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/number_text.h"

namespace skiff {
namespace {

constexpr std::string_view kTitle = "skiff kernel choices, version ";
constexpr std::string_view kVersion = "1";
// The longest time of one run of a kernel that a file may have: an hour.
constexpr double kMaxSeconds = 3600;

// The lines of a text one by one, counted for messages.
class Lines {
 public:
  Lines(std::string_view text, const std::string& source) : rest_(text), source_(source) {}

  bool at_end() const { return rest_.empty(); }
  std::string_view Next() {
    ++number_;
    const size_t end = rest_.find('\n');
    // Each line must have its line break: a file that was cut off in a line is damaged.
    if (end == std::string_view::npos) Throw("expected another line");
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }
  template <typename... Args>
  [[noreturn]] void Throw(const Args&... args) const {
    skiff::Throw(ErrorCode::kDataLoss, source_, ", line ", number_, ": ", args...);
  }

 private:
  std::string_view rest_;
  const std::string& source_;
  int64_t number_ = 0;
};

std::vector<std::string_view> Split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

void ParseTitle(Lines* lines, const std::string& source) {
  const std::string_view title = lines->Next();
  if (!title.starts_with(kTitle)) lines->Throw("expected \"", kTitle, kVersion, "\"");
  const std::string_view version = title.substr(kTitle.size());
  // An Error of its own, since a file of another version isn't damaged.
  SKIFF_ENFORCE(version == kVersion, kUnimplemented, source, ", line 1: version ", version,
                ", expected ", kVersion);
}

void ParseMachine(Lines* lines, std::map<std::string, std::string>* machine) {
  for (std::string_view line = lines->Next(); !line.empty(); line = lines->Next()) {
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos) lines->Throw("expected \"name: value\"");
    machine->emplace(line.substr(0, colon), line.substr(colon + 2));
  }
}

double ParseSeconds(std::string_view text, const Lines& lines) {
  const std::optional<double> seconds = ParseNumber<double>(text);
  // Not true of NaN.
  const bool is_time = seconds && *seconds >= 0 && *seconds <= kMaxSeconds;
  if (!is_time) {
    lines.Throw("\"", text, "\" is no number of seconds, expected 0 to ", kMaxSeconds);
  }
  return *seconds;
}

void ParseChoice(Lines* lines, std::map<std::string, KernelChoice>* by_key) {
  const std::vector<std::string_view> fields = Split(lines->Next(), "\t");
  if (fields.size() != 3 || fields[0].empty() || fields[2].empty()) {
    lines->Throw("expected kernel, times and key with tabs between");
  }
  KernelChoice choice;
  choice.kernel = fields[0];
  for (const std::string_view time : Split(fields[1], ", ")) {
    const size_t mark = time.find('=');
    if (mark == std::string_view::npos) lines->Throw("expected \"kernel=seconds\"");
    choice.seconds.emplace(time.substr(0, mark), ParseSeconds(time.substr(mark + 1), *lines));
  }
  // A line that contradicts itself was damaged or edited.
  if (!choice.seconds.contains(choice.kernel)) lines->Throw("no time of ", choice.kernel);
  const bool is_new = by_key->emplace(fields[2], std::move(choice)).second;
  if (!is_new) lines->Throw("the key is there twice");
}

}  // namespace

std::string PrintKernelChoices(const KernelChoices& choices) {
  std::string text = StrCat(kTitle, kVersion, "\n");
  for (const auto& [name, value] : choices.machine) text += StrCat(name, ": ", value, "\n");
  text += "\n";
  for (const auto& [key, choice] : choices.by_key) {
    std::vector<std::string> times;
    for (const auto& [kernel, seconds] : choice.seconds) {
      times.push_back(StrCat(kernel, "=", FormatShortest(seconds)));
    }
    text += StrCat(choice.kernel, "\t", Join(times, ", "), "\t", key, "\n");
  }
  return text;
}

KernelChoices ParseKernelChoices(std::string_view text, const std::string& source) {
  Lines lines(text, source);
  KernelChoices choices;
  ParseTitle(&lines, source);
  ParseMachine(&lines, &choices.machine);
  while (!lines.at_end()) ParseChoice(&lines, &choices.by_key);
  return choices;
}

}  // namespace skiff
