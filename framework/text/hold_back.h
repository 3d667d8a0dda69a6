// Takes examples out of a training set, to validate on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skiff::text {

// Returns how many of `size` examples are held back: round(fraction × size), but at least one.
// Throws Error (kInvalidArgument), which starts with the source of the examples, unless the
// fraction is above 0 and both parts have an example.
int64_t HeldBackCount(int64_t size, double fraction, std::string_view source);

// Removes the last HeldBackCount examples and returns them. Throws Error likewise.
template <typename T>
std::vector<T> HoldBackLast(std::vector<T>* examples, double fraction, std::string_view source) {
  const auto first = examples->end() - HeldBackCount(std::ssize(*examples), fraction, source);
  std::vector<T> held_back(std::make_move_iterator(first),
                           std::make_move_iterator(examples->end()));
  examples->erase(first, examples->end());
  return held_back;
}

// Likewise with the last examples of each class, for files that are sorted by class. T has a member
// `label`. The order within each part stays.
template <typename T>
std::vector<T> HoldBackLastOfEachClass(std::vector<T>* examples, double fraction,
                                       std::string_view source) {
  std::map<int64_t, std::vector<size_t>> of_class;
  for (size_t i = 0; i < examples->size(); ++i) of_class[(*examples)[i].label].push_back(i);
  std::vector<bool> is_held_back(examples->size());
  for (auto& [label, indices] : of_class) {
    const std::string of_label = std::string(source) + ", label " + std::to_string(label);
    for (const size_t index : HoldBackLast(&indices, fraction, of_label)) {
      is_held_back[index] = true;
    }
  }
  std::vector<T> kept;
  std::vector<T> held_back;
  for (size_t i = 0; i < examples->size(); ++i) {
    (is_held_back[i] ? held_back : kept).push_back(std::move((*examples)[i]));
  }
  *examples = std::move(kept);
  return held_back;
}

}  // namespace skiff::text
