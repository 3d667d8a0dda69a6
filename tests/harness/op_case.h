// A test case of an op: inputs, attributes and a float64 reference. The harness runs each case
// against the reference and finite differences, in every dtype, in place, on every kernel
// candidate, with 1, 2 and 3 threads. The op benchmark times the same cases.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/ir/attribute.h"
#include "framework/op/registry.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"

namespace skiff::harness {

// A vector of numbers, made at its first use, so that a list of all cases takes no memory for cases
// that only the benchmark runs. Not thread-safe, not even for reading.
class LazyValues {
 public:
  using value_type = double;
  using iterator = std::vector<double>::iterator;
  using const_iterator = std::vector<double>::const_iterator;

  LazyValues() = default;
  // NOLINTBEGIN(google-explicit-constructor): it is used like a vector.
  LazyValues(std::vector<double> values) : made_(std::move(values)) {}
  LazyValues(std::initializer_list<double> values) : made_(values) {}
  explicit LazyValues(std::function<std::vector<double>()> make) : make_(std::move(make)) {}
  operator const std::vector<double>&() const { return made(); }
  // NOLINTEND

  size_t size() const { return made().size(); }
  bool empty() const { return made().empty(); }
  const double& operator[](size_t i) const { return made()[i]; }
  double& operator[](size_t i) { return made()[i]; }
  const double& at(size_t i) const { return made().at(i); }
  double& at(size_t i) { return made().at(i); }
  const double& back() const { return made().back(); }
  double& back() { return made().back(); }
  const_iterator begin() const { return made().begin(); }
  iterator begin() { return made().begin(); }
  const_iterator end() const { return made().end(); }
  iterator end() { return made().end(); }
  const double* data() const { return made().data(); }
  double* data() { return made().data(); }
  void clear() { made().clear(); }
  void push_back(double value) { made().push_back(value); }
  void resize(size_t size, double value = 0) { made().resize(size, value); }
  void reserve(size_t size) { made().reserve(size); }
  void assign(size_t size, double value) { made().assign(size, value); }
  friend bool operator==(const LazyValues& a, const LazyValues& b) { return a.made() == b.made(); }

 private:
  std::vector<double>& made() const {
    if (make_) made_ = std::exchange(make_, nullptr)();
    return made_;
  }

  mutable std::vector<double> made_;
  mutable std::function<std::vector<double>()> make_;
};

// Values in float64, whatever the dtype of a run; integers and bools are exact.
struct Array {
  Shape shape;
  LazyValues values;
  // If false, the array takes the dtype of the run (float32, float64).
  bool fixed_dtype = false;
  DType dtype = DType::kFloat64;
  // For selected rows: the row numbers, one per row held, and the number of rows of the dense
  // tensor. The values of unused rows (-1) are ignored; the op finds NaN there.
  std::vector<int64_t> rows = {};
  int64_t height = -1;
  // Of a ragged array; empty otherwise. Of an expected output, compared if it isn't empty.
  LoD lod = {};

  bool is_selected_rows() const { return height >= 0; }
};

// slot -> arguments
using Arrays = std::map<std::string, std::vector<Array>>;

// Returns pseudo-random values in [low, high), the same on every machine for one seed.
Array Uniform(const Shape& shape, uint64_t seed, double low = -1.0, double high = 1.0);
// Like Uniform, but no value is within `margin` of one of the points, at which a derivative jumps.
Array UniformAwayFrom(const Shape& shape, uint64_t seed, const std::vector<double>& points,
                      double margin = 0.05, double low = -1.0, double high = 1.0);
// Like Uniform, but no two values are equal or almost equal (for max, sort, top_k).
Array Distinct(const Shape& shape, uint64_t seed, double low = -1.0, double high = 1.0);
// Returns integers in [low, high) with a fixed dtype.
Array Integers(const Shape& shape, uint64_t seed, int64_t low, int64_t high,
               DType dtype = DType::kInt64);
// Returns the array with the LoD of sequences of these lengths.
Array Ragged(Array array, const std::vector<int64_t>& lengths);
// The same with two levels: `groups` says how many sequences each group has.
Array Ragged(Array array, const std::vector<int64_t>& groups, const std::vector<int64_t>& lengths);
Array Values(const Shape& shape, std::vector<double> values);
Array Values(const Shape& shape, std::vector<double> values, DType dtype);

// Returns selected rows with `values` [n, …] in the n given rows.
Array SelectedRows(Array values, std::vector<int64_t> rows, int64_t height);
// Returns the dense tensor that selected rows represent.
Array Dense(const Array& selected_rows);
// Returns equally many selected rows: first the different rows, ascending, each with the sum of its
// values, then unused rows.
Array Merged(const Array& selected_rows);

// A wrong input that the gradient op accepts, since nothing tells it that the input is wrong.
struct AcceptedWrongInput {
  std::string slot;    // of the gradient op: "Out@GRAD"
  std::string form;    // "other dims", "other rank" or "other dtype"
  std::string reason;  // "nothing but the gradient tells the dtype of X"
};

struct OpCase {
  std::string name;  // unique within the op: "broadcast_middle_axis"
  std::string type;
  Arrays inputs;
  AttributeMap attrs;
  // Returns the expected outputs in float64, for the slots to compare. Slots in `outputs` that it
  // doesn't fill are produced but not compared.
  std::function<Arrays(const Arrays& inputs)> reference;
  // Output slots, and the number of variables in each.
  std::vector<std::pair<std::string, int>> outputs;
  // Input slots whose gradient is checked against central differences of
  // sum(weights * Out), with fixed pseudo-random weights, over `loss_outputs` (empty: all float
  // outputs that are not intermediate). Empty: no gradient is checked.
  std::vector<std::string> gradients;
  std::vector<std::string> loss_outputs;
  // Why no case of the op lists `gradients` although it has a gradient rule. One case per op has
  // this.
  std::string unchecked_gradient;
  // Wrong inputs that the gradient op accepts, in this case or another of the op: see
  // wrong_inputs.h.
  std::vector<AcceptedWrongInput> accepted_wrong_inputs;
  // The dtypes to run in, for arrays without a fixed one.
  std::vector<DType> dtypes = {DType::kFloat32, DType::kFloat64};
  // Overrides of the tolerance table; 0: the table. A comment at the case states the observed
  // error.
  double float32_tolerance = 0;
  double float64_tolerance = 0;
  double bfloat16_tolerance = 0;  // of kernels kNativeHalfKernel
  double gradient_tolerance = 0;
  // Checks the outputs of ops whose values can't be predicted, such as random ops.
  std::function<void(const Arrays& inputs, const Arrays& outputs)> check;
  // A realistic size for the op benchmark. Tests skip it.
  bool benchmark_only = false;
};

using CaseList = std::vector<OpCase>;

// Returns whether an input is ragged.
bool HasLoD(const OpCase& op_case);

// Returns whether an input is selected rows, or the attribute is_sparse requests such a gradient.
bool HasSelectedRows(const OpCase& op_case);

}  // namespace skiff::harness
