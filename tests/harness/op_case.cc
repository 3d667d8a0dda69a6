#include "tests/harness/op_case.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "framework/base/error.h"
#include "framework/tensor/philox.h"

namespace skiff::harness {
namespace {

// A stream of numbers in [0, 1) that depends only on the seed.
class UnitStream {
 public:
  explicit UnitStream(uint64_t seed) : philox_({.seed = seed}) {}

  double Next() {
    const Philox::Block words = philox_.At(position_++);
    return UnitDouble(words[0], words[1]);
  }

 private:
  Philox philox_;
  uint64_t position_ = 0;
};

double DrawAwayFrom(const std::vector<double>& points, double margin, double low, double high,
                    UnitStream* stream) {
  constexpr int kMaxDraws = 1000;
  for (int draw = 0; draw < kMaxDraws; ++draw) {
    const double value = low + (high - low) * stream->Next();
    const bool far = std::all_of(points.begin(), points.end(),
                                 [&](double point) { return std::abs(value - point) >= margin; });
    if (far) return value;
  }
  Throw(ErrorCode::kInvalidArgument, "no value of [", low, ", ", high, ") found that is ", margin,
        " away from ", Join(points, ", "));
}

}  // namespace

Array Uniform(const Shape& shape, uint64_t seed, double low, double high) {
  return UniformAwayFrom(shape, seed, {}, 0.0, low, high);
}

Array UniformAwayFrom(const Shape& shape, uint64_t seed, const std::vector<double>& points,
                      double margin, double low, double high) {
  const auto make = [=] {
    UnitStream stream(seed);
    std::vector<double> values(static_cast<size_t>(shape.element_count()));
    for (double& value : values) value = DrawAwayFrom(points, margin, low, high, &stream);
    return values;
  };
  return {.shape = shape, .values = LazyValues(make)};
}

Array Distinct(const Shape& shape, uint64_t seed, double low, double high) {
  const auto make = [=] {
    UnitStream stream(seed);
    const size_t count = static_cast<size_t>(shape.element_count());
    std::vector<size_t> ranks(count);
    std::iota(ranks.begin(), ranks.end(), size_t{0});
    for (size_t i = count; i > 1; --i) {
      std::swap(ranks[i - 1], ranks[static_cast<size_t>(stream.Next() * static_cast<double>(i))]);
    }
    std::vector<double> values;
    for (const size_t rank : ranks) {
      values.push_back(low + (high - low) * (static_cast<double>(rank) + 0.5) /
                                 static_cast<double>(count));
    }
    return values;
  };
  return {.shape = shape, .values = LazyValues(make)};
}

Array Integers(const Shape& shape, uint64_t seed, int64_t low, int64_t high, DType dtype) {
  const Array uniform = Uniform(shape, seed, static_cast<double>(low), static_cast<double>(high));
  const auto make = [uniform] {
    std::vector<double> values = uniform.values;
    for (double& value : values) value = std::floor(value);
    return values;
  };
  return {.shape = shape, .values = LazyValues(make), .fixed_dtype = true, .dtype = dtype};
}

Array Values(const Shape& shape, std::vector<double> values) {
  SKIFF_ENFORCE(static_cast<int64_t>(values.size()) == shape.element_count(), kInvalidArgument,
                values.size(), " values given for shape ", shape);
  return {.shape = shape, .values = std::move(values)};
}

Array Values(const Shape& shape, std::vector<double> values, DType dtype) {
  Array array = Values(shape, std::move(values));
  array.fixed_dtype = true;
  array.dtype = dtype;
  return array;
}

Array SelectedRows(Array values, std::vector<int64_t> rows, int64_t height) {
  SKIFF_ENFORCE(values.shape.rank() > 0 && values.shape[0] == static_cast<int64_t>(rows.size()),
                kInvalidArgument, rows.size(), " row numbers for values of shape ", values.shape);
  values.rows = std::move(rows);
  values.height = height;
  return values;
}

Array Dense(const Array& selected_rows) {
  Array dense = selected_rows;
  dense.shape[0] = selected_rows.height;
  dense.rows.clear();
  dense.height = -1;
  dense.values = std::vector<double>(static_cast<size_t>(dense.shape.element_count()), 0.0);
  const auto width = static_cast<size_t>(dense.shape.element_count(1, dense.shape.rank()));
  for (size_t slot = 0; slot < selected_rows.rows.size(); ++slot) {
    const int64_t row = selected_rows.rows[slot];
    for (size_t i = 0; row >= 0 && i < width; ++i) {
      dense.values[static_cast<size_t>(row) * width + i] += selected_rows.values[slot * width + i];
    }
  }
  return dense;
}

Array Merged(const Array& selected_rows) {
  const Array dense = Dense(selected_rows);
  Array merged = selected_rows;
  std::ranges::fill(merged.rows, -1);
  std::ranges::fill(merged.values, 0.0);
  const auto width = static_cast<size_t>(dense.shape.element_count(1, dense.shape.rank()));
  size_t slot = 0;
  for (int64_t row = 0; row < selected_rows.height; ++row) {
    if (std::ranges::count(selected_rows.rows, row) == 0) continue;
    for (size_t i = 0; i < width; ++i) {
      merged.values[slot * width + i] = dense.values[static_cast<size_t>(row) * width + i];
    }
    merged.rows[slot++] = row;
  }
  return merged;
}

Array Ragged(Array array, const std::vector<int64_t>& lengths) {
  array.lod = {OffsetsOf(lengths)};
  return array;
}

Array Ragged(Array array, const std::vector<int64_t>& groups, const std::vector<int64_t>& lengths) {
  array.lod = {OffsetsOf(groups), OffsetsOf(lengths)};
  return array;
}

bool HasLoD(const OpCase& op_case) {
  return std::ranges::any_of(op_case.inputs, [](const auto& slot) {
    return std::ranges::any_of(slot.second, [](const Array& array) { return !array.lod.empty(); });
  });
}

bool HasSelectedRows(const OpCase& op_case) {
  const auto sparse = op_case.attrs.find("is_sparse");
  if (sparse != op_case.attrs.end() && std::get<bool>(sparse->second)) return true;
  return std::ranges::any_of(op_case.inputs, [](const auto& input) {
    return std::ranges::any_of(input.second, &Array::is_selected_rows);
  });
}

}  // namespace skiff::harness
