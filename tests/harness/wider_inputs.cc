#include "tests/harness/wider_inputs.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

// New counts by old ones; those that are missing stay.
using NewCounts = std::map<int64_t, int64_t>;

// A shape that a tensor without elements carries, XShape of reshape2: dim 0 is 0, and dim 1 has the
// rows.
bool CarriesShape(const std::string& name, const Tensor& tensor) {
  return name.starts_with("XShape") && tensor.shape().rank() > 1 && tensor.shape()[0] == 0;
}

// Returns the number of sequences of each level of the LoD, and last the number of rows.
std::vector<int64_t> CountsOf(const std::string& name, const Tensor& tensor) {
  std::vector<int64_t> counts;
  for (const auto& offsets : tensor.lod()) {
    counts.push_back(static_cast<int64_t>(offsets.size()) - 1);
  }
  if (tensor.shape().rank() > 0) {
    counts.push_back(tensor.shape()[CarriesShape(name, tensor) ? 1 : 0]);
  }
  return counts;
}

int64_t Replaced(int64_t count, const NewCounts& new_counts) {
  const auto it = new_counts.find(count);
  return it == new_counts.end() ? count : it->second;
}

// New sequences come last, with a row each if there are enough; the last one of all gets the rest.
LoD Widened(LoD lod, const NewCounts& new_counts, int64_t rows) {
  for (size_t level = 0; level < lod.size(); ++level) {
    std::vector<uint64_t>& offsets = lod[level];
    const int64_t sequences = Replaced(static_cast<int64_t>(offsets.size()) - 1, new_counts);
    const auto end = static_cast<uint64_t>(
        level + 1 < lod.size()
            ? Replaced(static_cast<int64_t>(lod[level + 1].size()) - 1, new_counts)
            : rows);
    while (offsets.size() < static_cast<size_t>(sequences) + 1) {
      offsets.push_back(std::min(offsets.back() + 1, end));
    }
    offsets.back() = end;
  }
  return lod;
}

Tensor Widened(const std::string& name, const Tensor& tensor, const NewCounts& new_counts) {
  Shape shape = tensor.shape();
  if (shape.rank() > 0) {
    int64_t& rows = shape[CarriesShape(name, tensor) ? 1 : 0];
    rows = Replaced(rows, new_counts);
  }
  Tensor wide(shape, tensor.dtype(), Place::Cpu(), tensor.layout());
  if (wide.byte_count() > 0) {
    std::memset(wide.raw_data(), 0, static_cast<size_t>(wide.byte_count()));
  }
  if (!tensor.lod().empty()) wide.set_lod(Widened(tensor.lod(), new_counts, shape[0]));
  return wide;
}

class Widening {
 public:
  Widening(const OpDef& def, const Op& op, const NamedTensors& inputs)
      : def_(def), op_(op), inputs_(inputs), outputs_(OutputsFor(inputs)) {}

  std::vector<WiderInputs> All() {
    std::set<int64_t> counts;
    std::set<int64_t> counts_of_lods;
    for (const auto& [name, tensor] : inputs_) {
      for (const int64_t count : CountsOf(name, tensor)) {
        counts.insert(count);
        if (!tensor.lod().empty()) counts_of_lods.insert(count);
      }
    }
    Add(counts_of_lods, "");
    for (const int64_t count : counts) Add({count}, "");
    for (const auto& [name, tensor] : inputs_) {
      const std::vector<int64_t> own = CountsOf(name, tensor);
      Add({own.begin(), own.end()}, name);
    }
    return std::move(found_);
  }

 private:
  std::vector<TensorMeta> OutputsFor(const NamedTensors& inputs) const {
    return InferOutputMetas(def_, op_, InputMetas(def_, op_, inputs));
  }

  // Tries to raise these counts, of one input or, without a name, of all.
  void Add(const std::set<int64_t>& counts, const std::string& name) {
    if (counts.empty() || (counts.contains(1) && HasRowForAll())) return;
    // Twice as many keeps multiples and sums right; others have other divisors.
    const std::vector<std::function<int64_t(int64_t)>> ways = {
        [](int64_t count) { return count == 0 ? 3 : 2 * count; },
        [](int64_t count) { return count + 3; }};
    for (const auto& way : ways) {
      NewCounts new_counts;
      for (const int64_t count : counts) new_counts[count] = way(count);
      NamedTensors wide;
      for (const auto& [variable, tensor] : inputs_) {
        const bool is_meant = name.empty() || name == variable;
        // A plan has the same numbers for other rows.
        wide[variable] = GivesAttribute(variable)
                             ? tensor
                             : Widened(variable, tensor, is_meant ? new_counts : NewCounts());
      }
      if (!IsNew(wide) || !KeepsOtherDims(wide)) continue;
      std::vector<std::string> texts;
      for (const auto& [from, to] : new_counts) texts.push_back(StrCat(to, " instead of ", from));
      found_.push_back({std::move(wide), StrCat(Join(texts, ", "), " rows",
                                                name.empty() ? "" : StrCat(" in ", name))});
      return;
    }
  }

  // Whether a dense argument has one row for all rows of others (broadcasting). With more rows, it
  // would be another argument, which a plan doesn't take for that one.
  bool HasRowForAll() const {
    bool has_one = false;
    bool has_more = false;
    for (const auto& [name, tensor] : inputs_) {
      if (!tensor.lod().empty()) return false;
      if (tensor.shape().rank() == 0) continue;
      has_one = has_one || tensor.shape()[0] == 1;
      has_more = has_more || tensor.shape()[0] > 1;
    }
    return has_one && has_more;
  }

  bool GivesAttribute(const std::string& variable) const {
    return std::ranges::any_of(def_.inputs, [&](const SlotDef& slot) {
      return !slot.attribute.empty() && std::ranges::count(op_.Input(slot.name), variable) > 0;
    });
  }

  bool IsNew(const NamedTensors& wide) {
    std::vector<std::vector<int64_t>> signature;
    for (const auto& [name, tensor] : wide) signature.push_back(CountsOf(name, tensor));
    return seen_.insert(std::move(signature)).second;
  }

  bool KeepsOtherDims(const NamedTensors& wide) const {
    try {
      const std::vector<TensorMeta> outputs = OutputsFor(wide);
      const std::vector<std::string> names = OutputOrder(def_, op_);
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (names[i] == kEmptyVarName) continue;
        const Shape& before = outputs_[i].shape;
        const Shape& after = outputs[i].shape;
        if (before.rank() != after.rank()) return false;
        // One that only carries a shape isn't written.
        if (before.rank() > 1 && before[0] == 0 && after[0] == 0) continue;
        for (int axis = 1; axis < before.rank(); ++axis) {
          if (before[axis] != after[axis]) return false;
        }
        if (before.rank() > 0 && after[0] < before[0]) return false;
      }
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  const OpDef& def_;
  const Op& op_;
  const NamedTensors& inputs_;
  const std::vector<TensorMeta> outputs_;
  std::set<std::vector<std::vector<int64_t>>> seen_;
  std::vector<WiderInputs> found_;
};

}  // namespace

std::vector<WiderInputs> InputsWithMoreRows(const OpDef& def, const Op& op,
                                            const NamedTensors& inputs) {
  return Widening(def, op, inputs).All();
}

}  // namespace skiff::harness
