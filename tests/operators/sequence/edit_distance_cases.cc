#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

using Ids = std::vector<double>;

// The definition: what is left of both is edited in each of the three ways. Each pair of lengths is
// computed once.
class EditDistanceDefinition {
 public:
  EditDistanceDefinition(const Ids& hyps, const Ids& refs) : hyps_(hyps), refs_(refs) {}

  double Of(size_t m, size_t n) {
    if (m == 0 || n == 0) return static_cast<double>(m + n);
    const auto [at, is_new] = known_.try_emplace({m, n}, 0);
    if (!is_new) return at->second;
    const double replaced = Of(m - 1, n - 1) + (hyps_[m - 1] == refs_[n - 1] ? 0 : 1);
    return known_[{m, n}] = std::min({replaced, Of(m - 1, n) + 1, Of(m, n - 1) + 1});
  }

 private:
  const Ids& hyps_;
  const Ids& refs_;
  std::map<std::pair<size_t, size_t>, double> known_;
};

std::vector<Ids> IdsOf(const Arrays& inputs, const std::string& slot) {
  const Array& array = inputs.at(slot)[0];
  std::vector<Ids> sequences;
  if (!inputs.contains(slot + "Length")) {
    for (const Rows& rows : SequencesOf(array)) {
      sequences.emplace_back();
      for (const Row& row : rows) sequences.back().push_back(row[0]);
    }
    return sequences;
  }
  for (const Row& row : RowsOf(array)) {
    const double length = inputs.at(slot + "Length")[0].values[sequences.size()];
    sequences.emplace_back(row.begin(), row.begin() + static_cast<int64_t>(length));
  }
  return sequences;
}

Arrays EditDistanceReference(const Arrays& inputs, bool normalized) {
  const std::vector<Ids> hyps = IdsOf(inputs, "Hyps");
  const std::vector<Ids> refs = IdsOf(inputs, "Refs");
  std::vector<double> distances;
  for (size_t i = 0; i < hyps.size(); ++i) {
    const double distance =
        EditDistanceDefinition(hyps[i], refs[i]).Of(hyps[i].size(), refs[i].size());
    // In float32 whatever the dtype of the case.
    const double divisor = normalized ? static_cast<double>(refs[i].size()) : 1;
    distances.push_back(static_cast<double>(static_cast<float>(distance / divisor)));
  }
  const auto count = static_cast<int64_t>(distances.size());
  return {{"Out", {Values({count, 1}, distances, DType::kFloat32)}},
          {"SequenceNum", {Values({1}, {static_cast<double>(count)}, DType::kInt64)}}};
}

OpCase EditDistanceCase(Array hyps, Array refs, bool normalized = false) {
  return {
      .name = "",
      .type = "edit_distance",
      .inputs = {{"Hyps", {std::move(hyps)}}, {"Refs", {std::move(refs)}}},
      .attrs = {{"normalized", normalized}},
      .reference = [=](const Arrays& inputs) { return EditDistanceReference(inputs, normalized); },
      .outputs = {{"SequenceNum", 1}, {"Out", 1}}};
}

}  // namespace

void AddEditDistanceCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    std::vector<int64_t> other = lengths.each;
    std::ranges::reverse(other);
    return EditDistanceCase(Ragged(Integers({lengths.rows(), 1}, 1, 0, 3), lengths.each),
                            Ragged(Integers({lengths.rows(), 1}, 2, 0, 3), other));
  });
  const auto add = [&](const std::string& name, OpCase made) {
    cases.push_back(std::move(made));
    cases.back().name = name;
  };
  // kitten and sitting
  const Array kitten = Values({6, 1}, {10, 8, 19, 19, 4, 13}, DType::kInt64);
  const Array sitting = Values({7, 1}, {18, 8, 19, 19, 8, 13, 6}, DType::kInt64);
  add("kitten", EditDistanceCase(Ragged(kitten, {6}), Ragged(sitting, {7})));
  add("normalized", EditDistanceCase(Ragged(kitten, {6, 0}), Ragged(sitting, {5, 2}), true));
  add("int32", EditDistanceCase(Ragged(Integers({5, 1}, 3, 0, 2, DType::kInt32), {2, 3}),
                                Ragged(Integers({4, 1}, 4, 0, 2, DType::kInt32), {3, 1})));
  OpCase padded = EditDistanceCase(Integers({3, 6}, 5, 0, 3), Integers({3, 4}, 6, 0, 3));
  padded.inputs["HypsLength"] = {Values({3}, {6, 0, 3}, DType::kInt64)};
  padded.inputs["RefsLength"] = {Values({3}, {4, 2, 0}, DType::kInt64)};
  add("padded", padded);
  padded.inputs["HypsLength"] = {Values({3, 1}, {2, 5, 6}, DType::kInt64)};
  padded.inputs["RefsLength"] = {Values({3, 1}, {4, 1, 2}, DType::kInt64)};
  padded.attrs["normalized"] = true;
  padded.reference = [](const Arrays& inputs) { return EditDistanceReference(inputs, true); };
  add("padded_normalized", std::move(padded));
  add("many",
      EditDistanceCase(Ragged(Integers({6000, 1}, 7, 0, 9), std::vector<int64_t>(200, 30)),
                       Ragged(Integers({5000, 1}, 8, 0, 9), std::vector<int64_t>(200, 25))));
}

}  // namespace skiff::harness
