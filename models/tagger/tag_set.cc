#include "models/tagger/tag_set.h"

#include <algorithm>
#include <utility>

#include "framework/io/file.h"
#include "framework/io/text_lines.h"

namespace skiff::models {
namespace {

// The letters of the positions, in the order of ChunkEval's numbers.
constexpr std::string_view kPositions = "BIES";

}  // namespace

NamedTag ParseTag(std::string_view tag, const std::string& where) {
  if (tag == "O") return {};
  const bool has_type = tag.size() > 2 && (tag[1] == '-' || tag[1] == '_');
  SKIFF_ENFORCE(has_type && kPositions.find(tag[0]) != kPositions.npos, kDataLoss, where,
                ": the tag is \"", tag, "\", expected O, or B, I, E or S, a hyphen and a type");
  return {.position = tag[0], .type = std::string(tag.substr(2))};
}

TagSet::TagSet(std::set<std::string> types, bool has_ends)
    : types_(types.begin(), types.end()), has_ends_(has_ends) {
  SKIFF_ENFORCE(!types_.empty(), kInvalidArgument, "no word is tagged as an entity");
}

TagSet TagSet::Load(const std::string& path) {
  const std::string text = ReadTextFile(path);
  std::vector<std::string_view> lines = LinesOf(text);
  SKIFF_ENFORCE(lines.size() >= 2 && (lines[0] == "IOB" || lines[0] == "IOBES"), kDataLoss, path,
                ": expected IOB or IOBES, and a type of entities in each further line");
  const std::set<std::string> types(lines.begin() + 1, lines.end());
  TagSet set(types, lines[0] == "IOBES");
  SKIFF_ENFORCE(set.Text() == Join(lines, "\n") + "\n", kDataLoss, path,
                ": the types aren't in ascending order, or one is there twice");
  return set;
}

std::string TagSet::Text() const { return StrCat(scheme(), "\n", Join(types_, "\n"), "\n"); }

int64_t TagSet::Number(const NamedTag& tag, const std::string& where) const {
  if (tag.position == 'O') return outside();
  const auto type = std::ranges::find(types_, tag.type);
  const auto position = static_cast<int64_t>(kPositions.find(tag.position));
  SKIFF_ENFORCE(type != types_.end() && position < positions(), kDataLoss, where, ": the tag ",
                tag.position, "-", tag.type, " isn't among those to train on");
  return (type - types_.begin()) * positions() + position;
}

bool TagSet::Starts(int64_t before, int64_t tag) const {
  if (before == outside() || before / positions() != tag / positions()) return true;
  const char is = kPositions[static_cast<size_t>(tag % positions())];
  const char was = kPositions[static_cast<size_t>(before % positions())];
  return is == 'B' || is == 'S' || was == 'E' || was == 'S';
}

std::vector<NamedEntity> TagSet::EntitiesOf(std::span<const int64_t> tags) const {
  std::vector<NamedEntity> entities;
  int64_t before = outside();
  for (size_t i = 0; i < tags.size(); before = tags[i++]) {
    if (tags[i] == outside()) continue;
    const auto at = static_cast<int64_t>(i);
    if (Starts(before, tags[i])) entities.push_back({at, at, tags[i] / positions()});
    entities.back().end = at + 1;
  }
  return entities;
}

}  // namespace skiff::models
