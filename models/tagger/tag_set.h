// The tags of words: entities of some types, in the form "B-place", "I-place", "O".
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/error.h"

namespace skiff::models {

// A tag as a file has it.
struct NamedTag {
  char position = 'O';  // B: first word of an entity, I: another, E: last, S: the only one; O: none
  std::string type = {};  // of the entity; empty for O
};
// Throws an Error (kDataLoss) that starts with `where` for another form of tag.
NamedTag ParseTag(std::string_view tag, const std::string& where);

// Words [begin, end) of a sentence.
struct NamedEntity {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t type = 0;

  auto operator<=>(const NamedEntity&) const = default;
};

// The types of entities, and the numbers of the tags as layers::ChunkEval counts them.
class TagSet {
 public:
  // Of types in ascending order. With `has_ends`, the tags are those of the scheme IOBES, otherwise
  // of IOB. Throws an Error (kInvalidArgument) if there are no types.
  TagSet(std::set<std::string> types, bool has_ends);
  // Reads the file that Text() gives. Throws an Error: what ReadFile throws; kDataLoss for another
  // format.
  static TagSet Load(const std::string& path);

  // The file's name beside a saved model, and its text: the scheme, and a line for each type.
  static constexpr const char* kFile = "tags.txt";
  std::string Text() const;

  const char* scheme() const { return has_ends_ ? "IOBES" : "IOB"; }
  int64_t types() const { return static_cast<int64_t>(types_.size()); }
  const std::string& type(int64_t type) const { return types_.at(static_cast<size_t>(type)); }
  // The number of tags; the last one is that of a word in no entity.
  int64_t size() const { return types() * positions() + 1; }
  int64_t outside() const { return size() - 1; }
  // Throws an Error (kDataLoss) that starts with `where` if the set doesn't have the tag.
  int64_t Number(const NamedTag& tag, const std::string& where) const;

  // Returns the entities of a sentence, as ChunkEval finds them. Each tag is in [0, size()).
  std::vector<NamedEntity> EntitiesOf(std::span<const int64_t> tags) const;

 private:
  int64_t positions() const { return has_ends_ ? 4 : 2; }
  bool Starts(int64_t before, int64_t tag) const;

  std::vector<std::string> types_;
  bool has_ends_;
};

}  // namespace skiff::models
