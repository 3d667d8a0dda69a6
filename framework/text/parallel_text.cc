#include "framework/text/parallel_text.h"

#include <algorithm>
#include <string_view>

#include "framework/base/error.h"
#include "framework/io/text_lines.h"
#include "framework/text/unicode.h"

namespace skiff::text {
namespace {

bool IsBlank(std::string_view text) { return std::ranges::all_of(DecodeUtf8(text), IsWhiteSpace); }

// Keeps pairs with a text on both sides.
void Add(std::string_view source, std::string_view target, const std::string& place,
         std::vector<TextPair>* pairs) {
  const bool has_source = !IsBlank(source);
  SKIFF_ENFORCE(has_source == !IsBlank(target), kDataLoss, place, ": ",
                has_source ? "no target for the source \"" : "no source for the target \"",
                has_source ? source : target, "\"");
  if (has_source) pairs->push_back({std::string(source), std::string(target)});
}

}  // namespace

std::vector<TextPair> ReadParallelText(const std::string& source_path,
                                       const std::string& target_path) {
  const std::string source_text = ReadTextFile(source_path);
  const std::string target_text = ReadTextFile(target_path);
  const std::vector<std::string_view> sources = LinesOf(source_text);
  const std::vector<std::string_view> targets = LinesOf(target_text);
  SKIFF_ENFORCE(sources.size() == targets.size(), kDataLoss, source_path, " has ", sources.size(),
                " lines and ", target_path, " has ", targets.size(), ": expected as many");
  std::vector<TextPair> pairs;
  for (size_t i = 0; i < sources.size(); ++i) {
    Add(sources[i], targets[i], StrCat(source_path, " and ", target_path, ", line ", i + 1),
        &pairs);
  }
  SKIFF_ENFORCE(!pairs.empty(), kDataLoss, source_path, ": there is no sentence");
  return pairs;
}

std::vector<TextPair> ReadPairTable(const std::string& path) {
  const std::string table = ReadTextFile(path);
  std::vector<TextPair> pairs;
  int64_t number = 0;
  for (const std::string_view line : LinesOf(table)) {
    const std::string place = StrCat(path, ", line ", ++number);
    if (IsBlank(line)) continue;
    const size_t tab = line.find('\t');
    SKIFF_ENFORCE(tab != std::string_view::npos, kDataLoss, place, ": no tab in \"", line,
                  "\", expected a sentence and its translation");
    const std::string_view rest = line.substr(tab + 1);
    Add(line.substr(0, tab), rest.substr(0, rest.find('\t')), place, &pairs);
  }
  SKIFF_ENFORCE(!pairs.empty(), kDataLoss, path, ": there is no sentence");
  return pairs;
}

}  // namespace skiff::text
